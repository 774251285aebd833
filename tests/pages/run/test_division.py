"""The numbers of the division report, against loops over `pairs.parquet`."""

import numpy as np
import pytest
from pyarrow import parquet

from tests.pages.run.division_runs import FIELDS, METHODS, hand_written, record, rows_of, table
from truepair.correspondence.mixture import fit_mixture
from truepair.evaluation import division_record
from truepair.methods.base import Method
from truepair.pages.run.division import PER_END, read_report
from truepair.pages.run.indicators import BINS, Components, cut_between, indicators_of
from truepair.pages.run.write import facts

pytestmark = pytest.mark.usefixtures("few_drawings")


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
