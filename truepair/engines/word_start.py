"""Word embeddings that start from word vectors instead of at random."""

from __future__ import annotations

import torch
from torch import nn

from truepair.data.word_vectors import WordVectors
from truepair.engines.encoders import WordEncoder
from truepair.errors import InputError


def start_words(engine: nn.Module, vectors: WordVectors) -> None:
    """Give the embedding of every word encoder of an engine the vectors; words without one keep their random start.

    Raises:
        InputError: the engine has no word embedding, or one of another width.
    """
    encoders = [part for part in engine.modules() if isinstance(part, WordEncoder)]
    if not encoders:
        raise InputError("--word-vectors start a word embedding, and this engine has none; leave it out")
    rows = torch.from_numpy(vectors.found)
    for encoder in encoders:
        width, given = encoder.embed.embedding_dim, vectors.values.shape[1]
        if width != given:
            raise InputError(
                f"the word vectors have {given} numbers, the word embedding {width}; add --word-width {given}"
            )
        with torch.no_grad():
            weight = encoder.embed.weight
            weight[rows] = torch.from_numpy(vectors.values)[rows].to(weight)
