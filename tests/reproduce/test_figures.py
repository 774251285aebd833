"""Figures of the papers: every specification can be drawn, what is drawn is what stands beside it, and bytes repeat."""

import json
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import truepair
from tests.pages.labels.made_runs import columns_of_a_run, write_run
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError
from truepair.losses.active_complementary import robust_complementary
from truepair.methods.disncl.method import DisNCL
from truepair.methods.disncl.options import DisNCLConfig
from truepair.reproduce.cells import Places
from truepair.reproduce.figures import figure as room
from truepair.reproduce.figures.figure import OF_FORMULAS, OF_RECORDS, OF_RUNS, FigureSpec, draw, read_figures
from truepair.reproduce.figures.from_records import against_noise, beliefs_by_epoch, by_epoch, recalls, sweep
from truepair.reproduce.figures.from_runs import corrected_labels, features, histograms, plane_of_classes, subspaces
from truepair.reproduce.figures.of_formulas import bounds, risk_bounds
from truepair.reproduce.figures.of_retrieval import retrieved
from truepair.reproduce.figures.of_soft_targets import soft_targets
from truepair.reproduce.records import read_records
from truepair.reproduce.tables import read_specs
from truepair.training.config import TrainingConfig
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder
from truepair.training.setup import Setup

pytestmark = pytest.mark.usefixtures("few_drawings")

ROOT = Path(__file__).parents[2]
TABLES, _ = read_specs()


def record(method, noise, seed, rsum, options=None):
    epochs = [{"epoch": k, "dev_rsum": rsum + k, "auroc": None} for k in (1, 2)]
    return {
        "cell": {"data": "x", "method": method, "noise": noise, "seed": seed},
        "result": {"test": {"rsum": rsum}},
        "epochs": epochs,
        "options": {"method": {"options": options or {}}},
    }


RECORDS = [record("a", 0.2, 0, 10.0), record("a", 0.2, 1, 14.0), record("a", 0.4, 0, 6.0), record("b", 0.2, 0, 3.0)]
TITLES = {"a": "first", "b": "second", "c": "without records"}


@pytest.mark.parametrize("name", [*read_figures()])
def test_what_a_figure_names_is_there(name):
    spec = read_figures()[name]
    assert spec.paper and (spec.draw in OF_RUNS) == bool(spec.runs)
    for run in spec.runs.values():
        table, _, cell = run.partition("/")
        assert cell in {cell.name for cell in TABLES[table].cells}
    assert (spec.draw in OF_FORMULAS) == (not spec.runs and not spec.table)
    if spec.table:
        assert spec.draw in OF_RECORDS and {*spec.rows.split()} <= {*TABLES[spec.table].titles}
        facts = [cell.facts for cell in TABLES[spec.table].cells]
        for row in spec.rows.split():
            assert any({"method": row, **spec.where}.items() <= fact.items() for fact in facts), row
        shown = [fact for fact in facts if fact["method"] in spec.rows.split() and spec.where.items() <= fact.items()]
        assert spec.draw != "by_epoch" or len({(fact["data"], fact["noise"]) for fact in shown}) == 1


def test_a_curve_is_means_and_deviations_over_seeds():
    shown = against_noise(RECORDS, TITLES, figure="result.test.rsum", axis="rSum").numbers
    assert shown["curves"] == {
        "first": [(20.0, 12.0, statistics.stdev([10, 14])), (40.0, 6.0, 0.0)],
        "second": [(20.0, 3.0, 0.0)],
    }


def test_epochs_that_lack_a_figure_are_left_out():
    here = [record for record in RECORDS if record["cell"]["noise"] == 0.2]
    shown = by_epoch(here, TITLES, figures={"dev_rsum": "", "auroc": "found"}, axis="rSum").numbers["curves"]
    assert [*shown] == ["first", "second"] and [point[:2] for point in shown["first"]] == [(1.0, 13.0), (2.0, 14.0)]
    with pytest.raises(InputError, match="no record holds what this figure shows"):
        by_epoch(here, TITLES, figures={"auroc": ""}, axis="AUROC")


