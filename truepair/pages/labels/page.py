"""From an inspection to one HTML page that needs nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from truepair.pages.kit.canvas import png_of
from truepair.pages.kit.page import data_source, render
from truepair.pages.kit.pictures import Album, Picture, pixels_of, png_source
from truepair.pages.labels import figures
from truepair.pages.labels.inspection import HITS, QUERIES, Inspection
from truepair.pages.labels.table import suspect_facts
from truepair.phrases import wrong_share_sentence

MOST_MOVES = 15


def render_page(found: Inspection, *, top: int) -> str:
    """The page of an inspection with a model to look at, light or dark as the reader's system is."""
    trained = found.trained
    assert trained is not None
    table, album = found.table, Album(trained.pairs)
    vertical = f"{found.against} label"
    images = trained.pairs.images
    return render(
        "labels/page.html",
        found=found,
        record=found.record,
        wrong_share=wrong_share_sentence(**found.wrong) if found.wrong else None,
        classes=table.classes,
        size=len(table),
        changed=int((table.given != table.corrected).sum()),
        suspects=suspects_of(found, top),
        heat=data_source(png_of(figures.matrix(found.heat, table.classes, vertical=vertical, counts=False))),
        confusion=data_source(png_of(figures.matrix(found.counts, table.classes, vertical=vertical, counts=True))),
        moves=moves_of(found),
        planes=None
        if trained.planes is None
        else data_source(png_of(figures.features_in_the_plane(trained.planes, trained.pairs.class_names))),
        placed=0 if trained.planes is None else len(trained.planes.image_labels),
        words=trained.pairs.texts.features is None,
        curves=data_source(png_of(figures.precision_recall_curves(trained.scores.precision_recall()))),
        levels=list(zip(*(values[::10] for values in vars(trained.scores.precision_recall()).values()), strict=True)),
        figures=trained.scores.figures(),
        by_class=trained.scores.by_class(),
        queries=QUERIES,
        hits=HITS,
        answers=trained.answers,
        names=trained.pairs.class_names,
        picture_of=album.picture,
        caption_of=trained.pairs.texts.captions.__getitem__,
        pictures=images.have_pixels,
    )


def suspects_of(found: Inspection, top: int) -> list[dict[str, Any]]:
    """The most suspicious labels, with their pictures."""
    table, suspects = found.table, []
    for rank, row in enumerate(table.order[:top].tolist(), start=1):
        pixels = pixels_of(found.images, int(table.image_index[row]), table.image[row])
        picture = Picture(table.image[row], None if pixels is None else png_source(pixels), table.caption[row])
        suspects.append({"rank": rank, "picture": picture, **suspect_facts(table, row)})
    return suspects


def moves_of(found: Inspection) -> list[tuple[str, str, int]]:
    """The commonest cells beside the diagonal: label, corrected label, pairs."""
    counts = found.counts.copy()
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:MOST_MOVES]
    cells = [divmod(int(cell), len(counts)) for cell in order]
    names = found.table.classes
    return [(names[row], names[column], int(counts[row, column])) for row, column in cells if counts[row, column]]
