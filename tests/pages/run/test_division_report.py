"""The division report: its numbers against loops over `pairs.parquet`, its files, and what it says of odd runs."""

import json
import shutil
from dataclasses import asdict, replace

import numpy as np
import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

import truepair
from truepair.correspondence.mixture import fit_mixture
from truepair.data.config import DataConfig
from truepair.engines.config import GlobalConfig
from truepair.errors import RunFolderError, TruepairError
from truepair.evaluation import division_record
from truepair.methods import build_method
from truepair.methods.base import Method
from truepair.methods.pair_field import PairField
from truepair.pages.kit.canvas import COLUMN, DPI, LETTERS, SIGN, shortened
from truepair.pages.run.division import PER_END, read_report
from truepair.pages.run.figures import belief_by_epoch, indicator_histogram, parts_by_epoch
from truepair.pages.run.indicators import BINS, Components, Indicator, cut_between, indicators_of
from truepair.pages.run.write import epoch_rows, facts, run_labels, summary, write_comparison, write_report
from truepair.training.setup import Setup

pytestmark = pytest.mark.usefixtures("few_drawings")

SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
QUICK = {"epochs": 3, "batch_size": 16, "minimum_count": 1, "learning_rate": 1e-2}
METHODS = {
    "triplet": ("triplet", {}),
    "infonce": ("infonce", {}),
    "crcl": ("crcl", {}),
    "truepair": ("truepair", {}),
    "gsc": ("gsc", {}),
    "gsc-two": ("gsc", {"co_train": True}),
    "ugncl": ("ugncl", {"warm_up_epochs": 1, "least_clean": 0.0}),
}
FIELDS = {
    "triplet": {"seen_probability"},
    "infonce": {"seen_probability"},
    "crcl": {"label", "seen_similarity"},
    "truepair": {"label", "credit", "seen_similarity"},
    "gsc": {"seen_similarity", "seen_structure", "cross_modal", "intra_modal", "label"},
    "gsc-two": {
        "belief",
        *(
            field + end
            for field in ("seen_similarity", "seen_structure", "cross_modal", "intra_modal", "label")
            for end in ("", "_b")
        ),
    },
    "ugncl": {"share", "pair_belief", "label", "uncertainty"},
}


@pytest.fixture(scope="module")
def noisy(tiny):
    return truepair.inject_noise(truepair.load(tiny), 0.4, seed=1)


@pytest.fixture(scope="module")
def runs(noisy, tmp_path_factory):
    """A run of every method, trained once."""
    root, made = tmp_path_factory.mktemp("runs"), {}

    def run(name):
        if name not in made:
            method, options = METHODS[name]
            chosen = build_method(method, options)
            made[name] = truepair.fit(noisy, method=chosen, out=root / name, setup=SMALL, **QUICK).path
        return made[name]

    return run


def rows_of(run):
    return parquet.read_table(run / "pairs.parquet").to_pylist()


def hand_written(folder, records, pairs=None, method="mine", options=None, data=None):
    """A run folder with nothing but what the report reads."""
    folder.mkdir(parents=True)
    config = {"method": {"name": method, "options": options or {}}, "data": data}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    if pairs is not None:
        parquet.write_table(pyarrow.table(pairs), folder / "pairs.parquet")
    return folder


def record(epoch=1, stage=0, **figures):
    return {"epoch": epoch, "stage": stage, "division": figures or {"clean": 4, "hard": 0, "noisy": 0}}


def table(belief, division=None, **columns):
    count = len(belief)
    return {
        "pair_id": [str(row) for row in range(count)],
        "row": list(range(count)),
        "image_index": list(range(count)),
        "image": [f"image{row}" for row in range(count)],
        "caption": [f"caption {row}" for row in range(count)],
        "p_match": belief,
        "flagged": [value < 0.5 for value in belief],
        "division": division or ["clean" if value >= 0.5 else "noisy" for value in belief],
        **columns,
    }


