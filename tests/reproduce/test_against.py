"""One row beside others: means over seeds, differences in the same cells, and how sure these are."""

import math

import pytest
from scipy.stats import t as t_distribution
from scipy.stats import wilcoxon

from truepair.reproduce.cells import Cell
from truepair.reproduce.render.against import against
from truepair.reproduce.tables import Filled, Section, Table

TITLES = {"ours": "our method", "rival": "rival", "oracle": "oracle", "infonce": "InfoNCE", "other": "another"}
OPTIONS = {"row": "ours", "others": ["rival", "oracle"], "names": {"toy": "toys", "more": "more toys"}}


def record(method, rate, seed, rsum, *, data="toy"):
    return {
        "name": f"{data}-{method}-{rate}-{seed}",
        "cell": {"data": data, "method": method, "noise": rate, "seed": seed},
        "command": f"truepair train {data} --method {method}",
        "date": "2026-01-02",
        "result": {"test": {"rsum": rsum}, "detection": {"auroc": 0.9 + rsum / 10000} if rate else None},
    }


RECORDS = [
    *(record("ours", rate, seed, 300 - 100 * rate + seed) for rate in (0.2, 0.4) for seed in (0, 1, 2)),
    *(record("rival", 0.2, seed, 270.0 - seed) for seed in (0, 1)),
    *(record("rival", 0.4, seed, 240.0) for seed in (1, 2, 3)),
    record("oracle", 0.2, 0, 290.0),
    record("other", 0.8, 0, 1.0),
]


def shown(*tables, **options):
    filled = []
    for number, records in enumerate(tables):
        cells = [Cell(found["name"], found["cell"], found["command"], dict) for found in records]
        filled.append(Filled(Table(f"toy{number}", "", cells, TITLES), records))
    return against(Section("docs.md", "toy", ["toy"], "against", options=OPTIONS | options), *filled).splitlines()


def test_a_cell_of_which_all_runs_diverged_says_so():
    cells = [Cell(found["name"], found["cell"], found["command"], dict) for found in RECORDS]
    gone = [record("oracle", 0.4, 0, 0.0), record("rival", 0.4, 5, 0.0), record("oracle", 0.2, 0, 0.0, data="more")]
    filled = Filled(Table("toy", "", cells, TITLES), RECORDS, gone)
    lines = against(Section("docs.md", "toy", ["toy"], "against", options=OPTIONS), filled).splitlines()
    assert next(line for line in lines if line.startswith("| 40 %")).startswith(
        "| 40 % | 3 | 261.0 ± 1.0 | 240.0 ± 0.0 | diverged |"
    )
    assert "\n".join(lines).count("diverged") == 1


def test_means_are_of_all_seeds_and_leads_of_equal_ones():
    assert shown(RECORDS) == [
        "**Toys** (`toy`), test rSum, seeds 0, 1, 2, 3, 2026-01-02:",
        "",
        "| noise | seeds | our method | rival | oracle | AUROC, our method | AUROC, rival |",
        "|---|---|---|---|---|---|---|",
        "| 20 % | 3 | 281.0 ± 1.0 | 269.5 ± 0.7 | 290.0 | 0.9281 ± 0.0001 | 0.9270 ± 0.0001 |",
        "| 40 % | 3 | 261.0 ± 1.0 | 240.0 ± 0.0 | – | 0.9261 ± 0.0001 | 0.9240 ± 0.0000 |",
        "",
        "What our method is ahead, in runs of the same rate and seed:",
        "",
        "| noise | rival | oracle |",
        "|---|---|---|",
        "| 20 % | +11.0 ± 1.4 (2) | -10.0 (1) |",
        "| 40 % | +21.5 ± 0.7 (2) | – |",
        "| all with noise | 4 of 4 above | 0 of 1 above |",
    ]


def test_the_chance_is_that_of_wilcoxon_times_the_tests():
    """Of six differences and more; the one of the oracle is no test."""
    more = [record(row, 0.6, seed, 200.0 + seed * (row == "ours")) for row in ("ours", "rival") for seed in (4, 5)]
    p = wilcoxon([10, 12, 21, 22, 4, 5]).pvalue
    assert p == 2 / 2**6
    assert shown([*RECORDS, *more])[-1] == f"| all with noise | 6 of 6 above, p = {p:.4f} | 0 of 1 above |"
    oracle = [record("oracle", rate, seed, 400.0 + seed) for rate in (0.2, 0.4) for seed in (0, 1, 2)]
    found = shown([*(r for r in RECORDS if r["cell"]["method"] != "oracle"), *more, *oracle])[-1]
    assert found == f"| all with noise | 6 of 6 above, p = {2 * p:.4f} | 0 of 6 above, p = {2 * p:.4f} |"


