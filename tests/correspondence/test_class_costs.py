"""UOT-RCL's confident set, nearest neighbours, label costs and corrected labels, against loops."""

import math

import pytest
import torch

from truepair.correspondence import neighbours as searching
from truepair.correspondence.class_costs import corrected_labels, label_cost, running_targets
from truepair.correspondence.confident import confident_pairs, jensen_shannon
from truepair.correspondence.neighbours import nearest_among, nearest_neighbours
from truepair.errors import InputError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def probabilities(n, k, seed=0, sharpness=2.0):
    return torch.softmax(sharpness * torch.randn(n, k, generator=generator(seed), dtype=torch.float64), dim=1)


def units(n, d, seed=0):
    return torch.nn.functional.normalize(torch.randn(n, d, generator=generator(seed)), dim=1)


# ---- confident set ----


def plain_divergence(p, q):
    total = 0.0
    for a, b in zip(p.tolist(), q.tolist(), strict=True):
        middle = (a + b) / 2
        total += (a * math.log(a / middle) if a else 0) / 2 + (b * math.log(b / middle) if b else 0) / 2
    return total


@pytest.mark.parametrize("classes", [1, 2, 7, 200])
def test_divergence_is_that_of_the_definition(classes):
    p, q = probabilities(20, classes, seed=1, sharpness=8), probabilities(20, classes, seed=2, sharpness=8)
    p[0] = q[1] = torch.eye(classes, dtype=torch.float64)[0]
    expected = [plain_divergence(a, b) for a, b in zip(p, q, strict=True)]
    assert jensen_shannon(p, q).tolist() == pytest.approx(expected, abs=1e-14)


def test_divergence_at_its_ends():
    p, q = torch.tensor([[1.0, 0.0, 0.0], [0.2, 0.8, 0.0]]), torch.tensor([[0.0, 1.0, 0.0], [0.2, 0.8, 0.0]])
    assert jensen_shannon(p, q).tolist() == [pytest.approx(math.log(2), abs=1e-15), 0.0]
    near = torch.tensor([[0.5 + 1e-9, 0.5 - 1e-9]], dtype=torch.float64)
    assert float(jensen_shannon(near, near.flip(1))) == pytest.approx(2e-18, rel=1e-6)  # (2e-9)²/2 · no cancellation


def plain_confident(p, q, per_class):
    chosen = []
    means = [[(a + b) for a, b in zip(x, y, strict=True)] for x, y in zip(p.tolist(), q.tolist(), strict=True)]
    predicted = [row.index(max(row)) for row in means]
    for k in range(p.shape[1]):
        of_class = [i for i in range(len(p)) if predicted[i] == k]
        of_class.sort(key=lambda i: (plain_divergence(p[i], q[i]), i))
        chosen += of_class[:per_class]
    return sorted(chosen)


@pytest.mark.parametrize("classes", [1, 2, 10, 200])
@pytest.mark.parametrize("per_class", [1, 5])
def test_confident_pairs_are_the_least_divergent_of_each_class(classes, per_class):
    p, q = probabilities(150, classes, seed=3), probabilities(150, classes, seed=4)
    found = confident_pairs(p, q, per_class=per_class)
    assert found.dtype == torch.int64
    assert found.tolist() == plain_confident(p, q, per_class)


def test_ties_go_to_the_first_class_and_the_lower_id():
    p = torch.tensor([[0.4, 0.4, 0.2]]).repeat(6, 1)
    assert confident_pairs(p, p, per_class=4).tolist() == [0, 1, 2, 3]  # all of class 0, divergence 0
    p[1] = torch.tensor([0.1, 0.1, 0.8])
    assert confident_pairs(p, p, per_class=2).tolist() == [0, 1, 2]  # class 2 has one pair, class 1 none
    p = torch.tensor([[0.4, 0.4, 0.2], [0.6, 0.2, 0.2], [0.2, 0.6, 0.2]])
    assert confident_pairs(p, p, per_class=1).tolist() == [0, 2]  # pair 0 is of the first class, and takes its place


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: confident_pairs(torch.ones(2, 2), torch.ones(2, 3)), r"\(2, 2\) and \(2, 3\); expected \(N, K\)"),
        (lambda: confident_pairs(torch.ones(2, 1), torch.ones(2, 1), per_class=0), "per_class is 0"),
        (
            lambda: jensen_shannon(torch.ones(2, 1), torch.tensor([[1.0], [math.nan]])),
            r"text_probability\[1, 0\] is nan",
        ),
        (lambda: jensen_shannon(-torch.ones(2, 1), torch.ones(2, 1)), r"image_probability\[0, 0\] is -1.0"),
    ],
)
def test_bad_probabilities_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


# ---- nearest neighbours ----