# --- Numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_the_last_epoch_is_what_a_loop_over_the_pairs_finds(runs, name):
    run = runs(name)
    last, rows = read_report(run).epochs[-1], rows_of(run)
    for part in ("clean", "hard", "noisy"):
        inside = [row for row in rows if row["division"] == part]
        assert getattr(last, part) == len(inside)
        share = sum(not row["mismatched"] for row in inside) / len(inside) if inside else None
        assert getattr(last, f"{part}_matched") == (None if share is None else pytest.approx(share))
    good = [row["p_match"] for row in rows if not row["mismatched"]]
    bad = [row["p_match"] for row in rows if row["mismatched"]]
    assert last.belief_matched_mean == pytest.approx(sum(good) / len(good))
    assert last.belief_mismatched_mean == pytest.approx(sum(bad) / len(bad))
    right = sum(row["flagged"] == row["mismatched"] for row in rows)
    assert last.division_accuracy == pytest.approx(right / len(rows))
    wins = sum((b < g) + 0.5 * (b == g) for b in bad for g in good)
    assert last.auroc == pytest.approx(wins / len(bad) / len(good))
    assert last.mismatch_rate == pytest.approx(len(bad) / len(rows))


@pytest.mark.parametrize("name", METHODS)
def test_indicators_are_the_distributions_a_loop_finds(runs, name):
    run = runs(name)
    report, rows = read_report(run), rows_of(run)
    fields = {indicator.field for indicator in report.indicators}
    assert fields == FIELDS[name] if name != "ugncl" else fields >= FIELDS[name]
    assert sum(indicator.is_belief for indicator in report.indicators) == 1
    found = {entry["field"]: entry for entry in facts(report, [])["indicators"]}
    for field, entry in found.items():
        column = "p_match" if field == "belief" else f"memory_{field}"
        edges = entry["edges"]
        assert len(edges) == BINS + 1
        for truth, wanted in (("matched", False), ("mismatched", True)):
            values = [row[column] for row in rows if row["mismatched"] == wanted]
            counts = [0] * BINS
            for value in values:
                place = sum(edge <= value for edge in edges) - 1
                counts[min(max(place, 0), BINS - 1)] += 1
            assert entry[truth]["histogram"] == counts
            assert entry[truth]["count"] == len(values) == sum(counts)
            assert entry[truth]["mean"] == pytest.approx(sum(values) / len(values))
    believed = next(entry for entry in found.values() if entry["is_belief"])
    assert believed["auroc"] == pytest.approx(report.epochs[-1].auroc)


@pytest.mark.parametrize("name", METHODS)
def test_examples_are_the_ends_of_each_part(runs, name):
    run = runs(name)
    report, rows = read_report(run), rows_of(run)
    by = "memory_uncertainty" if name == "ugncl" else "p_match"
    assert report.ordered_by == ("uncertainty" if name == "ugncl" else "belief")
    for part in ("clean", "hard", "noisy"):
        inside = sorted((row for row in rows if row["division"] == part), key=lambda row: (row[by], row["row"]))
        lowest = [e for e in report.examples if (e.part, e.end) == (part, "lowest")]
        highest = [e for e in report.examples if (e.part, e.end) == (part, "highest")]
        rest = inside[PER_END:]
        assert [e.pair_id for e in lowest] == [row["pair_id"] for row in inside[:PER_END]]
        assert [e.pair_id for e in highest] == [row["pair_id"] for row in rest[::-1][:PER_END]]
        for example in lowest + highest:
            row = rows[int(example.pair_id)]
            found = (example.caption, example.image, example.mismatched, example.belief, example.value)
            assert found == (row["caption"], row["image"], row["mismatched"], row["p_match"], row[by])


def test_ugncl_has_examples_of_hard_pairs(runs):
    assert "hard" in {example.part for example in read_report(runs("ugncl")).examples}


def test_examples_are_ordered_by_uncertainty_and_then_by_pair(tmp_path):
    parts = ["clean"] * 9 + ["hard"] * 4 + ["noisy"]
    uncertainty = [0.3, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.9, 0.8, 0.5, 0.5, 0.5, 0.5, 0.0]
    pairs = table(list(np.linspace(1, 0, 14)), parts, memory_uncertainty=uncertainty)
    report = read_report(hand_written(tmp_path / "run", [record()], pairs))
    found = {(part, end): [] for part in ("clean", "hard", "noisy") for end in ("lowest", "highest")}
    for example in report.examples:
        found[example.part, example.end].append(int(example.pair_id))
    assert found == {
        ("clean", "lowest"): [1, 2, 3],
        ("clean", "highest"): [7, 8, 0],
        ("hard", "lowest"): [9, 10, 11],
        ("hard", "highest"): [12],
        ("noisy", "lowest"): [13],
        ("noisy", "highest"): [],
    }


