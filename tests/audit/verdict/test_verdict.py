"""The verdict on evidence of known distribution, its parts against plain loops, and degenerate evidence."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.audit.verdict.naive_verdict import naive_error, naive_knots, naive_p_match
from truepair.audit.scoring.evidence import Evidence, HeldOut, NearestCopies, evidence_of, varying
from truepair.audit.scoring.local_ranks import LocalRanks
from truepair.audit.verdict.score import Synthetic, combine
from truepair.audit.verdict.verdict import verdict_of_evidence
from truepair.correspondence.calibration import Calibration, logit
from truepair.correspondence.mixture_proportion import estimate_share
from truepair.errors import InputError


def made(pairs, share, known, *, seed=0, columns=1, apart=3.0):
    """(evidence, mismatched, synthetic): mismatched pairs are N(0, 1) in every column, matched ones N(apart, 1)."""
    rng = np.random.default_rng(seed)
    mismatched = rng.permutation(pairs) < round(share * pairs)
    evidence = rng.normal(size=(pairs, columns)) + apart * ~mismatched[:, None]
    return evidence, mismatched, {"random": rng.normal(size=(known, columns))}


def in_order(p_match, score):
    return bool((np.diff(np.asarray(p_match, dtype=np.float64)[np.argsort(score, kind="stable")]) >= 0).all())


# --- Known distributions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(("share", "off"), [(0.1, 0.015), (0.4, 0.04), (0.6, 0.05), (0.95, 0.08), (1.0, 0.08)])
def test_share_and_probabilities_are_right(share, off, columns):
    shares, errors = [], []
    for seed in range(3):
        evidence, mismatched, synthetic = made(6000, share, 5000, seed=seed, columns=columns, apart=5 - columns)
        verdict = verdict_of_evidence(evidence, synthetic)
        shares.append(verdict.noise_rate)
        errors.append(naive_error(verdict.p_match.tolist(), mismatched.tolist()))
        assert verdict.noise_rate_low <= verdict.noise_rate <= verdict.noise_rate_high
        assert verdict.two_groups and verdict.doubt is None
        assert verdict.flagged.mean() == pytest.approx(share, abs=2 * off)
        assert np.array_equal(verdict.flagged, verdict.p_match < 0.5)
        assert verdict.p_match.dtype == np.float32 and (verdict.p_match > 0).all() and (verdict.p_match < 1).all()
        score = evidence @ np.array(verdict.details["weights"])
        assert in_order(verdict.p_match, score) or columns > 1  # weights are rounded
        if share < 1:
            found = roc_auc_score(~mismatched, verdict.p_match)
            assert found == pytest.approx(roc_auc_score(~mismatched, score), abs=1e-3)
            assert found > 0.97
    assert np.mean(shares) == pytest.approx(share, abs=off)
    assert np.mean(errors) < max(0.03, off)


@pytest.mark.parametrize("pairs", [60, 2000, 20_000])
@pytest.mark.parametrize("known", [20, 300, 20_000])
def test_clean_pairs_are_no_sign_of_noise(pairs, known):
    verdict = verdict_of_evidence(*made(pairs, 0.0, known, columns=2)[::2])
    assert not verdict.two_groups and verdict.noise_rate < 0.01
    assert verdict.noise_rate_low == 0 and "score like random mismatches" in verdict.doubt
    assert verdict.flagged.mean() <= 0.02


def test_the_interval_is_that_of_the_estimate():
    evidence, _, synthetic = made(2000, 0.4, 300)
    verdict = verdict_of_evidence(evidence, synthetic)
    scale = evidence.std()
    estimate = estimate_share(evidence[:, 0] / scale, synthetic["random"][:, 0] / scale)
    assert verdict.noise_rate == pytest.approx(estimate.share)
    assert (verdict.noise_rate_low, verdict.noise_rate_high) == pytest.approx((estimate.low, estimate.high))


@pytest.mark.parametrize(("share", "two_groups"), [(0.008, False), (0.02, True)])
def test_less_than_one_in_a_hundred_is_no_sign_of_noise_however_certain(share, two_groups):
    verdict = verdict_of_evidence(*made(100_000, share, 20_000, apart=9.0)[::2])
    assert verdict.noise_rate == pytest.approx(share, rel=0.1) and verdict.random.low > 0.005
    assert (verdict.noise_rate_low > 0.005) is two_groups
    assert verdict.two_groups is two_groups and (verdict.doubt is None) is two_groups


def test_few_clean_pairs_hide_a_wrong_one_but_it_ranks_last():
    evidence, _, synthetic = made(60, 0.0, 20, seed=1)
    evidence[17] = -3.0
    assert verdict_of_evidence(evidence, synthetic).p_match.argmin() == 17


def test_few_synthetic_mismatches_give_wide_intervals():
    verdicts = [verdict_of_evidence(*made(400, 0.4, known, seed=2)[::2]) for known in (20, 300)]
    widths = [verdict.noise_rate_high - verdict.noise_rate_low for verdict in verdicts]
    assert widths[0] > 1.2 * widths[1]
    assert all(verdict.two_groups and verdict.noise_rate == pytest.approx(0.4, abs=0.15) for verdict in verdicts)


def ranks(count, near, seed=0):
    """Local ranks of pairs of which a share is mismatched; matched pairs are at the upper end."""
    rng = np.random.default_rng(seed)
    mismatched = rng.random(count) < near
    given = np.where(mismatched, 2 * rng.random(count), 2 - 0.4 * rng.random(count))
    return [LocalRanks(given, 2 * rng.random(4 * count))]


def three_kinds(seed=0, of_near=0.3):
    """5 % random mismatches, near ones, and matched pairs."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, 4000, p=[0.05, of_near, 0.95 - of_near])
    evidence = rng.normal(size=4000) + np.array([0.0, 2.5, 6.0])[kind]
    return kind, evidence[:, None], {"random": rng.normal(size=(500, 1)), "near": rng.normal(size=(500, 1)) + 2.5}