def plain_neighbours(bank, count):
    products = (bank @ bank.T).tolist()
    rows = []
    for i, row in enumerate(products):
        others = sorted((j for j in range(len(row)) if j != i), key=lambda j: (-row[j], j))
        rows.append(others[:count])
    return rows


def grid(n, d, seed=0):
    """Rows of small whole numbers: exact products, full of ties."""
    return torch.randint(-1, 2, (n, d), generator=generator(seed)).float()


@pytest.mark.parametrize("count", [1, 3, 10, 49, 80])
@pytest.mark.parametrize("make", [units, grid])
def test_neighbours_are_those_of_a_sort(make, count):
    bank = make(50, 4, seed=1)
    similarity, index = nearest_neighbours(bank, count)
    assert index.tolist() == plain_neighbours(bank, count)
    assert torch.allclose(similarity, (bank @ bank.T).gather(1, index), atol=1e-6)
    assert index.shape == (50, min(count, 49)) and index.dtype == torch.int64


@pytest.mark.parametrize("make", [units, grid])
@pytest.mark.parametrize("memory_bytes", [1, 700, 10**9])
def test_blocks_do_not_matter(make, memory_bytes):
    bank = make(40, 5, seed=2)
    assert nearest_neighbours(bank, 6, memory_bytes=memory_bytes)[1].tolist() == plain_neighbours(bank, 6)


@pytest.mark.parametrize("make", [units, grid])
@pytest.mark.parametrize("sampled", [30, 50])
@pytest.mark.parametrize("memory_bytes", [1, 7_000, 10**9])
def test_large_banks_are_searched_by_halves_and_what_the_lists_miss_is_mended(monkeypatch, make, sampled, memory_bytes):
    monkeypatch.setattr(searching, "SAMPLED_COLUMNS", sampled)
    monkeypatch.setattr(searching, "FEW", 2)
    left = []
    search = searching._search_by_halves
    monkeypatch.setattr(searching, "_search_by_halves", lambda *call: left.append(search(*call)) or left[-1])
    bank = make(200, 4, seed=3)
    # More that are alike than a list holds; and equal where the products are exact.
    bank[1:90:2] = bank[0] + (0 if make is grid else 1e-2 * units(45, 4, seed=4))
    similarity, index = nearest_neighbours(bank, 12, memory_bytes=memory_bytes)
    assert 0 < len(left[0]) < 200  # both ways were taken
    assert index.tolist() == plain_neighbours(bank, 12)
    assert torch.allclose(similarity, (bank @ bank.T).gather(1, index), atol=1e-6)


def test_rows_whose_threshold_lets_too_few_pass_are_searched_whole(monkeypatch):
    monkeypatch.setattr(searching, "SAMPLED_COLUMNS", 50)
    monkeypatch.setattr(searching, "FEW", 2)
    bank = units(200, 4, seed=5)
    bank[::4] = bank[0] + 1e-2 * units(50, 4, seed=6)  # the sample, and it is all they are alike to
    assert nearest_neighbours(bank, 12)[1].tolist() == plain_neighbours(bank, 12)
    assert searching._search_by_halves(bank, searching._Best(*nearest_neighbours(bank, 12)), 10**6).numel() >= 40


def test_one_row_has_no_neighbours():
    similarity, index = nearest_neighbours(torch.ones(1, 3), 5)
    assert similarity.shape == index.shape == (1, 0)
    assert nearest_neighbours(units(4, 3), 0)[1].shape == (4, 0)


@pytest.mark.parametrize("make", [units, grid])
@pytest.mark.parametrize("memory_bytes", [1, 200, 10**9])
def test_nearest_candidate_is_another_row_and_the_lower_of_equals(make, memory_bytes):
    bank, candidates = make(30, 4, seed=4), [21, 3, 4, 29, 17]
    similarity, index = nearest_among(bank, torch.tensor(candidates), memory_bytes=memory_bytes)
    products = (bank @ bank.T).tolist()
    for i, row in enumerate(products):
        best = min((j for j in candidates if j != i), key=lambda j: (-row[j], j))
        assert int(index[i]) == best and float(similarity[i]) == pytest.approx(row[best], abs=1e-6)


