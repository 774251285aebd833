"""UGNCL's evidence, division and losses against plain loops over its equations, and what happens when they starve."""

import math

import pytest
import torch

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.correspondence.opinions import background_evidence
from truepair.errors import InputError
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage
from truepair.methods.ugncl.method import divide, ranked

PAIRS = 7
PAPER = {
    "evidence": "exp_tanh",
    "temperature": 0.1,
    "directions": "sum",
    "divergence": "sum",
    "tolerance": 1.0,
    "soft_label": "belief",
    "hard_weight": "one",
}


class GivenNetwork:
    """Two views whose similarities are given; their ranking form is the similarity itself."""

    def __init__(self, views):
        self.view_scores = self.view_rankings = views
        self.similarity = torch.stack(views).mean(dim=0)


class GivenForward:
    def __init__(self, views, ids):
        self.networks = [GivenNetwork(views)]
        self.similarity = self.networks[0].similarity
        self.batch = type("Batch", (), {"ids": ids})()


def views(seed=0, pairs=PAIRS, matched=4):
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(2):
        similarity = 0.4 * torch.rand(pairs, pairs, generator=generator) - 0.2
        similarity[range(matched), range(matched)] += 0.6
        made.append(similarity)
    return made


def position(epoch, step=0):
    return EpochPosition(0, epoch, (Stage(10),), step=step, steps=4, batch_size=PAIRS)


def plain_opinion(first, second):
    """Belief and uncertainty of one row of each view, Dempster's reduced rule over all combinations (eq. 5–7)."""
    count = len(first)
    beliefs, unknown = [], []
    for row in (first, second):
        strength = sum(cell + 1 for cell in row)
        beliefs.append([cell / strength for cell in row])
        unknown.append(count / strength)
    conflict = sum(beliefs[0][k] * beliefs[1][other] for k in range(count) for other in range(count) if other != k)
    fused = [
        (a * b + a * unknown[1] + b * unknown[0]) / (1 - conflict) for a, b in zip(beliefs[0], beliefs[1], strict=True)
    ]
    return fused, unknown[0] * unknown[1] / (1 - conflict)


def plain_background(similarity, tau, eta):
    count = len(similarity)
    others = [math.exp(similarity[i][j] / tau) for i in range(count) for j in range(count) if i != j]
    mean = sum(others) / len(others)
    return [[eta * math.exp(cell / tau) / mean for cell in row] for row in similarity]


@pytest.mark.parametrize(
    "options", [{}, {"directions": "sum"}, PAPER, {"evidence": "exp_softplus", "temperature": 0.5}]
)
def test_survey_follows_equations_3_to_7(options):
    method = build_method("ugncl", options)
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    ids = torch.tensor([3, 0, 6, 4, 1, 2, 5])
    given = views()
    method.survey(GivenForward(given, ids), position(6), memory)
    evidence = []
    for view in given:
        cells = view.double().tolist()
        if options.get("evidence") == "exp_tanh":
            made = [[math.exp(cell / 0.1) for cell in row] for row in cells]
        elif options.get("evidence") == "exp_softplus":
            made = [[math.exp(math.log1p(math.exp(cell)) / 0.5) for cell in row] for row in cells]
        else:
            made = plain_background(cells, 0.05, 0.25)
        share = 1 if options.get("directions") == "sum" else 0.5
        evidence.append([[share * (made[i][k] + made[k][i]) for k in range(PAIRS)] for i in range(PAIRS)])
    for row, pair in enumerate(ids.tolist()):
        belief, uncertainty = plain_opinion(evidence[0][row], evidence[1][row])
        assert sum(belief) + uncertainty == pytest.approx(1)
        assert memory.read("pair_belief")[pair].item() == pytest.approx(belief[row], rel=1e-4)
        assert memory.read("uncertainty")[pair].item() == pytest.approx(uncertainty, rel=1e-4)
        assert memory.read("share")[pair].item() == pytest.approx(belief[row] / sum(belief), rel=1e-4)
        assert memory.read("plausibility")[pair].item() == pytest.approx(belief[row] / max(belief), rel=1e-4)


