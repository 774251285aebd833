"""Better partners against a double loop over all pairs, and swaps."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from truepair.audit.rematch.rematch import Items, best_partners, rematch, swaps
from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.indicators import score
from truepair.audit.scoring.vector_space import VectorSpace


class ArraySpace(VectorSpace):
    """A space over vectors in memory. Place k of the arrays is row 100 + 3 k."""

    def __init__(self, images, texts, covered=None, *, block=7, size=12):
        self.images, self.texts, self.block = images, texts, block
        self.covered = np.arange(len(images)) if covered is None else np.asarray(covered)
        drawn = torch.from_numpy(self.covered[:size].astype(np.int64))
        self.bank = Bank.of(images[drawn], texts[drawn], 100 + 3 * drawn, temperature=0.1, neighbours=3)

    def covers(self, rows):
        return np.sort(rows[np.isin(places(rows), self.covered)])

    def vectors(self, rows):
        assert (np.diff(rows) > 0).all()
        at = torch.from_numpy(places(rows))
        return self.images[at], self.texts[at]

    def blocks(self):
        for start in range(0, len(self.images), self.block):
            images, texts = self.images[start : start + self.block], self.texts[start : start + self.block]
            yield numbers(np.arange(start, start + len(images))), images, texts


def numbers(places):
    """Rows of places in the arrays; -1 is none."""
    return np.where(np.asarray(places) >= 0, 100 + 3 * np.asarray(places), -1)


def places(rows):
    """The other way round."""
    return np.where(np.asarray(rows) >= 0, (np.asarray(rows) - 100) // 3, -1)


def items_of(image_of, caption_of):
    return Items(numbers(np.arange(len(image_of))), np.asarray(image_of), np.asarray(caption_of))


def made(count, *, width=5, seed=0, wrong=0.5, distinct=None):
    """Vectors of pairs, half of them mismatched; `distinct` vectors only, so that many are equal."""
    draw = torch.Generator().manual_seed(seed)
    base = normalize(torch.randn(distinct or count, width, generator=draw), dim=1)
    images = base[torch.randint(len(base), (count,), generator=draw)] if distinct else base
    texts = (
        normalize(images + 0.3 * torch.randn(count, width, generator=draw), dim=1) if not distinct else images.clone()
    )
    moved = torch.randperm(count, generator=draw)[: int(wrong * count)]
    texts[moved] = texts[moved.roll(1)]
    return images, texts


def naive_partner(own, similarities, have, offered):
    """The first of the most similar others that beats the own partner and is none of those it has already."""
    best, place = own + 1e-6, -1
    for other, similarity in enumerate(similarities):
        if offered[other] not in have and similarity > best + 1e-6:
            best, place = similarity, other
    return place


def assert_partners_as_in_a_double_loop(found, asked, images, texts, image_of, caption_of):
    x, y = images.double().numpy(), texts.double().numpy()
    for place, row in enumerate(asked.tolist()):
        own = float(x[row] @ y[row])
        for partner, similarities, item, number in (
            (found[0], y @ x[row], image_of, caption_of),
            (found[1], x @ y[row], caption_of, image_of),
        ):
            have = {number[other] for other in range(len(number)) if item[other] == item[row]}
            expected = naive_partner(own, similarities.tolist(), have, number)
            got = int(partner[place])
            assert (got < 0) == (expected < 0)
            if got >= 0:  # equal vectors may differ by rounding: as similar, and no earlier one is more so
                assert number[got] not in have
                assert similarities[got] == pytest.approx(similarities[expected], abs=1e-6)


@pytest.mark.parametrize("compared", [3, 1024])
@pytest.mark.parametrize("block", [1, 7])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("distinct", "images_of", "captions_of"), [(None, 60, 60), (None, 12, 60), (9, 60, 10), (5, 8, 7)]
)
def test_partners_as_a_double_loop_finds_them(seed, distinct, images_of, captions_of, block, compared, monkeypatch):
    monkeypatch.setattr("truepair.audit.scoring.vector_space.COMPARED_AT_ONCE", compared)
    images, texts = made(60, seed=seed, distinct=distinct)
    rng = np.random.default_rng(seed)
    image_of, caption_of = rng.integers(0, images_of, 60), rng.integers(0, captions_of, 60)
    asked = np.sort(rng.permutation(60)[:25])
    found = best_partners(numbers(asked), ArraySpace(images, texts, block=block), items_of(image_of, caption_of))
    found = [places(side) for side in found]
    assert_partners_as_in_a_double_loop(found, asked, images, texts, image_of, caption_of)


def test_the_first_of_equals_is_taken():
    eye = torch.eye(4)
    images, texts = eye[[0, 1, 2, 3, 3]], eye[[3, 1, 0, 0, 0]]  # pair 0 would fit the captions 2, 3, 4
    own = np.arange(5)
    for block in (1, 2, 5):
        space = ArraySpace(images, texts, block=block, size=4)
        captions, pictures = best_partners(numbers([0]), space, items_of(own, own))
        assert captions.tolist() == numbers([2]).tolist() and pictures.tolist() == numbers([3]).tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("at_once", [3, 4096])
def test_the_whole_against_loops(seed, at_once, monkeypatch):
    """Three spaces cover a third each; the most suspicious are not in order."""
    monkeypatch.setattr("truepair.audit.rematch.rematch.SUSPICIOUS_AT_ONCE", at_once)
    rng = np.random.default_rng(seed)
    spaces = [made(45, seed=10 * seed + k) for k in range(3)]
    asked = [ArraySpace(*space, covered=np.arange(45)[np.arange(45) % 3 == k]) for k, space in enumerate(spaces)]
    image_of, caption_of = np.arange(45) // 2, rng.integers(0, 30, 45)
    suspicious = rng.permutation(45)[:20]
    items = items_of(image_of, caption_of)
    found = rematch(numbers(suspicious), asked, items)
    assert np.array_equal(found.rows, numbers(suspicious))
    swapped = swaps(found.rows, found.caption_from, items)
    for place, row in enumerate(suspicious.tolist()):
        space, (images, texts) = asked[row % 3], spaces[row % 3]
        alone = places(found.caption_from[[place]]), places(found.image_from[[place]])
        assert_partners_as_in_a_double_loop(alone, np.array([row]), images, texts, image_of, caption_of)
        for other, fit, image, caption in (
            (int(alone[0][0]), found.caption_fit[place], row, int(alone[0][0])),
            (int(alone[1][0]), found.image_fit[place], int(alone[1][0]), row),
        ):
            if other < 0:
                assert fit == 0
                continue
            alone_score = score(
                images[[image]],
                texts[[caption]],
                space.bank,
                image_rows=torch.from_numpy(numbers([image])),
                text_rows=torch.from_numpy(numbers([caption])),
            )
            assert fit == pytest.approx(alone_score["matching"].item(), abs=1e-5)
    assert found.caption_fit.dtype == found.image_fit.dtype == np.float32
    assert np.array_equal(found.swap_with, swapped)


def test_pairs_that_exchanged_captions_are_found_by_name():
    images, _ = made(40, width=16)
    texts = images.clone()
    texts[[3, 30]], texts[[5, 6, 7]] = texts[[30, 3]], texts[[6, 7, 5]]
    suspicious, own = np.array([30, 7, 5, 3, 6]), np.arange(40)
    found = rematch(numbers(suspicious), [ArraySpace(images, texts, size=40)], items_of(own, own))
    assert places(found.caption_from).tolist() == [3, 6, 7, 30, 5]
    assert places(found.image_from).tolist() == [3, 5, 6, 30, 7]
    assert places(found.swap_with).tolist() == [3, -1, -1, 30, -1]
    assert (found.caption_fit > 0.9).all() and (found.image_fit > 0.9).all()


@pytest.mark.parametrize("spaces", [0, 1])
def test_nothing_suspicious_or_no_space_that_covers_it(spaces):
    images, texts = made(20)
    space = [ArraySpace(images, texts, covered=np.arange(10))][:spaces]
    items = items_of(np.arange(20), np.arange(20))
    for suspicious in (np.array([], dtype=np.int64), numbers([15, 12])):
        none = rematch(suspicious, space, items)
        assert all(len(getattr(none, column)) == 0 for column in ("rows", "caption_from", "image_fit", "swap_with"))
    assert len(rematch(numbers([15, 3]), space, items).rows) == spaces


def test_well_matched_pairs_have_no_better_partner():
    images, _ = made(20, width=16)
    items = items_of(np.arange(20), np.arange(20))
    found = rematch(numbers(np.arange(20)), [ArraySpace(images, images)], items)
    assert (found.caption_from == -1).all() and (found.image_from == -1).all() and (found.swap_with == -1).all()


# --- Swaps --------------------------------------------------------------------------------------------------------


def naive_swaps(rows, caption_from, caption_of):
    """For each pair in turn the first free one such that each one's caption is the other's best."""
    best = {row: caption_of[other] if other >= 0 else None for row, other in zip(rows, caption_from, strict=True)}
    partner = dict.fromkeys(rows, -1)
    for a in rows:
        for b in rows:
            if a != b and partner[a] == partner[b] == -1 and best[a] == caption_of[b] and best[b] == caption_of[a]:
                partner[a], partner[b] = b, a
    return [partner[row] for row in rows]


@pytest.mark.parametrize("seed", range(30))
def test_swaps_as_a_double_loop_finds_them(seed):
    """Few captions, so that several pairs have each."""
    rng = np.random.default_rng(seed)
    caption_of = rng.integers(0, 5, 30)
    rows = rng.permutation(30)[:15]
    caption_from = rng.integers(-1, 30, 15)
    caption_from[(caption_from >= 0) & (caption_of[caption_from] == caption_of[rows])] = -1  # never the own caption
    found = places(swaps(numbers(rows), numbers(caption_from), items_of(caption_of, caption_of)))
    assert found.tolist() == naive_swaps(rows.tolist(), caption_from.tolist(), caption_of.tolist())
    partner = dict(zip(rows.tolist(), found.tolist(), strict=True))
    assert all(partner[other] == row for row, other in partner.items() if other >= 0)
