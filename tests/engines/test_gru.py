"""The GRU over captions against torch's own, and its gradients."""

import pytest
import torch

from truepair.engines.gru import read_both_ways


def torch_reference(gru, embedding, words, lengths):
    packed = torch.nn.utils.rnn.pack_padded_sequence(embedding[words], lengths, batch_first=True, enforce_sorted=False)
    states, _ = torch.nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=words.shape[1])
    return (states[..., : gru.hidden_size] + states[..., gru.hidden_size :]) / 2


def captions(lengths, vocabulary=9, seed=0, longest=None):
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(0, vocabulary, (len(lengths), longest or max(lengths)), generator=generator)
    return words, torch.tensor(lengths)


def model(dtype=torch.float64):
    torch.manual_seed(0)
    gru = torch.nn.GRU(4, 5, batch_first=True, bidirectional=True).to(dtype)
    return gru, torch.randn(9, 4, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize(
    ("lengths", "longest"), [([1], None), ([4], None), ([3, 7, 1, 5, 5], None), ([2, 2, 2], None), ([1, 3], 6)]
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_values_and_gradients_equal_torch(lengths, longest, dtype, tolerance):
    gru, embedding = model(dtype)
    words, counts = captions(lengths, longest=longest)
    ours, theirs = (read(gru, embedding, words, counts) for read in (read_both_ways, torch_reference))
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    weight = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(dtype)
    inputs = [*gru.parameters(), embedding]
    for our_gradient, their_gradient in zip(
        torch.autograd.grad((ours * weight).sum(), inputs),
        torch.autograd.grad((theirs * weight).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(our_gradient, their_gradient, rtol=tolerance, atol=tolerance)


def test_gradcheck():
    gru, embedding = model()
    words, lengths = captions([2, 4, 1])

    def read(embedding, *weights):
        named = dict(zip([name for name, _ in gru.named_parameters()], weights, strict=True))
        with torch.no_grad():
            holder = torch.nn.GRU(4, 5, batch_first=True, bidirectional=True).double()
        for name, weight in named.items():
            del holder._parameters[name]
            setattr(holder, name, weight)
        return read_both_ways(holder, embedding, words, lengths)

    assert torch.autograd.gradcheck(read, (embedding, *[p.detach().requires_grad_() for p in gru.parameters()]))


def test_beyond_a_caption_stands_zero_and_padding_has_no_influence():
    gru, embedding = model()
    words, lengths = captions([3, 1, 2], longest=5)
    states = read_both_ways(gru, embedding, words, lengths)
    assert states.shape == (3, 5, 5)
    for row, length in enumerate(lengths.tolist()):
        assert (states[row, length:] == 0).all()
        words[row, length:] = 8
    assert torch.equal(read_both_ways(gru, embedding, words, lengths), states)
