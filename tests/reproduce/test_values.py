"""Tables of runs hold means over seeds of what the records hold."""

from truepair.reproduce.cells import Cell
from truepair.reproduce.render.values import divisions, groups_of, value_table, values
from truepair.reproduce.tables import Filled, Section, Table

TITLES = {"oracle": "the oracle", "crcl": "CRCL", "infonce": "InfoNCE", "uot-rcl": "UOT-RCL"}


def record(method, noise, seed, rsum, auroc=None, *, data="toy", **more):
    figures = {f"{direction}_r{k}": rsum / 6 for direction in ("i2t", "t2i") for k in (1, 5, 10)} | {"rsum": rsum}
    found = None if auroc is None else {"auroc": auroc}
    return {
        "name": f"{data}-{method}-{noise}-{seed}",
        "cell": {"data": data, "method": method, "noise": noise, "seed": seed},
        "command": f"truepair train {data} --method {method}",
        "date": f"2026-01-0{2 + seed}",
        "training_seconds": 1800.0,
        "result": {"test": figures, "detection": found, "labels": {"right": rsum / 1000, "given": noise}},
        **more,
    }


RECORDS = [
    record("infonce", 0.0, 0, 300.0),
    record("infonce", 0.0, 1, 310.0),
    record("infonce", 0.4, 0, 150.0, 0.8),
    record("oracle", 0.4, 0, 250.0),
    record("crcl", 0.4, 0, 240.0, 0.97),
    record("crcl", 0.4, 1, 250.0, 0.99),
]


def filled(records=RECORDS):
    cells = [Cell(record["name"], record["cell"], record["command"], dict) for record in records]
    return Filled(Table("toy", "", cells, TITLES), records)


def section(*parts, **more):
    return Section("docs.md", "toy", ["toy"], "values", parts=[*parts], **more)


def test_a_value_table_shows_mean_and_deviation_and_the_clean_oracle_is_infonce():
    text = values(section({"title": "rSum:", "figure": "result.test.rsum", "digits": 1}), filled())
    assert text.splitlines() == [
        "rSum:",
        "",
        "| | 0 % | 40 % |",
        "|---|---|---|",
        "| the oracle | 305.0 ± 7.1 | 250.0 |",
        "| CRCL | – | 245.0 ± 7.1 |",
        "| InfoNCE | 305.0 ± 7.1 | 150.0 |",
    ]


def test_figures_of_a_warm_up_are_marked_and_may_be_the_best_of_a_column():
    warm_up = {"name": "x", "options": {"warm_up_epochs": 2}}
    best = {**RECORDS[3]["result"], "best_epoch": 2}
    options = {"method": warm_up, "training": {"epochs": 5}}
    marked = [*RECORDS[:3], {**RECORDS[3], "options": options, "result": best}, *RECORDS[4:]]
    part = {"figure": "result.test.rsum", "digits": 1}
    assert "| the oracle | 305.0 ± 7.1 | 250.0‡ |" in values(section(part), filled(marked))
    bold = value_table(TITLES, groups_of(marked), "result.test.rsum", 1, best="max")
    assert "| the oracle | **305.0 ± 7.1** | **250.0**‡ |" in bold
    assert "| the oracle‡ |" in values(section({"recalls": True, "title": "{rate}:"}), filled(marked))
    assert "‡" not in values(section({"figure": "result.detection.auroc", "digits": 3}), filled(marked))


def test_a_part_may_show_some_rows_in_an_order_of_its_own():
    part = {"figure": "result.test.rsum", "digits": 1, "rows": ["crcl", "oracle"]}
    shown = [line.split(" | ")[0] for line in values(section(part), filled()).splitlines()[2:]]
    assert shown == ["| CRCL", "| the oracle"]


def test_figures_that_are_not_there_leave_row_or_table_out():
    text = values(
        section({"figure": "result.detection.auroc", "digits": 4}, {"figure": "epochs.no", "digits": 1}), filled()
    )
    assert "| CRCL | – | 0.9800 ± 0.0141 |" in text and "oracle" not in text
    assert text.count("|---") == 3


def test_a_run_that_diverged_is_named_in_its_own_part_alone():
    gone = [
        {**record("crcl", 0.4, 2, 0.0, data=data), "diverged": {"epoch": 3, "said": "CRCL diverged."}}
        for data in ("toy", "other")
    ]
    runs = [*RECORDS, record("crcl", 0.4, 0, 240.0, data="other"), record("crcl", 0.4, 1, 250.0, data="other")]
    table = filled([*runs, *gone]).table
    text = values(section({"origin": "crcl"}, per="data"), Filled(table, runs, gone))
    toy, other = text.split("2 runs on `other`")
    sentence = "`{}-crcl-0.4-2` diverged, so it is not in the tables: CRCL diverged."
    assert toy.count("diverged, ") == other.count("diverged, ") == 1
    assert sentence.format("toy") in toy and sentence.format("other") in other


