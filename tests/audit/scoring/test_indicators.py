"""The indicators and LEMoN's score against plain float64 loops, at the edges, and cut in any way."""

import pytest
import torch
from torch.nn.functional import normalize

from tests.audit.scoring.naive_scores import naive_lemon, naive_score
from truepair.audit.result import INDICATORS
from truepair.audit.scoring import comparison
from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.indicators import BANK_INDICATORS, score
from truepair.errors import InputError
from truepair.reproduce.lemon import lemon_score


def unit(rows, width, seed, *, spread=1.0):
    """Unit rows around one direction, as embeddings of one space are; a small spread makes them all alike."""
    draw = torch.Generator().manual_seed(seed)
    return normalize(torch.ones(width) + spread * 3 * torch.randn(rows, width, generator=draw), dim=1)


def paired(rows, width, seed, *, spread=1.0):
    images = unit(rows, width, seed, spread=spread)
    texts = normalize(images + 0.5 * unit(rows, width, seed + 1, spread=spread), dim=1)
    return images, texts


def loops(images, texts, image_rows, text_rows, bank):
    args = (bank.images.double().tolist(), bank.texts.double().tolist(), bank.rows.tolist())
    return [
        naive_score(x, y, {a, b}, *args, bank.temperature, bank.neighbours)
        for x, y, a, b in zip(
            images.double().tolist(), texts.double().tolist(), image_rows.tolist(), text_rows.tolist(), strict=True
        )
    ]


def assert_as_in_loops(images, texts, image_rows, text_rows, bank, tolerance=2e-5):
    found = score(images, texts, bank, image_rows=image_rows, text_rows=text_rows)
    expected = loops(images, texts, image_rows, text_rows, bank)
    for name, values in found.items():
        assert values.dtype == torch.float32 and values.shape == (len(images),)
        wanted = torch.tensor([row[name] for row in expected], dtype=torch.float64)
        scale = 1 / bank.temperature if name in ("log_odds", "matching", "certainty") else 1.0
        torch.testing.assert_close(values.double(), wanted, rtol=1e-5, atol=tolerance * max(1.0, scale / 50), msg=name)


@pytest.mark.parametrize("temperature", [0.01, 0.07, 1.0])
@pytest.mark.parametrize("spread", [1.0, 0.05])
def test_given_pairs_and_known_mismatches_score_as_plain_loops_say(temperature, spread):
    images, texts = paired(60, 12, 0, spread=spread)
    rows = torch.arange(60)
    own = torch.randperm(60, generator=torch.Generator().manual_seed(3))[:25]
    bank = Bank.of(images[own], texts[own], own, temperature=temperature, neighbours=6)
    assert_as_in_loops(images, texts, rows, rows, bank)
    assert_as_in_loops(images, texts.roll(7, 0), rows, rows.roll(7), bank)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_small_banks(size):
    images, texts = paired(8, 6, 1)
    rows = torch.arange(8)
    bank = Bank.of(images[:size], texts[:size], rows[:size], temperature=0.1, neighbours=30)
    assert_as_in_loops(images, texts, rows, rows, bank)
    assert_as_in_loops(images, texts.roll(1, 0), rows, rows.roll(1), bank)


def test_where_nothing_is_left_to_compare_with_nothing_is_known():
    images, texts = paired(2, 6, 1)
    bank = Bank.of(images, texts, torch.tensor([4, 9]))
    found = score(images[:1], texts[1:], bank, image_rows=torch.tensor([4]), text_rows=torch.tensor([9]))
    assert found["log_odds"].item() == 0
    assert [found[name].item() for name in BANK_INDICATORS] == [0.5] * 5


def degenerate():
    images, texts = paired(12, 5, 4)
    same = unit(1, 5, 0).expand(12, 5).contiguous()
    axis = torch.eye(5)[0].expand(12, 5).clone()
    signed = axis * torch.tensor([1.0, -1.0] * 6)[:, None]
    twice = images.repeat_interleave(2, 0)[:12], texts.repeat_interleave(2, 0)[:12]
    return {
        "all the same": (same, same),
        "same images": (same, texts),
        "opposite": (images, -images),
        "one axis, both signs": (signed, signed.flip(0)),
        "every pair twice": twice,
        "all tie for the last place": (axis, texts),
    }


@pytest.mark.parametrize("kind", degenerate())
@pytest.mark.parametrize("temperature", [0.005, 0.1])
def test_degenerate_vectors_stay_in_range_and_agree_with_loops(kind, temperature):
    images, texts = degenerate()[kind]
    rows = torch.arange(12)
    bank = Bank.of(images[::2], texts[::2], rows[::2], temperature=temperature, neighbours=2)
    found = score(images, texts, bank, image_rows=rows, text_rows=rows)
    for name in BANK_INDICATORS:
        assert ((found[name] >= 0) & (found[name] <= 1)).all(), name  # false for NaN
    assert torch.isfinite(found["log_odds"]).all()
    assert_as_in_loops(images, texts, rows, rows, bank, tolerance=1e-4)


def test_log_odds_resolve_what_probabilities_cannot():
    bank_images = torch.eye(4)[:2]
    bank = Bank.of(bank_images, bank_images, torch.tensor([0, 1]), temperature=0.005)
    x = torch.eye(4)[2:3].expand(2, 4)
    y = normalize(torch.tensor([[0, 0, 1.0, 0], [0, 0, 0.9, 0.1]]), dim=1)
    found = score(x, y, bank, image_rows=torch.tensor([7, 8]), text_rows=torch.tensor([7, 8]))
    assert found["matching"].tolist() == [1, 1]
    assert found["log_odds"][0] - found["log_odds"][1] == pytest.approx((1 - float(y[1, 2])) / 0.005, rel=1e-3)


