"""Ensembles and several views: the mean of their parts, with parameters of their own where they should have them."""

import pytest
import torch

from truepair.data.batch import ImageBatch, pad_words
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.ensemble import EnsembleEngine
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.retrieval_model import Needs, build_engine
from truepair.engines.similarity import similarity_blocks
from truepair.engines.views import MultiViewEngine

CONFIGS = {
    "global": GlobalConfig(width=8, word_width=4),
    "sgr": SGRConfig(width=8, word_width=4, similarity_width=6),
    "saf": SAFConfig(width=8, word_width=4, similarity_width=6),
}
IMAGES = ImageBatch(torch.randn(5, 3, 6, generator=torch.Generator().manual_seed(0)), torch.tensor([3, 3, 3, 3, 3]))
TEXTS = pad_words([[1, 4, 5, 2], [1, 3, 2], [1, 6, 7, 3, 2]])


def engine_of(name, **needs):
    torch.manual_seed(3)
    return build_engine(CONFIGS[name], InputSizes(6, 3, 9), Needs(**needs)).eval()


@pytest.mark.parametrize("name", CONFIGS)
def test_an_ensemble_answers_with_the_mean_and_shares_nothing(name):
    engine = engine_of(name, networks=2)
    assert isinstance(engine, EnsembleEngine)
    images, texts = engine.encode_images(IMAGES), engine.encode_texts(TEXTS)
    each = [member.similarity(member.encode_images(IMAGES), member.encode_texts(TEXTS)) for member in engine.networks()]
    assert not torch.allclose(each[0], each[1])
    assert torch.allclose(engine.similarity(images, texts), (each[0] + each[1]) / 2, atol=1e-6)
    owned = [{id(parameter) for parameter in member.parameters()} for member in engine.networks()]
    assert not owned[0] & owned[1]
    assert owned[0] | owned[1] == {id(parameter) for parameter in engine.parameters()}


@pytest.mark.parametrize("name", CONFIGS)
def test_views_differ_in_their_region_encoders_only(name):
    engine = engine_of(name, views=2)
    assert isinstance(engine, MultiViewEngine)
    images, texts = engine.encode_images(IMAGES), engine.encode_texts(TEXTS)
    first, second = engine.view_scores(images, texts)
    assert not torch.allclose(first, second)
    base = engine.base
    alone = [
        base.scores(base.encode_images_through(regions, IMAGES), base.encode_texts(TEXTS))
        for regions in (base.regions, *engine.further_regions)
    ]
    assert torch.allclose(first, alone[0], atol=1e-6)
    assert torch.allclose(second, alone[1], atol=1e-6)
    mean = (base.as_similarity(first) + base.as_similarity(second)) / 2
    assert torch.allclose(engine.similarity(images, texts), mean, atol=1e-6)
    assert torch.allclose(engine.scores(images, texts), (first + second) / 2, atol=1e-6)
    assert engine.image_scores(images).shape == (5, 5)
    assert engine.text_scores(texts).shape == (3, 3)
    single = sum(parameter.numel() for parameter in engine_of(name).parameters())
    regions = sum(parameter.numel() for parameter in base.regions.parameters())
    assert sum(parameter.numel() for parameter in engine.parameters()) == single + regions


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("sizes", [{}, {"views": 2}, {"networks": 2}, {"views": 2, "networks": 2}])
def test_blocks_and_selections_give_the_whole_matrix(name, sizes):
    engine = engine_of(name, **sizes)
    with torch.no_grad():
        halves = [
            engine.encode_images(ImageBatch(IMAGES.features[rows], IMAGES.lengths[rows]))
            for rows in (slice(0, 2), slice(2, 5))
        ]
        images, texts = engine.concatenate(halves), engine.encode_texts(TEXTS)
        whole = engine.similarity(images, texts)
        assert whole.shape == (5, 3)
        blocks = list(similarity_blocks(engine, images, 5, texts, memory_bytes=2 * engine.cell_bytes(images, texts)))
        assert len(blocks) > 1
        assert torch.allclose(torch.cat(blocks), whole, atol=1e-6)
        chosen = torch.tensor([4, 1])
        assert torch.allclose(engine.similarity(engine.select(images, chosen), texts), whole[chosen], atol=1e-6)