def test_both_shares_are_told_and_near_ones_count_as_far_as_they_are_certain():
    kind, evidence, synthetic = three_kinds()
    verdict = verdict_of_evidence(evidence, synthetic, local=ranks(6000, 0.35))
    assert verdict.random.share == pytest.approx(0.06, abs=0.03) and verdict.near.share == pytest.approx(0.29, abs=0.04)
    assert verdict.random.low <= verdict.random.share <= verdict.random.high < 0.12
    assert verdict.near.low < 0.29 < verdict.near.high
    counted = verdict.details["near_counted"]
    assert verdict.noise_rate == pytest.approx(verdict.random.share + counted, abs=1e-4)
    assert 0.5 * verdict.near.share < counted < verdict.near.share
    assert verdict.noise_rate_low <= 0.35 <= verdict.noise_rate_high
    assert ((kind < 2) == verdict.flagged).mean() > 0.9
    without = verdict_of_evidence(evidence, synthetic)
    assert without.near is None and without.noise_rate == without.random.share == verdict.random.share


def test_no_switch_more_near_mismatches_never_jump():
    _, evidence, synthetic = three_kinds()
    found = [
        verdict_of_evidence(evidence, synthetic, local=ranks(6000, near)).noise_rate for near in np.linspace(0, 0.5, 51)
    ]
    steps = np.diff(found)
    assert found[-1] > 0.4 and found[0] < 0.1
    assert np.abs(steps).max() < 0.06  # draws of the ranks alone move it by 0.02


