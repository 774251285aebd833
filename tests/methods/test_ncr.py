"""NCR's losses, predictions and labels against triple loops, its division, and who teaches whom."""

import pytest
import torch

from tests.methods.given import GivenForward, GivenNetwork, check_order_does_not_matter, remembering
from truepair.correspondence.division import Part
from truepair.correspondence.mixture import fit_mixture, released_posterior
from truepair.errors import InputError
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage

PAIRS, MARGIN = 4, 0.2
IDS = torch.tensor([2, 0, 3, 1])
WEIGHTS = {"weight": [0.875, 0.25, 0.625, 0.375], "weight_b": [0.25, 0.75, 1.0, 0.125]}  # exact in float32


def position(epoch=20):
    return EpochPosition(0, epoch, (Stage(25),))


def matrix(seed, leaf=False, pairs=PAIRS):
    made = 0.3 * torch.rand(pairs, pairs, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    made += 0.2 * torch.eye(pairs, dtype=torch.float64)
    return made.requires_grad_(leaf)


def forward(leaf=False, pairs=PAIRS):
    ids = IDS if pairs == PAIRS else torch.randperm(pairs, generator=torch.Generator().manual_seed(0))
    return GivenForward([GivenNetwork(matrix(seed, leaf, pairs)) for seed in (1, 2)], ids)


def plain_losses(similarity):
    """ℓ: the mean over the negatives of the hinge, image → text and text → image."""
    rows, losses = similarity.tolist(), []
    for i in range(len(rows)):
        total = 0.0
        for j in range(len(rows)):
            if j != i:
                total += max(0.0, MARGIN - rows[i][i] + rows[i][j]) + max(0.0, MARGIN - rows[i][i] + rows[j][i])
        losses.append(total / (len(rows) - 1))
    return losses


def plain_predictions(losses):
    left = [min(max(MARGIN - loss / 2, 0.0), MARGIN) for loss in losses]
    largest = sorted(left)[-(len(left) // 10 + 1) :]
    return [min(1.0, value * len(largest) / sum(largest)) for value in left]


def plain_hinge(similarity, labels):
    rows, losses = similarity.tolist(), []
    for i, label in enumerate(labels):
        margin = (10**label - 1) / 9 * MARGIN
        to_text = max(margin - rows[i][i] + rows[i][j] for j in range(len(rows)) if j != i)
        to_image = max(margin - rows[i][i] + rows[j][i] for j in range(len(rows)) if j != i)
        losses.append(max(0.0, to_text) + max(0.0, to_image))
    return losses


@pytest.mark.parametrize("epoch", [5, 15, 16])
@pytest.mark.parametrize("dual", [True, False])
def test_losses_and_labels_are_those_of_plain_loops(epoch, dual):
    method = build_method("ncr", {"co_train": dual})
    given = forward()
    given.networks = given.networks[: method.networks]
    memory = remembering(method, PAIRS, **{name: WEIGHTS[name] for name in ("weight", "weight_b")[: method.networks]})
    found = method.batch_loss(given, position(epoch), memory).per_pair
    losses = [plain_losses(network.similarity) for network in given.networks]
    if epoch == 5:  # the last of the warm-up
        assert found.tolist() == pytest.approx([sum(each) for each in zip(*losses, strict=True)], abs=1e-12)
        return
    predictions, total = [plain_predictions(each) for each in losses], [0.0] * PAIRS
    for number, network in enumerate(given.networks):
        teacher = ("weight_b" if number == 0 else "weight") if dual else "weight"
        labels = []
        for row, pair in enumerate(IDS.tolist()):
            w = WEIGHTS[teacher][pair]
            mean = sum(each[row] for each in predictions) / len(predictions)
            labels.append(w + (1 - w) * predictions[number][row] if w > 0.5 else mean)
        assert memory.read("label" + ("", "_b")[number], IDS).tolist() == pytest.approx(labels, abs=1e-6)
        for row, (pair, value) in enumerate(zip(IDS.tolist(), plain_hinge(network.similarity, labels), strict=True)):
            total[row] += value if WEIGHTS[teacher][pair] > 0.5 or epoch > 15 else 0.0
    assert found.tolist() == pytest.approx(total, abs=1e-12)
    assert found.dtype == torch.float64


def test_the_gradient_is_that_of_the_value_with_labels_held():
    method = build_method("ncr")
    memory = remembering(method, PAIRS, weight=[1.0, 0, 1, 0], weight_b=[0.0, 1, 1, 1])
    method.labels = lambda *_: [torch.linspace(0.1, 1, PAIRS).double()] * 2

    def loss(first, second):
        given = GivenForward([GivenNetwork(first), GivenNetwork(second)], IDS)
        return method.batch_loss(given, position(), memory).per_pair

    assert torch.autograd.gradcheck(loss, (matrix(1, True), matrix(2, True)))


def test_no_gradient_flows_into_labels():
    given = forward(leaf=True)
    method = build_method("ncr")
    found = method.labels(given, method.weights(given, remembering(method, PAIRS, **WEIGHTS)))
    assert not any(label.requires_grad for label in found)


@pytest.mark.parametrize("epoch", [3, 20])
def test_order_does_not_matter(epoch):
    values = {name: torch.rand(23, generator=torch.Generator().manual_seed(3)) for name in WEIGHTS}
    check_order_does_not_matter(build_method("ncr"), forward(pairs=23), position(epoch), values)


def test_pairs_that_rank_first_by_the_margin_are_believed_and_cost_nothing():
    method = build_method("ncr", {"co_train": False})
    memory = remembering(method, PAIRS, weight=[0.9, 0.1, 0.2, 0.7])
    given = GivenForward([GivenNetwork(0.5 * torch.eye(PAIRS))], IDS)
    assert method.batch_loss(given, position(), memory).per_pair.tolist() == [0.0] * PAIRS
    assert memory.read("label").tolist() == [1.0] * PAIRS


def test_a_pair_of_more_similarity_is_predicted_more():
    method, found = build_method("ncr", {"co_train": False}), []
    for own in (0.1, 0.2, 0.3):
        similarity = matrix(5)
        similarity[1, 1] = own
        given = GivenForward([GivenNetwork(similarity)], IDS)
        found.append(float(method.labels(given, [torch.zeros(PAIRS)])[0][1]))
    assert found == sorted(found) and found[0] < found[-1]


def test_the_division_is_that_of_the_mixture_of_scaled_losses():
    generator = torch.Generator().manual_seed(0)
    losses = torch.cat(
        [0.1 + 0.03 * torch.randn(300, generator=generator), 0.5 + 0.05 * torch.randn(200, generator=generator)]
    )
    scaled = ((losses - losses.min()) / (losses.max() - losses.min())).double()
    for mixture, expected in (
        ("normal", fit_mixture(-scaled.numpy()).posterior(-scaled.numpy())),
        ("released", released_posterior(-scaled.numpy())),
    ):
        method = build_method("ncr", {"mixture": mixture, "co_train": False})
        memory = remembering(method, 500, loss=losses)
        record = method.start_epoch(position(), memory)
        assert memory.read("weight").tolist() == pytest.approx(expected.tolist(), abs=1e-5)
        assert record["clean_share"] == pytest.approx(0.6, abs=0.01)
        assert (method.division(memory) == int(Part.CLEAN)).tolist() == [True] * 300 + [False] * 200
    assert record["loss_low"] == pytest.approx(float(losses.min()))


def test_one_group_of_losses_calls_nobody_noisy(caplog):
    method = build_method("ncr", {"mixture": "normal"})
    losses = torch.randn(400, generator=torch.Generator().manual_seed(0)).abs()
    memory = remembering(method, 400, loss=losses, loss_b=torch.zeros(400), weight=torch.zeros(400))
    method.start_epoch(position(), memory)
    assert torch.equal(method.belief(memory), torch.ones(400))
    assert "no two groups" in caplog.text and "no pair is called noisy" in caplog.text


def test_the_survey_keeps_the_loss_of_each_network():
    method = build_method("ncr")
    given, memory = forward(), remembering(method, PAIRS)
    assert [method.surveys(position(epoch)) for epoch in (5, 6)] == [False, True]
    method.survey(given, position(), memory)
    for suffix, network in zip(("", "_b"), given.networks, strict=True):
        assert memory.read("loss" + suffix, IDS).tolist() == pytest.approx(plain_losses(network.similarity), abs=1e-6)


def test_too_few_epochs_are_refused():
    with pytest.raises(InputError, match="ncr needs more epochs than the 5 of its warm-up"):
        build_method("ncr").stages(5, None)
