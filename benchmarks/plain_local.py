"""The similarity of SGRAF as a loop over captions, the way the field's code computes it: oracle of the tests, and peer.

Plain torch operations on the parameters of a `LocalEngine`; nothing is grouped, fused, chunked or recomputed. Where an
image has fewer regions than the longest of the batch, the softmax leaves out the regions it lacks.

Shape letters: m images, R regions, W words of one caption, D width, S similarity width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, leaky_relu

from truepair.engines.region_word.local_engine import Fragments, LocalEngine
from truepair.engines.region_word.reasoning import GraphReasoning


def plain_scores(engine: LocalEngine, images: Fragments, texts: Fragments, *, attend_texts: bool = False) -> Tensor:
    """r of every image (row) and caption (column), (m, n); updates the running statistics of SAF in training.

    With `attend_texts` the whole of each caption is computed in the loop, as the field's code does, instead of taken.
    """
    present = torch.arange(images.vectors.shape[1]) < images.lengths[:, None]
    columns = []
    for column, length in enumerate(texts.lengths.tolist()):
        caption = texts.vectors[column, :length].repeat(len(images.vectors), 1, 1)
        attended = attend(caption, images.vectors, present)
        local = scaled(engine.align.local((attended - caption) ** 2))
        whole_text = texts.whole[column]
        if attend_texts:
            whole_text = engine.text_attention(texts.vectors[column : column + 1, :length], texts.lengths[[column]])[0]
        whole = scaled(engine.align.whole((images.whole - whole_text) ** 2))
        columns.append(plain_head(engine, torch.cat([whole.unsqueeze(1), local], dim=1)))
    return torch.stack(columns, dim=1)


def plain_image_scores(engine: LocalEngine, images: Fragments) -> Tensor:
    """r of every image and image: the regions that both have, compared position by position."""
    columns = []
    for column, length in enumerate(images.lengths.tolist()):
        vectors = []
        for row, other in enumerate(images.lengths.tolist()):
            both = min(length, other)
            difference = images.vectors[row, :both] - images.vectors[column, :both]
            vectors.append(scaled(engine.align.local(difference**2)))
        whole = scaled(engine.align.whole((images.whole - images.whole[column]) ** 2))
        if len({len(rows) for rows in vectors}) == 1:
            columns.append(plain_head(engine, torch.cat([whole.unsqueeze(1), torch.stack(vectors)], dim=1)))
        else:
            columns.append(
                plain_ragged_head(engine, [torch.cat([w[None], v]) for w, v in zip(whole, vectors, strict=True)])
            )
    return torch.stack(columns, dim=1)


def plain_text_scores(engine: LocalEngine, texts: Fragments) -> Tensor:
    """r of every text (in the image's role) and text."""
    return plain_scores(engine, texts, texts)


def attend(caption: Tensor, regions: Tensor, present: Tensor) -> Tensor:
    """The regions' mean as each word attends to them, L2-normalised: (m, W, D)."""
    affinity = scaled(leaky_relu(torch.bmm(regions, caption.transpose(1, 2)), 0.1), dim=2)
    weights = torch.softmax((9 * affinity).masked_fill(~present[..., None], -torch.inf), dim=1)
    # Width before words, as in the field's code: what follows walks through memory with strides.
    return scaled(torch.bmm(regions.transpose(1, 2), weights).transpose(1, 2))


def plain_head(engine: LocalEngine, nodes: Tensor) -> Tensor:
    """r of the pairs of one column from their nodes (m, 1 + W, S)."""
    head = engine.head
    if isinstance(head, GraphReasoning):
        steps: list[Any] = list(head.steps)
        for step in steps:
            edges = torch.softmax(torch.bmm(step.query(nodes), step.key(nodes).transpose(1, 2)), dim=2)
            nodes = torch.relu(step.graph(torch.bmm(edges, nodes)))
        return plain_score(engine, nodes[:, 0])
    gates = torch.sigmoid(head.norm(head.attention(nodes).transpose(1, 2)))
    weights = gates / (gates.abs().sum(dim=2, keepdim=True) + 1e-8)
    return plain_score(engine, scaled(torch.bmm(weights, nodes).squeeze(1)))


def plain_ragged_head(engine: LocalEngine, nodes: list[Tensor]) -> Tensor:
    """`plain_head` for pairs with different numbers of nodes, one after the other."""
    head = engine.head
    if isinstance(head, GraphReasoning):
        return torch.cat([plain_head(engine, pair[None]) for pair in nodes])
    norm = head.norm
    logits = normalized(norm, torch.cat([head.attention(pair) for pair in nodes]))
    gates = torch.split(torch.sigmoid(logits).squeeze(1), [len(pair) for pair in nodes])
    vectors = [scaled((gate / (gate.sum() + 1e-8)) @ pair) for pair, gate in zip(nodes, gates, strict=True)]
    return plain_score(engine, torch.stack(vectors))


def plain_score(engine: LocalEngine, vectors: Tensor) -> Tensor:
    score: Tensor = engine.score(vectors).squeeze(1)
    return score


def normalized(norm: nn.BatchNorm1d, values: Tensor) -> Tensor:
    if norm.training and norm.num_batches_tracked is not None:
        norm.num_batches_tracked += 1
    return batch_norm(
        values, norm.running_mean, norm.running_var, norm.weight, norm.bias, training=norm.training, eps=norm.eps
    )


def scaled(vectors: Tensor, dim: int = -1) -> Tensor:
    """x / (‖x‖ + 1e-8); zero, without a gradient, where x is no longer than 1e-8."""
    squares = vectors.pow(2).sum(dim=dim, keepdim=True)
    return vectors / (torch.where(squares > 1e-16, squares, torch.inf).sqrt() + 1e-8)
