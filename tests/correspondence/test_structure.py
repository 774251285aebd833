"""GSC's intra-modal similarity against a plain float64 loop."""

import math

import pytest
import torch

from truepair.correspondence import intra_modal_similarity
from truepair.errors import InputError


def uniform(size, seed, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (scale * (torch.rand(size, size, generator=generator, dtype=torch.float64) * 2 - 1)).to(dtype)


def some_labels(size, seed=1):
    labels = torch.rand(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    labels[labels < 0.2] = 0
    return labels


def loop_similarity(image_similarity, text_similarity, labels):
    a, b, y = image_similarity.double().tolist(), text_similarity.double().tolist(), labels.double().tolist()
    values = []
    for i in range(len(y)):
        left = [y[j] * a[i][j] for j in range(len(y))]
        right = [y[j] * b[i][j] for j in range(len(y))]
        lengths = math.hypot(*left) * math.hypot(*right)
        values.append(math.fsum(x * z for x, z in zip(left, right, strict=True)) / lengths if lengths else 0.0)
    return values


@pytest.mark.parametrize("size", [1, 2, 7, 32])
@pytest.mark.parametrize("scale", [1.0, 50.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_similarity_equals_plain_loop(size, scale, dtype, tolerance):
    images, texts, labels = uniform(size, 0, scale, dtype), uniform(size, 1, scale, dtype), some_labels(size).to(dtype)
    expected = torch.tensor(loop_similarity(images, texts, labels), dtype=torch.float64)
    found = intra_modal_similarity(images, texts, labels)
    assert found.shape == (size,) and found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)


def test_half_precision_is_computed_in_float32():
    images, texts = uniform(64, 0, dtype=torch.bfloat16), uniform(64, 1, dtype=torch.bfloat16)
    found = intra_modal_similarity(images, texts, torch.ones(64))
    assert found.dtype == torch.float32
    expected = torch.tensor(loop_similarity(images, texts, torch.ones(64)), dtype=torch.float32)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 512])
def test_it_lies_in_its_range_and_is_never_nan(size):
    eye = torch.eye(size)
    for images in (torch.ones(size, size), 2 * eye - 1, eye, torch.zeros(size, size)):
        for labels in (torch.zeros(size), torch.ones(size), torch.full((size,), 1e-30)):
            for texts in (images, -images):
                values = intra_modal_similarity(images, texts, labels)
                assert (values.abs() <= 1).all()  # false for NaN
                if not labels.any() or not images.any():
                    assert not values.any()


def test_one_zero_row_is_zero_and_leaves_the_others():
    images, texts, labels = uniform(4, 0), uniform(4, 1), torch.ones(4, dtype=torch.float64)
    whole = intra_modal_similarity(images, texts, labels)
    images[2] = 0
    expected = whole.clone()
    expected[2] = 0
    assert torch.equal(intra_modal_similarity(images, texts, labels), expected)


def test_only_the_ratios_of_the_labels_count():
    """Float32 squares of 1e-30 are zero: the similarity must not become zero with them."""
    images, texts, labels = uniform(8, 0, dtype=torch.float32), uniform(8, 1, dtype=torch.float32), torch.ones(8)
    torch.testing.assert_close(
        intra_modal_similarity(images, texts, 1e-30 * labels), intra_modal_similarity(images, texts, labels)
    )


def test_the_same_structure_has_similarity_one():
    images = uniform(8, 0)
    torch.testing.assert_close(
        intra_modal_similarity(images, 3 * images, some_labels(8) + 1e-3), torch.ones(8, dtype=torch.float64)
    )


def test_it_carries_no_gradient():
    images = uniform(3, 0).requires_grad_()
    assert not intra_modal_similarity(images, images, torch.ones(3, requires_grad=True)).requires_grad


def test_bad_input_is_refused_and_named():
    good = uniform(3, 0)
    spoilt = good.clone()
    spoilt[1, 2] = torch.nan
    with pytest.raises(InputError, match=r"^text_similarity\[1, 2\]"):
        intra_modal_similarity(good, spoilt, torch.ones(3))
    with pytest.raises(InputError, match=r"labels\[0\]"):
        intra_modal_similarity(good, good, torch.tensor([torch.nan, 1.0, 1.0]))
