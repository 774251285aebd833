"""The bank: what is estimated from its own pairs, and what it refuses."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from tests.audit.scoring.naive_scores import naive_background, naive_trust
from truepair.audit.scoring import bank as bank_module
from truepair.audit.scoring.bank import Bank, fitted_temperature
from truepair.errors import InputError


def pairs(count, *, noise=0.0, seed=0, width=16, error=0.3):
    draw = torch.Generator().manual_seed(seed)
    images = normalize(torch.randn(count, width, generator=draw), dim=1)
    texts = normalize(images + error * torch.randn(count, width, generator=draw), dim=1)
    wrong = int(noise * count)
    if wrong:
        texts[:wrong] = texts[:wrong].roll(1, 0)
    return images, texts


def better_half_loss(images, texts, tau):
    """In float64, pair by pair."""
    scaled = images.double() @ texts.double().T / tau
    losses = []
    for i in range(len(scaled)):
        p, q = torch.softmax(scaled[i], 0)[i], torch.softmax(scaled[:, i], 0)[i]
        losses.append(-(math.log(p) + math.log(q)) / 2)
    half = sorted(losses)[: (len(losses) + 1) // 2]
    return sum(half) / len(half)


@pytest.mark.parametrize("noise", [0.0, 0.4])
@pytest.mark.parametrize("error", [0.35, 0.6])
def test_the_temperature_is_the_best_of_a_grid(noise, error):
    images, texts = pairs(161, noise=noise, error=error)
    found = fitted_temperature(images, texts)
    grid = [math.exp(t) for t in torch.linspace(math.log(0.005), 0, 60).tolist()]
    best = min(grid, key=lambda tau: better_half_loss(images, texts, tau))
    assert 0.005 < best < 1
    assert found == pytest.approx(best, rel=0.1)
    assert better_half_loss(images, texts, found) <= better_half_loss(images, texts, best) * 1.001 + 1e-9


def test_mismatched_pairs_hardly_move_the_temperature():
    clean = fitted_temperature(*pairs(800, error=0.6))
    noisy = fitted_temperature(*pairs(800, noise=0.4, error=0.6))
    assert clean / 2.5 < noisy < clean * 2.5


def test_pairs_that_nobody_could_confuse_get_the_sharpest_and_strangers_a_soft_one():
    eye = torch.eye(8)
    assert fitted_temperature(eye, eye) == pytest.approx(0.005, rel=0.02)
    draw = torch.Generator().manual_seed(0)
    strangers = (
        normalize(torch.randn(300, 64, generator=draw), dim=1),
        normalize(torch.randn(300, 64, generator=draw), dim=1),
    )
    assert fitted_temperature(*strangers) > 0.1
    assert fitted_temperature(eye[:1], eye[:1]) == 0.07


def test_at_most_the_stated_number_of_pairs_is_used(monkeypatch):
    images, texts = pairs(90, error=0.6)
    monkeypatch.setattr(bank_module, "FITTED_PAIRS", 30)
    assert fitted_temperature(images, texts) == fitted_temperature(images[::3], texts[::3])


@pytest.mark.parametrize("size", [1, 2, 3, 33])
def test_trust_and_background_as_plain_loops_say(size, monkeypatch):
    images, texts = pairs(size, noise=0.5)
    monkeypatch.setattr(bank_module, "_BLOCK_ROWS", 8)
    bank = Bank.of(images, texts, torch.arange(size), temperature=0.05)
    expected = naive_trust(images.double().tolist(), texts.double().tolist())
    torch.testing.assert_close(bank.trust.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-5, atol=1e-6)
    background = naive_background(images.double().tolist(), texts.double().tolist(), 0.05)
    assert bank.background == pytest.approx(background, abs=1e-4)


def test_mismatched_entries_are_trusted_less():
    bank = Bank.of(*pairs(400, noise=0.5), torch.arange(400))
    assert bank.trust[:200].median() < 0.5 < bank.trust[200:].median()


def test_entries_are_kept_in_the_order_of_their_rows():
    images, texts = pairs(5)
    rows = torch.tensor([30, 2, 11, 7, 5])
    bank = Bank.of(images, texts, rows)
    order = rows.argsort()
    assert torch.equal(bank.rows, rows[order])
    assert torch.equal(bank.images, images[order]) and torch.equal(bank.texts, texts[order])
    torch.testing.assert_close(bank.fit(), (images * texts).sum(1)[order])
    assert len(bank) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"neighbours": 0}, "neighbours is 0"),
        ({"rows": torch.tensor([1, 1, 2])}, "distinct and not negative"),
        ({"rows": torch.tensor([-1, 1, 2])}, "distinct and not negative"),
        ({"rows": torch.tensor([0, 1])}, "bank's rows are \\(2,\\)"),
        ({"images": torch.zeros(3, 16)}, "bank's image 0 has length 0"),
        ({"images": torch.full((3, 16), torch.inf)}, "bank's image 0 has length inf"),
        ({"images": torch.zeros(0, 16), "texts": torch.zeros(0, 16), "rows": torch.arange(0)}, "at least one"),
    ],
)
def test_unusable_banks_are_refused(change, message):
    images, texts = pairs(3)
    with pytest.raises(InputError, match=message):
        Bank.of(**({"images": images, "texts": texts, "rows": torch.arange(3)} | change))