def test_epochs_are_whole_numbers_on_the_axis():
    one = record("a", 0.2, 0, 10.0)
    for last in (3, 10, 18):
        one["epochs"] = [{"epoch": k, "dev_rsum": 10.0 * k} for k in range(1, last + 1)]
        ticks = by_epoch([one], TITLES, figures={"dev_rsum": ""}, axis="rSum").figure.axes[0].get_xticks()
        assert len(ticks) > 2 and all(tick == round(tick) for tick in ticks)


def test_beliefs_of_an_epoch_are_summed_over_seeds():
    counts = {"belief_matched": [0, 3], "belief_mismatched": [5, 1]}
    records = [
        {**record("a", 0.4, seed, 1.0), "epochs": [{"epoch": k, **counts} for k in (1, 2, 3)]} for seed in (0, 1)
    ]
    drawn = beliefs_by_epoch(records, TITLES, columns=2, axis="label")
    assert drawn.numbers["counts"] == {"first": {str(k): {"matched": [0, 6], "mismatched": [10, 2]} for k in (2, 3)}}
    assert [axes.get_title() for axes in drawn.figure.axes] == ["epoch 2", "epoch 3"]
    with pytest.raises(InputError, match="run its table anew"):
        beliefs_by_epoch(RECORDS, TITLES, columns=1, axis="label")


def test_a_sweep_is_over_the_value_of_an_option():
    records = [record(f"w{w}", 0.4, 0, 10 * w, {"relation_weight": w}) for w in (1.0, 0.5)]
    shown = sweep(records, {}, option="relation_weight", figure="result.test.rsum", axis="rSum").numbers
    assert (
        shown["curves"] == {"40% noise": [(0.5, 5.0, 0.0), (1.0, 10.0, 0.0)]}
        and shown["horizontal"] == "relation weight"
    )