def test_own_entries_never_count():
    images, texts = paired(20, 8, 5)
    rows = torch.arange(20)
    bank = Bank.of(images, texts, rows, temperature=0.05, neighbours=4)
    without = Bank.of(images[2:], texts[2:], rows[2:], temperature=0.05, neighbours=4)
    known = score(images[:1], texts[1:2], bank, image_rows=rows[:1], text_rows=rows[1:2])
    far = score(images[:1], texts[1:2], without, image_rows=torch.tensor([-1]), text_rows=torch.tensor([-1]))
    for name in ("log_odds", "rank"):  # the others also depend on what the bank thinks of its own entries
        torch.testing.assert_close(known[name], far[name], rtol=1e-5, atol=1e-5)


def test_how_rows_are_cut_does_not_matter(monkeypatch):
    images, texts = paired(301, 64, 6)
    rows = torch.arange(301)
    bank = Bank.of(images[:50], texts[:50], rows[:50])
    whole = score(images, texts, bank, image_rows=rows, text_rows=rows)
    monkeypatch.setattr(comparison, "BLOCK_CELLS", 50 * 37)
    blocks = score(images, texts, bank, image_rows=rows, text_rows=rows)
    parts = [
        score(images[part], texts[part], bank, image_rows=rows[part], text_rows=rows[part])
        for part in rows.split([1, 2, 130, 1, 167])
    ]
    for name, values in whole.items():
        scale = 1 / bank.temperature if name == "log_odds" else 1.0
        torch.testing.assert_close(values, blocks[name], rtol=1e-6, atol=1e-6 * scale)
        torch.testing.assert_close(values, torch.cat([part[name] for part in parts]), rtol=1e-6, atol=1e-6 * scale)


def test_matched_pairs_score_above_mismatched_ones_in_every_indicator():
    images, texts = paired(400, 32, 7)
    rows = torch.arange(400)
    bank = Bank.of(images[:200], texts[:200], rows[:200])
    given = score(images, texts, bank, image_rows=rows, text_rows=rows)
    wrong = score(images, texts.roll(1, 0), bank, image_rows=rows, text_rows=rows.roll(1))
    for name in ("log_odds", *BANK_INDICATORS):
        assert given[name].median() > wrong[name].quantile(0.75), name


def test_names_are_those_of_the_result():
    assert list(BANK_INDICATORS) == [name for name in INDICATORS if name not in ("others", "memory")]


def test_half_precision_is_computed_in_float32():
    images, texts = paired(30, 16, 8)
    rows = torch.arange(30)
    bank = Bank.of(images[:10], texts[:10], rows[:10])
    half = score(images.half(), texts.half(), bank, image_rows=rows, text_rows=rows)
    full = score(images.half().float(), texts.half().float(), bank, image_rows=rows, text_rows=rows)
    assert torch.equal(half["log_odds"], full["log_odds"])


def test_no_candidates():
    images, texts = paired(3, 4, 0)
    rows = torch.arange(3)
    bank = Bank.of(images, texts, rows)
    none = rows[:0]
    assert all(len(v) == 0 for v in score(images[:0], texts[:0], bank, image_rows=none, text_rows=none).values())
    assert len(lemon_score(images[:0], texts[:0], bank, image_rows=none, text_rows=none)) == 0


def faults():
    images, texts = paired(3, 4, 0)
    rows = torch.arange(3)
    zero, nan = images.clone(), images.clone()
    zero[1], nan[2, 0] = 0, torch.nan
    return {
        "image 1 has length 0": (zero, texts, rows, rows),
        "text 2 has length nan": (images, nan, rows, rows),
        "image 0 has length 2": (2 * images, texts, rows, rows),
        "expected \\(n, D\\) twice": (images, texts[:2], rows, rows),
        "expected floats": (images.long(), texts.long(), rows, rows),
        "\\(3,\\) int64": (images, texts, rows.int(), rows),
        "text rows are \\(2,\\)": (images, texts, rows, rows[:2]),
        "width 3 on cpu, the bank 4": (normalize(images[:, :3]), normalize(texts[:, :3]), rows, rows),
    }


@pytest.mark.parametrize("message", faults())
@pytest.mark.parametrize("function", [score, lemon_score])
def test_unusable_candidates_are_refused(message, function):
    bank = Bank.of(*paired(3, 4, 9), torch.arange(3))
    images, texts, image_rows, text_rows = faults()[message]
    with pytest.raises(InputError, match=message):
        function(images, texts, bank, image_rows=image_rows, text_rows=text_rows)


@pytest.mark.parametrize("size", [1, 4, 25])
def test_lemon_as_plain_loops_say(size):
    images, texts = paired(40, 10, 10)
    rows = torch.arange(40)
    bank = Bank.of(images[:size], texts[:size], rows[:size])
    for shift in (0, 3):
        found = lemon_score(
            images, texts.roll(shift, 0), bank, image_rows=rows, text_rows=rows.roll(shift), neighbours=5
        )
        expected = [
            naive_lemon(x, y, {a, b}, bank.images.tolist(), bank.texts.tolist(), bank.rows.tolist(), 5)
            for x, y, a, b in zip(
                images.tolist(), texts.roll(shift, 0).tolist(), rows.tolist(), rows.roll(shift).tolist(), strict=True
            )
        ]
        torch.testing.assert_close(found.double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-5, atol=1e-5)