@pytest.mark.parametrize("count", [2, 5, 128])
def test_the_printed_evidence_never_leaves_more_than_a_third_unknown_and_the_others_can(count):
    """Why the paper's threshold of 0.5 is out of reach of its own equation 3."""
    ids = torch.arange(count)
    lowest = [torch.full((count, count), -1.0)] * 2
    highest = {}
    for name in ("exp_softplus", "exp_tanh", "background"):
        method = build_method("ugncl", {"evidence": name, "temperature": 0.1, "directions": "sum"})
        memory = CorrespondenceMemory(count)
        method.prepare(memory)
        method.survey(GivenForward(lowest, ids), position(6), memory)
        highest[name] = float(memory.read("uncertainty").max())
    assert highest["exp_softplus"] <= 1 / 3
    assert highest["exp_tanh"] > 0.99
    assert highest["background"] == pytest.approx(0.444 / (1 - 0.111 * (1 - 1 / count)), rel=0.01)


@pytest.mark.parametrize("count", [1, 2, 5, 128, 512])
@pytest.mark.parametrize("level", [-1.0, 0.0, 0.7, 1.0])
def test_where_nothing_stands_out_nothing_is_determined(count, level, caplog):
    """A network whose similarities are all equal says nothing about any pair: its division is not acted on."""
    ids, collapsed = torch.arange(count), [torch.full((count, count), level)] * 2
    for uncertainty in ("value", "rank"):
        method = build_method("ugncl", {"uncertainty": uncertainty})
        memory = CorrespondenceMemory(count)
        method.prepare(memory)
        method.survey(GivenForward(collapsed, ids), position(6), memory)
        expected = 1 / (1 + 2 * 0.25 + 0.25**2 / count)
        assert memory.read("uncertainty").tolist() == pytest.approx([expected] * count, rel=1e-5)
        record = method.start_epoch(position(6), memory)
        if count > 1 or uncertainty == "value":  # a single pair has no rank
            assert record["division_sound"] == 0.0
            assert not method.divided(memory)
    assert "finds only 0.0 % of the pairs clean" in caplog.text


def test_summed_evidence_takes_a_network_that_says_nothing_for_certain():
    """Why the directions are averaged: by eq. 4 as it is, u is just below the paper's threshold of 0.5."""
    method = build_method("ugncl", {"directions": "sum"})
    memory = CorrespondenceMemory(128)
    method.prepare(memory)
    method.survey(GivenForward([torch.full((128, 128), 0.7)] * 2, torch.arange(128)), position(6), memory)
    assert memory.read("uncertainty")[0].item() == pytest.approx(0.4995, abs=1e-4)
    method.start_epoch(position(6), memory)
    assert (method.division(memory) == Part.CLEAN).all()


def test_background_evidence_does_not_depend_on_the_level_of_the_similarities():
    similarity = views()[0]
    evidence = background_evidence(similarity, temperature=0.05, background=0.25)
    moved = background_evidence(similarity + 0.37, temperature=0.05, background=0.25)
    assert torch.allclose(evidence, moved, rtol=1e-4)
    others = evidence[~torch.eye(PAIRS, dtype=torch.bool)]
    assert others.mean().item() == pytest.approx(0.25, rel=1e-5)
    assert background_evidence(torch.ones(1, 1), temperature=0.05, background=0.25).item() == 0.25
    assert bool(torch.isfinite(background_evidence(50 * torch.eye(4), temperature=0.01, background=1.0)).all())


def memory_of(method, **fields):
    values = {name: torch.tensor(value) for name, value in fields.items()}
    memory = CorrespondenceMemory(len(next(iter(values.values()))))
    method.prepare(memory)
    for name, value in values.items():
        memory.write(name, None, value)
    return memory


def test_division_follows_equations_8_to_11():
    method = build_method("ugncl", PAPER)
    memory = memory_of(
        method,
        uncertainty=[0.1, 0.2, 0.6, 0.7, 0.5],
        plausibility=[1.0, 0.99, 1.0, 0.2, 1.0],
        pair_belief=[0.8, 0.3, 0.55, 0.05, 0.2],
    )
    label, part = divide(memory, method.config)
    assert part.tolist() == [Part.CLEAN, Part.NOISY, Part.HARD, Part.HARD, Part.HARD]
    assert label.tolist() == pytest.approx([1.0, 0.0, 0.55, 0.05, 0.2])
    method.start_epoch(position(6), memory)
    assert method.taken_as_matched(memory).tolist() == [True, False, True, False, False]

    tolerant = build_method("ugncl")
    label, part = divide(memory, tolerant.config)
    assert part.tolist()[:2] == [Part.CLEAN, Part.CLEAN]
    assert label.tolist()[2:] == pytest.approx([1 / 1.1, 0.2 / 0.3, 1 / 1.1])


