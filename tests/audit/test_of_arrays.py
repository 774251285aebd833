"""The audit of two arrays: its example, what it returns, and what it refuses."""

import doctest

import numpy as np
import pytest
import torch

import truepair
from tests.audit.array_collection import ArrayCollection, random_pairs
from truepair.audit import AuditOptions, of_arrays
from truepair.errors import InputError


def test_the_example_is_true():
    assert doctest.testmod(of_arrays).failed == 0


def test_it_says_what_an_audit_of_the_same_embeddings_says():
    images, texts = random_pairs(400, 48, noise=0.3)
    found = truepair.audit_embeddings(images, texts, bank=128, rematch=50)
    whole = truepair.audit(ArrayCollection(images, texts), options=AuditOptions(bank=128, rematch=50), progress=False)
    np.testing.assert_allclose(found.p_match, whole.verdict.p_match, atol=1e-3)
    assert found.share.share == pytest.approx(whole.verdict.noise_rate, abs=1e-3) and found.near is None
    assert found.p_match.shape == found.flagged.shape == found.caption_from.shape == (400,)
    assert set(found.indicators) == {"matching", "rank", "structure", "neighbours", "certainty"}
    assert (found.caption_from >= 0).sum() <= 50 and (found.caption_from[~found.flagged] == -1).all()


def test_captions_of_the_same_image_are_not_proposed_to_it():
    """Images embedded again with each caption differ; only the ids tell."""
    rng = np.random.default_rng(0)
    base, image = rng.normal(size=(200, 48)), np.repeat(np.arange(200), 2)
    images = base[image] + 0.5 * rng.normal(size=(400, 48))
    texts = base[image] + 0.5 * rng.normal(size=(400, 48))
    texts[0:160:2] = np.roll(texts[0:160:2], 1, axis=0)
    found = truepair.audit_embeddings(images, texts, image_ids=[f"{k}.jpg" for k in image])
    asked = np.flatnonzero(found.caption_from >= 0)
    assert len(asked) > 30 and (image[found.caption_from[asked]] != image[asked]).all()


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_of_a_model_are_audited_as_arrays_are(kind):
    images, texts = (torch.tensor(side).to(kind) for side in random_pairs(400, 48, noise=0.3))
    arrays = (side.float().numpy() for side in (images, texts))
    expected = truepair.audit_embeddings(*arrays, bank=128, rematch=0)
    found = truepair.audit_embeddings(images.requires_grad_(), texts, bank=128, rematch=0)
    np.testing.assert_array_equal(found.p_match, expected.p_match)
    with pytest.raises(InputError, match="images are int64"):
        truepair.audit_embeddings(torch.ones((80, 8), dtype=torch.int64), texts)


GOOD = np.random.default_rng(0).normal(size=(80, 8))


@pytest.mark.parametrize(
    ("images", "texts", "options", "message"),
    [
        (GOOD, GOOD[:, :4], {}, r"images are \(80, 8\), texts \(80, 4\)"),
        (GOOD[:20], GOOD[:20], {}, "20 pairs; expected at least 60"),
        (GOOD[0], GOOD[0], {}, r"images are float64 of shape \(8,\)"),
        (np.ones((80, 8), dtype=int), GOOD, {}, "images are int64"),
        (GOOD, np.where(np.arange(80)[:, None] == 7, np.nan, GOOD), {}, r"texts\[7\] is all zeros, or has"),
        (np.where(np.arange(80)[:, None] == 3, 0.0, GOOD), GOOD, {}, r"images\[3\] is all zeros"),
        (GOOD, GOOD, {"image_ids": ["a"]}, "1 image ids for 80 pairs"),
        (GOOD, GOOD, {"bank": 1}, "bank is 1"),
    ],
)
def test_what_cannot_be_audited_is_refused(images, texts, options, message):
    with pytest.raises(InputError, match=message):
        truepair.audit_embeddings(images, texts, **options)
