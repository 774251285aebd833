"""An ablation compares rows of the same seeds, parts off with the whole, parts added with none; and names options."""

from truepair.reproduce.cells import Cell
from truepair.reproduce.render.ablation import ablation
from truepair.reproduce.tables import Filled, Section, Table

TITLES = {
    "ours": "our method",
    "ours-no-a": "without a",
    "ours-no-b": "without b",
    "bare": "none",
    "ours-only-a": "and a",
}
OWN = {
    "ours-no-a": " --ours-a 0",
    "ours-no-b": " --no-ours-b --epochs 3 --oracle",
    "bare": " --ours-a 0 --no-ours-b",
    "ours-only-a": " --theirs-c 3",
}
OPTIONS = {"whole": "ours", "none": "bare", "added": "ours-only-", "names": {"toy": "toys", "other": "others"}}


def record(method, seed, rsum, *, data="toy"):
    return {
        "name": f"{data}-{method}-{seed}",
        "cell": {"data": data, "method": method, "noise": 0.4, "seed": seed},
        "command": f"truepair train {data} --method ours{OWN.get(method, '')} --train-pairs 30",
        "date": f"2026-01-0{2 + seed}",
        "result": {
            "dev": {"rsum": rsum},
            "test": {"rsum": 1.0},
            "detection": {"auroc": rsum / 1000, "average_precision": 0.5},
        },
    }


RECORDS = [
    record("ours", 0, 300.0),
    record("ours", 1, 320.0),
    record("ours-no-a", 0, 290.0),
    record("ours-no-a", 1, 306.0),
    record("ours-no-b", 1, 325.0),
    record("bare", 0, 200.0),
    record("ours-only-a", 0, 203.0),
    record("ours-only-a", 2, 900.0),
]


def shown(records):
    cells = [Cell(record["name"], record["cell"], record["command"], dict) for record in records]
    section = Section("docs.md", "toy", ["toy"], "ablation", options=OPTIONS)
    return ablation(section, Filled(Table("toy", "", cells, TITLES), records)).splitlines()


def test_differences_are_of_dev_and_of_equal_seeds():
    assert shown(RECORDS) == [
        "**Toys**, 40 % noise, `--train-pairs 30`, seeds 0, 1, 2, 2026-01-02 to 2026-01-04:",
        "",
        "| | seeds | dev rSum | difference | p | AUROC | average precision | options |",
        "|---|---|---|---|---|---|---|---|",
        "| our method | 2 | 310.0 ± 14.1 | | | 0.3100 ± 0.0141 | 0.5000 ± 0.0000 | |",
        "| without a | 2 | 298.0 ± 11.3 | -12.0 ± 2.8 | | 0.2980 ± 0.0113 | 0.5000 ± 0.0000 | `--ours-a 0` |",
        "| without b | 1 | 325.0 | +5.0 | | 0.3250 | 0.5000 | `--no-ours-b --oracle` |",
        "| none | 1 | 200.0 | -100.0 | | 0.2000 | 0.5000 | `--ours-a 0 --no-ours-b` |",
        "| and a | 2 | 551.5 ± 492.9 | +3.0 | | 0.5515 ± 0.4929 | 0.5000 ± 0.0000 | |",
    ]


def test_a_row_without_a_seed_in_common_has_no_difference():
    lines = shown([record("ours", 0, 300.0), record("ours-no-a", 1, 290.0)])
    assert lines[-1] == "| without a | 1 | 290.0 | – | | 0.2900 | 0.5000 | `--ours-a 0` |"


def test_three_seeds_are_tested_pairwise():
    """Differences of −1, −2 and −3: t = −2 / (1 / √3), of two degrees of freedom."""
    records = []
    for seed, whole in enumerate((300.0, 340.0, 310.0)):
        records += [record("ours", seed, whole), record("ours-no-a", seed, whole - seed - 1)]
    t = 2 * 3**0.5
    chance = 1 - t / (2 + t * t) ** 0.5  # two-sided, of Student's distribution with two degrees of freedom
    assert f"| -2.0 ± 1.0 | {chance:.3f} |" in shown(records)[-1]


def test_each_noise_rate_has_its_table():
    noisier = record("ours", 0, 150.0)
    noisier["cell"]["noise"] = 0.8
    lines = shown([noisier, record("ours-no-a", 0, 290.0)])
    assert [line.split(",")[1] for line in lines if line.startswith("**")] == [" 40 % noise", " 80 % noise"]
    assert lines[-1].startswith("| our method | 1 | 150.0 | |")


def test_each_data_set_has_its_table_under_its_name():
    lines = shown([*RECORDS, record("ours", 0, 100.0, data="other")])
    assert [line.split(",")[0] for line in lines if line.startswith("**")] == ["**Toys**", "**Others**"]