def test_division_by_probability_alone_has_clean_and_hard_pairs():
    """Table 4, without UGD: pairs whose partner is foremost, and the rest with soft labels."""
    method = build_method("ugncl", {**PAPER, "division": "probability"})
    memory = memory_of(
        method,
        uncertainty=[0.1, 0.2, 0.6, 0.7, 0.5],
        plausibility=[1.0, 0.99, 1.0, 0.2, 1.0],
        pair_belief=[0.8, 0.3, 0.55, 0.05, 0.2],
    )
    label, part = divide(memory, method.config)
    assert part.tolist() == [Part.CLEAN, Part.HARD, Part.CLEAN, Part.HARD, Part.CLEAN]
    assert label.tolist() == pytest.approx([1.0, 0.3, 1.0, 0.05, 1.0])


def test_rank_is_the_share_of_the_others_that_are_not_larger():
    assert ranked(torch.tensor([5.0, 1.0, 3.0, 3.0])).tolist() == [0.75, 0.0, 0.5, 0.5]


def test_a_starving_division_is_said_and_not_acted_on(caplog):
    method = build_method("ugncl")
    memory = memory_of(method, uncertainty=[0.9] * 20, plausibility=[1.0] * 20)
    record = method.start_epoch(position(6), memory)
    assert record["division_sound"] == 0.0
    assert "finds only 0.0 % of the pairs clean" in caplog.text
    assert "the warm-up goes on" in caplog.text
    assert memory.read("label").tolist() == [1.0] * 20
    assert not method.divided(memory)

    memory.write("uncertainty", None, torch.tensor([0.1] * 10 + [0.9] * 10))
    assert method.start_epoch(position(7), memory)["division_sound"] == 1.0
    assert (method.division(memory) == Part.CLEAN).sum() == 10
    caplog.clear()
    memory.write("uncertainty", None, torch.full((20,), 0.9))
    method.start_epoch(position(8), memory)
    assert "the last one is kept" in caplog.text
    assert (method.division(memory) == Part.CLEAN).sum() == 10


def plain_ranking(similarity, row, margin, count):
    """Mean hinge over the hardest negatives, both directions."""
    own = similarity[row][row]
    total = 0.0
    for others in (
        [similarity[row][k] for k in range(PAIRS) if k != row],
        [similarity[k][row] for k in range(PAIRS) if k != row],
    ):
        hinges = sorted((max(0.0, margin - own + other) for other in others), reverse=True)
        total += sum(hinges[:count]) / count
    return total


def plain_evidential(first, second, target, row, kl_weight):
    """One direction of L_e of one pair: fused evidence, squared error, variance, divergence (eq. 12–14)."""
    alpha = [a + b + a * b / PAIRS + 1 for a, b in zip(first, second, strict=True)]
    strength = sum(alpha)
    wanted = [target if k == row else 0.0 for k in range(PAIRS)]
    loss = sum((y - a / strength) ** 2 for y, a in zip(wanted, alpha, strict=True))
    loss += sum(a * (strength - a) / (strength**2 * (strength + 1)) for a in alpha)
    adjusted = [y + (1 - y) * a for y, a in zip(wanted, alpha, strict=True)]
    total = sum(adjusted)
    divergence = math.lgamma(total) - math.lgamma(PAIRS) - sum(math.lgamma(a) for a in adjusted)
    psi = lambda x: torch.digamma(torch.tensor(x, dtype=torch.float64)).item()  # noqa: E731
    divergence += sum((a - 1) * (psi(a) - psi(total)) for a in adjusted)
    return loss + kl_weight * divergence