@pytest.mark.parametrize(("name", "ends"), [("gsc", [""]), ("gsc-two", ["", "_b"])])
def test_components_are_those_of_a_mixture_fitted_to_the_similarities(runs, name, ends):
    run = runs(name)
    columns = parquet.read_table(run / "pairs.parquet")
    indicators = {indicator.field: indicator for indicator in read_report(run).indicators}
    for end in ends:
        structure = columns[f"memory_seen_structure{end}"].to_numpy().astype(np.float64)
        components = indicators["seen_structure" + end].components
        low, scale = structure.min(), structure.max() - structure.min()
        expected = fit_mixture((structure - low) / scale)
        assert components.means == pytest.approx([low + scale * mean for mean in expected.means], rel=1e-3)
        assert components.deviations == pytest.approx([scale * v**0.5 for v in expected.variances], rel=1e-3)
        assert components.weights == pytest.approx(expected.weights, rel=1e-3)
        assert components.used == expected.two_components


def test_component_densities_are_weighted_normal_densities():
    components = Components((0.2, 0.7), (0.1, 0.05), (0.3, 0.7), True)
    at = np.linspace(-1, 2, 30001)
    for number, density in enumerate(components.densities(at)):
        mean, deviation, weight = components.means[number], components.deviations[number], components.weights[number]
        mass = density * (at[1] - at[0])
        assert mass.sum() == pytest.approx(weight)
        assert (mass * at).sum() / weight == pytest.approx(mean)
        assert (mass * (at - mean) ** 2).sum() / weight == pytest.approx(deviation**2)


def test_record_of_a_division_has_mean_beliefs_where_the_truth_is_known():
    division, belief = np.array([2, 2, 0]), np.array([0.9, 0.5, 0.1], dtype=np.float32)
    found = division_record(division, np.array([False, True, True]), belief=belief)
    assert found["belief_matched_mean"] == pytest.approx(0.9)
    assert found["belief_mismatched_mean"] == pytest.approx(0.3)
    assert [k for k, count in enumerate(found["belief_matched"]) if count] == [18]
    assert [k for k, count in enumerate(found["belief_mismatched"]) if count] == [2, 10]
    assert division_record(division, np.zeros(3, dtype=bool), belief=belief)["belief_mismatched_mean"] is None
    assert set(division_record(division, None, belief=belief)) == {"clean", "hard", "noisy"}


def test_the_cut_is_the_option_that_parts_the_division_else_the_middle():
    values = np.array([0.0, 0.05, 0.2, 0.9])
    below = np.array([True, True, False, False])
    assert cut_between(values, below, ~below, (0.1, 0.5)) == 0.1
    assert cut_between(values, below, ~below, (None, 0.5)) == pytest.approx(0.125)
    assert cut_between(values, ~below, below, (0.1,)) is None
    assert cut_between(values, np.zeros(4, dtype=bool), below, (0.1,)) is None


def test_of_several_fields_that_agree_the_label_is_the_belief():
    """As in GSC where the intra-modal indicator says nothing: the label is the cross-modal indicator then."""
    belief = np.array([0.2, 0.8])
    names = ("seen_probability", "cross_modal", "label", "label_b", "own_score")
    columns = {"belief": belief, "division": np.array(["noisy", "clean"]), **{f"memory_{n}": belief for n in names}}
    found = {indicator.field: indicator for indicator in indicators_of(columns, Method.fields, {}, {})}
    assert [field for field, indicator in found.items() if indicator.is_belief] == ["label"]
    assert found["label"].cut == 0.5
    assert (found["label"].network, found["label_b"].network, found["cross_modal"].network) == (1, 2, None)
    assert found["own_score"].title == "own score"  # of a method nobody told this package about
    assert "seen_probability" not in found


# --- Files ---------------------------------------------------------------------------------------------------------


