"""The engine of three fully connected layers: what it makes of regions, words and vectors."""

import pytest
import torch

from truepair.data.batch import ImageBatch, TextBatch, pad_words
from truepair.engines.config import MLPConfig
from truepair.engines.mlp_engine import MLPEngine
from truepair.errors import InputError

SIZES = {"width": 6, "hidden_width": 8}


def engine(text_width=0, regions="mean", seed=0):
    torch.manual_seed(seed)
    return MLPEngine(4, 3, 20, text_width, MLPConfig(regions=regions, **SIZES)).eval()


def pictures(lengths, seed=0):
    draw = torch.Generator().manual_seed(seed)
    features = torch.randn(len(lengths), max(lengths), 4, generator=draw)
    for row, length in enumerate(lengths):
        features[row, length:] = 0
    return ImageBatch(features, torch.tensor(lengths))


def layers(network, vectors):
    """Three layers as plain matrix products."""
    first, second, third = (part for part in network.modules() if isinstance(part, torch.nn.Linear))
    return third(torch.relu(second(torch.relu(first(vectors)))))


def test_images_are_the_mean_region_through_three_layers():
    made, images = engine(), pictures([3, 1, 2])
    found = made.encode_images(images)
    for row, length in enumerate([3, 1, 2]):
        expected = layers(made.regions, images.features[row, :length].mean(dim=0))
        torch.testing.assert_close(found[row], expected / expected.norm())


def test_joined_regions_keep_their_places():
    made, images = engine(regions="joined"), pictures([3, 2])
    joined = torch.cat([images.features[1, 0], images.features[1, 1], torch.zeros(4)])
    expected = layers(made.regions, joined)
    torch.testing.assert_close(made.encode_images(images)[1], expected / expected.norm())
    swapped = ImageBatch(images.features[:, [1, 0, 2]], images.lengths)
    assert not torch.allclose(made.encode_images(swapped)[1], made.encode_images(images)[1])
    torch.testing.assert_close(engine().encode_images(swapped)[1], engine().encode_images(images)[1])


def test_fewer_regions_in_a_batch_than_in_the_data_change_nothing():
    made, images = engine(regions="joined"), pictures([2, 2])
    wide = ImageBatch(torch.nn.functional.pad(images.features, (0, 0, 0, 1)), images.lengths)
    torch.testing.assert_close(made.encode_images(images), made.encode_images(wide))


def test_texts_are_the_mean_word_whatever_the_padding():
    made = engine()
    captions = [[1, 5, 2], [1, 7, 9, 11, 2], [1, 5, 5, 2]]
    together = made.encode_texts(pad_words(captions))
    for row, caption in enumerate(captions):
        words = made.texts[0].vectors(torch.tensor(caption)).mean(dim=0)
        _, second, _, third = made.texts[1:]
        expected = third(torch.relu(second(torch.relu(words))))
        torch.testing.assert_close(together[row], expected / expected.norm())
    torch.testing.assert_close(made.encode_texts(pad_words([[1, 2, 5]])), made.encode_texts(pad_words([[1, 5, 2]])))


def test_text_vectors_are_read_where_there_are():
    made = engine(text_width=5)
    vectors = torch.randn(3, 5, generator=torch.Generator().manual_seed(1))
    found = made.encode_texts(pad_words([[1, 2]] * 3, vectors))
    expected = layers(made.texts, vectors)
    torch.testing.assert_close(found, expected / expected.norm(dim=1, keepdim=True))


def test_inputs_of_any_size_are_standardised_in_training():
    """Shares of topics are thousands of times smaller than network features; the first layer sees both alike."""
    large = engine(text_width=5).train()
    vectors = torch.randn(64, 5, generator=torch.Generator().manual_seed(1)) + 3
    words = TextBatch(torch.ones(64, 2, dtype=torch.int64), torch.full((64,), 2))
    found = [large.encode_texts(TextBatch(words.words, words.lengths, vectors * scale)) for scale in (1.0, 1e-2, 1e3)]
    torch.testing.assert_close(found[1], found[0], atol=1e-3, rtol=0)
    torch.testing.assert_close(found[2], found[0], atol=1e-3, rtol=0)


def test_similarity_is_the_cosine_and_encodings_are_unit_vectors():
    made = engine()
    images, texts = made.encode_images(pictures([3, 2])), made.encode_texts(pad_words([[1, 4, 2], [1, 2]]))
    torch.testing.assert_close(images.norm(dim=1), torch.ones(2))
    torch.testing.assert_close(made.similarity(images, texts), images @ texts.T)
    assert made.vector_width == 6


def test_unknown_regions_are_refused():
    with pytest.raises(InputError, match="mean, joined"):
        MLPConfig(regions="first")
