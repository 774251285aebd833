from collections import Counter
from math import sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from truepair.data.augment import alter_words, drop_regions
from truepair.data.pairs import Array
from truepair.data.text import SPECIALS, Vocabulary
from truepair.errors import InputError

VOCABULARY = Vocabulary((*SPECIALS, *(f"word{k}" for k in range(20))))


def marked(images: int, regions: int) -> Array:
    """Every region of every image holds its own number, from 1, in all 3 places."""
    numbers = np.arange(1, images * regions + 1, dtype=np.float32)
    return numbers.reshape(images, regions, 1).repeat(3, axis=2)


def within(found: float, expected: float, trials: int, deviations: float = 5.0) -> bool:
    return abs(found - expected) < deviations * sqrt(expected * (1 - expected) / trials)


# ---- regions ----


@given(
    images=st.integers(1, 6),
    regions=st.integers(1, 8),
    share=st.floats(0, 1),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_kept_regions_stand_in_order_from_the_left(
    images: int, regions: int, share: float, seed: int, data: st.DataObject
) -> None:
    lengths = np.array(data.draw(st.lists(st.integers(1, regions), min_size=images, max_size=images)))
    features = marked(images, regions)
    batch = drop_regions(features, lengths, share=share, rng=np.random.default_rng(seed))
    assert batch.features.dtype == torch.float32
    assert batch.lengths.dtype == torch.int64
    assert batch.features.shape == (images, int(batch.lengths.max()), 3)
    for row in range(images):
        length = int(batch.lengths[row])
        assert 1 <= length <= lengths[row]
        kept = batch.features[row, :length, 0].tolist()
        assert kept == sorted(kept)
        assert set(kept) <= set(features[row, : lengths[row], 0].tolist())
        assert not batch.features[row, length:].any()
        assert (batch.features[row] == batch.features[row, :, :1]).all()


def test_share_zero_keeps_everything() -> None:
    batch = drop_regions(marked(3, 5), share=0.0, rng=np.random.default_rng(0))
    assert np.array_equal(batch.features.numpy(), marked(3, 5))
    assert batch.lengths.tolist() == [5, 5, 5]


def test_share_one_keeps_one_region_chosen_evenly() -> None:
    batch = drop_regions(np.tile(marked(1, 4), (4000, 1, 1)), share=1.0, rng=np.random.default_rng(0))
    assert batch.features.shape == (4000, 1, 3)
    assert set(batch.lengths.tolist()) == {1}
    counts = Counter(batch.features[:, 0, 0].tolist())
    assert all(within(counts[region] / 4000, 0.25, 4000) for region in (1.0, 2.0, 3.0, 4.0))


def test_a_fifth_of_the_regions_is_dropped() -> None:
    batch = drop_regions(marked(500, 36), rng=np.random.default_rng(1))
    dropped = 1 - float(batch.lengths.sum()) / (500 * 36)
    assert within(dropped, 0.2, 500 * 36)


def test_the_source_is_never_written_nor_shared() -> None:
    features = marked(4, 6)
    features.flags.writeable = False  # writing would raise
    before = features.copy()
    for share in (0.0, 0.5, 1.0):
        batch = drop_regions(features, share=share, rng=np.random.default_rng(0))
        batch.features.fill_(-1.0)
    assert np.array_equal(features, before)


def test_half_precision_becomes_single() -> None:
    batch = drop_regions(marked(2, 3).astype(np.float16), share=0.0, rng=np.random.default_rng(0))
    assert batch.features.dtype == torch.float32
    assert np.array_equal(batch.features.numpy(), marked(2, 3))


def test_the_generator_decides() -> None:
    first, again, other = (drop_regions(marked(8, 9), rng=np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert torch.equal(first.features, again.features)
    assert first.lengths.tolist() != other.lengths.tolist()


def test_regions_are_checked() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"share is 1\.5; expected a probability from 0 to 1"):
        drop_regions(marked(2, 3), share=1.5, rng=rng)
    with pytest.raises(InputError, match=r"features have shape \(2, 3\); expected \(images, regions, width\)"):
        drop_regions(marked(2, 3)[..., 0], rng=rng)
    for lengths in ([0, 3], [1, 4], [1]):
        with pytest.raises(InputError, match=r"lengths are .*; expected 2 whole numbers from 1 to 3"):
            drop_regions(marked(2, 3), np.array(lengths), rng=rng)


# ---- words ----


def sentence(words: int) -> list[int]:
    return [VOCABULARY.start, *([VOCABULARY.ordinary[0]] * words), VOCABULARY.end]


def test_the_four_fates_have_their_shares() -> None:
    words = 40_000
    altered = alter_words(sentence(words), VOCABULARY, rng=np.random.default_rng(0))[1:-1]
    masked = altered.count(VOCABULARY.mask)
    dropped = words - len(altered)
    # A twentieth of the replacements are the same word again.
    replaced = (len(altered) - masked - altered.count(VOCABULARY.ordinary[0])) * 20 / 19
    dealt_with = masked + dropped + replaced
    assert within(dealt_with / words, 0.2, words)
    assert within(masked / dealt_with, 0.5, int(dealt_with))
    assert within(replaced / dealt_with, 0.1, int(dealt_with))
    assert within(dropped / dealt_with, 0.4, int(dealt_with))


def test_replacements_are_ordinary_words_all_of_them() -> None:
    altered = alter_words(sentence(40_000), VOCABULARY, share=1.0, rng=np.random.default_rng(0))[1:-1]
    assert set(altered) == {VOCABULARY.mask, *VOCABULARY.ordinary}


@given(st.lists(st.sampled_from(VOCABULARY.ordinary)), st.floats(0, 1), st.integers(0, 1000))
def test_start_and_end_stay_and_something_is_between(words: list[int], share: float, seed: int) -> None:
    given_words = [VOCABULARY.start, *words, VOCABULARY.end]
    before = list(given_words)
    altered = alter_words(given_words, VOCABULARY, share=share, rng=np.random.default_rng(seed))
    assert given_words == before
    assert altered is not given_words
    assert altered[0] == VOCABULARY.start
    assert altered[-1] == VOCABULARY.end
    assert 3 <= len(altered) <= max(3, len(before))


def test_a_caption_that_loses_all_words_keeps_an_unknown_one() -> None:
    seeds = range(200)
    results = [alter_words(sentence(1), VOCABULARY, share=1.0, rng=np.random.default_rng(seed)) for seed in seeds]
    empty = [VOCABULARY.start, VOCABULARY.unknown, VOCABULARY.end]
    assert within(results.count(empty) / 200, 0.4, 200)


def test_share_zero_changes_nothing() -> None:
    words = VOCABULARY.encode("word1 word2 nothing")
    assert alter_words(words, VOCABULARY, share=0.0, rng=np.random.default_rng(0)) == words


def test_without_a_mask_or_ordinary_words_the_unknown_word_stands_in() -> None:
    bare = Vocabulary(("<pad>", "<start>", "<end>", "<unk>"))
    altered = alter_words([1, *[3] * 50, 2], bare, share=1.0, rng=np.random.default_rng(0))
    assert set(altered[1:-1]) == {3}


def test_words_are_checked() -> None:
    with pytest.raises(InputError, match=r"share is -0.1; expected a probability from 0 to 1"):
        alter_words([1, 2], VOCABULARY, share=-0.1, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match=r"word ids \[5\]; expected at least start and end"):
        alter_words([5], VOCABULARY, rng=np.random.default_rng(0))
