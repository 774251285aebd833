"""BiCro's warm-up, labels and losses against plain loops; the consistency itself is tested beside its function."""

import pytest
import torch

from tests.correspondence.test_consistency_of_pairs import plain
from tests.methods.given import GivenForward, GivenNetwork, check_order_does_not_matter, remembering
from tests.methods.test_ncr import plain_hinge, plain_losses
from truepair.correspondence.beta_mixture import fit_beta_mixture
from truepair.correspondence.division import Part
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage

PAIRS = 13
IDS = torch.randperm(PAIRS, generator=torch.Generator().manual_seed(5))
WEIGHT = (torch.arange(PAIRS) % 4 / 4 + 0.125).tolist()  # exact in float32; half of them clean
WEIGHT_B = WEIGHT[::-1]


def position(epoch=20):
    return EpochPosition(0, epoch, (Stage(25),))


def network(seed, leaf=False):
    draw = torch.Generator().manual_seed(seed)
    images = torch.nn.functional.normalize(torch.rand(PAIRS, 5, generator=draw, dtype=torch.float64), dim=1)
    noise = 0.4 * torch.rand(PAIRS, 5, generator=draw, dtype=torch.float64)
    texts = torch.nn.functional.normalize(images + noise, dim=1)
    return GivenNetwork((images @ texts.T).requires_grad_(leaf), images, texts)


def forward(leaf=False):
    return GivenForward([network(1, leaf), network(2, leaf)], IDS)


def plain_labels(teacher, weights):
    """By id: anchors, other clean pairs, noisy ones."""
    losses = plain_losses(teacher.similarity)
    clean = [row for row, weight in enumerate(weights) if weight > 0.5]
    anchors = sorted(clean, key=lambda row: losses[row])[: len(clean) // 10 + 1]
    labels = []
    for row, c in enumerate(plain(teacher.images, teacher.texts, anchors)):
        doubted = c if c > 0.5 else 0.0
        labels.append(1.0 if row in anchors else 0.5 + c / 2 if row in clean else doubted)
    return labels


@pytest.mark.parametrize("epoch", [15, 16])
@pytest.mark.parametrize("dual", [True, False])
def test_labels_and_losses_are_those_of_plain_loops(epoch, dual):
    method, given = build_method("bicro", {"co_train": dual}), forward()
    given.networks = given.networks[: method.networks]
    kept = {"weight": WEIGHT, "weight_b": WEIGHT_B} if dual else {"weight": WEIGHT}
    memory = remembering(method, PAIRS, **kept)
    found = method.batch_loss(given, position(epoch), memory).per_pair
    total = [0.0] * PAIRS
    for number, learner in enumerate(given.networks):
        teacher = given.networks[-1 - number]
        of_teacher = list(kept.values())[-1 - number]
        weights = [of_teacher[pair] for pair in IDS.tolist()]
        labels = plain_labels(teacher, weights)
        assert memory.read("label" + ("", "_b")[number], IDS).tolist() == pytest.approx(labels, abs=1e-6)
        for row, (weight, value) in enumerate(zip(weights, plain_hinge(learner.similarity, labels), strict=True)):
            total[row] += value if weight > 0.5 or epoch > 15 else 0.0
    assert found.tolist() == pytest.approx(total, abs=1e-12)


def test_the_warm_up_trains_on_the_pairs_of_the_smallest_losses():
    method, given = build_method("bicro", {"co_train": False}), GivenForward([network(3)], IDS)
    found = method.batch_loss(given, position(5), remembering(method, PAIRS)).per_pair
    losses = plain_losses(given.networks[0].similarity)
    smallest = sorted(range(PAIRS), key=lambda row: losses[row])[:3]  # 30 % of 13
    assert found.tolist() == pytest.approx([losses[row] if row in smallest else 0.0 for row in range(PAIRS)], abs=1e-12)


@pytest.mark.parametrize("epoch", [3, 20])
def test_order_does_not_matter(epoch):
    check_order_does_not_matter(
        build_method("bicro"), forward(), position(epoch), {"weight": WEIGHT, "weight_b": WEIGHT_B}
    )


def test_the_gradient_is_that_of_the_value_with_labels_held():
    method = build_method("bicro")
    memory = remembering(method, PAIRS, weight=WEIGHT, weight_b=WEIGHT_B)
    method.labels_by = lambda *_: torch.linspace(0.1, 1, PAIRS).double()

    def loss(first, second):
        return method.batch_loss(
            GivenForward([GivenNetwork(first), GivenNetwork(second)], IDS), position(), memory
        ).per_pair

    assert torch.autograd.gradcheck(loss, [each.similarity.detach().requires_grad_() for each in forward().networks])


def test_where_nobody_is_clean_nobody_is_an_anchor():
    method = build_method("bicro", {"co_train": False})
    memory = remembering(method, PAIRS, weight=torch.zeros(PAIRS))
    given = GivenForward([network(1)], IDS)
    loss = method.batch_loss(given, position(), memory).per_pair
    assert memory.read("label").tolist() == [0.0] * PAIRS and bool(torch.isfinite(loss).all())
    assert (method.division(memory) == int(Part.NOISY)).all()


def test_the_division_is_that_of_the_beta_mixture():
    draw = torch.Generator().manual_seed(0)
    losses = torch.cat([0.1 + 0.03 * torch.randn(300, generator=draw), 0.5 + 0.1 * torch.randn(200, generator=draw)])
    scaled = ((losses - losses.min()) / (losses.max() - losses.min())).double().numpy()
    method = build_method("bicro", {"mixture": "beta", "co_train": False})
    memory = remembering(method, 500, loss=losses)
    record = method.start_epoch(position(), memory)
    expected = fit_beta_mixture(1 - scaled).posterior(1 - scaled)
    assert memory.read("weight").tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert record["clean_share"] == pytest.approx(0.6, abs=0.02)
    assert record["mixture_clean_mean"] < record["mixture_noisy_mean"]
    assert record["mixture_clean_mean"] == pytest.approx(scaled[:300].mean(), abs=0.03)
