"""A paper's ablation beside print: differences in percent of the whole method, ours of runs of the same seed."""

import pytest

from truepair.errors import InputError
from truepair.reproduce.published.printed import printed_table
from truepair.reproduce.render.ablation_beside_print import ablation_beside_print
from truepair.reproduce.tables import Filled, Section, Table, read_specs

TITLES = {"crcl": "L_acl", "crcl-active": "L_d", "crcl-current": "current", "unseen": "no run"}
OPTIONS = {
    "whole": "crcl",
    "printed": "crcl-4",
    "variants": {"crcl": "L_acl + SCC (full)", "crcl-active": "L_d + SCC", "crcl-current": ""},
}


def record(method, seed, rsum, noise=0.6):
    return {
        "name": f"{method}-{noise}-{seed}",
        "cell": {"data": "toy", "method": method, "noise": noise, "seed": seed},
        "date": f"2026-01-0{2 + seed}",
        "training_seconds": 1800,
        "result": {"test": {"rsum": rsum}, "detection": {"auroc": rsum / 1000}},
    }


RECORDS = [
    record("crcl", 0, 200.0),
    record("crcl", 1, 400.0),
    record("crcl-active", 0, 190.0),
    record("crcl-active", 1, 396.0),
    record("crcl-current", 1, 408.0),
    record("crcl-current", 2, 999.0),
    record("crcl", 0, 500.0, noise=0.4),
]


def shown(records=RECORDS, **options):
    section = Section("", "", [], "ablation_beside_print", options=OPTIONS | options)
    return ablation_beside_print(section, Filled(Table("toy", "", [], TITLES), records))


def test_differences_are_of_the_same_seed_and_of_the_printed_whole():
    lines = shown().splitlines()
    (start,) = (place for place, line in enumerate(lines) if line.startswith("**60 % noise**"))
    assert "`toy`, seeds 0, 1, 2, 2026-01-02 to 2026-01-04, 3.0 hours of training on one CPU thread" in lines[start]
    whole, active, current = lines[start + 4 : start + 7]
    assert whole == "| L_acl | 476.1 | | 2 | 300.0 ± 141.4 | | 0.3000 ± 0.1414 |"
    # 471.2 / 476.1 − 1 in print; 190 / 200 − 1 and 396 / 400 − 1 here
    assert active == "| L_d | 471.2 | -1.0 % | 2 | 293.0 ± 145.7 | -3.0 ± 2.8 % | 0.2930 ± 0.1457 |"
    # the paper has no such row, and no run of the whole method has seed 2
    assert current.startswith("| current | – | – | 2 | 703.5 ± 417.9 | +2.0 % |")
    assert "no run" not in "\n".join(lines)


def test_a_rate_that_is_not_printed_shows_ours_alone():
    lines = shown().splitlines()
    assert lines[0].startswith("**40 % noise**") and lines[4] == "| L_acl | – | | 1 | 500.0 | | 0.5000 |"


def test_map_is_the_mean_of_both_directions_and_of_one_data_set():
    runs = [record("crcl", 0, 0.0, noise=0.4), record("crcl-active", 0, 0.0, noise=0.4)]
    for run, value in zip(runs, (0.5, 0.48), strict=True):
        run["result"]["test"] = {"map": value}
    other = record("crcl", 0, 0.0, noise=0.4)
    other["cell"]["data"] = "elsewhere"
    lines = shown(
        [*runs, other],
        printed="uot-rcl-4",
        measure="map",
        data="toy",
        variants={"crcl": "full", "crcl-active": "w/o L_BHG"},
    ).splitlines()
    assert lines[2] == "| | printed mAP | of the whole | seeds | mAP here | of the whole | AUROC |"
    assert lines[4] == "| L_acl | 0.492 | | 1 | 0.500 | | 0.0000 |"  # (0.520 + 0.464) / 2
    assert lines[5] == "| L_d | 0.473 | -3.9 % | 1 | 0.480 | -4.0 % | 0.0000 |"  # (0.499 + 0.447) / 2


def test_every_variant_of_a_section_is_printed():
    _, sections = read_specs()
    found = [section for section in sections if section.render == "ablation_beside_print"]
    assert found
    for section in found:
        printed = {row.method for row in printed_table(section.options["printed"]).rows}
        assert set(section.options["variants"].values()) <= printed | {""}
    with pytest.raises(InputError, match="crcl-44 is no table"):
        shown(printed="crcl-44")