def check_picture(path, size=None):
    image = Image.open(path).convert("RGB")
    assert image.size == size if size else min(image.size) > 200
    pixels = np.asarray(image)
    inked = (pixels != 255).any(axis=2)
    assert 0.005 < inked.mean() < 0.95
    frame = np.concatenate([inked[0], inked[-1], inked[:, 0], inked[:, -1]])
    assert not frame.any(), f"{path}: something is cut off at the edge"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gets_its_figures(runs, name, tmp_path):
    report = read_report(runs(name))
    written = write_report(report, tmp_path / "report")
    pictures = {path.name for path in written if path.suffix == ".png"}
    assert pictures == {
        "parts_by_epoch.png", "detection_by_epoch.png", "belief_by_epoch.png",
        *(f"indicator_{indicator.field}.png" for indicator in report.indicators),
    }  # fmt: skip
    assert {path.name for path in (tmp_path / "report").iterdir()} == pictures | {"report.html", "report.json"}
    for picture in pictures:
        check_picture(tmp_path / "report" / picture, (round(COLUMN[0] * DPI), round(COLUMN[1] * DPI)))
    page = (tmp_path / "report" / "report.html").read_text()
    for picture in pictures:
        assert f"<code>{picture}</code>" in page
    assert page.count("data:image/png") == len(pictures)
    kept = json.loads((tmp_path / "report" / "report.json").read_text())
    assert sorted(kept["figures"]) == sorted(pictures)
    assert kept["epochs"] == [asdict(epoch) for epoch in report.epochs]
    assert kept["mismatch_rate"] == pytest.approx(np.mean([row["mismatched"] for row in rows_of(runs(name))]))


def test_writing_again_replaces_only_its_own_files(runs, tmp_path):
    out = tmp_path / "report"
    write_report(read_report(runs("ugncl")), out)
    (out / "indicator_mine.png").write_text("mine")
    (out / "notes.txt").write_text("mine")
    before = json.loads((out / "report.json").read_text())
    (tmp_path / "examples.png").write_text("mine")
    (out / "report.json").write_text(json.dumps({**before, "figures": [*before["figures"], "../examples.png", 3]}))
    written = write_report(read_report(runs("crcl")), out)
    assert {path.name for path in out.iterdir()} == {path.name for path in written} | {
        "indicator_mine.png", "notes.txt", *before["figures"],
    }, "a damaged list of figures is not trusted"  # fmt: skip
    (out / "report.json").write_text(json.dumps({**before, "figures": [*before["figures"], "../examples.png"]}))
    written = write_report(read_report(runs("crcl")), out)
    assert {path.name for path in out.iterdir()} == {path.name for path in written} | {
        "indicator_mine.png", "notes.txt",
    }  # fmt: skip
    assert (tmp_path / "examples.png").read_text() == "mine"
    contents = {path: path.read_bytes() for path in written}
    write_report(read_report(runs("crcl")), out)
    assert contents == {path: path.read_bytes() for path in written}


def test_a_report_needs_a_folder(runs, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TruepairError, match="file cannot be made a folder.*--out"):
        write_report(read_report(runs("crcl")), tmp_path / "file")


def test_examples_show_the_pictures_of_their_images(tmp_path):
    pairs = truepair.inject_noise(truepair.load("scenes:12"), 0.5, seed=0)
    setup = replace(SMALL, data=asdict(DataConfig("scenes:12", noise=0.5)))
    run = truepair.fit(pairs, method="infonce", out=tmp_path / "run", setup=setup, **{**QUICK, "epochs": 1})
    report = read_report(run.path)
    for example in report.examples:
        assert (example.picture == pairs.images.pictures[pairs.image_index[int(example.pair_id)]]).all()
    assert "examples.png" in {path.name for path in write_report(report, tmp_path / "report")}
    check_picture(tmp_path / "report" / "examples.png")
    assert all(example.picture is None for example in read_report(run.path, pictures=False).examples)
    columns = parquet.read_table(run.path / "pairs.parquet").to_pydict()
    other = [f"of-another-day-{row}" for row in columns["image"]]
    parquet.write_table(pyarrow.table({**columns, "image": other}), run.path / "pairs.parquet")
    assert all(example.picture is None for example in read_report(run.path).examples)
    parquet.write_table(pyarrow.table(columns), run.path / "pairs.parquet")
    config = json.loads((run.path / "config.json").read_text())
    config["data"]["source"] = "scenes:4"  # fewer drawings than the run saw
    (run.path / "config.json").write_text(json.dumps(config))
    known = {f"scene-train-{number:05}" for number in range(4)}
    assert {e.image for e in read_report(run.path).examples if e.picture is not None} <= known