def test_a_single_candidate_is_everybodys_nearest_and_its_own():
    bank = units(5, 3)
    similarity, index = nearest_among(bank, torch.tensor([2]))
    assert index.tolist() == [2] * 5 and float(similarity[2]) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nearest_neighbours(torch.zeros(3), 1), r"shape \(3,\); expected floats of shape \(N, d\)"),
        (lambda: nearest_neighbours(torch.zeros(3, 2).long(), 1), "bank is torch.int64"),
        (lambda: nearest_neighbours(torch.tensor([[1.0], [math.nan]]), 1), "bank, row 1, is not finite"),
        (lambda: nearest_neighbours(units(3, 2), -1), "count of neighbours is -1"),
        (lambda: nearest_among(units(3, 2), torch.tensor([], dtype=torch.int64)), "at least one"),
        (lambda: nearest_among(units(3, 2), torch.tensor([1.0])), "expected int64"),
        (lambda: nearest_among(units(3, 2), torch.tensor([1, 3])), "distinct numbers 0 … 2"),
        (lambda: nearest_among(units(3, 2), torch.tensor([-1, 2])), "from -1 to 2"),
        (lambda: nearest_among(units(3, 2), torch.tensor([1, 1])), "distinct"),
    ],
)
def test_bad_banks_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


# ---- costs ----


def plain_cost(images, texts, targets, confident, count):
    n, k = targets.shape

    def unit(bank):
        rows = bank.double().tolist()
        return [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in rows]

    def exact(bank, i, j):
        return sum(a * b for a, b in zip(bank[i], bank[j], strict=True))

    def cosine(bank, i, j, least):
        return min(max(exact(bank, i, j), least), 1.0)

    support = [[0.0] * k for _ in range(n)]
    images, texts = unit(images), unit(texts)
    for here, there in ((images, texts), (texts, images)):
        for i in range(n):
            ratio = 1.0
            if confident is not None:
                candidates = [j for j in confident if j != i] or confident
                nearest = min(candidates, key=lambda j: (-exact(here, i, j), j))
                ratio = cosine(here, i, nearest, 0.1) / cosine(there, i, nearest, 0.1)
            near = sorted((j for j in range(n) if j != i), key=lambda j: (-exact(here, i, j), j))
            near = [i, *near][:count]
            for label in range(k):
                votes = [cosine(here, i, j, 0.0) * float(targets[j, label]) for j in near]
                support[i][label] += ratio * sum(votes) / len(votes)
    return torch.tensor([[-math.log(max(value, 1e-8)) for value in row] for row in support])


@pytest.mark.parametrize(("count", "size"), [(1, 40), (3, 40), (10, 40), (60, 12), (2, 2)])
@pytest.mark.parametrize("confident", [None, [0], [0, 1], [1, 0]])
def test_cost_is_that_of_loops(count, size, confident):
    images, texts = torch.randn(size, 5, generator=generator(5)), torch.randn(size, 4, generator=generator(6))
    targets = probabilities(size, 3, seed=7).float()
    chosen = None if confident is None else torch.tensor(confident)
    found = label_cost(images, texts, targets, chosen, neighbours=count)
    assert torch.allclose(found, plain_cost(images, texts, targets, confident, count), atol=2e-4)


def test_a_pair_alone_among_its_nearest_keeps_its_label():
    """With one sample, the pair itself, the cost is that of its own targets in both modalities."""
    targets = probabilities(20, 3, seed=7).float()
    found = label_cost(units(20, 5), units(20, 4, seed=1), targets, neighbours=1)
    assert torch.allclose(found, -(2 * targets).log(), atol=1e-6)


def test_cost_is_small_for_the_class_of_those_alike():
    labels = torch.arange(60) % 3
    centres = units(3, 16, seed=8)
    images, texts = (centres[labels] + 0.1 * torch.randn(60, 16, generator=generator(seed)) for seed in (9, 10))
    given = labels.clone()
    given[::5] = (given[::5] + 1) % 3
    targets = torch.nn.functional.one_hot(given, 3).float()
    cost = label_cost(images, texts, targets, torch.arange(15), neighbours=8)
    assert bool((cost.argmin(dim=1) == labels).all())


def test_degenerate_banks_have_a_finite_cost():
    alike = label_cost(torch.ones(6, 3), torch.ones(6, 3), torch.eye(6), torch.tensor([2]), neighbours=2)
    assert bool(torch.isfinite(alike).all())
    opposed = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    for confident in (None, torch.tensor([0, 1])):
        cost = label_cost(opposed, opposed.roll(1, dims=0), torch.eye(4), confident, neighbours=3)
        assert bool(torch.isfinite(cost).all())


def test_a_cost_has_no_gradient_and_keeps_its_inputs():
    images, targets = units(8, 4).requires_grad_(), probabilities(8, 3).float()
    kept = targets.clone()
    assert not label_cost(images, images, targets, torch.tensor([1]), neighbours=2).requires_grad
    assert torch.equal(targets, kept)


# ---- targets and labels ----


