"""OSA's weights against a plain loop, what they do not depend on, and engines that know nothing yet."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import truepair
from tests.methods.given import GivenForward, GivenNetwork, check_order_does_not_matter, remembering
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError
from truepair.losses import info_nce
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage
from truepair.training.setup import Setup

PAIRS = 12
HALVES = (torch.arange(6), torch.arange(6, PAIRS))
FIRST = EpochPosition(0, 1, (Stage(5),))


def matrix(seed, shift=0.0):
    made = 0.2 * torch.rand(6, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    made += torch.diag(torch.linspace(-0.1, 0.3, 6).double()) + shift
    return made


def weighed(shift=0.0, **options):
    method = build_method("osa", options)
    memory = remembering(method, PAIRS)
    for seed, ids in enumerate(HALVES):
        method.survey(GivenForward([GivenNetwork(matrix(seed, shift))], ids), FIRST, memory)
    method.start_epoch(FIRST, memory)
    return method, memory


def plain_excess():
    scores, backgrounds = [], []
    for seed in (0, 1):
        rows = matrix(seed).tolist()
        for i in range(6):
            others = [rows[i][j] for j in range(6) if j != i] + [rows[j][i] for j in range(6) if j != i]
            scores.append(rows[i][i])
            backgrounds.append(sum(others) / len(others))
    threshold = sum(backgrounds) / len(backgrounds)
    return [max(0.0, score - threshold) for score in scores]


def test_weights_and_loss_are_those_of_a_plain_loop():
    method, memory = weighed()
    excess = plain_excess()
    best = sorted(excess)[-1]  # the 0.99 quantile of twelve
    expected = [min(1.0, value / best) ** 2 for value in excess]
    assert memory.read("weight").tolist() == pytest.approx(expected, abs=1e-6)
    memory.write("weight", None, torch.arange(PAIRS) / 16)  # exact in float32
    similarity = matrix(7)
    loss = method.batch_loss(GivenForward([GivenNetwork(similarity)], HALVES[1]), FIRST, memory).per_pair
    plain = info_nce(similarity, temperature=0.05)
    assert loss.tolist() == pytest.approx(
        [row / 16 * value for row, value in zip(range(6, 12), plain.tolist(), strict=True)], abs=1e-12
    )


def test_the_best_that_a_pair_can_have_is_a_quantile_of_all():
    """One odd pair of 300 does not set the scale: three are above the 0.99 quantile, and weigh fully as well."""
    scores = torch.linspace(0.1, 0.4, 300)
    scores[-1] = 9.0
    method = build_method("osa")
    memory = remembering(method, 300, prior=scores, background=torch.full((300,), 0.1))
    method.start_epoch(FIRST, memory)
    best = float(scores[296]) - 0.1  # the 297th of 300
    expected = [min(1.0, (score - 0.1) / best) ** 2 for score in scores.tolist()]
    assert memory.read("weight").tolist() == pytest.approx(expected, abs=1e-5)
    assert int((memory.read("weight") == 1).sum()) == 4


def test_the_released_weight_is_that_of_the_batch():
    method, memory = weighed(weight="released")
    excess = plain_excess()[6:]
    square = [(value / max(excess)) ** 2 for value in excess]
    found = method.batch_weight(HALVES[1], memory)
    assert found.tolist() == pytest.approx([x * (1 - x) for x in square], abs=1e-6)
    assert found[excess.index(max(excess))] == 0  # the best pair of a batch: why it is not the default
    memory.write("excess", None, torch.zeros(PAIRS))
    assert method.batch_weight(HALVES[0], memory).tolist() == [0.0] * 6


def test_a_weight_rises_with_the_score_from_0_at_the_background():
    method, memory = weighed()
    order = memory.read("prior").argsort()
    weight = method.belief(memory)[order]
    assert bool((weight.diff() >= 0).all()) and weight[-1] == 1
    below = memory.read("prior")[order] <= memory.read("background").mean()
    assert bool(below.any()) and bool((weight[below] == 0).all())


def test_the_level_of_the_scores_does_not_matter():
    torch.testing.assert_close(weighed()[1].read("weight"), weighed(0.4)[1].read("weight"), rtol=0, atol=1e-5)


def test_order_does_not_matter():
    values = {"weight": torch.rand(6, generator=torch.Generator().manual_seed(1))}
    check_order_does_not_matter(build_method("osa"), GivenForward([GivenNetwork(matrix(2))], HALVES[0]), FIRST, values)


def test_where_nothing_is_known_all_pairs_weigh_the_same(caplog):
    method = build_method("osa")
    memory = remembering(method, PAIRS, prior=torch.full((PAIRS,), -0.5))
    method.start_epoch(FIRST, memory)
    assert memory.read("weight").tolist() == [1.0] * PAIRS
    assert "no pair is more similar than unrelated ones" in caplog.text


def test_pairs_are_read_once_after_the_warm_up():
    method = build_method("osa", {"warm_up_epochs": 2})
    stages = method.stages(5, None)
    assert [epoch for epoch in range(1, 6) if method.surveys(EpochPosition(0, epoch, stages))] == [3]
    memory = remembering(method, PAIRS, weight=torch.zeros(PAIRS))
    given = GivenForward([GivenNetwork(matrix(0))], HALVES[0])
    assert method.batch_loss(given, EpochPosition(0, 2, stages), memory).per_pair.min() > 0
    assert method.batch_loss(given, EpochPosition(0, 3, stages), memory).per_pair.tolist() == [0.0] * 6
    with pytest.raises(InputError, match="OSA needs more epochs than the 2 of its warm-up"):
        method.stages(2, None)


def test_an_engine_that_starts_from_nothing_is_refused(tiny, tmp_path):
    small = Setup(model=GlobalConfig(width=8, word_width=8))
    with pytest.raises(InputError, match="osa.*warm_up_epochs 0.*global starts from weights drawn anew"):
        truepair.fit(truepair.load(tiny), method="osa", setup=small, out=tmp_path / "run", minimum_count=1)
    assert not (tmp_path / "run").exists()
    method = build_method("osa", {"warm_up_epochs": 1})
    run = truepair.fit(truepair.load(tiny), method=method, setup=small, out=tmp_path / "run", epochs=2, minimum_count=1)
    weights = np.array(truepair.training.pair_table.read_pair_table(run.folder.pairs).column("memory_weight"))
    assert 0 <= weights.min() < weights.max() == 1


def test_given_scores_take_the_place_of_the_survey(tiny, tmp_path):
    """Their weights are those of a plain loop, any engine starts with them, and nothing else is read."""
    pairs = truepair.load(tiny)
    scores = np.linspace(-0.5, 1.0, len(pairs), dtype=np.float32)
    method = build_method("osa", {"threshold": 0.25})
    setup = Setup(model=GlobalConfig(width=16, word_width=8))
    given = {"epochs": 2, "seed": 0, "batch_size": 16, "minimum_count": 1}
    run = truepair.fit(replace(pairs, scores=scores), method=method, out=tmp_path / "run", setup=setup, **given)
    table = truepair.training.pair_table.read_pair_table(run.folder.pairs)
    best = sorted(max(0.0, score - 0.25) for score in scores.tolist())[int(np.ceil(0.99 * len(pairs))) - 1]
    expected = [min(1.0, max(0.0, score - 0.25) / best) ** 2 for score in scores.tolist()]
    assert table["memory_weight"].to_pylist() == pytest.approx(expected, abs=1e-6)
    assert table["memory_prior"].to_pylist() == pytest.approx(scores.tolist(), abs=1e-7)
    assert not any(method.surveys(EpochPosition(0, epoch, (Stage(5),))) for epoch in (1, 2))


def test_scores_that_nobody_reads_and_a_threshold_of_nothing_are_refused(tiny, tmp_path):
    pairs = truepair.load(tiny)
    scored = replace(pairs, scores=np.ones(len(pairs), dtype=np.float32))
    with pytest.raises(InputError, match="crcl learns nothing from scores of the pairs; leave --pair-scores out"):
        truepair.fit(scored, method="crcl", out=tmp_path / "crcl", epochs=1, minimum_count=1)
    with pytest.raises(InputError, match="or give --pair-scores"):
        truepair.fit(pairs, method="osa", out=tmp_path / "blind", epochs=1, minimum_count=1)
    method = build_method("osa", {"threshold": 0.1, "warm_up_epochs": 1})
    with pytest.raises(InputError, match="leave it out, or give --pair-scores"):
        truepair.fit(pairs, method=method, out=tmp_path / "run", epochs=2, minimum_count=1)
