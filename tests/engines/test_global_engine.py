"""The global engine: shapes, ranges, and independence from padding and batching."""

import pytest
import torch

from truepair.data.batch import ImageBatch, TextBatch, pad_words
from truepair.engines.config import GlobalConfig
from truepair.engines.global_engine import GlobalEngine
from truepair.engines.similarity import similarity_blocks

POOLINGS = ["gpo", "mean", "max"]


def engine(pooling="gpo"):
    torch.manual_seed(0)
    return GlobalEngine(6, 20, GlobalConfig(width=10, word_width=5, pooling=pooling)).double()


def images(lengths, seed=1):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(len(lengths), max(lengths), 6, generator=generator, dtype=torch.float64)
    for row, length in enumerate(lengths):
        features[row, length:] = 0
    return ImageBatch(features, torch.tensor(lengths))


def texts():
    return pad_words([[1, 5, 2], [1, 7, 9, 11, 2], [1, 2], [1, 5, 5, 2]])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_encodings_are_unit_vectors_and_similarity_their_cosine(pooling):
    model = engine(pooling).eval()
    with torch.no_grad():
        encoded_images, encoded_texts = model.encode_images(images([4, 2, 3])), model.encode_texts(texts())
    assert encoded_images.shape == (3, 10)
    assert encoded_texts.shape == (4, 10)
    for encoded in (encoded_images, encoded_texts):
        torch.testing.assert_close(encoded.norm(dim=1), torch.ones(len(encoded), dtype=torch.float64))
    similarity = model.similarity(encoded_images, encoded_texts)
    for i in range(3):
        for j in range(4):
            cosine = sum(a * b for a, b in zip(encoded_images[i].tolist(), encoded_texts[j].tolist(), strict=True))
            assert float(similarity[i, j]) == pytest.approx(cosine, abs=1e-12)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_an_item_is_encoded_the_same_alone_and_in_a_batch(pooling):
    model = engine(pooling).eval()
    batch = images([4, 2, 3])
    together = model.encode_images(batch)
    for row, length in enumerate([4, 2, 3]):
        alone = model.encode_images(ImageBatch(batch.features[row : row + 1, :length], torch.tensor([length])))
        torch.testing.assert_close(alone[0], together[row], rtol=0, atol=1e-12)
    words = texts()
    together = model.encode_texts(words)
    for row, length in enumerate(words.lengths.tolist()):
        alone = model.encode_texts(TextBatch(words.words[row : row + 1, :length], torch.tensor([length])))
        torch.testing.assert_close(alone[0], together[row], rtol=0, atol=1e-12)


def test_batch_normalisation_in_training_does_not_see_padding():
    """The same images, padded further, give the same encodings and the same running statistics."""
    short, long = engine().train(), engine().train()
    batch = images([4, 2, 3])
    padded = ImageBatch(torch.cat([batch.features, torch.zeros(3, 5, 6, dtype=torch.float64)], dim=1), batch.lengths)
    torch.testing.assert_close(short.encode_images(batch), long.encode_images(padded), rtol=0, atol=1e-12)
    torch.testing.assert_close(short.regions.norm.running_var, long.regions.norm.running_var, rtol=0, atol=1e-12)


def test_similarity_in_blocks_equals_the_whole():
    model = engine().eval()
    with torch.no_grad():
        encoded_images, encoded_texts = model.encode_images(images([4, 2, 3, 1, 4])), model.encode_texts(texts())
        whole = model.similarity(encoded_images, encoded_texts)
    row = encoded_texts.shape[0] * 8
    for budget, count in [(1, 5), (2 * row, 3), (100 * row, 1)]:
        blocks = list(similarity_blocks(model, encoded_images, 5, encoded_texts, memory_bytes=budget))
        assert len(blocks) == count
        torch.testing.assert_close(torch.cat(blocks), whole, rtol=0, atol=1e-15)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_parameter_learns(pooling):
    model = engine(pooling)
    loss = model.similarity(model.encode_images(images([4, 2, 3, 4])), model.encode_texts(texts())).diagonal().sum()
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name