def test_runs_of_a_method_that_diverged_are_one_sentence_and_leave_their_cell_no_figure():
    gone = [
        {**record("crcl", rate, seed, 0.0), "diverged": {"epoch": 3, "said": f"CRCL diverged in epoch {seed}"}}
        for rate, seed in ((0.0, 1), (0.0, 2), (0.4, 5))
    ]
    parts = [{"origin": "crcl"}, {"figure": "result.test.rsum", "digits": 1}]
    runs = [run for run in RECORDS if (run["cell"]["method"], run["cell"]["noise"]) != ("crcl", 0.0)]
    text = values(section(*parts), Filled(filled([*runs, *gone]).table, runs, gone))
    names = "`toy-crcl-0.0-1`, `toy-crcl-0.0-2`, `toy-crcl-0.4-5`"
    assert f"\n\n{names} diverged, so they are not in the tables: CRCL diverged in epoch 1.\n\n" in text
    assert next(line for line in text.splitlines() if line.startswith("| CRCL")).startswith("| CRCL | diverged | 24")


def test_what_is_kept_is_a_share_of_the_oracle_and_of_clean_infonce():
    text = values(section({"kept": ["crcl"]}), filled())
    assert text.splitlines()[2:] == [
        "| CRCL: share of the oracle at the same noise | 98.0 % |",
        "| CRCL: share of InfoNCE without noise | 80.3 % |",
    ]


def test_recalls_stand_rate_by_rate():
    text = values(section({"title": "At {rate}:", "recalls": True}), filled(RECORDS[2:4]))
    assert text.startswith("At 40 %:\n\n| | i→t R@1 |")
    assert "| InfoNCE | 25.0 | 25.0 | 25.0 | 25.0 | 25.0 | 25.0 | 150.0 |" in text


def test_origin_tells_runs_seeds_dates_hours_and_a_command():
    text = values(section({"origin": "crcl", "remark": ", as always"}), filled())
    assert text == (
        "6 runs on `toy`, seeds 0, 1, as always, 2026-01-02 to 2026-01-03, 3.0 hours of training in all, on one "
        "CPU thread a run. One of them: `truepair train toy --method crcl --out RUN`."
    )


def test_a_section_repeats_for_each_data_set_in_the_order_of_the_specification():
    records = [record("uot-rcl", 0.4, 0, 400.0, data="b"), record("uot-rcl", 0.4, 0, 300.0, data="a")]
    part = {"title": "**{data}**", "figure": "result.labels.right", "digits": 2, "given": "result.labels.given"}
    text = values(section(part, per="data", head=[{"origin": "x"}], options={"names": {"b": "Set B"}}), filled(records))
    assert text.index("**Set B**") < text.index("| as given | 0.40 |\n| UOT-RCL | 0.40 |") < text.index("**a**")
    assert "| UOT-RCL | 0.30 |" in text and text.count("2 runs on") == 1


def test_the_share_of_the_clean_set_is_that_of_the_last_epoch():
    line = {"clean": 1, "hard": 1, "noisy": 2}
    found = filled([record("crcl", 0.4, 0, 1.0, epochs=[{}, line])])
    assert "| CRCL | 0.250 |" in values(section({"figure": "clean share", "digits": 3}), found)


def test_divisions_are_shown_epoch_by_epoch_of_the_run_asked_for():
    line = {"epoch": 1, "clean": 7, "hard": 0, "noisy": 3, "clean_matched": 0.9, "hard_matched": None}
    line |= {"noisy_matched": 0.2, "division_accuracy": 0.87, "auroc": 0.9, "dev_rsum": 100.0}
    records = [record("crcl", 0.4, seed, 1.0, epochs=[{**line, "epoch": seed + 1}]) for seed in (0, 1)]
    asked = {"noise": 0.4, "seed": 1, "shown": [["global", "crcl", "CRCL, global"], ["sgr", "crcl", "CRCL, SGR"]]}
    text = divisions(section(options=asked), filled([]), filled(records))
    assert text.startswith("**CRCL, global, 40 % noise, seed 1:** parts in pairs")
    assert text.splitlines()[-1] == "| 2 | 7 | 90 % | 0 | – | 3 | 20 % | 0.870 | 0.900 | 100.0 |"
    assert "SGR" not in text
