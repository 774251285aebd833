"""The four subspaces in one plane by t-SNE (DisNCL, figure 4), and in numbers: which subspace a neighbour is from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from truepair.data.pairs import Array
from truepair.pages.analysis.subject import Split, drawn_rows, one_caption_each
from truepair.pages.kit.canvas import BLUE, DPI, GREEN, ORANGE, PURPLE, marks, styled
from truepair.seeding import generator, seed_sequence

PAIRS = 500
PERPLEXITY = 30.0
NEIGHBOURS = 10
SIZE = (4.2, 3.9)  # inches
LOOKS = {"V_S": (BLUE, "o"), "V_X": (ORANGE, "^"), "T_S": (GREEN, "s"), "T_X": (PURPLE, "D")}
HOLLOW = ("T_S", "T_X")  # T_S lies upon V_S where the model is a good one, and must not hide it
TITLES = {
    "V_S": "$V_S$ images, invariant",
    "V_X": "$V_X$ images, exclusive",
    "T_S": "$T_S$ texts, invariant",
    "T_X": "$T_X$ texts, exclusive",
}


@dataclass(frozen=True)
class Embedding:
    """Places of n items of each subspace in the plane, and who their neighbours are in the subspaces themselves.

    Attributes:
        points: subspace → (n, 2).
        neighbours: subspace → subspace → share, in [0, 1], of the 10 nearest rows (Euclidean, all four subspaces
            together, itself excepted) that are from there; the shares of a row sum to 1.
    """

    points: dict[str, Array]
    neighbours: dict[str, dict[str, float]]

    @property
    def pairs(self) -> int:
        return len(self.points["V_S"])


def embed(split: Split, *, seed: int, most: int = PAIRS) -> Embedding:
    """t-SNE of the parts of at most `most` ≥ 2 pairs, drawn at random, an image in one of them at most."""
    rows = drawn_rows(one_caption_each(split.pairs), most, generator(seed, "embedded pairs"))
    images, texts = torch.from_numpy(rows.images), torch.from_numpy(rows.texts)
    parts = {
        "V_S": split.images.invariant[images],
        "V_X": split.images.exclusive[images],
        "T_S": split.texts.invariant[texts],
        "T_X": split.texts.exclusive[texts],
    }
    whole = torch.cat(list(parts.values())).double().numpy()
    places = np.split(plane(whole, seed=seed), len(parts))
    return Embedding(dict(zip(parts, places, strict=True)), neighbours(whole, list(parts)))


def plane(rows: Array, *, seed: int) -> Array:
    """t-SNE of N rows from their first two principal components on, (N, 2); the same numbers for the same seed."""
    from sklearn.manifold import TSNE

    state = int(seed_sequence(seed, "t-SNE").generate_state(1)[0])
    perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
    places: Array = TSNE(init="pca", perplexity=perplexity, random_state=state).fit_transform(rows)
    return places


def neighbours(rows: Array, names: list[str]) -> dict[str, dict[str, float]]:
    """Shares of the 10 nearest rows by subspace; the rows, (N, D), stand in equal blocks, one a name."""
    size = len(rows) // len(names)
    distances = torch.cdist(torch.from_numpy(rows), torch.from_numpy(rows)).fill_diagonal_(torch.inf)
    nearest = distances.topk(min(NEIGHBOURS, len(rows) - 1), largest=False).indices.numpy() // size
    shares = {}
    for number, name in enumerate(names):
        found = np.bincount(nearest[number * size : (number + 1) * size].ravel(), minlength=len(names))
        shares[name] = dict(zip(names, (found / found.sum()).tolist(), strict=True))
    return shares


def scatter(embedding: Embedding) -> Figure:
    """One mark an item, coloured and shaped by subspace; the axes of t-SNE mean nothing and are not drawn."""
    with styled():
        figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        for name, points in embedding.points.items():
            colour, marker = LOOKS[name]
            marks(axes, points, colour, marker, TITLES[name], hollow=name in HOLLOW)
        figure.legend(loc="outside upper center", ncols=2)
    return figure