@pytest.mark.parametrize(
    ("letter", "more"),
    [
        (False, {}),
        (True, {}),
        (True, {"ranking_total": "sum"}),
        (False, {"margins": "soft"}),
        (True, {"margins": "soft"}),
    ],
)
def test_loss_follows_equations_12_to_18(letter, more):
    options = {**PAPER, **more} if letter else more
    method = build_method("ugncl", options)
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    parts = [Part.CLEAN, Part.NOISY, Part.HARD, Part.HARD, Part.CLEAN, Part.HARD, Part.NOISY]
    labels = [1.0, 0.0, 0.8, 0.3, 1.0, 0.55, 0.0]
    uncertainties = [0.1, 0.2, 0.51, 0.6, 0.3, 0.55, 0.4]
    for name, values in (
        ("part", [float(p) for p in parts]),
        ("label", labels),
        ("trusted_uncertainty", uncertainties),
    ):
        memory.write(name, None, torch.tensor(values))
    memory.write("divided", None, torch.ones(PAIRS))
    given = views(seed=3)
    found = method.batch_loss(GivenForward(given, torch.arange(PAIRS)), position(6), memory).per_pair

    cells = [view.double().tolist() for view in given]
    evidence = [
        [[math.exp(c / 0.1) for c in row] for row in view] if letter else plain_background(view, 0.05, 0.25)
        for view in cells
    ]
    kl_weight = 0.1 if letter else 0.1 / PAIRS
    for row in range(PAIRS):
        columns = [[line[row] for line in view] for view in evidence]
        expected = plain_evidential(evidence[0][row], evidence[1][row], labels[row], row, kl_weight)
        expected += plain_evidential(columns[0], columns[1], labels[row], row, kl_weight)
        u, label = uncertainties[row], labels[row]
        if parts[row] == Part.CLEAN:
            ranking = sum(plain_ranking(view, row, 0.2, 1) for view in cells) / 2
        elif parts[row] == Part.HARD:
            odds = (1 - u) / u if label > 0.5 else u / (1 - u)
            margin = 0.2 * (10**label - 1) / 9
            if options.get("margins") == "soft":  # eq. 2
                ranking = sum(plain_ranking(view, row, margin, 1) for view in cells) / 2
            else:
                ranking = sum(plain_ranking(view, row, margin / (1 + odds**-10), 5) for view in cells) / 2
            ranking *= 1 if letter else label
        else:
            ranking = 0.0
        weight = 0.8 * (PAIRS if options.get("ranking_total") == "sum" else 1)
        assert found[row].item() == pytest.approx(expected + weight * ranking, rel=1e-4), row


def test_warm_up_takes_every_pair_for_matched_with_ever_fewer_negatives():
    method = build_method("ugncl", {"warm_up_epochs": 2})
    counts = [method.negatives(position(epoch, step)) for epoch in (1, 2, 3) for step in (0, 2)]
    assert counts[0] == PAIRS - 1
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 5
    assert not method.surveys(position(2))
    assert method.surveys(position(3))
    printed = build_method("ugncl", {"hardness": "printed"})
    assert [printed.negatives(position(epoch)) for epoch in (1, 4, 8)] == [6, 6, 5]


@pytest.mark.parametrize("count", [1, 2, 512])
@pytest.mark.parametrize("options", [{}, PAPER, {"evidence": "exp_softplus", "temperature": 0.1}])
def test_losses_and_gradients_are_finite_at_every_size(count, options):
    method = build_method("ugncl", options)
    memory = CorrespondenceMemory(count)
    method.prepare(memory)
    given = [view.clamp(-1, 1).requires_grad_() for view in views(pairs=count, matched=count // 2)]
    for epoch in (1, 6):
        forward = GivenForward(given, torch.arange(count))
        method.survey(forward, position(epoch), memory)
        method.start_epoch(position(epoch), memory)
        loss = method.batch_loss(forward, position(epoch), memory).per_pair
        assert bool(torch.isfinite(loss).all())
        loss.mean().backward()
        assert all(bool(torch.isfinite(view.grad).all()) for view in given)


def test_an_unsound_division_prolongs_the_warm_up_loss():
    method = build_method("ugncl", {"ranking_weight": 1.0})
    memory = CorrespondenceMemory(PAIRS)
    method.prepare(memory)
    memory.write("uncertainty", None, torch.full((PAIRS,), 0.9))
    assert method.start_epoch(position(6), memory)["division_sound"] == 0.0
    given = views(seed=5)
    found = method.batch_loss(GivenForward(given, torch.arange(PAIRS)), position(6), memory)
    cells = [view.double().tolist() for view in given]
    expected = [sum(plain_ranking(view, row, 0.2, 5) for view in cells) / 2 for row in range(PAIRS)]
    assert found.scalars["ranking_loss"] == pytest.approx(sum(expected) / PAIRS, rel=1e-5)


def test_a_warm_up_that_never_ends_is_refused():
    with pytest.raises(InputError, match="more epochs than the 5 of its warm-up"):
        build_method("ugncl").stages(5, 4)
    assert [stage.epochs for stage in build_method("ugncl").stages(6, 4)] == [6]
