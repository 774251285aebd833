"""Encoding either subspace of a finished run."""

import numpy as np
import pytest
import torch

import truepair
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError
from truepair.evaluation import encode_parts
from truepair.training.setup import Setup


def fitted(tiny, method, options):
    return truepair.fit(
        truepair.load(tiny),
        method=truepair.build_method(method, options),
        dev=truepair.load(tiny, "dev"),
        setup=Setup(model=GlobalConfig(width=16, word_width=8)),
        epochs=2,
        seed=0,
        batch_size=16,
        minimum_count=1,
    )


def test_a_finished_run_encodes_either_subspace(tiny):
    run = fitted(tiny, "disncl", {"warm_up_epochs": 1, "subspace_width": 8, "hidden_width": 8, "least_clean": 0.0})
    dev, model = truepair.load(tiny, "dev"), run.model
    images, texts = encode_parts(model, dev, batch_size=5)
    assert images.features.shape == (16, 16) and images.invariant.shape == images.exclusive.shape == (16, 8)
    assert texts.invariant.shape == (32, 8)
    # Compared are the invariant parts; the order is that of the pairs; a batch size changes nothing.
    assert torch.allclose(images.invariant @ texts.invariant.T, model.similarity(dev), atol=1e-5)
    again, _ = encode_parts(model, dev)
    assert torch.allclose(again.exclusive, images.exclusive, atol=1e-6)
    assert np.allclose(images.exclusive.norm(dim=1), 1, atol=1e-5)


def test_other_models_have_no_subspaces(tiny):
    with pytest.raises(InputError, match="no subspaces"):
        encode_parts(fitted(tiny, "infonce", {}).model, truepair.load(tiny, "dev"))
