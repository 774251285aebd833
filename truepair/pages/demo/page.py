"""From a finished demo to one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from truepair.data.pairs import Array, BoolArray, IntArray, Pairs
from truepair.engines.retrieval_model import RetrievalModel
from truepair.pages.demo.figures import belief_histogram, learning_curves
from truepair.pages.kit.page import render
from truepair.pages.kit.pictures import Album, Picture
from truepair.seeding import generator
from truepair.training.fit import Run
from truepair.training.pair_table import read_pair_table

Show = Callable[[int], Picture | str]
SUSPICIOUS, MISTAKES, QUERIES, HITS = 12, 6, 4, 5
RUNS = {"clean": "Clean pairs, plain InfoNCE", "plain": "Noisy pairs, plain InfoNCE", "robust": "Noisy pairs, CRCL"}


@dataclass(frozen=True)
class BelievedPair:
    """A training pair, what the robust run believes of it, and the truth. `picture.caption` really belongs to it."""

    picture: Picture
    caption: str
    belief: float
    mismatched: bool


@dataclass(frozen=True)
class Hit:
    """A picture or a caption, and whether it belongs to what it was given to or found for."""

    item: Picture | str
    right: bool


@dataclass(frozen=True)
class Found:
    """What one model finds for a query, best first, and the place of the (first) right item among all, from 1."""

    hits: list[Hit]
    place: int


def render_page(demo: Mapping[str, Any], runs: Mapping[str, Run], noisy: Pairs, test: Pairs) -> str:
    """The page of a demo.

    Args:
        demo: the facts that demo.json keeps.
        runs: the finished runs `clean`, `plain` and `robust`.
        noisy: the pairs that `plain` and `robust` were trained on, with their truth.
        test: the pairs to search in.
    """
    columns = read_pair_table(runs["robust"].folder.pairs, ["p_match", "mismatched"])
    belief, mismatched = columns["p_match"].to_numpy(), columns["mismatched"].to_numpy()
    order = np.argsort(belief, kind="stable")
    accused, trusted = order[~mismatched[order]], order[mismatched[order]][::-1]
    options = runs["robust"].folder.read_config()["method"]["options"]
    album = Album(noisy)
    means = ", ".join(
        f"the {name} pairs have {values.mean():.2f} on average"
        for name, values in (("matched", belief[~mismatched]), ("mismatched", belief[mismatched]))
        if len(values)
    )
    return render(
        "demo/page.html",
        demo=demo,
        names=RUNS,
        test={name: run.result["test"] for name, run in runs.items()},
        auroc={name: (run.result["detection"] or {}).get("auroc") for name, run in runs.items()},
        wrong=int(mismatched.sum()),
        example=example_of(album),
        pieces=options["pieces"],
        curves=learning_curves(runs, RUNS),
        histogram=belief_histogram(belief, mismatched, options["threshold"], f"Histogram of believed labels: {means}."),
        threshold=options["threshold"],
        set_aside={
            "matched": percentage(belief[~mismatched] < options["threshold"]),
            "mismatched": percentage(belief[mismatched] < options["threshold"]),
        },
        suspicious=[believed(album, pair, belief[pair]) for pair in order[:SUSPICIOUS]],
        accused=[believed(album, pair, belief[pair]) for pair in accused[:MISTAKES]],
        trusted=[believed(album, pair, belief[pair]) for pair in trusted[:MISTAKES]],
        searches=searches({name: runs[name].model for name in ("plain", "robust")}, test, demo["seed"]),
    )


def percentage(mask: BoolArray) -> float | None:
    """Per cent of True; None of nothing."""
    return 100 * float(mask.mean()) if len(mask) else None


def believed(album: Album, pair: int, belief: float) -> BelievedPair:
    pairs = album.pairs
    image, caption = int(pairs.image_index[pair]), pairs.texts.captions[pairs.text_index[pair]]
    return BelievedPair(album.picture(image), caption, float(belief), image != album.true_image[pair])


def example_of(album: Album) -> tuple[Picture, list[Hit]]:
    """A picture with all captions it is given; one that has right and wrong ones, if possible."""
    given, true, count = album.pairs.image_index, album.true_image, len(album.pairs.images)
    right = np.bincount(given[given == true], minlength=count)
    wrong = np.bincount(given, minlength=count) - right
    image = int(np.lexsort((-wrong, -np.minimum(right, wrong)))[0])
    pairs = np.flatnonzero(given == image)
    captions = [album.pairs.texts.captions[text] for text in album.pairs.text_index[pairs]]
    return album.picture(image), [Hit(*hit) for hit in zip(captions, (true[pairs] == image).tolist(), strict=True)]


def searches(models: Mapping[str, RetrievalModel], test: Pairs, seed: int) -> dict[str, list[Any]]:
    """Some queries each way, drawn by chance: (query, model → what it finds for it) each."""
    album, owner, caption = Album(test), test.image_of_text, test.texts.captions.__getitem__
    rng = generator(seed, "demo queries")
    every_image, every_text = np.arange(len(test.images)), np.arange(len(test.texts))
    texts = rng.permutation(every_text)[:QUERIES]
    images = rng.permutation(np.unique(owner))[:QUERIES]
    of_texts = {name: scores(model, test, every_image, texts).T for name, model in models.items()}
    of_images = {name: scores(model, test, images, every_text) for name, model in models.items()}
    right_images, right_texts = every_image == owner[texts][:, None], owner == images[:, None]
    return {
        "pictures": answered([caption(text) for text in texts], of_texts, right_images, album.picture),
        "captions": answered([album.picture(image) for image in images], of_images, right_texts, caption),
    }


def answered(queries: list[Any], by_model: Mapping[str, Array], right: BoolArray, show: Show) -> list[Any]:
    """What each model finds for each query, from (queries, items): similarity, and which are right."""
    return [
        (query, {name: found(similarity[row], right[row], show) for name, similarity in by_model.items()})
        for row, query in enumerate(queries)
    ]


def scores(model: RetrievalModel, pairs: Pairs, images: IntArray, texts: IntArray) -> Array:
    """Similarity of some images and some texts, (images, texts)."""
    return np.asarray(torch.cat(list(model.similarity_blocks(pairs, images, texts))))


def found(similarity: Array, right: BoolArray, show: Show) -> Found:
    """The best of all items for one query, from the similarity of each, (items,), and which are right, (items,)."""
    order = np.argsort(-similarity, kind="stable")
    hits = [Hit(show(int(item)), bool(right[item])) for item in order[:HITS]]
    return Found(hits, int(right[order].argmax()) + 1)