def test_recalls_are_means_and_deviations_over_seeds_in_the_order_of_the_rows():
    def of(method, seed, *values):
        found = {f"t2i_r{k}": value for k, value in zip((1, 5, 10), values, strict=True)}
        return {**record(method, 0.4, seed, 0.0), "result": {"test": found}}

    records = [of("b", 0, 1.0, 2.0, 3.0), of("a", 0, 10.0, 20.0, 30.0), of("a", 1, 14.0, 20.0, 33.0)]
    drawn = recalls(records, TITLES, direction="t2i", axis="R@K")
    assert drawn.numbers["bars"] == {
        "first": {
            "R@1": (12.0, statistics.stdev([10, 14])),
            "R@5": (20.0, 0.0),
            "R@10": (31.5, statistics.stdev([30, 33])),
        },
        "second": {"R@1": (1.0, 0.0), "R@5": (2.0, 0.0), "R@10": (3.0, 0.0)},
    }
    (axes,) = drawn.figure.axes
    assert [bar.get_height() for bar in axes.patches] == [12.0, 20.0, 31.5, 1.0, 2.0, 3.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["R@1", "R@5", "R@10"]


@pytest.mark.parametrize("exponent", [0.0, 0.4, 1.0])
def test_the_bounds_of_the_risk_are_those_of_the_loss(exponent):
    """Over all N targets L_r sums to (N − 1) A^(1−q) (lemma 2), from N equal probabilities to a single one; η of the
    pairs are mismatched with one of N − 1 captions, in both directions (theorem 1).
    """
    captions, rate = 5, 0.3
    drawn = np.random.default_rng(0).dirichlet(np.full(captions, 0.3), size=50)
    rows = torch.from_numpy(np.concatenate([np.full((1, captions), 1 / captions), np.eye(captions)[:1], drawn]))

    q = torch.full((captions,), exponent, dtype=torch.float64)
    sums = [float(robust_complementary(row.repeat(captions, 1), q).sum()) / (captions - 1) for row in rows]
    least, most = sums[:2]
    assert all(least - 1e-12 <= value <= most + 1e-12 for value in sums)
    c, c_prime = bounds(captions, rate, exponent)
    assert c_prime == pytest.approx(2 * rate * (most - least), abs=1e-12)
    assert c == pytest.approx(-c_prime / (1 - captions * rate / (captions - 1)), abs=1e-12)


def test_both_bounds_close_at_one():
    curves = risk_bounds(captions=100, rate=0.2).numbers["curves"]
    assert curves["C"][-1] == curves["C′"][-1] == [1.0, 0.0]
    lower, upper = ([value for _, value in curves[name]] for name in ("C", "C′"))
    assert lower == sorted(lower) and upper == sorted(upper, reverse=True) and lower[0] < 0 < upper[0]


def test_a_figure_of_a_formula_needs_neither_records_nor_runs(tmp_path):
    nowhere = tmp_path / "nowhere"
    paths = draw("crcl-2", nowhere, Places(nowhere, nowhere), tmp_path / "out")
    assert json.loads(paths[2].read_text())["numbers"]["captions"] == 100 and not nowhere.exists()


def test_a_figure_of_records_is_three_files_and_the_same_again(tmp_path):
    places = Places(tmp_path, tmp_path)
    first, again = (draw("crcl-1a", ROOT / "results", places, tmp_path / out) for out in ("first", "again"))
    assert [path.suffix for path in first] == [".svg", ".png", ".json"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    numbers = json.loads(first[2].read_text())
    assert numbers["command"] == "python -m truepair.reproduce figure crcl-1a"
    means = [
        found["result"]["test"]["rsum"]
        for found in read_records(ROOT / "results" / "noise.jsonl")
        if (found["cell"]["method"], found["cell"]["noise"]) == ("crcl", 0.4)
    ]
    shown = {where: mean for where, mean, _ in numbers["numbers"]["curves"]["CRCL"]}
    assert shown[40.0] == pytest.approx(statistics.fmean(means))


def test_a_table_without_records_is_said_so(tmp_path, monkeypatch):
    spec = FigureSpec("", "against_noise", table="noise", rows="crcl", options={"figure": "result", "axis": ""})
    monkeypatch.setattr(room, "read_figures", lambda: {"x": spec})
    with pytest.raises(InputError, match="run `python -m truepair.reproduce run noise` first"):
        draw("x", tmp_path, Places(tmp_path, tmp_path), tmp_path)


@pytest.fixture(scope="module")
def pairs_run(tmp_path_factory):
    """A run on mismatched pairs, of a method with subspaces."""
    out = tmp_path_factory.mktemp("runs") / "pairs"
    noisy = truepair.inject_noise(truepair.load("scenes:60", "train"), 0.4, seed=0)
    setup = Setup(model=GlobalConfig(width=8), training=TrainingConfig(epochs=2))
    truepair.fit(
        noisy, method=DisNCL(DisNCLConfig(warm_up_epochs=1, least_clean=0.0)), setup=setup, out=out, progress=False
    )
    return RunFolder(out)


def test_histograms_are_shares_of_the_matched_and_of_the_mismatched(pairs_run):
    drawn = histograms({"run": pairs_run, "again": pairs_run}, columns={"memory_seen_probability": "p"})
    assert len(drawn.figure.axes) == 2
    table = read_pair_table(pairs_run.pairs)
    seen, wrong = (table[name].to_numpy() for name in ("memory_seen_probability", "mismatched"))
    shown = drawn.numbers["run"]["p"]
    for truth in ("matched", "mismatched"):
        values = seen[wrong == (truth == "mismatched")]
        low, high = shown["edges"][0], shown["edges"][20]
        assert sum(shown[truth]) == pytest.approx(1)
        assert sum(shown[truth][:20]) == pytest.approx(((values >= low) & (values < high)).mean())


def test_the_mixture_of_gsc_is_drawn_over_what_it_was_fitted_to(tmp_path):
    noisy = truepair.inject_noise(truepair.load("scenes:60", "train"), 0.4, seed=0)
    setup = Setup(model=GlobalConfig(width=8), training=TrainingConfig(epochs=2))
    run = truepair.fit(noisy, method="gsc", setup=setup, out=tmp_path / "run", progress=False)
    columns = {"memory_seen_structure": "S_IM", "memory_label": "y"}
    drawn = histograms({"run": run.folder}, columns=columns)
    shown, last = drawn.numbers["run"], run.metrics[-1]
    assert "components" not in shown["y"]
    low, scale = last["structure_low"], last["structure_high"] - last["structure_low"]
    expected = [low + scale * last[f"mixture_{part}_mean"] for part in ("noisy", "clean")]
    assert shown["S_IM"]["components"]["means"] == pytest.approx(expected)
    assert len(drawn.figure.axes[0].lines) == 2 and not drawn.figure.axes[1].lines
    for line in drawn.figure.axes[0].lines:  # each a distribution of its own, as far as it lies between the edges
        where, height = line.get_xdata(), line.get_ydata() / 100 * 40 / (line.get_xdata()[-1] - line.get_xdata()[0])
        assert 0.3 < np.trapezoid(height, where) < 1.01


def test_subspaces_are_four_sets_of_marks(pairs_run):
    drawn = subspaces({"run": pairs_run}, source="scenes:60")
    assert {*drawn.numbers["points"]} == {"V_S", "V_X", "T_S", "T_X"}
    assert len({len(points) for points in drawn.numbers["points"].values()}) == 1
    assert drawn.numbers["neighbours"]["V_S"].keys() == drawn.numbers["points"].keys()


def test_items_in_a_plane_are_those_of_the_classes(pairs_run, tmp_path, monkeypatch):
    test, most = truepair.load("scenes:60", "test"), 100
    monkeypatch.setattr("truepair.reproduce.figures.from_runs.ITEMS", 2 * most)
    assert len(test) > most
    labels = np.arange(len(test)) % 3
    labelled = replace(test, labels=labels, class_names=("x", "y", "z"))
    monkeypatch.setattr("truepair.data.open.load", lambda source, split, **options: labelled)
    shown = plane_of_classes({"run": pairs_run}, source="any", options={}).numbers["run"]
    assert [found["class"] for found in shown] == ["x", "y", "z"]
    assert [len(found["images"]) for found in shown] == [len(found["texts"]) for found in shown]
    assert sum(len(found["images"]) for found in shown) == most
    panels = plane_of_classes({"run": pairs_run}, source="any", options={}).numbers
    assert [*panels] == ["images, features as they are", "run"] and [*panels["run"][0]] == ["class", "images", "texts"]
    assert [*panels["images, features as they are"][0]] == ["class", "images"]
    both = replace(test, texts=replace(test.texts, features=np.eye(len(test.texts), dtype=np.float32)))
    drawn = np.array([3, 0])
    found = features(both, drawn)
    assert found["images"].tolist() == test.images.features[test.image_index[drawn]].reshape(2, -1).tolist()
    assert found["texts"].argmax(axis=1).tolist() == test.text_index[drawn].tolist()
    monkeypatch.setattr("truepair.data.open.load", lambda source, split, **options: test)
    with pytest.raises(InputError, match="no classes"):
        plane_of_classes({"run": pairs_run}, source="any", options={})


def test_queries_are_shown_with_what_is_most_similar_to_them_and_whether_it_is_of_their_class(pairs_run, monkeypatch):
    from truepair.audit.scoring.vectors import encode
    from truepair.training.fit import open_run

    test = truepair.load("scenes:60", "test")
    labelled = replace(test, labels=np.arange(len(test)) % 3, class_names=("x", "y", "z"))
    monkeypatch.setattr("truepair.data.open.load", lambda source, split, **options: labelled)
    drawn = retrieved({"run": pairs_run}, source="any", options={}, images=2, texts=2)
    rows = drawn.numbers["queries"]
    assert [(row["kind"], len(row["found"])) for row in rows] == [("image", 5)] * 2 + [("text", 3)] * 2
    assert len({row["class"] for row in rows[:3]}) == 3
    vectors = encode(open_run(pairs_run.path).model, labelled, device="cpu")
    for row in rows:
        assert [found["right"] for found in row["found"]] == [found["class"] == row["class"] for found in row["found"]]
        of_texts = row["kind"] == "image"
        query, others = (vectors.images, vectors.texts) if of_texts else (vectors.texts, vectors.images)
        index = labelled.text_index if of_texts else labelled.image_index
        similarity = sorted((others[index] @ query[row["place"]]).tolist(), reverse=True)
        assert [found["similarity"] for found in row["found"]] == pytest.approx(
            similarity[: len(row["found"])], abs=1e-3
        )
    assert len(drawn.figure.axes) == 4 * 6
    monkeypatch.setattr("truepair.data.open.load", lambda source, split, **options: test)
    with pytest.raises(InputError, match="no classes"):
        retrieved({"run": pairs_run}, source="any", options={}, images=1, texts=1)


def test_soft_targets_are_those_of_the_run_and_name_what_they_are_of(pairs_run):
    from truepair.pages.analysis.soft_examples import soft_examples
    from truepair.pages.analysis.subject import open_subject

    test = truepair.load("scenes:60", "test")
    drawn = soft_targets({"run": pairs_run}, source="scenes:60")
    expected = soft_examples(open_subject(pairs_run.path), test, seed=0)
    rows = drawn.numbers["queries"]
    assert [row["kind"] for row in rows] == ["image"] * 4 + ["text"] * 4
    for row, query in zip(rows, expected.queries, strict=True):
        assert [one["target"] for one in row["found"]] == [round(one.target, 4) for one in query.candidates]
        assert row["found"][0]["role"] == "match" and row["place"] == query.row
        for one in row["found"]:
            if row["kind"] == "image":
                assert one["caption"] == test.texts.captions[one["place"]]
            else:
                assert one["id"] == test.images.ids[one["place"]]
    assert len(drawn.figure.axes) == 8 * (1 + max(len(row["found"]) for row in rows))


def test_a_figure_shows_the_records_that_its_table_takes_from_others(tmp_path):
    name = "fashion_precomp-gsc-in-turn-noise40-seed0"
    (kept,) = (one for one in read_records(ROOT / "results" / "noise.jsonl") if one["name"] == name)
    (tmp_path / "noise.jsonl").write_text(json.dumps(kept) + "\n")
    paths = draw("gsc-4a", tmp_path, Places(tmp_path, tmp_path), tmp_path / "out")
    shown = json.loads(paths[2].read_text())["numbers"]["curves"]
    assert shown == {"40% noise": [[0.01, kept["result"]["test"]["rsum"], 0.0]]}


def test_the_baseline_of_disncl_is_the_one_its_paper_describes():
    (run,) = read_figures()["disncl-4-baseline"].runs.values()
    table, _, name = run.partition("/")
    (command,) = (cell.command for cell in TABLES[table].cells if cell.name == name)
    assert "--disncl-disentangler reconstruction" in command


def test_corrected_labels_are_the_mean_distribution_of_a_true_class(tmp_path):
    columns = columns_of_a_run()
    run = RunFolder(write_run(tmp_path / "labels", columns))
    drawn = corrected_labels({"20 %": run, "40 %": run})
    held, truth = np.array(columns["label_distribution"]), columns["true_class"]
    expected = [
        [np.mean([row[k] for row, of in zip(held, truth, strict=True) if of == c]) for k in range(3)] for c in range(3)
    ]
    np.testing.assert_allclose(drawn.numbers["40 %"], expected, atol=1e-4)


def test_curves_by_epoch_are_of_one_noise_rate():
    with pytest.raises(InputError, match="found x at 20%, x at 40%; name one"):
        by_epoch(RECORDS, TITLES, figures={"dev_rsum": ""}, axis="rSum")