# --- Odd runs ------------------------------------------------------------------------------------------------------


def test_without_the_truth_nothing_is_said_about_it(noisy, tmp_path):
    run = truepair.fit(noisy.without_truth(), method="gsc", out=tmp_path / "run", setup=SMALL, **QUICK)
    report = read_report(run.path)
    assert report.mismatch_rate is None
    assert epoch_rows(report.epochs)[0] == ["epoch", "clean", "hard", "noisy"]
    written = {path.name for path in write_report(report, tmp_path / "report")}
    assert "parts_by_epoch.png" in written and "indicator_seen_structure.png" in written
    assert not {"belief_by_epoch.png", "detection_by_epoch.png"} & written
    page = (tmp_path / "report" / "report.html").read_text()
    assert "the truth is unknown" in page
    assert '<th scope="col">truth' not in page and "AUROC" not in page
    kept = json.loads((tmp_path / "report" / "report.json").read_text())
    assert "matched" not in kept["indicators"][0] and kept["indicators"][0]["all"]["count"] == len(noisy)


def test_one_epoch_is_enough(noisy, tmp_path):
    run = truepair.fit(noisy, method="gsc", out=tmp_path / "run", setup=SMALL, **{**QUICK, "epochs": 1})
    report = read_report(run.path)
    assert "; 1 epoch." in summary(report)
    for path in write_report(report, tmp_path / "report"):
        if path.suffix == ".png":
            check_picture(path)


def test_an_unfinished_run_has_its_epochs_and_says_what_is_missing(runs, tmp_path):
    lines = (runs("crcl") / "metrics.jsonl").read_text()
    run = hand_written(tmp_path / "run", [], method="crcl")
    (run / "metrics.jsonl").write_text(lines + lines[:50])  # a line is being written just now
    report = read_report(run)
    assert report.epochs == read_report(runs("crcl")).epochs
    assert not report.finished and not report.indicators and not report.examples
    assert report.mismatch_rate == pytest.approx(read_report(runs("crcl")).mismatch_rate)
    written = {path.name for path in write_report(report, run / "report")}
    assert written == {
        "parts_by_epoch.png", "detection_by_epoch.png", "belief_by_epoch.png", "report.html", "report.json",
    }  # fmt: skip
    assert "not finished: distributions and examples come with its end" in (run / "report" / "report.html").read_text()
    assert "not finished" not in summary(read_report(runs("crcl")))


def test_the_estimated_share_is_shown_where_the_method_makes_one(runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs("truepair"), run)
    result = json.loads((run / "result.json").read_text())
    assert "mismatch_share" not in result  # 24 images are too few for linear models
    plain = read_report(run)
    assert "Linear models" not in summary(plain) and facts(plain, [])["mismatch_share"] is None
    estimate = {"share": 0.412, "low": 0.3, "high": 0.55, "error": 0.01, "quantile": 0.4}
    (run / "result.json").write_text(json.dumps(result | {"mismatch_share": estimate}))
    report = read_report(run)
    assert "estimate that 41.2 % of them are mismatched (95 % interval 30–55 %)" in summary(report)
    assert facts(report, [])["mismatch_share"] == estimate
    (run / "result.json").write_text(json.dumps(result | {"mismatch_share": {"share": 0.4}}))
    with pytest.raises(RunFolderError, match=r"result\.json: mismatch_share is no estimate"):
        read_report(run)


