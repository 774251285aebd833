"""A data set that is not there is named before the first run."""

import pytest

from truepair.errors import InputError
from truepair.reproduce import __main__ as command
from truepair.reproduce.cells import Cell, Places
from truepair.reproduce.data_sets import check_data_sets, known_data_sets
from truepair.reproduce.tables import read_specs

BUILT_IN = {"scenes"}


def cells(*data):
    return [Cell(f"{name}-{place}", {"data": name}, "", lambda places: {}) for place, name in enumerate(data)]


def test_the_data_set_of_every_table_is_known():
    tables, _ = read_specs()
    named = {cell.facts["data"] for table in tables.values() for cell in table.cells}
    assert named - BUILT_IN == set(known_data_sets()) & named
    assert not BUILT_IN & set(known_data_sets())


@pytest.mark.parametrize("data", ["fashion", "fashion_precomp"])
def test_what_is_missing_is_named_with_its_runs_and_what_it_holds(tmp_path, data):
    wanted = rf"{tmp_path} has no folder fashion_precomp, which 2 runs of .* product photos .* --root, or .* --data"
    with pytest.raises(InputError, match=wanted):
        check_data_sets(cells(data, "scenes", data), Places(tmp_path, tmp_path))


def test_what_is_there_or_built_in_is_not_missed(tmp_path):
    (tmp_path / "flickr8k").mkdir()
    check_data_sets(cells("photographs", "flickr8k", "scenes"), Places(tmp_path, tmp_path))


def test_a_table_of_missing_data_ends_before_any_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "run_cells", lambda *given, **more: pytest.fail("began"))
    words = ["run", "ours-icons", "--root", str(tmp_path), "--results", str(tmp_path), "--runs", str(tmp_path / "runs")]
    monkeypatch.setattr("sys.argv", ["truepair.reproduce", *words])
    assert command.main() == 2
    said = capsys.readouterr().err
    assert "no folder icons, which 30 runs" in said and "examples/icons.py" in said
