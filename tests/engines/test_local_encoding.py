"""The encode step of the local engines against SGRAF's modules written with plain layers, item by item."""

import pytest
import torch
from torch import nn

from truepair.data.batch import ImageBatch, TextBatch, pad_words
from truepair.engines.config import SAFConfig, SGRConfig
from truepair.engines.region_word.local_engine import LocalEngine
from truepair.engines.region_word.self_attention import ImageSelfAttention, SelfAttention
from truepair.errors import InputError

CAPTIONS = [[1, 5, 2], [1, 7, 9, 11, 2], [4], [3, 5, 5, 6]]


def engine(*, dropout=0.0, training=True, kind=SGRConfig):
    torch.manual_seed(0)
    config = kind(width=8, word_width=5, similarity_width=6, dropout=dropout)
    model = LocalEngine(6, 5, 20, config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
        for name, buffer in model.named_buffers():
            if name.endswith(("mean", "var")):
                buffer.copy_(torch.rand_like(buffer) + 0.2)
    return model.train(training)


def pictures(lengths, seed=1):
    features = torch.randn(len(lengths), max(lengths), 6, generator=torch.Generator().manual_seed(seed)).double()
    for row, length in enumerate(lengths):
        features[row, length:] = 0
    return ImageBatch(features, torch.tensor(lengths))


def scaled(vectors):
    return vectors / (vectors.norm(dim=-1, keepdim=True) + 1e-8)


def position_by_position(norm, embedded, lengths, training):
    """The batch norm of the regions with one `nn.BatchNorm1d` a position, over the values that exist there."""
    normalized, statistics = torch.zeros_like(embedded), []
    for position in range(embedded.shape[1]):
        single = nn.BatchNorm1d(1).double().train(training)
        with torch.no_grad():
            for name in ("weight", "bias", "running_mean", "running_var"):
                getattr(single, name).copy_(getattr(norm, name)[position : position + 1])
        items = [row for row, length in enumerate(lengths) if length > position]
        normalized[items, position] = single(embedded[items, position].reshape(-1, 1)).view(len(items), -1)
        statistics.append((float(single.running_mean), float(single.running_var)))
    return normalized, statistics


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("lengths", [[5, 5, 5], [4, 4, 4], [2, 4, 1]])
def test_images_are_encoded_as_sgraf_does(lengths, training):
    model = engine(training=training)
    attention = model.image_attention
    batch = pictures(lengths)
    with torch.no_grad():
        regions = scaled(model.regions.linear(batch.features))
        for row, length in enumerate(lengths):
            regions[row, length:] = 0
        embedded, statistics = position_by_position(attention.local_norm, attention.local(regions), lengths, training)
        mean = torch.stack([regions[row, :length].mean(dim=0) for row, length in enumerate(lengths)])
        whole = torch.nn.functional.batch_norm(
            attention.whole(mean),
            attention.whole_norm.running_mean.clone(),
            attention.whole_norm.running_var.clone(),
            attention.whole_norm.weight,
            attention.whole_norm.bias,
            training=training,
        )
        expected = []
        for row, length in enumerate(lengths):
            scores = attention.common(torch.tanh(embedded[row, :length]) * torch.tanh(whole[row])).squeeze(1)
            expected.append(scaled(torch.softmax(scores, dim=0) @ regions[row, :length]))
    found = model.encode_images(batch)
    torch.testing.assert_close(found.vectors, regions, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.whole, torch.stack(expected), rtol=0, atol=1e-12)
    torch.testing.assert_close(found.whole.norm(dim=1), torch.ones(3).double(), rtol=0, atol=1e-6)
    longest = max(lengths)
    norm = attention.local_norm
    assert norm.running_mean[:longest].tolist() == pytest.approx([mean for mean, _ in statistics], abs=1e-12)
    assert norm.running_var[:longest].tolist() == pytest.approx([var for _, var in statistics], abs=1e-12)
    untouched = engine().image_attention.local_norm
    assert torch.equal(norm.running_mean[longest:], untouched.running_mean[longest:])


def test_texts_are_encoded_as_sgraf_does():
    model = engine()
    found = model.encode_texts(pad_words(CAPTIONS))
    attention = model.text_attention
    for row, caption in enumerate(CAPTIONS):
        states, _ = model.words.read(model.words.embed(torch.tensor([caption])))
        words = scaled((states[0, :, :8] + states[0, :, 8:]) / 2)
        local, whole = torch.tanh(attention.local(words)), torch.tanh(attention.whole(words.mean(dim=0)))
        expected = scaled(torch.softmax(attention.common(local * whole).squeeze(1), dim=0) @ words)
        torch.testing.assert_close(found.vectors[row, : len(caption)], words, rtol=0, atol=1e-12)
        assert (found.vectors[row, len(caption) :] == 0).all()
        torch.testing.assert_close(found.whole[row], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_padding_changes_nothing(training):
    batch = pictures([3, 4, 2])
    longer = ImageBatch(torch.cat([batch.features, torch.zeros(3, 3, 6).double()], dim=1), batch.lengths)
    words = pad_words(CAPTIONS)
    wider = TextBatch(torch.cat([words.words, torch.full((4, 3), 7)], dim=1), words.lengths)
    first, second = engine(training=training), engine(training=training)
    torch.testing.assert_close(first.encode_images(batch).whole, second.encode_images(longer).whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(first.encode_texts(words).whole, second.encode_texts(wider).whole, rtol=0, atol=1e-12)
    for one, other in zip(first.buffers(), second.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_one_image_in_training_uses_the_running_statistics_of_the_images_and_leaves_them():
    model = engine()
    evaluating = engine(training=False)
    # The regions' batch norm has D values a position even then: only that over the images cannot be computed.
    evaluating.image_attention.local_norm.train()
    one = model.encode_images(pictures([4]))
    torch.testing.assert_close(one.whole, evaluating.encode_images(pictures([4])).whole, rtol=0, atol=1e-12)
    untouched = engine().image_attention.whole_norm
    assert torch.equal(model.image_attention.whole_norm.running_mean, untouched.running_mean)
    assert torch.equal(model.image_attention.whole_norm.running_var, untouched.running_var)


def test_gradients_of_the_regions_batch_norm_are_those_of_torch_where_nothing_is_ragged():
    """The masked path and torch's own, on the same images: values, gradients and running statistics."""
    found = []
    for masked in (False, True):
        torch.manual_seed(0)
        attention = ImageSelfAttention(8, 5, 0.0).double()
        embedded = torch.randn(3, 4, 8).double().requires_grad_()
        mask = torch.ones(3, 4, dtype=torch.bool) if masked else None
        normalized = attention.normalize_local(embedded, mask)
        (normalized * torch.randn(3, 4, 8)).sum().backward()
        found.append([normalized, embedded.grad, attention.local_norm.weight.grad, *attention.local_norm.buffers()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [SGRConfig, SAFConfig])
def test_dropout_acts_in_training_alone(kind):
    model = engine(dropout=0.4, kind=kind)
    batch, words = pictures([4, 5, 3]), pad_words(CAPTIONS)
    first, second = model.encode_images(batch), model.encode_images(batch)
    assert torch.equal(first.vectors, second.vectors)  # regions are not dropped, their self-attention is
    assert not torch.equal(first.whole, second.whole)
    assert not torch.equal(model.encode_texts(words).vectors, model.encode_texts(words).vectors)
    model.eval()
    for encode, inputs in ((model.encode_images, batch), (model.encode_texts, words)):
        assert torch.equal(encode(inputs).vectors, encode(inputs).vectors)
        assert torch.equal(encode(inputs).whole, encode(inputs).whole)


def test_every_occurrence_of_a_word_is_dropped_anew():
    model = engine(dropout=0.4)
    vectors = model.encode_texts(pad_words([[5]] * 12)).vectors[:, 0]
    assert len({tuple(vector.tolist()) for vector in vectors}) > 6


def test_the_dropped_share_is_that_of_the_configuration():
    torch.manual_seed(0)
    attention = SelfAttention(4, 0.25)
    dropped = (attention.dropout(torch.ones(20_000)) == 0).double().mean()
    assert float(dropped) == pytest.approx(0.25, abs=0.02)
    assert engine(dropout=0.3).words.dropout.p == engine(dropout=0.3).text_attention.dropout.p == 0.3


def test_more_regions_than_the_model_knows_are_refused_with_a_remedy():
    with pytest.raises(InputError, match="image 1 of the batch has 6 regions, this model knows 5.*at most 5"):
        engine().encode_images(pictures([5, 6]))
    # Padding alone is no region.
    few = pictures([2, 3])
    padded = ImageBatch(torch.cat([few.features, torch.zeros(2, 9, 6).double()], dim=1), few.lengths)
    assert engine().encode_images(padded).vectors.shape == (2, 3, 8)


def test_initial_values_are_those_of_sgraf():
    torch.manual_seed(0)
    model = LocalEngine(60, 5, 50, SGRConfig(width=40, word_width=30, similarity_width=20))
    for module in (model.regions.linear, model.align.local, model.head.steps[0].query, model.text_attention.local):
        bound = (6 / (module.in_features + module.out_features)) ** 0.5
        assert 0.9 * bound < float(module.weight.detach().abs().max()) <= bound
        assert not module.bias.any()
    assert 0.099 < float(model.words.embed.weight.detach().abs().max()) <= 0.1
