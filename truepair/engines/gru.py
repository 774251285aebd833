"""A bidirectional GRU over captions, read on the CPU the way captions are: short, of unequal length, in few words.

The numbers are those of `torch.nn.GRU` on packed sequences. Two things make it faster on a CPU: a word that stands many
times in a batch is projected once, and the gradient of each weight is one large matrix product instead of one a step.

Shape letters: B captions, W words of the longest, T words of all captions together, U distinct words, E word width,
H hidden width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear


def read_both_ways(gru: nn.GRU, embedding: Tensor, words: Tensor, lengths: Tensor) -> Tensor:
    """States (B, W, H) of every word, the mean of both directions, zero beyond each caption's length.

    Args:
        gru: one bidirectional layer, `batch_first`.
        embedding: (vocabulary, E).
        words: (B, W) int64, padded.
        lengths: (B,) int64 in [1, W], on the CPU.
    """
    if words.device.type != "cpu":
        packed = nn.utils.rnn.pack_padded_sequence(embedding[words], lengths, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=words.shape[1])
        return (states[..., : gru.hidden_size] + states[..., gru.hidden_size :]) / 2
    return _read_on_cpu(gru, embedding, words, lengths)


def _read_on_cpu(gru: nn.GRU, embedding: Tensor, words: Tensor, lengths: Tensor) -> Tensor:
    lengths, order = lengths.sort(descending=True, stable=True)
    # Step and caption of every word, step by step: both (T,).
    step, caption = (torch.arange(int(lengths[0]))[:, None] < lengths[None, :]).nonzero(as_tuple=True)
    alive = torch.bincount(step).tolist()  # captions that have a word at each step: a prefix of `order`
    distinct, which = torch.unique(words[order[caption], step], return_inverse=True)
    vectors = embedding[distinct]
    total = None
    for suffix, backwards in (("l0", False), ("l0_reverse", True)):
        weight, bias = getattr(gru, f"weight_ih_{suffix}"), getattr(gru, f"bias_ih_{suffix}")
        gates = linear(vectors, weight, bias)[which]
        recurrent = getattr(gru, f"weight_hh_{suffix}"), getattr(gru, f"bias_hh_{suffix}")
        # Under mixed precision the projection is bf16, the recurrence stays in the weights' own precision.
        with torch.autocast("cpu", enabled=False):
            states: Tensor = _Scan.apply(gates.to(weight.dtype), *recurrent, alive, backwards)  # type: ignore[no-untyped-call]
        total = states if total is None else total + states
    assert total is not None
    padded = total.new_zeros(words.shape[0] * words.shape[1], total.shape[1])
    place = order[caption] * words.shape[1] + step
    return padded.index_copy(0, place, total / 2).view(*words.shape, -1)


class _Scan(torch.autograd.Function):
    """One direction of the recurrence over the words of all captions, laid out step by step.

    With a = W h + b: r = σ(g_r + a_r), z = σ(g_z + a_z), n = tanh(g_n + r a_n), h' = (1 − z) n + z h.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, bias: Tensor, alive: list[int], backwards: bool) -> Tensor:
        width = weight.shape[1]
        states = gates.new_empty(gates.shape[0], width)
        previous = gates.new_zeros(gates.shape[0], width)
        opened = gates.new_empty(gates.shape[0], 3 * width)  # r, z, n
        candidate = gates.new_empty(gates.shape[0], width)  # a_n
        transposed = weight.T
        for start, count, source, carried in _schedule(alive, backwards):
            rows = slice(start, start + count)
            before = previous[rows]
            if carried:
                before[:carried] = states[source : source + carried]
            a = torch.addmm(bias, before, transposed)
            r_z = opened[rows, : 2 * width]
            torch.add(gates[rows, : 2 * width], a[:, : 2 * width], out=r_z).sigmoid_()
            r, z, n = r_z[:, :width], r_z[:, width:], opened[rows, 2 * width :]
            candidate[rows] = a[:, 2 * width :]
            torch.addcmul(gates[rows, 2 * width :], r, a[:, 2 * width :], out=n).tanh_()
            torch.lerp(n, before, z, out=states[rows])
        ctx.save_for_backward(weight, previous, opened, candidate)
        ctx.schedule = list(_schedule(alive, backwards))
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weight, previous, opened, candidate = ctx.saved_tensors
        width = weight.shape[1]
        d_states = gradients[0].clone()
        d_a, d_n = torch.empty_like(opened), torch.empty_like(candidate)
        # What the gradients are multiplied by, of all words at once; few operations are left for each step.
        r, z, n = opened.split(width, dim=1)
        one_minus_r, one_minus_z, slope, change = 1 - r, 1 - z, 1 - n * n, previous - n
        for start, count, source, carried in reversed(ctx.schedule):
            rows = slice(start, start + count)
            d, d_r, d_z = d_states[rows], d_a[rows, :width], d_a[rows, width : 2 * width]
            torch.mul(d * one_minus_z[rows], slope[rows], out=d_n[rows])
            torch.mul((d_n[rows] * candidate[rows]).mul_(r[rows]), one_minus_r[rows], out=d_r)
            torch.mul((d * change[rows]).mul_(z[rows]), one_minus_z[rows], out=d_z)
            torch.mul(d_n[rows], r[rows], out=d_a[rows, 2 * width :])
            if carried:
                end = start + carried
                through = torch.addmm(d[:carried] * z[start:end], d_a[start:end], weight)
                d_states[source : source + carried] += through
        d_gates = torch.cat([d_a[:, : 2 * width], d_n], dim=1)
        return d_gates, d_a.T @ previous, d_a.sum(dim=0), None, None


def _schedule(alive: list[int], backwards: bool) -> list[tuple[int, int, int, int]]:
    """For each step in order: (first row, rows, first row of the step before it, captions carried over from there)."""
    starts = [0]
    for count in alive:
        starts.append(starts[-1] + count)
    steps = range(len(alive) - 1, -1, -1) if backwards else range(len(alive))
    schedule, before = [], None
    for step in steps:
        carried = 0 if before is None else min(alive[step], alive[before])
        schedule.append((starts[step], alive[step], 0 if before is None else starts[before], carried))
        before = step
    return schedule