def test_damaged_runs_are_refused_by_file_and_line(tmp_path):
    with pytest.raises(RunFolderError, match="not a run folder"):
        read_report(tmp_path)
    empty = hand_written(tmp_path / "empty", [])
    with pytest.raises(RunFolderError, match="no epoch is finished yet"):
        read_report(empty)
    torn = hand_written(tmp_path / "torn", [record(1), record(2)])
    (torn / "metrics.jsonl").write_text((torn / "metrics.jsonl").read_text()[5:])
    with pytest.raises(RunFolderError, match="metrics.jsonl, line 1"):
        read_report(torn)
    (torn / "metrics.jsonl").write_text('{"epoch": 1}\n')
    with pytest.raises(RunFolderError, match="line 1.*stage"):
        read_report(torn)
    broken = hand_written(tmp_path / "broken", [record()])
    (broken / "pairs.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(RunFolderError, match="pairs.parquet cannot be read as Parquet"):
        read_report(broken)
    other = hand_written(tmp_path / "other", [record()], {"a": [1]})
    with pytest.raises(RunFolderError, match="lacks the column pair_id"):
        read_report(other)
    nan = hand_written(tmp_path / "nan", [record()], table([0.1, 0.9], memory_label=[0.1, float("nan")]))
    with pytest.raises(RunFolderError, match="column memory_label holds a value that is not finite"):
        read_report(nan)
    nameless = hand_written(tmp_path / "nameless", [record()])
    (nameless / "config.json").write_text("{}")
    with pytest.raises(RunFolderError, match="names no method"):
        read_report(nameless)


def test_a_run_of_a_version_without_divisions_is_read_too(tmp_path):
    pairs = table([0.1, 0.9, 0.8], mismatched=[True, False, False])
    for name in ("division", "row", "image", "p_match", "flagged"):
        del pairs[name]
    pairs |= {"pair_id": [0, 1, 2], "image_id": ["a", "b", "c"], "belief": [0.1, 0.9, 0.8]}
    pairs["taken_as_matched"] = [False, True, True]
    old = {"epoch": 1, "stage": 0, "loss": 1.0, "detection": {"auroc": 1.0, "division_accuracy": 1.0}}
    report = read_report(hand_written(tmp_path / "run", [old], pairs))
    assert epoch_rows(report.epochs) == [["epoch", "division accuracy", "AUROC"], ["1", "100.0 %", "1.000"]]
    assert [(example.part, example.pair_id) for example in report.examples] == [
        ("clean", "2"),
        ("clean", "1"),
        ("noisy", "0"),
    ]
    names = {path.name for path in write_report(report, tmp_path / "report")}
    assert names == {"detection_by_epoch.png", "indicator_belief.png", "report.html", "report.json"}


def test_empty_parts_are_dashes_and_known_columns_stay():
    full = {"clean": 3, "hard": 0, "noisy": 1, "clean_matched": 1.0, "hard_matched": None, "noisy_matched": 0.0}
    from truepair.pages.run.epochs import epoch_of

    rows = epoch_rows([epoch_of(record(1, **full)), epoch_of(record(2, **{**full, "clean_matched": None, "clean": 0}))])
    assert rows[0] == ["epoch", "clean", "matched", "hard", "noisy", "matched"]
    assert rows[1:] == [["1", "3", "100.0 %", "0", "1", "0.0 %"], ["2", "0", "–", "0", "1", "0.0 %"]]


@pytest.mark.parametrize("value", [0.0, 1.0, 0.37, -3.0, 1e-6, 5000.0])
@pytest.mark.parametrize("unit", [True, False])
def test_values_that_are_all_equal_are_one_bar(value, unit):
    indicator = Indicator("x", PairField("value", unit=unit), None, np.full(7, value, dtype=np.float32))
    counts = np.histogram(indicator.values, indicator.edges)[0]
    assert sorted(counts)[-1] == counts.sum() == 7
    assert np.diff(indicator.edges).min() > 0
    figure = indicator_histogram(indicator, None)
    assert figure.axes[0].get_xlim() == pytest.approx((indicator.edges[0], indicator.edges[-1]))


def test_a_histogram_adds_up_to_all_pairs_and_lies_on_the_scale_of_the_components():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0.3, 0.05, 40_000), rng.normal(0.7, 0.05, 60_000)])
    mismatched = np.arange(100_000) < 40_000
    components = Components((0.3, 0.7), (0.05, 0.05), (0.4, 0.6), True)
    indicator = Indicator("s", PairField("s", unit=False), None, values, components=components)
    axes = indicator_histogram(indicator, mismatched).axes[0]
    bars = [patch.get_data().values for patch in axes.patches[::2]]
    assert [bar.sum() for bar in bars] == pytest.approx([60, 40])
    for bar, line in zip(reversed(bars), axes.lines, strict=True):
        assert bar.max() == pytest.approx(line.get_ydata().max(), rel=0.05)


