"""Figures of retrieval as tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from truepair.phrases import aligned, counted

if TYPE_CHECKING:
    from truepair.evaluation.class_retrieval import ClassFigures
    from truepair.evaluation.two_stage import TwoStage


def two_stage_report(found: TwoStage) -> str:
    """The figures of each way, and what the two stages cost."""
    rows = {"proposer alone": found.proposer, f"top {found.top} ranked": found.figures}
    cost = (
        f"{found.cells:,} cells computed, {100 * found.share:.2g} % of all, in {found.seconds:.1f} s with both stages"
    )
    if found.full is not None and found.difference is not None:
        rows |= {"every cell": found.full, "difference": found.difference}
        cost += f"; every cell in {found.full_seconds:.1f} s"
    reached = (
        f"A right text is among the first {found.top} of {found.proposed['i2t']:.1f} % of the images, the right image "
        f"of {found.proposed['t2i']:.1f} % of the texts."
    )
    return "\n".join([recall_table(rows), reached, cost + "."])


def recall_table(rows: dict[str, dict[str, float]]) -> str:
    """Recall both ways, one row a split or way, aligned."""
    columns = [f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]
    columns += ["rsum", "i2t_median_rank", "t2i_median_rank"]
    titles = ["i→t R@1", "R@5", "R@10", "t→i R@1", "R@5", "R@10", "rSum", "i→t median", "t→i median"]
    widths = [max(len(title), 5) for title in titles]
    names = max(6, *(len(name) for name in rows))
    lines = ["  ".join([" " * names, *(f"{title:>{width}}" for title, width in zip(titles, widths, strict=True))])]
    for name, figures in rows.items():
        cells = [f"{figures[column]:{width}.1f}" for column, width in zip(columns, widths, strict=True)]
        lines.append("  ".join([f"{name:{names}}", *cells]))
    return "\n".join(lines)


def gallery_line(galleries: Mapping[str, Mapping[str, int]], folds: int | None = None) -> str:
    """What the queries of each split were ranked among: the larger, the lower is recall at k."""
    within = "" if folds is None else f", in {counted(folds, 'fold')}"
    said = [
        f"{counted(found['images'], 'image')} and {counted(found['texts'], 'text')} ({split}{within})"
        for split, found in galleries.items()
    ]
    return f"Ranked: {', '.join(said)}"


def bound_sentence(split: str, found: dict[str, Any]) -> str:
    """Why recall of a split cannot come near to 100 %, by what `truepair.evaluation.recall_bound` found there."""
    causes = []
    if found["shared_captions"]:
        most = counted(found["most_frequent"], "image")
        causes.append(
            f"{found['shared_captions']:,} of {found['captions']:,} captions stand on several images, one on {most}"
        )
    if found["equal_images"]:
        causes.append(f"{found['equal_images']:,} of {found['images']:,} images are equal to another one")
    return (
        f"{split}: {', and '.join(causes)}. No model can tell these apart, and ties count against it: rSum is at most "
        f"{found['rsum']:.1f} here (R@1 {found['i2t_r1']:.1f} and {found['t2i_r1']:.1f})."
    )


def map_table(rows: dict[str, dict[str, float]]) -> str:
    """mAP both ways and their mean, over all items and among the first k; one row a split."""
    names = list(next(iter(rows.values())))
    titles = [map_title(name) for name in names]
    body = [[row, *(f"{figures[name]:.3f}" for name in names)] for row, figures in rows.items()]
    return aligned([["", *titles], *body])


def map_title(name: str) -> str:
    """`map_i2t_at_50` → `mAP@50 i→t`."""
    way = next((arrow for part, arrow in (("_i2t", "i→t"), ("_t2i", "t→i")) if part in name), "mean")
    return f"mAP{'@' + name.split('_at_')[1] if '_at_' in name else ''} {way}"


def class_table(rows: list[ClassFigures]) -> str:
    """One row a class: its name, its queries and their mAP each way."""
    table = [["class", "images", "mAP i→t", "texts", "mAP t→i"]]
    table += [
        [row.name, f"{row.images:,}", f"{row.map_i2t:.3f}", f"{row.texts:,}", f"{row.map_t2i:.3f}"] for row in rows
    ]
    return aligned(table)
