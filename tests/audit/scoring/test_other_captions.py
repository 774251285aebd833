"""What an image's other captions say of a caption, against plain loops."""

from collections import Counter
from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest

import truepair
from truepair.audit.scoring.evidence import evidence_of
from truepair.audit.scoring.other_captions import OTHERS, OtherCaptions


def naive(captions, image, pairs):
    """Mean cosine of tf-idf vectors: (1 + log count) (1 + log((1 + n)/(1 + df))), of words in two captions or more."""
    words = [[word for word in caption.lower().split() if len(word) > 1] for caption in captions]
    seen = Counter(word for caption in words for word in set(caption))
    vectors = []
    for caption in words:
        vector = {
            word: (1 + log(count)) * (1 + log((1 + len(words)) / (1 + seen[word])))
            for word, count in Counter(caption).items()
            if seen[word] > 1
        }
        length = sqrt(sum(value**2 for value in vector.values()))
        vectors.append({word: value / length for word, value in vector.items()} if length else {})

    def cosine(one, other):
        return sum(value * vectors[other].get(word, 0.0) for word, value in vectors[one].items())

    found = []
    for image_row, caption_row in pairs:
        others = [row for row in range(len(captions)) if image[row] == image[image_row] and row != image_row]
        found.append(np.mean([cosine(caption_row, row) for row in others]) if others else None)
    return found


@pytest.fixture
def told(tiny):
    """Seven captions of three images; the last image has one caption only."""
    captions = ("a red shoe", "red shoe shoe", "green tree tall", "tall tree", "a tree", "zebra crossing", "red shoe")
    image, text = np.array([0, 0, 1, 1, 1, 2, 0]), np.arange(7)
    pairs = truepair.load(tiny)
    texts = replace(pairs.texts, captions=(*captions, *pairs.texts.captions[7:]))
    return replace(pairs.take(np.arange(7)), texts=texts, image_index=image, text_index=text), captions, image


def test_means_of_cosines_are_those_of_plain_loops(told):
    pairs, captions, image = told
    rows = [(one, other) for one in range(7) for other in range(7) if one == other or image[one] != image[other]]
    asked = np.array(rows)
    found = OtherCaptions(pairs).agreement(asked[:, 0], asked[:, 1])
    own = [value for value in naive(captions, image, [(row, row) for row in range(7)]) if value is not None]
    expected = [np.mean(own) if value is None else value for value in naive(captions, image, rows)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found.dtype == np.float32 and found.min() >= 0 and found.max() <= 1 and len(own) == 6


def test_a_wrong_caption_stands_out_among_the_right_ones(told):
    pairs, *_ = told
    others = OtherCaptions(pairs)
    right, wrong = others.agreement(np.array([0]), np.array([0])), others.agreement(np.array([0]), np.array([2]))
    assert right > 0.5 and wrong < 0.1


def test_nothing_is_said_where_no_image_has_two_captions_or_no_word_occurs_twice(told):
    pairs, *_ = told
    rows = np.arange(3)
    single = replace(pairs.take(rows), image_index=np.arange(3))
    assert OtherCaptions(single).column(rows, rows) == {}
    strange = tuple(f"word{number}" for number in range(len(pairs.texts.captions)))
    unlike = replace(pairs, texts=replace(pairs.texts, captions=strange))
    assert OtherCaptions(unlike).column(rows, rows) == {}
    assert list(OtherCaptions(pairs).column(rows, rows)) == [OTHERS]


def test_the_order_of_pairs_does_not_matter(told):
    pairs, *_ = told
    order = np.array([6, 2, 0, 5, 3, 1, 4])
    rows = np.arange(7)
    straight, mixed = OtherCaptions(pairs).agreement(rows, rows), OtherCaptions(pairs.take(order)).agreement(rows, rows)
    np.testing.assert_allclose(mixed, straight[order], atol=1e-6)


def test_it_is_evidence_as_it_stands_between_the_neighbours_and_the_memory():
    columns = {"log_odds": np.array([1.0]), "neighbours": np.array([0.5]), OTHERS: np.array([0.25])}
    np.testing.assert_allclose(evidence_of(columns, np.array([3.0])), [[1.0, 0.0, 0.25, 3.0]])