def test_captions_of_the_nearest_image_are_ranked_no_worse_than_by_similarity():
    """The second column tells random mismatches best, and speaks for copies of the nearest caption."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, 4000, p=[0.02, 0.2, 0.78])  # random, nearest, matched
    mean = np.array([[0.0, 0.0], [2.6, 8.0], [4.0, 6.0]])[kind]
    evidence = rng.normal(size=(4000, 2)) * [1, 1] + mean
    similarity = evidence[:, 0] + 0.3 * rng.normal(size=4000)
    synthetic = {"random": rng.normal(size=(1000, 2))}
    copies = rng.normal((2.6, 8.0), size=(1000, 2))
    nearest = NearestCopies(evidence, similarity, copies, copies[:, 0] + 0.3 * rng.normal(size=1000))
    plain = verdict_of_evidence(evidence, synthetic, local=ranks(6000, 0.22))
    kept = verdict_of_evidence(evidence, synthetic, local=ranks(6000, 0.22), nearest=nearest)
    by_similarity = roc_auc_score(kind == 2, similarity)
    assert roc_auc_score(kind == 2, plain.p_match) < by_similarity < roc_auc_score(kind == 2, kept.p_match) + 1e-3
    assert plain.details["weights_left"] == 1 and kept.details["weights_left"] < 0.5


def test_held_out_evidence_says_how_many_there_are():
    """Synthetic mismatches of all evidence is small here, that of one column large: it weighs more."""
    evidence, mismatched, synthetic = made(6000, 0.4, 40, columns=2)
    known = np.random.default_rng(5).normal(size=(20_000, 1))
    verdict = verdict_of_evidence(evidence, synthetic, held_out=HeldOut(evidence[:, :1], known))
    both, one = verdict_of_evidence(evidence, synthetic), verdict_of_evidence(evidence[:, :1], {"random": known})
    score, rest = evidence @ np.array(both.details["weights"]), synthetic["random"] @ np.array(both.details["weights"])
    errors = [estimate_share(score, rest).error, estimate_share(evidence[:, 0], known[:, 0]).error]
    weights = 1 / np.square(errors)
    expected = weights @ [both.noise_rate, one.noise_rate] / weights.sum()
    assert verdict.noise_rate == pytest.approx(expected, abs=1e-3) == pytest.approx(0.4, abs=0.02)
    assert verdict.noise_rate_high - verdict.noise_rate == pytest.approx(one.noise_rate_high - one.noise_rate)
    assert roc_auc_score(~mismatched, verdict.p_match) > roc_auc_score(~mismatched, one.p_match) + 0.01
    weights = combine(
        evidence, Synthetic.of(synthetic, {"random": 1.0}), np.random.default_rng(0), share=verdict.noise_rate
    )
    np.testing.assert_allclose(verdict.details["weights"], weights, atol=1e-6)
    few = verdict_of_evidence(evidence, synthetic, held_out=HeldOut(evidence[:, :1], known[:19]))
    assert few.noise_rate == both.noise_rate


def two_columns(second, *, pairs=5000, share=0.4):
    """The first column tells the pairs apart, the second is `second(rng, matched)`."""
    rng = np.random.default_rng(3)
    matched = rng.permutation(pairs) >= share * pairs
    evidence = np.stack([rng.normal(size=pairs) + 3 * matched, second(rng, matched)], axis=1)
    known = np.zeros(1000, dtype=bool)
    return evidence, {"random": np.stack([rng.normal(size=1000), second(rng, known)], axis=1)}


@pytest.mark.parametrize(
    ("name", "second", "least", "most"),
    [
        ("constant", lambda rng, matched: np.full(len(matched), 0.1), 0.0, 0.0),
        ("better", lambda rng, matched: rng.normal(size=len(matched)) + 5 * matched, 1.1, 9.0),
        ("worse", lambda rng, matched: rng.normal(size=len(matched)) + 1 * matched, 0.0, 0.8),
        ("reversed", lambda rng, matched: rng.normal(size=len(matched)) - 2 * matched, 0.0, 0.4),
        ("the same, a thousandfold", lambda rng, matched: 1e3 * (rng.normal(size=len(matched)) + 3 * matched), 0, 2e-3),
        ("noise", lambda rng, matched: rng.normal(size=len(matched)), 0.0, 0.8),
    ],
)
def test_columns_are_weighted_by_what_they_tell(name, second, least, most):
    evidence, synthetic = two_columns(second)
    verdict = verdict_of_evidence(evidence, synthetic)
    first, other = verdict.details["weights"]
    assert first > 0 and least <= other / first <= most
    assert verdict.noise_rate == pytest.approx(0.4, abs=0.06)


def test_a_column_constant_among_the_pairs_counts_for_nothing_whatever_the_synthetic_mismatches_say():
    evidence, synthetic = two_columns(lambda rng, matched: np.full(len(matched), 0.1))
    alone = verdict_of_evidence(evidence[:, :1], {"random": synthetic["random"][:, :1]})
    synthetic["random"][:, 1] = np.random.default_rng(0).normal(size=1000)
    both = verdict_of_evidence(evidence, synthetic)
    np.testing.assert_allclose(both.p_match, alone.p_match, rtol=1e-5)
    assert both.details["weights"][1] == 0


def test_an_offset_changes_nothing():
    evidence, synthetic = two_columns(lambda rng, matched: rng.normal(size=len(matched)) + 2 * matched)
    plain = verdict_of_evidence(evidence, synthetic)
    moved = verdict_of_evidence(evidence + 1e4, {"random": synthetic["random"] + 1e4})
    assert moved.noise_rate == pytest.approx(plain.noise_rate, abs=0.02)
    np.testing.assert_allclose(moved.details["weights"], plain.details["weights"], rtol=0.05)


def test_many_pairs_are_thinned_out_for_the_weights(monkeypatch):
    evidence, synthetic = two_columns(lambda rng, matched: rng.normal(size=len(matched)) + 2 * matched)
    whole = verdict_of_evidence(evidence, synthetic)
    monkeypatch.setattr("truepair.audit.verdict.score.FIT_AT_MOST", 2000)
    some = verdict_of_evidence(evidence, synthetic, seed=4)
    assert some.details["weights"] != whole.details["weights"] and len(some.p_match) == len(evidence)
    np.testing.assert_allclose(some.details["weights"], whole.details["weights"], rtol=0.2)
    assert verdict_of_evidence(evidence, synthetic, seed=4).details == some.details


def test_weights_are_in_units_of_the_spread():
    evidence, _, synthetic = made(3000, 0.4, 500, columns=2)
    known = Synthetic.of(synthetic, {"random": 1.0})
    plain = combine(evidence, known, np.random.default_rng(0))
    scaled = combine(evidence * [1, 64], Synthetic(known.rows * [1, 64], known.weights), np.random.default_rng(0))
    np.testing.assert_allclose(scaled * [1, 64], plain, rtol=1e-6)


# --- Against plain loops ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("pairs", "known"), [(60, 20), (400, 90)])
def test_calibration_as_plain_loops_say(pairs, known, seed):
    evidence, _, synthetic = made(pairs, 0.3, known, seed=seed, apart=2.0)
    score, mismatches = evidence[:, 0], synthetic["random"][:, 0]
    weights = np.random.default_rng(seed).dirichlet(np.ones(known))
    curve = Calibration.of(score, mismatches, weights, 0.3)
    knots = naive_knots(score.tolist(), mismatches.tolist(), weights.tolist(), 0.3)
    np.testing.assert_allclose(curve.knots, [place for place, _ in knots], rtol=1e-12)
    inside = [value for value in score.tolist() if knots[0][0] <= value <= knots[-1][0]]
    expected = [naive_p_match(value, knots) for value in inside]
    np.testing.assert_allclose(curve(np.array(inside)), expected, atol=1e-3 * len(knots))  # equal ends are spread


def test_the_curve_rises_strictly_everywhere():
    evidence, _, synthetic = made(2000, 0.3, 300)
    curve = Calibration.of(evidence[:, 0], synthetic["random"][:, 0], np.full(300, 1 / 300), 0.3)
    assert (np.diff(curve.knots) > 0).all() and (np.diff(curve.log_odds) > 0).all()
    places = np.linspace(-8, 10, 5000)
    p_match = curve(places)
    assert (np.diff(p_match) > 0).all() and p_match[0] >= 1e-6 and p_match[-1] <= 1 - 1e-6
    far = curve(np.array([-1e12, 1e12]))
    assert 0 < far[0] <= p_match[0] and p_match[-1] <= far[1] < 1


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_one_block_still_keeps_the_order(share):
    """Where given pairs score below the known ones there is but one block of the isotonic regression."""
    score = np.linspace(-5, -4, 200)
    curve = Calibration.of(score, np.linspace(0, 1, 50), np.full(50, 0.02), share)
    assert len(np.unique(curve(score).astype(np.float32))) > 150
    assert in_order(curve(score).astype(np.float32), score)


def test_pairs_far_above_every_known_mismatch_keep_their_order():
    """The share is 0, so that all of them are as sure as can be."""
    evidence, _, synthetic = made(4000, 0.0, 300, apart=30.0)
    p_match = verdict_of_evidence(evidence, synthetic).p_match
    assert len(np.unique(p_match)) > 100 and in_order(p_match, evidence[:, 0])
    assert p_match.min() >= 0.9998


def test_a_known_of_two_kinds_weighs_them_by_their_shares():
    known = Synthetic.of({"random": np.zeros((10, 1)), "near": np.ones((4, 1))}, {"random": 0.1, "near": 0.3})
    assert known.weights.sum() == pytest.approx(1)
    assert float(known.weights @ known.rows[:, 0]) == pytest.approx(0.75)


# --- Degenerate evidence ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 0.1, -9.2])
@pytest.mark.parametrize("columns", [1, 2])
def test_the_same_evidence_everywhere_tells_nothing(value, columns):
    verdict = verdict_of_evidence(np.full((300, columns), value), {"random": np.full((50, columns), value)})
    assert not verdict.two_groups and not verdict.flagged.any() and "nothing can be told" in verdict.doubt
    assert (verdict.noise_rate_low, verdict.noise_rate_high) == (0, 1)
    assert (verdict.p_match == 0.5).all()


@pytest.mark.parametrize(("value", "share"), [(9.0, 0.0), (-9.0, 1.0)])
def test_constant_evidence_apart_from_the_synthetic_mismatches_tells_all(value, share):
    verdict = verdict_of_evidence(np.full((300, 1), value), {"random": np.random.default_rng(0).normal(size=(50, 1))})
    assert verdict.noise_rate == share and verdict.flagged.mean() == share


def test_evidence_below_all_known_mismatches_is_mismatched():
    evidence, _, synthetic = made(500, 0.0, 100, apart=-3.0)
    verdict = verdict_of_evidence(evidence, synthetic)
    assert verdict.noise_rate == 1 and verdict.noise_rate_high == 1 and verdict.flagged.all()
    assert in_order(verdict.p_match, evidence[:, 0]) and len(np.unique(verdict.p_match)) > 400


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_tied_scores_are_counted_as_ties(share):
    """Three values only: the lowest quantile of the synthetic mismatches is half of it."""
    rng = np.random.default_rng(0)
    mismatched = np.arange(20_000) < share * 20_000
    score = np.where(mismatched, rng.integers(0, 2, 20_000), 2).astype(float)
    found = estimate_share(score, rng.integers(0, 2, 4000).astype(float))
    assert found.share == pytest.approx(share, abs=0.02) and found.quantile == pytest.approx(0.5, abs=0.03)
    assert found.error > 0
    verdict = verdict_of_evidence(score[:, None], {"random": rng.integers(0, 2, (4000, 1)).astype(float)})
    assert np.array_equal(verdict.flagged, mismatched)


@pytest.mark.parametrize("pairs", [1, 2, 60])
def test_few_pairs(pairs):
    verdict = verdict_of_evidence(*made(pairs, 0.5, 20, columns=2)[::2])
    assert len(verdict.p_match) == pairs and np.isfinite(verdict.p_match).all()
    assert 0 <= verdict.noise_rate_low <= verdict.noise_rate <= verdict.noise_rate_high <= 1


def test_float32_is_judged_as_float64_is():
    evidence, _, synthetic = made(2000, 0.4, 300, columns=2)
    narrow, known = evidence.astype(np.float32), synthetic["random"].astype(np.float32)
    found = verdict_of_evidence(narrow, {"random": known})
    wide = verdict_of_evidence(narrow.astype(np.float64), {"random": known.astype(np.float64)})
    assert np.array_equal(found.p_match, wide.p_match) and found.details == wide.details


@pytest.mark.parametrize(
    ("evidence", "synthetic", "message"),
    [
        (np.ones((30, 2)), {}, "0 pairs known to be mismatched; at least 20"),
        (np.ones((30, 2)), {"random": np.ones((19, 2))}, "19 pairs known to be mismatched"),
        (np.ones((30, 2)), {"random": np.ones((0, 2)), "near": np.ones((50, 2))}, "0 pairs known"),
        (np.ones((30, 2)), {"random": np.ones((50, 3))}, "evidence has 2 columns, synthetic random 3"),
        (np.ones((30, 2)), {"random": np.ones((50, 2)), "near": np.ones((5, 1))}, "synthetic near 1"),
        (np.ones((30, 2)), {"random": np.ones((50, 2)), "odd": np.ones((5, 2))}, "'odd'; expected random or near"),
        (np.ones(30), {"random": np.ones((50, 1))}, "evidence has shape \\(30,\\)"),
        (np.ones((0, 2)), {"random": np.ones((50, 2))}, "evidence has shape \\(0, 2\\)"),
        (np.array([[1.0], [math.nan]]), {"random": np.ones((50, 1))}, "evidence\\[1\\] is \\[nan\\]"),
        (np.array([[1.0], [-math.inf]]), {"random": np.ones((50, 1))}, "evidence\\[1\\] is \\[-inf\\]"),
        (np.full((3, 1), 1e200), {"random": np.ones((50, 1))}, "at most 1e\\+70"),
        (np.ones((30, 1)), {"random": np.full((50, 1), math.nan)}, "synthetic random\\[0\\]"),
    ],
)
def test_unusable_evidence_is_refused(evidence, synthetic, message):
    with pytest.raises(InputError, match=message):
        verdict_of_evidence(evidence, synthetic)


# --- Evidence -----------------------------------------------------------------------------------------------------


def test_evidence_is_made_of_log_odds():
    columns = {
        "similarity": np.float32([0.1, 0.2]),
        "log_odds": np.float32([30.0, -2.0]),
        "neighbours": np.float32([0.5, 1.0]),
    }
    evidence = evidence_of(columns, np.array([1.0, math.nan]))
    assert evidence.dtype == np.float64 and "log_odds" not in columns
    np.testing.assert_allclose(evidence[:, :2], [[30, 0], [-2, math.log(0.9999 / 0.0001)]])
    np.testing.assert_array_equal(evidence[:, 2], [1.0, math.nan])
    assert evidence_of({"log_odds": np.zeros(3)}).shape == (3, 1)
    evidence = Evidence(columns, evidence).take(np.array([1]))
    assert evidence.similarity.tolist() == [np.float32(0.2)] and list(evidence.indicators) == ["neighbours"]
    assert evidence.log_odds[0, 0] == -2


def test_log_odds_are_finite_and_antisymmetric():
    p = np.array([0.0, 1e-9, 0.2, 0.5, 0.8, 1.0])
    found = logit(p)
    assert np.isfinite(found).all() and (np.diff(found) >= 0).all()
    np.testing.assert_allclose(found, -logit(1 - p), atol=1e-9)
    assert found[2] == pytest.approx(math.log(0.2 / 0.8)) and math.isnan(logit(np.array([math.nan]))[0])


def test_rounding_is_no_variation():
    constant = np.full(1001, 0.1)
    rows = np.stack([constant, constant + 1e-15 * np.arange(1001), np.zeros(1001), np.arange(1001) * 1e-6], axis=1)
    assert varying(rows).tolist() == [False, False, False, True]
