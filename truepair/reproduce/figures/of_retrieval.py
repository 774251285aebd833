"""Queries of the test split with what is found first: by class (UOT-RCL, figure 5), or by pair (UGNCL, figure 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from truepair.data.pairs import IntArray, Pairs
from truepair.errors import InputError
from truepair.pages.kit.canvas import COLUMN, DPI, TRUTH, styled
from truepair.reproduce.figures.drawn import Drawn
from truepair.reproduce.figures.of_pairs import query_uncertainty
from truepair.seeding import generator
from truepair.training.run_folder import RunFolder

Found = dict[str, Any]
TEXTS_FOUND, IMAGES_FOUND = 5, 3
"""How many of the most similar items a query is shown with: texts of an image, images of a text."""
OTHER = {"image": "text", "text": "image"}
LETTERS = 44  # of a caption in a cell


def retrieved(
    runs: Mapping[str, RunFolder], *, source: str, options: Mapping[str, Any], images: int, texts: int
) -> Drawn:
    """Some images with the five texts, some texts with the three images that are most similar to them, of one run.

    Queries are drawn at random, each of another class while there are any. What is found is right where it is of the
    query's class.

    Args:
        source: the data, with `options` of `truepair.load`.
        images, texts: how many queries of each kind.

    Raises:
        InputError: the data has no classes.
    """
    from truepair.audit.scoring.vectors import encode
    from truepair.data.open import load
    from truepair.training.fit import open_run

    (run,) = runs.values()
    pairs = load(source, "test", **options)
    if pairs.labels is None:
        raise InputError(f"{source} has no classes to tell right from wrong by; name the column of the labels")
    vectors = encode(open_run(run.path).model, pairs, device="cpu")
    similarity = (vectors.images[pairs.image_index] @ vectors.texts[pairs.text_index].T).numpy()
    asked = queries(pairs.labels, images + texts)
    rows = [row_of("image", query, similarity[query], pairs, TEXTS_FOUND) for query in asked[:images]]
    rows += [row_of("text", query, similarity[:, query], pairs, IMAGES_FOUND) for query in asked[images:]]
    about_query, about_found = (lambda row: f"query: {row['class']}"), (lambda found: found["class"])
    return Drawn(draw_rows(rows, pairs, about_query, about_found), {"queries": rows})


def retrieved_pairs(
    runs: Mapping[str, RunFolder], *, source: str, options: Mapping[str, Any], images: int, texts: int
) -> Drawn:
    """Some images with the five texts, some texts with the three images that are most similar to them, of a run of
    UGNCL, with the uncertainty of each query among a batch of 128 pairs.

    Queries are drawn at random, each of another image. What is found is right where it belongs to the query.

    Args:
        source: the data, with `options` of `truepair.load`.
        images, texts: how many queries of each kind.

    Raises:
        InputError: the run is not of UGNCL.
    """
    from truepair.audit.scoring.vectors import encode
    from truepair.data.open import load
    from truepair.training.fit import open_run

    (folder,) = runs.values()
    pairs, run = load(source, "test", **options), open_run(folder.path)
    uncertainty = query_uncertainty(run, pairs)["uncertainty"]
    vectors = encode(run.model, pairs, device="cpu")
    similarity = (vectors.images @ vectors.texts.T).numpy()
    rows = []
    for number, query in enumerate(queries(pairs.image_index, images + texts)):
        kind, other, count = ("image", "text", TEXTS_FOUND) if number < images else ("text", "image", IMAGES_FOUND)
        place = item(kind, query, pairs)["place"]
        scores = similarity[place] if kind == "image" else similarity[:, place]
        own, index = (pairs.image_index, pairs.text_index)[:: 1 if kind == "image" else -1]
        belongs = set(index[own == place].tolist())
        found = [
            {**item(other, int(np.flatnonzero(index == best)[0]), pairs), "similarity": round(float(scores[best]), 4)}
            | {"right": int(best) in belongs}
            for best in np.argsort(-scores, kind="stable")[:count]
        ]
        u = round(float(uncertainty[query + (0 if kind == "image" else len(pairs))]), 4)
        rows.append({"kind": kind, **item(kind, query, pairs), "uncertainty": u, "found": found})
    about_query, about_found = (
        (lambda row: f"query, u = {row['uncertainty']:.2f}"),
        (lambda one: f"{one['similarity']:.2f}"),
    )
    return Drawn(draw_rows(rows, pairs, about_query, about_found), {"queries": rows})


def queries(labels: IntArray, count: int) -> list[int]:
    """Pairs drawn at random, each of another class while there are any; always the same."""
    order = generator(0, "queries of a figure").permutation(len(labels))
    _, first = np.unique(labels[order], return_index=True)
    firsts = order[np.sort(first)]
    others = order[~np.isin(order, firsts)]
    return [int(pair) for pair in np.concatenate([firsts, others])[:count]]


def row_of(kind: str, query: int, similarity: Any, pairs: Pairs, count: int) -> Found:
    """A query and what is most similar to it; of equal similarities the first item.

    Args:
        kind: what the query is, "image" or "text"; what is found is the other.
        query: a pair.
        similarity: (N,), of the query and the other side of every pair.
    """
    other = OTHER[kind]
    best = np.argsort(-similarity, kind="stable")[:count].tolist()
    found = [
        {**item(other, pair, pairs), "similarity": round(float(similarity[pair]), 4)}
        | {"right": item(other, pair, pairs)["class"] == item(kind, query, pairs)["class"]}
        for pair in best
    ]
    return {"kind": kind, **item(kind, query, pairs), "found": found}


def item(kind: str, pair: int, pairs: Pairs) -> Found:
    """The image or text of a pair: its name, what it says, its class where it has one."""
    place = int((pairs.image_index if kind == "image" else pairs.text_index)[pair])
    about = {} if pairs.labels is None else {"class": str(pairs.class_names[int(pairs.labels[pair])])}
    if kind == "image":
        return {"id": str(pairs.images.ids[place]), "place": place, **about}
    return {"id": str(pairs.texts.ids[place]), "place": place, "caption": str(pairs.texts.captions[place]), **about}


def draw_rows(
    rows: list[Found], pairs: Pairs, about_query: Callable[[Found], str], about_found: Callable[[Found], object]
) -> Any:
    """`draw_cells` with ✓ and a solid frame where what is found is right.

    Args:
        about_query, about_found: what stands above a query, and above what is found.
    """

    def look(found: Found) -> Look:
        right = found["right"]
        colour = TRUTH["matched" if right else "mismatched"]
        return Look(f"{'✓' if right else '✗'} {about_found(found)}", colour, "solid" if right else "dashed")

    return draw_cells(rows, pairs, about_query, look)


class Look(NamedTuple):
    """What stands above a cell, in which colour, and the line of the frame around it; without one there is none."""

    title: str
    colour: str = "black"
    frame: str | None = None


def draw_cells(
    rows: list[Found], pairs: Pairs, about_query: Callable[[Found], str], look: Callable[[Found], Look]
) -> Any:
    """A row a query: the query on the left, what is found to its right.

    Args:
        rows: each with its `kind`, `image` or `text`, its `place` among these, and what is `found` of the other kind.
    """
    from matplotlib.figure import Figure

    across = 1 + max(len(row["found"]) for row in rows)
    with styled():
        size = (COLUMN[0] * across * 0.42, COLUMN[1] * len(rows) * 0.5)
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        panels = figure.subplots(len(rows), across, squeeze=False)
        for cells, row in zip(panels, rows, strict=True):
            show(cells[0], row["kind"], row, pairs, about_query(row))
            cells[0].spines[:].set_visible(False)
            for cell, found in zip(cells[1:], row["found"], strict=False):
                title, colour, frame = look(found)
                show(cell, OTHER[row["kind"]], found, pairs, title, colour)
                cell.spines[:].set_visible(False)
                if frame is not None:
                    for spine in cell.spines.values():
                        spine.set(visible=True, color=colour, linestyle=frame)
            for cell in cells[1 + len(row["found"]) :]:
                cell.set_axis_off()
    return figure


def show(axes: Any, kind: str, about: Found, pairs: Pairs, title: str, colour: str = "black") -> None:
    """The picture of an image or the words of a text, a title above; the name where there is no picture."""
    import textwrap

    axes.set(xticks=[], yticks=[])
    axes.set_title(textwrap.shorten(title, 26, placeholder="…"), fontsize=6, color=colour, parse_math=False)
    picture = pairs.images.picture(about["place"]) if kind == "image" else None
    if picture is not None:
        axes.imshow(picture)
        return
    said = str(about.get("caption", about["id"]))
    words = textwrap.fill(textwrap.shorten(said, 2 * LETTERS, placeholder="…"), 18)
    axes.text(
        0.5, 0.5, words, ha="center", va="center", fontsize=6, transform=axes.transAxes, wrap=True, parse_math=False
    )
