"""Our figures beside printed ones: printed rows are found, ours are means of shuffled captions on the global engine."""

import pytest

from tests.reproduce.test_grand import filled, record, warmed
from truepair.errors import InputError
from truepair.reproduce.render.beside_print import beside_print, left, printed_sums
from truepair.reproduce.tables import Section, read_specs

ROWS = [["a", "crcl-1", "CRCL"], ["b", "gsc-1", "NCR-SGR"]]


def section(**options):
    given = {"printed": "f30k", "data": "flickr8k", "rates": [0.2, 0.6], "rows": ROWS, **options}
    return Section("docs/x.md", "x", ("grand",), "beside_print", options=given)


def test_a_row_has_the_printed_sums_and_the_means_of_ours():
    runs = [
        *(record("a", rate, seed, level + seed) for rate, level in ((0.2, 200), (0.6, 99)) for seed in (0, 2)),
        record("a", 0.6, 0, 500.0, kind="image"),
        record("a", 0.6, 0, 500.0, data="fashion_precomp"),
        record("a", 0.6, 0, 500.0, engine="sgr"),
        record("b", 0.2, 0, 150.0),
    ]
    lines = beside_print(section(), filled(runs)).splitlines()
    assert lines[0].startswith("Printed for Flickr30K, ours on `flickr8k`")
    assert lines[4] == "| first (CRCL of `crcl-1`) | 507.8 | 487.3 | 96 % | 201.0 ± 1.4 | 100.0 ± 1.4 | 50 % |"
    assert lines[5] == "| second (NCR-SGR of `gsc-1`) | 491.1 | 184.6 | 38 % | 150.0 | – | – |"
    runs[-1] = warmed(runs[-1], best=2)
    assert "| 150.0‡ | – | – |" in beside_print(section(), filled(runs))


def test_what_is_not_printed_has_no_figure():
    assert printed_sums("crcl-1", "CRCL", "f30k", [0.2, 0.3]) == [507.8, None]
    assert left([200.0, 50.0]) == "25 %" and left([None, 50.0]) == left([200.0, None]) == "–"


def test_every_row_of_the_table_in_the_documentation_is_printed():
    (shown,) = (each for each in read_specs()[1] if each.render == "beside_print")
    options = shown.options
    for _, name, row in options["rows"]:
        assert None not in printed_sums(name, row, options["printed"], options["rates"])
    with pytest.raises(InputError, match="no table that is known"):
        printed_sums("crcl-99", "CRCL", "f30k", [0.2])
