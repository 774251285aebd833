"""The tables of the audit show what its records hold, and count fairly where the verdict is first."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from truepair.methods import METHODS
from truepair.reproduce.audits import cells_by_method
from truepair.reproduce.cells import Context, Places
from truepair.reproduce.render.audit import audits, audits_by_method, behind_first, gained, named, places_of
from truepair.reproduce.render.audit_picture import estimate_picture
from truepair.reproduce.tables import Filled, Section, Table, read_specs

TABLES, SECTIONS = read_specs()
TABLE = TABLES["audit"]
ROWS = TABLE.titles
SECTION = next(section for section in SECTIONS if section.render == "audits")
AUROC, _, F1, CALIBRATION = SECTION.parts


def audit_report(records):
    return audits(SECTION, Filled(TABLE, records))


def record(noise, seed=0, *, data="fashion", kind="random", truth=None, verdict=None, **rows):
    """A record in which every row has the same figures but for those that are named."""
    truth = noise if truth is None else truth
    ranked = 0.9 if noise else None
    usual = {"auroc": ranked, "average_precision": ranked, "f1": 0.8 if noise else None, "calibration_error": 0.05}
    usual |= {"estimate": noise, "flagged": noise, "two_groups": noise > 0}
    interval = {"estimate_low": truth - 0.01, "estimate_high": truth + 0.01}
    found = {name: {**usual, **rows.get(name.replace(" ", "_"), {})} for name in ROWS}
    found["verdict"] |= interval | (verdict or {})
    return {
        "cell": {"data": data, "kind": kind, "noise": noise, "seed": seed},
        "command": f"python -m truepair.reproduce run audit --data {data} --rates {noise}",
        "date": f"2026-01-0{seed + 1}",
        "seconds": 1800.0,
        "mismatch_rate": truth,
        "rows": found,
    }


def table_after(text, title):
    """Row title → cells of the table that follows a line."""
    lines = text.split(title)[1].strip().splitlines()
    end = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    cells = [[part.strip() for part in line.strip("|").split("|")] for line in lines[:end]]
    assert len({len(row) for row in cells}) == 1
    return {row[0]: row[1:] for row in cells}


def test_cells_are_means_over_seeds_and_missing_ones_say_so():
    records = [
        record(0.2, 0, verdict={"auroc": 0.98}),
        record(0.2, 1, verdict={"auroc": 0.96}),
        record(0.4, verdict={"auroc": 0.91}, lemon={"auroc": None}),
    ]
    found = table_after(audit_report(records), "**`fashion`, random noise, AUROC:**")
    assert found[""] == ["20 %", "40 %"]
    assert found["the verdict"] == ["**0.9700 ± 0.0141**", "**0.9100**"]
    assert found["LEMoN"] == ["0.9000 ± 0.0000", "–"]
    assert [*found] == ["", "---", *ROWS.values()]


def test_what_is_shown_as_best_is_bold_wherever_it_stands():
    found = [
        record(0.2, lemon={"auroc": 0.95001}, memory={"auroc": 0.95002}, verdict={"calibration_error": 0.01}),
        record(0.4, verdict={"auroc": 0.94}),
        record(0.0, similarity={"calibration_error": 0.0}),
    ]
    text = audit_report(found)
    shown = table_after(text, "**`fashion`, random noise, AUROC:**")
    assert [name for name, cells in shown.items() if "**" in cells[0]] == ["LEMoN", "memory alone"]
    error = table_after(text, "expected calibration error, smaller is better:**")
    assert error[""][0] == "0 %"
    assert [name for name, cells in error.items() if "**" in cells[0]] == ["plain cosine"]
    assert [name for name, cells in error.items() if "**" in cells[1]] == ["the verdict"]


@pytest.mark.parametrize(
    ("verdict", "best", "gap", "near"),
    [
        ([0.95], [0.9], -0.05, True),
        ([0.9], [0.90004], 0, True),  # the same in the table
        ([0.95], [0.9515], 0.0015, True),
        ([0.95], [0.9525], 0.0025, False),
        ([0.95, 0.95], [0.96, 0.98], 0.02, False),  # deviation 0.0141
        ([0.96, 0.96], [0.96, 0.98], 0.01, True),
        ([0.949, 0.949], [0.95, 0.95], 0.001, False),  # with several seeds their deviation alone counts
    ],
)
def test_near_is_one_deviation_of_the_first_or_a_small_step_with_one_seed(verdict, best, gap, near):
    records = [
        record(0.2, seed, verdict={"auroc": ours}, neighbours={"auroc": theirs})
        for seed, (ours, theirs) in enumerate(zip(verdict, best, strict=True))
    ]
    assert behind_first(records, ROWS, AUROC)[0] == pytest.approx(gap)
    assert behind_first(records, ROWS, AUROC)[1:] == (near, "neighbours" if max(best) > 0.9 else "similarity")


def test_of_calibration_errors_the_smallest_is_first():
    assert behind_first([record(0.2, verdict={"calibration_error": 0.01})], ROWS, CALIBRATION)[:2] == (-0.04, True)
    late = record(0.2, verdict={"calibration_error": 0.06}, lemon={"calibration_error": 0.02})
    assert behind_first([late], ROWS, CALIBRATION) == (0.04, False, "lemon")


def test_the_summary_counts_every_cell_once():
    records = [
        record(0.0, verdict={"calibration_error": 0.001, "f1": 0.0}),
        record(0.2, verdict={"auroc": 0.95}),
        record(0.2, kind="hard", structure={"auroc": 0.93}),
        record(0.4, data="scenes", verdict={"auroc": 0.899}),
    ]
    found = table_after(audit_report(records), "**The verdict against all other rows:**")
    assert found["AUROC"] == ["3", "1", "2", "0.0300, `fashion` hard 20 %: structure alone"]
    assert found["average precision"] == found[F1["title"]] == ["3", "3", "3", "–"]
    assert found["expected calibration error"] == ["4", "4", "4", "–"]


def test_estimates_stand_beside_the_truth():
    records = [
        record(0.0, verdict={"estimate": 0.004, "estimate_low": 0.0, "flagged": 0.0001}, certainty={"flagged": 0.4}),
        record(0.4, 0, truth=0.39, verdict={"estimate": 0.40}, loss_mixture={"estimate": 0.31}),
        record(0.4, 1, truth=0.39, verdict={"estimate": 0.43, "estimate_low": 0.40, "estimate_high": 0.46}),
        record(0.6, kind="hard", verdict={"estimate": 0.50, "flagged": 0.45, "two_groups": False}),
    ]
    text = audit_report(records)
    found = table_after(text, "**Estimated against true noise rate, in percent:**")
    assert found["`fashion` without noise"][:6] == ["0.0", "0.4", "0.0 – 1.0", "yes", "no", "0.0"]
    assert found["`fashion` random 40 %"] == [
        "39.0 ± 0.0", "41.5 ± 2.1", "39.0 – 43.0", "1 of 2", "2 of 2", "40.0 ± 0.0", "40.0 ± 0.0", "35.5 ± 6.4",
    ]  # fmt: skip
    assert found["`fashion` hard 60 %"][4:6] == ["no", "45.0"]
    assert "within 3 points of the truth in 2 of 3 cells, farthest off by 10.0 points (`fashion` hard 60 %)" in text
    assert "holds the truth in 3 of 4 audits" in text
    clean = table_after(text, "**Flagged where no pair is mismatched, in percent:**")
    assert clean["the verdict"] == ["0.01"] and clean["certainty alone"] == ["40.00"]


def test_cost_and_origin_are_told():
    text = audit_report([record(0.2, 0), record(0.4, 2, data="emoji")])
    assert text.startswith("2 audits, seeds 0, 2, 2026-01-01 to 2026-01-03, 1.0 hours of auditing on one CPU thread")
    assert "One of them: `python -m truepair.reproduce run audit --data emoji --rates 0.4`." in text


def test_cells_without_noise_are_one_kind_and_data_sets_keep_their_order():
    records = [record(0.4, data="scenes"), record(0.0, kind="hard"), record(0.1)]
    shown = [named(place) for place in places_of(Filled(TABLE, records))]
    assert shown == ["`fashion` without noise", "`fashion` random 10 %", "`scenes` random 40 %"]


def test_records_of_the_grid_itself_can_be_shown():
    from truepair.audit.verdict.verdict import verdict_of_evidence
    from truepair.reproduce.audit_rows import by_mixture, figures_of

    rng = np.random.default_rng(0)
    mismatched = np.arange(600) < 240
    score = rng.normal(np.where(mismatched, -2.0, 2.0))
    verdict = verdict_of_evidence(score[:, None], {"random": rng.normal(-2.0, size=(200, 1))})
    made = record(0.4)
    made["rows"] = {"similarity": by_mixture(score, mismatched), "verdict": figures_of(verdict, mismatched)}
    made["rows"]["verdict"] |= {"estimate_low": verdict.noise_rate_low, "estimate_high": verdict.noise_rate_high}
    text = audit_report([json.loads(json.dumps(made))])
    shown = table_after(text, "random noise, AUROC:**")
    assert [*shown] == ["", "---", "plain cosine", "the verdict"]
    assert all(0.99 < float(shown[name][0].strip("*")) < 1 for name in ("plain cosine", "the verdict"))
    assert "within 3 points of the truth in 1 of 1 cells" in text


def test_an_audit_of_little_data_has_every_row_of_the_table(tmp_path, monkeypatch):
    from truepair.audit.options import CrossFitting
    from truepair.data.open import load
    from truepair.reproduce import audit_rows

    pairs = load("scenes:30")
    labelled = replace(pairs, labels=pairs.image_index % 3, class_names=("a", "b", "c"))
    monkeypatch.setattr(audit_rows, "load_labelled", lambda data, root: labelled)
    monkeypatch.setattr(audit_rows, "NCR_EPOCHS", 1)
    monkeypatch.setattr("truepair.audit.options.CrossFitting", partial(CrossFitting, epochs=2, folds=2, width=32))
    made = audit_rows.audit_rows("toy", "hard", 0.4, 0, tmp_path, tmp_path)
    assert {*made["rows"]} == {*ROWS} and made["pairs"] == 150
    assert 0.3 < made["mismatch_rate"] < 0.5
    assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_the_picture_has_a_panel_for_each_data_set_and_its_kinds():
    records = [record(0.0), record(0.4, truth=0.39, verdict={"estimate": 0.41}), record(0.2, data="emoji", kind="hard")]
    figure = estimate_picture(Filled(TABLE, records))
    random = next(axes for axes in figure.axes if axes.get_title() == "fashion, random noise")
    assert [axes.get_title() for axes in figure.axes] == ["fashion, random noise", "emoji, hard noise"]
    verdict = next(line for line in random.lines if line.get_label().startswith("verdict"))
    assert verdict.get_xydata().tolist() == pytest.approx(np.array([[0, 0], [39, 41]]))


def test_audits_by_either_method_are_made_kept_and_shown(tiny, tmp_path, in_this_process, monkeypatch):
    at = Context("audit-by-method", {}, {})
    options = "--folds 2 --epochs 1 --width 8 --batch-size 16 --bank 32"
    grid = {"options": options, "rates": [0.4], "methods": ["crcl", "truepair"], "seeds": [3]}
    cells = [*cells_by_method(at, data=tiny.name, **grid)]
    words = f"{options} --noise 0.4 --noise-seed 3 --seed 3 --method truepair --out {cells[1].name}"
    assert cells[1].command == f"truepair audit {tiny.name} {words}"
    places, found = Places(tiny.parent, tmp_path / "runs"), []
    for cell in cells:
        made = cell.measure(places)
        assert made["methods"][0]["name"] == cell.facts["method"] and made["epochs_trained"] >= 2
        assert made["cpu_seconds"] > 0 and 0 < made["scores"]["auroc"] < 1
        again = cell.measure(places)
        assert again == made  # what is there is read, not made again
        found.append({"cell": cell.facts, "command": cell.command, "date": "2026-01-01", **made})
    changed = replace(METHODS["crcl"], revision=METHODS["crcl"].revision + 1)
    with monkeypatch.context() as patch:
        patch.setitem(METHODS, "crcl", changed)
        assert cells[0].measure(places)["methods"] == [{"name": "crcl", "revision": changed.revision}]
    assert (tmp_path / "runs" / at.table / f"{cells[0].name}-revision1").is_dir()
    named = {"rows": {"crcl": "CRCL", "truepair": "ours"}, "names": {tiny.name: "tiny"}}
    section = Section("", "", [], "", options=named)
    shown = audits_by_method(section, Filled(Table("audit-by-method", "", cells, {}), found))
    assert "| tiny, 40 % | CRCL | 1 | " in shown and "| tiny, 40 % | ours | 1 | " in shown
    assert "ours beside CRCL, in audits of the same seed: tiny, 40 %: AUROC " in shown
    assert "in audits" not in audits_by_method(section, Filled(Table("", "", cells, {}), found[:1]))


def test_what_a_method_gains_counts_audits_of_the_same_seed():
    def audit(auroc, seconds):
        return {"scores": {"auroc": auroc}, "cpu_seconds": seconds}

    before = {0: audit(0.9, 10.0), 1: audit(0.8, 20.0), 2: audit(0.1, 1.0)}
    assert gained(before, {0: audit(0.92, 20.0), 1: audit(0.84, 80.0)}) == (
        "AUROC +0.0300 ± 0.0141, p = 0.2048, 3.0 ± 1.4 times as long"
    )
    assert gained(before, {0: audit(0.85, 25.0)}) == "AUROC -0.0500, 2.5 times as long"
    assert gained(before, {5: audit(0.9, 1.0)}) == "no seed has both"


def test_a_row_of_a_method_holds_means_over_its_audits():
    def audit(seed, auroc, random, high):
        scores = {"auroc": auroc, "average_precision": 0.8, "calibration_error": 0.05}
        shares = {"mismatch_rate": 0.4, "noise_rate": 0.5, "noise_rate_low": 0.3, "noise_rate_high": high}
        facts = {"data": "toy", "method": "crcl", "noise": 0.4, "seed": seed}
        kept = {"random": random and {"share": random}, "scores": scores, "cpu_seconds": 20.0 * (seed + 1)}
        return {"cell": facts, "command": "truepair audit toy", "date": "2026-01-01", **shares, **kept}

    section = Section("", "", [], "", options={"rows": {"crcl": "CRCL"}, "names": {"toy": "toys"}})
    found = [audit(0, 0.9, 0.3, 0.6), audit(1, 0.8, None, 0.35)]
    shown = audits_by_method(section, Filled(Table("", "", [], {}), found))
    assert shown.splitlines()[-1] == (
        "| toys, 40 % | CRCL | 2 | 0.8500 ± 0.0707 | 0.8000 ± 0.0000 | 0.050 ± 0.000 | 30.0 | 50.0 ± 0.0 | 1 of 2 "
        "| 30 ± 14 |"
    )