def test_captions_and_names_are_shown_as_they_are(tmp_path):
    wild = "a $x^{$ | `b` <script>alert(1)</script> *c* [d](e)\nnew"
    pictures = {"source": "scenes:4"}
    images = truepair.load("scenes:4").images
    pairs = table([0.1, 0.9], image=list(images.ids[:2]), caption=[wild, "漢字 of no known font"])
    run = hand_written(tmp_path / "_run_$x^{$", [record(belief_matched_mean=0.5)], pairs, data=pictures)
    report = read_report(run)
    assert "examples.png" in {path.name for path in write_report(report, tmp_path / "report")}
    check_picture(tmp_path / "report" / "examples.png")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<script>" not in page
    assert "a $x^{$ | `b` &lt;script&gt;alert(1)&lt;/script&gt; *c* [d](e)" in page
    write_comparison([report, replace(report, method="other")], tmp_path / "two")
    figure = belief_by_epoch([report, replace(report, name="$x^{$" + "x" * 99)])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0] == " _run_$x^{$" and len(labels[1]) <= LETTERS - SIGN
    assert shortened("x" * 44) == "x" * 44


# --- Several runs --------------------------------------------------------------------------------------------------


def test_runs_at_different_noise_are_compared_by_it(noisy, runs, tiny, tmp_path):
    less = truepair.inject_noise(truepair.load(tiny), 0.2, seed=1)
    other = truepair.fit(less, method="crcl", out=tmp_path / "less", setup=SMALL, **QUICK)
    reports = [read_report(runs("crcl")), read_report(other.path)]
    rates = [f"{100 * pairs.mismatch_rate:.0f} % noise" for pairs in (noisy, less)]
    assert run_labels(reports) == rates
    assert run_labels([reports[0], reports[0]]) == [f"crcl ({rates[0]})"] * 2
    figure = belief_by_epoch(reports, run_labels(reports))
    lines = figure.axes[0].lines
    curves = [list(line.get_ydata()) for line in lines if len(line.get_ydata()) == len(reports[0].epochs)]
    assert curves[:4] == [
        [getattr(epoch, f"belief_{truth}_mean") for epoch in report.epochs]
        for report in reports
        for truth in ("matched", "mismatched")
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == rates
    check_picture(write_comparison(reports, tmp_path / "all"))
    unknown = [replace(report, epochs=(replace(report.epochs[0], belief_matched_mean=None,
               belief_mismatched_mean=None),)) for report in reports]  # fmt: skip
    assert write_comparison(unknown, tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_bars_are_the_parts_matched_pairs_first(tmp_path):
    sizes = {"clean": 4, "hard": 1, "noisy": 5, "clean_matched": 0.75, "hard_matched": 0.0, "noisy_matched": 0.2}
    other = {**sizes, "clean": 0, "noisy": 9, "clean_matched": None}
    run = hand_written(tmp_path / "run", [record(1, **sizes), record(2, **other)])
    bars = [patch.get_height() for patch in parts_by_epoch(read_report(run)).axes[0].patches]
    first, second = bars[0::2], bars[1::2]  # matched and mismatched of clean, hard and noisy, in percent of 10 pairs
    assert first == pytest.approx([30, 10, 0, 10, 10, 40])
    assert second == pytest.approx([0, 0, 0, 10, 18, 72])
    assert read_report(run).epochs[0].mismatch_rate == pytest.approx(0.6)


def test_a_fresh_network_is_marked(runs):
    figure = belief_by_epoch([read_report(runs("crcl"))])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["matched", "mismatched", "fresh network"]
    stages = [line["stage"] for line in map(json.loads, (runs("crcl") / "metrics.jsonl").read_text().splitlines())]
    start = stages.index(1) + 0.5
    assert [list(line.get_xdata()) for line in figure.axes[0].lines][-1] == [start, start]


def test_a_run_about_labels_is_told_as_one(tmp_path):
    from tests.methods.labelled import labelled_pairs
    from truepair.engines.config import MLPConfig

    pairs = labelled_pairs(40, wrong=0.25)
    setup = Setup(model=MLPConfig(width=8, hidden_width=8))
    truepair.fit(pairs, method="ce", out=tmp_path / "run", setup=setup, epochs=2, batch_size=16)
    report = read_report(tmp_path / "run")
    assert report.mismatch_rate == 0.25
    write_report(report, tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8").replace("\xa0", " ")
    assert "25.0 % of them with a wrong class label" in page
    assert "a pair is matched where its given label is right" in page