def test_running_targets_move_towards_the_prediction():
    targets, predicted = probabilities(5, 4, seed=11), torch.tensor([0, 3, 3, 1, 2])
    moved = running_targets(targets, predicted, momentum=0.9)
    for i in range(5):
        for k in range(4):
            assert float(moved[i, k]) == pytest.approx(0.9 * float(targets[i, k]) + 0.1 * (int(predicted[i]) == k))
    assert torch.allclose(moved.sum(dim=1), torch.ones(5, dtype=torch.float64))
    assert torch.equal(targets, probabilities(5, 4, seed=11))


@pytest.mark.parametrize("mass", [0.2, 0.8, 1.0])
@pytest.mark.parametrize("shape", [(200, 10), (30, 40), (1, 3), (5, 1)])
def test_labels_carry_the_mass_and_a_confidence(mass, shape):
    cost = 5 * torch.rand(*shape, generator=generator(12))
    labels = corrected_labels(cost, torch.full((shape[1],), 7.0), mass=mass)
    assert labels.shape == shape and labels.dtype == cost.dtype and bool((labels >= 0).all())
    confidence = labels.sum(dim=1)
    assert float(confidence.max()) <= 1 + 1e-6
    assert float(confidence.mean()) == pytest.approx(mass, abs=1e-5)
    assert bool((labels.mean(dim=0) <= 1 / shape[1] + 1e-5).all())


def test_a_cheap_pair_is_more_confident_and_shifts_do_not_matter():
    cost = torch.rand(60, 4, generator=generator(13)) + 2.0
    cost[7, 2] = 0.0
    labels = corrected_labels(cost, torch.ones(4), mass=0.3)
    assert int(labels[7].argmax()) == 2 and int(labels.sum(dim=1).argmax()) == 7
    assert torch.allclose(corrected_labels(cost + 50, torch.ones(4), mass=0.3), labels, atol=1e-4)


def test_with_a_free_surplus_costs_below_zero_get_labels_beyond_the_mass():
    cost = 4 * torch.rand(60, 4, generator=generator(14)) - 1.0
    exact = corrected_labels(cost, torch.ones(4), mass=0.2)
    free = corrected_labels(cost, torch.ones(4), mass=0.2, surplus_cost=0.0)
    below = float((cost.amin(dim=1) < 0).float().mean())
    assert float(exact.sum() / 60) == pytest.approx(0.2, abs=1e-5)
    assert below > 0.5 and float(free.sum() / 60) == pytest.approx(below, abs=0.1)
    assert float(free.sum(dim=1).max()) <= 1 + 1e-6


def test_a_perfect_cost_with_all_mass_gives_the_true_labels():
    true = torch.nn.functional.one_hot(torch.arange(40) % 4, 4).float()
    assert torch.allclose(corrected_labels(1 - true, true.sum(dim=0), mass=1.0), true, atol=1e-6)


def test_a_constant_cost_gives_the_class_masses():
    shares = torch.tensor([0.5, 0.3, 0.2, 0.0])
    for constant in (0.0, -3.0):
        labels = corrected_labels(torch.full((50, 4), constant), shares, mass=1.0)
        assert torch.allclose(labels, shares.expand(50, 4), atol=1e-6)
        labels = corrected_labels(torch.full((50, 4), constant), shares, mass=0.5)
        assert torch.allclose(labels.sum(dim=1), torch.full((50,), 0.5), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: label_cost(units(3, 2), units(4, 2), torch.ones(3, 2), torch.tensor([0]), neighbours=1),
            "one row a pair",
        ),
        (
            lambda: label_cost(units(2, 2), units(2, 2), -torch.eye(2), torch.tensor([0]), neighbours=1),
            "targets.0, 0. is",
        ),
        (
            lambda: label_cost(units(2, 2), units(2, 2), torch.eye(2), torch.tensor([0]), neighbours=0),
            "neighbours is 0",
        ),
        (lambda: running_targets(torch.eye(2), torch.tensor([0, 2]), momentum=0.5), r"predicted\[1\] is 2"),
        (lambda: running_targets(torch.eye(2), torch.tensor([0]), momentum=0.5), "expected"),
        (lambda: running_targets(torch.eye(2), torch.tensor([0, 1]), momentum=1.5), "momentum is 1.5"),
        (lambda: corrected_labels(torch.eye(2), torch.ones(3), mass=0.5), r"class_mass \(3,\); expected"),
        (lambda: corrected_labels(torch.full((2, 2), math.nan), torch.ones(2), mass=0.5), "cost is not finite"),
        (lambda: corrected_labels(torch.eye(2), torch.ones(2), mass=1.5), "mass is 1.5"),
        (lambda: corrected_labels(torch.eye(2), torch.zeros(2), mass=0.5), "class_mass"),
        (lambda: corrected_labels(torch.eye(2), torch.ones(2), mass=0.5, epsilon=0.0), "epsilon is 0.0"),
    ],
)
def test_bad_costs_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
