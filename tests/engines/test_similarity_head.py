"""The similarity head: whose gradient passes, and that engines with one score by it."""

import pytest
import torch

from tests.methods.vectors import Vectors
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.retrieval_model import Needs, build_engine
from truepair.engines.similarity_head import SimilarityHead
from truepair.errors import InputError

VECTORS = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_scores_are_those_of_two_layers():
    head = SimilarityHead(4, 3).double()
    for row, found in zip(VECTORS.tolist(), head(VECTORS)[:, 0].tolist(), strict=True):
        hidden = [
            max(0.0, sum(w * x for w, x in zip(weights, row, strict=True)) + bias)
            for weights, bias in zip(head.hidden.weight.tolist(), head.hidden.bias.tolist(), strict=True)
        ]
        plain = sum(w * x for w, x in zip(head.out.weight[0].tolist(), hidden, strict=True)) + head.out.bias.item()
        assert found == pytest.approx(plain, abs=1e-12)
    assert torch.autograd.gradcheck(head, VECTORS.clone().requires_grad_())


@pytest.mark.parametrize("what", ["both", "encoders", "head"])
def test_only_what_learns_gets_a_gradient(what):
    head, vectors = SimilarityHead(4, 3).double(), VECTORS.clone().requires_grad_()
    with head.learning(what):
        scores = head(vectors)
    torch.testing.assert_close(scores, head(vectors))
    scores.sum().backward()
    assert (vectors.grad is not None) == (what != "head")
    assert all((parameter.grad is not None) == (what != "encoders") for parameter in head.parameters())
    assert head.learns == "both"


@pytest.mark.parametrize(
    "config",
    [
        GlobalConfig(width=8, word_width=8),
        SGRConfig(width=8, word_width=8, similarity_width=6),
        SAFConfig(width=8, word_width=8, similarity_width=6),
    ],
)
def test_engines_have_one_where_it_is_asked_for(config):
    from truepair.engines.regions_and_words import InputSizes

    sizes = InputSizes(feature_width=5, regions=3, vocabulary_size=11)
    engine = build_engine(config, sizes, Needs(head_width=4))
    assert engine.similarity_head.hidden.out_features == 4
    with pytest.raises((InputError, AssertionError)):
        _ = build_engine(config, sizes).similarity_head


def test_a_cosine_engine_with_a_head_compares_by_it():
    engine = Vectors(4)
    images, texts = engine.encode_images(VECTORS), engine.encode_texts(VECTORS.flip(0))
    cosines, plain_bytes = engine.similarity(images, texts), engine.cell_bytes(images, texts)
    engine.use_head(3)
    engine.double()
    scores = engine.scores(images, texts)
    for i in range(5):
        for j in range(5):
            apart = 2 * (images[i] - texts[j]) ** 2
            torch.testing.assert_close(scores[i, j], engine.similarity_head(apart[None])[0, 0])
    torch.testing.assert_close(engine.similarity(images, texts), torch.sigmoid(scores))
    assert not torch.allclose(engine.similarity(images, texts), cosines)
    drawn = torch.corrcoef(torch.stack([scores.flatten(), cosines.flatten()]))[0, 1]
    assert drawn > 0.9  # it starts as about 4 cos
    assert engine.cell_bytes(images, texts) > plain_bytes
