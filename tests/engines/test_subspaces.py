"""The disentangled engine: what is compared, what is kept apart, and where gradients go."""

import pytest
import torch

from truepair.data.batch import ImageBatch, PairBatch, pad_words
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.features import Features
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.retrieval_model import Needs, build_engine
from truepair.engines.subspaces import DisentangledEngine
from truepair.methods.base import NetworkForward

CONFIGS = {
    "global": GlobalConfig(width=8, word_width=4),
    "sgr": SGRConfig(width=8, word_width=4, similarity_width=6, dropout=0.0),
    "saf": SAFConfig(width=8, word_width=4, similarity_width=6, dropout=0.0),
}
LENGTHS = torch.tensor([3, 1, 3, 2, 3])
FEATURES = torch.randn(5, 3, 6, generator=torch.Generator().manual_seed(0))
IMAGES = ImageBatch(FEATURES.masked_fill((torch.arange(3) >= LENGTHS[:, None])[..., None], 0.0), LENGTHS)
TEXTS = pad_words([[1, 4, 5, 2], [1, 3, 2], [1, 6, 7, 3, 2], [1, 2], [1, 5, 2]])


def engine_of(name):
    torch.manual_seed(3)
    engine = build_engine(CONFIGS[name], InputSizes(6, 3, 9), Needs(subspace_width=5, subspace_hidden=7)).eval()
    assert isinstance(engine, DisentangledEngine)
    return engine


@pytest.mark.parametrize("name", CONFIGS)
def test_pairs_are_compared_by_the_invariant_heads_alone(name):
    engine = engine_of(name)
    before = engine.similarity(engine.encode_images(IMAGES), engine.encode_texts(TEXTS))
    with torch.no_grad():
        for head in (engine.image_exclusive, engine.text_exclusive):
            head[0].weight.add_(1.0)
    assert torch.equal(engine.similarity(engine.encode_images(IMAGES), engine.encode_texts(TEXTS)), before)
    with torch.no_grad():
        engine.text_invariant.straight.weight.add_(1.0)
    assert not torch.allclose(engine.similarity(engine.encode_images(IMAGES), engine.encode_texts(TEXTS)), before)


def test_what_is_compared_begins_as_the_features_themselves():
    """Cosines among images are those of their features: at first the invariant head is an isometry."""
    torch.manual_seed(0)
    engine = build_engine(CONFIGS["global"], InputSizes(6, 3, 9), Needs(subspace_width=12, subspace_hidden=7)).eval()
    _, image = engine.split_images(IMAGES)
    assert torch.allclose(image.invariant @ image.invariant.T, image.features @ image.features.T, atol=1e-5)


def test_plain_heads_are_three_layers_on_both_sides():
    needs = Needs(subspace_width=12, subspace_hidden=7, plain_heads=True)
    engine = build_engine(CONFIGS["global"], InputSizes(6, 3, 9), needs)
    for head in (engine.image_invariant, engine.text_invariant):
        assert [type(layer).__name__ for layer in head] == ["Linear", "LeakyReLU", "Linear", "LeakyReLU", "Linear"]


@pytest.mark.parametrize("name", CONFIGS)
def test_parts_are_unit_vectors_or_their_means_over_what_exists(name):
    engine = engine_of(name)
    encoded, image = engine.split_images(IMAGES)
    _, text = engine.split_texts(TEXTS)
    assert image.features.shape == (5, 8)
    assert image.invariant.shape == image.exclusive.shape == text.exclusive.shape == (5, 5)
    features = engine.base.image_features(IMAGES)
    for row, length in enumerate(LENGTHS.tolist()):
        vectors = features.vectors[row] if name == "global" else features.vectors[row, :length]
        heads = engine.image_exclusive(vectors)
        expected = (heads / heads.norm(dim=-1, keepdim=True)).view(-1, 5).mean(dim=0)
        assert torch.allclose(image.exclusive[row], expected, atol=1e-6)
    again = engine.encode_images(IMAGES)
    assert torch.allclose(
        engine.scores(encoded, engine.encode_texts(TEXTS)), engine.scores(again, engine.encode_texts(TEXTS))
    )
    if name != "global":
        assert float(encoded.vectors[1, 1:].abs().max()) == 0  # regions that the image lacks


@pytest.mark.parametrize("name", CONFIGS)
def test_a_forward_splits_once_and_gives_both(name):
    engine = engine_of(name)
    calls = []
    original = engine.base.image_features
    engine.base.image_features = lambda *arguments: (calls.append(1), original(*arguments))[1]
    forward = NetworkForward(engine, PairBatch(torch.arange(5), IMAGES, TEXTS))
    assert forward.similarity.shape == (5, 5)
    assert forward.parts[0].invariant.shape == (5, 5)
    assert len(calls) == 1


def test_a_mapped_vector_that_does_not_exist_stays_zero():
    mapped = Features(torch.ones(2, 3, 4), torch.tensor([1, 3])).mapped(torch.nn.Linear(4, 2))
    assert float(mapped.vectors[0, 1:].detach().abs().max()) == 0
    assert torch.allclose(mapped.vectors[1].norm(dim=1), torch.ones(3))
