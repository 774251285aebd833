"""Captions shifted or shuffled within a stretch: found, told where, and put right; and no false alarm."""

import numpy as np
import pytest

import truepair
from truepair.audit.scoring.vector_space import VectorSpace

COUNT, START, STOP = 1200, 300, 500
BANK = {"bank": 256}


def embeddings(noise=0.7, *, width=24, count=COUNT, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(count, width))
    return images, images + noise * rng.normal(size=images.shape), rng


def told(images, texts, **options):
    return truepair.audit_embeddings(images, texts, **{**BANK, **options}).faults


def moved(texts, by):
    texts = texts.copy()
    texts[START:STOP] = np.roll(texts[START:STOP], by, axis=0)
    return texts


@pytest.mark.parametrize(("by", "offset"), [(1, 1), (-3, -3), (40, 40), (80, 80), (150, -50)])
def test_a_rotated_stretch_is_found_and_put_right(by, offset):
    images, texts, _ = embeddings()
    (fault,) = told(images, moved(texts, by))
    assert (fault.kind, fault.offset) == ("shifted-captions", offset)
    assert fault.rows.tolist() == list(range(START, STOP))
    right = np.arange(COUNT)
    right[START:STOP] = START + (np.arange(STOP - START) + by) % (STOP - START)
    assert fault.caption_from.tolist() == right[START:STOP].tolist()
    way = f"{abs(offset)} pair{'s' * (abs(offset) > 1)} {'further on' if offset > 0 else 'before it'}"
    assert f"200 pairs in a row, from pair 300 (row {START}) to pair 499 (row 499)" in fault.sentence
    assert f"stands {way}. Put back, " in fault.sentence


def test_a_lost_caption_shifts_all_that_follow():
    images, texts, _ = embeddings()
    texts[START : STOP - 1] = texts[START + 1 : STOP]
    (fault,) = told(images, texts)
    assert (fault.kind, fault.offset) == ("shifted-captions", -1)
    np.testing.assert_allclose([fault.rows[0], fault.rows[-1]], [START + 1, STOP - 1], atol=2)
    assert (fault.caption_from == fault.rows - 1).all()


def test_two_lost_captions_are_two_offsets():
    images, texts, _ = embeddings()
    texts[START:-1] = texts[START + 1 :]
    texts[STOP:-2] = texts[STOP + 1 : -1]
    faults = told(images, texts)
    assert [(fault.kind, fault.offset) for fault in faults] == [("shifted-captions", -1), ("shifted-captions", -2)]
    assert abs(faults[0].rows[-1] - STOP) < 6 and abs(faults[1].rows[0] - STOP) < 6


@pytest.mark.parametrize(("first", "second"), [((100, 180), (300, 500)), ((300, 500), (600, 680))])
def test_two_stretches_of_one_offset_are_two_faults(first, second):
    images, texts, _ = embeddings()
    for start, stop in (first, second):
        texts[start:stop] = np.roll(texts[start:stop], 5, axis=0)
    faults = told(images, texts)
    assert [(fault.kind, fault.offset) for fault in faults] == [("shifted-captions", 5)] * 2
    for fault, ends in zip(faults, (first, second), strict=True):
        np.testing.assert_allclose([fault.rows[0], fault.rows[-1] + 1], ends, atol=6)


def test_captions_far_away_are_found_by_the_proposals():
    """Beyond the offsets that are always tried."""
    images, texts, _ = embeddings()
    texts[100:200], texts[900:1000] = texts[900:1000].copy(), texts[100:200].copy()
    faults = told(images, texts)
    assert [(fault.kind, fault.offset) for fault in faults] == [("shifted-captions", 800), ("shifted-captions", -800)]
    assert all(len(fault.rows) == 100 for fault in faults)


def test_a_set_that_is_shifted_as_a_whole_is_seen_by_embeddings():
    images, texts, _ = embeddings()
    (fault,) = told(images, np.roll(texts, 2, axis=0))
    assert (fault.kind, fault.offset) == ("shifted-captions", 2)
    assert len(fault.rows) >= COUNT - 4