def test_the_chance_of_a_rate_is_that_of_a_paired_t_test_of_three_seeds():
    """t = mean/(deviation/√n), with n − 1 degrees of freedom; times the number of cells with three seeds or more."""
    gaps, sure = [10.0, 12.0, 17.0], [10.0, 12.0, 9.0, 11.0]
    records = [
        *(record("ours", rate, seed, 300.0) for rate in (0.2, 0.4) for seed in range(4)),
        *(record("rival", 0.2, seed, 300 - gap) for seed, gap in enumerate(gaps)),
        *(record("rival", 0.4, seed, 300 - gap) for seed, gap in enumerate(sure)),
        *(record("oracle", 0.2, seed, 310.0) for seed in range(3)),
        *(record("oracle", 0.4, seed, 310.0) for seed in range(2)),
    ]

    def chance_of(found):
        mean, count = sum(found) / len(found), len(found)
        deviation = math.sqrt(sum((gap - mean) ** 2 for gap in found) / (count - 1))
        return 2 * t_distribution.sf(mean / (deviation / math.sqrt(count)), count - 1)

    chance = chance_of(gaps)
    lines = shown(records)
    assert f"| 20 % | +13.0 ± 3.6 (3), p = {chance:.4f} | -10.0 ± 0.0 (3), p < 0.0001 |" in lines
    assert f"| 40 % | +10.5 ± 1.3 (4), p = {2 * chance_of(sure):.4f} | -10.0 ± 0.0 (2) |" in lines


def test_other_noise_is_named_and_one_rate_is_all():
    records = [record("ours", 0.4, 0, 2.0), record("rival", 0.4, 0, 1.0)]
    for found in records:
        found["command"] += " --noise-kind nearest"
    lines = shown(records)
    assert lines[0] == "**Toys** (`toy`), `--noise-kind nearest`, test rSum, seed 0, 2026-01-02:"
    assert lines[-1] == "| 40 % | +1.0 (1) | – |"


def test_without_noise_the_oracle_is_infonce_and_does_not_count():
    lines = shown([*RECORDS, record("ours", 0.0, 0, 300.0), record("infonce", 0.0, 0, 310.0)])
    assert lines[4] == "| 0 % | 1 | 300.0 | – | 310.0 | – | – |"
    assert "| 0 % | – | -10.0 (1) |" in lines and lines[-1].endswith("| 0 of 1 above |")


@pytest.mark.parametrize("data", ["toy", "more"])
def test_a_data_set_without_the_row_is_left_out(data):
    lines = shown([record("rival", 0.2, 0, 1.0)], [record("ours", 0.2, 0, 2.0, data=data)])
    assert [line.split("(")[0] for line in lines if line.startswith("**")] == [
        "**Toys** " if data == "toy" else "**More toys** "
    ]


def test_what_is_reached_is_of_runs_of_the_same_seed():
    """Of the bound at the same rate, and of InfoNCE without noise; without noise nothing is shown."""
    more = [
        *(record("infonce", 0.0, seed, rsum) for seed, rsum in ((0, 280.0), (1, 140.5))),
        *(record("other", 0.2, seed, 350.0) for seed in (1, 5)),
        record("ours", 0.0, 0, 300.0),
    ]
    lines = shown([*RECORDS, *more], bounds=["oracle", "other"])
    start = lines.index("What our method reaches, in percent, in runs of the same seed:")
    assert lines[start + 2 :] == [
        "| noise | of the oracle | of the another | of InfoNCE without noise |",
        "|---|---|---|---|",
        f"| 20 % | {100 * 280 / 290:.1f} (1) | {100 * 281 / 350:.1f} (1) | 150.0 ± 70.7 (2) |",
        f"| 40 % | – | – | {(100 * 260 / 280 + 100 * 261 / 140.5) / 2:.1f} ± 65.7 (2) |",
    ]