def test_captions_of_five_lines_an_image_are_shifted_by_lines():
    images, _, rng = embeddings(count=300)
    images = np.repeat(images, 5, axis=0)
    texts = images + 0.7 * rng.normal(size=images.shape)
    texts[400:800] = np.roll(texts[400:800], 1, axis=0)
    texts[1000:1400] = np.roll(texts[1000:1400], -10, axis=0)
    found = [fault for fault in told(images, texts) if fault.kind == "shifted-captions"]
    assert -10 in [fault.offset for fault in found]  # one line further is another caption of the same image for most


def test_a_shuffled_stretch_is_found_and_put_in_order():
    images, texts, rng = embeddings()
    order = rng.permutation(STOP - START)
    texts[START:STOP] = texts[START:STOP][order]
    (fault,) = told(images, texts)
    assert (fault.kind, fault.offset) == ("shuffled-captions", None)
    assert abs(fault.rows[0] - START) < 4 and abs(fault.rows[-1] - STOP + 1) < 4
    truth = START + np.argsort(order)
    inside = (fault.rows >= START) & (fault.rows < STOP)
    assert (fault.caption_from[inside] == truth[fault.rows[inside] - START]).mean() > 0.9
    assert "are shuffled among these pairs" in fault.sentence


def test_captions_of_somewhere_else_are_told_as_such():
    images, texts, _ = embeddings()
    texts[START:STOP] = embeddings(seed=9)[1][START:STOP]
    (fault,) = told(images, texts)
    assert fault.kind == "mismatched-stretch" and fault.caption_from is None
    assert abs(fault.rows[0] - START) < 4 and abs(fault.rows[-1] - STOP + 1) < 4
    assert "look mismatched as a whole: their mean p_match is 0.0" in fault.sentence


@pytest.mark.parametrize("share", [0.0, 0.4, 0.7])
@pytest.mark.parametrize("noise", [0.7, 2.0])
def test_single_mismatched_pairs_are_no_stretch(share, noise):
    images, texts, rng = embeddings(noise)
    wrong = rng.permutation(COUNT)[: int(share * COUNT)]
    texts[wrong] = texts[np.roll(wrong, 1)]
    assert told(images, texts) == []


def test_a_shift_is_found_among_other_noise_and_in_weak_embeddings():
    images, texts, rng = embeddings(1.5)
    texts = moved(texts, 2)
    others = np.setdiff1d(np.arange(COUNT), np.arange(START, STOP))
    wrong = rng.permutation(others)[:300]
    texts[wrong] = texts[np.roll(wrong, 1)]
    (fault,) = told(images, texts)
    assert (fault.kind, fault.offset) == ("shifted-captions", 2)
    np.testing.assert_allclose([fault.rows[0], fault.rows[-1] + 1], [START, STOP], atol=8)


def test_without_proposals_offsets_within_reach_are_found_all_the_same():
    images, texts, _ = embeddings()
    (fault,) = told(images, moved(texts, 5), rematch=0)
    assert fault.offset == 5


def test_pairs_in_any_order_are_compared(monkeypatch):
    """`paired` and `compared` of a space of vectors, against the vectors themselves."""
    import torch

    class Made(VectorSpace):
        def vectors(self, rows):
            assert (np.diff(rows) > 0).all()  # as they are read from files
            at = torch.from_numpy(rows).double()
            return torch.stack([at, at**2], 1), torch.stack([at + 1, 1 / (at + 1)], 1)

        def blocks(self):
            raise AssertionError("only the rows asked for are read")

    left, right = np.array([5, 2, 2, 9]), np.array([1, 7, 0, 0])
    image = [[k, k**2] for k in left]
    text = [[k + 1, 1 / (k + 1)] for k in right]
    wanted = np.array(image) @ np.array(text).T
    np.testing.assert_allclose(Made().compared(left, right), wanted)
    np.testing.assert_allclose(Made().paired(left, right), wanted.diagonal())
