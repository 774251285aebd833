"""Figures drawn from run folders: histograms of what is known of pairs, corrected labels, embeddings in a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truepair.data.pairs import Array, IntArray, Pairs
from truepair.errors import InputError
from truepair.methods import METHODS
from truepair.pages.kit.canvas import COLUMN, DASHES, DPI, RUN_COLOURS, RUN_MARKERS, SOFT, TRUTH, legend_above, styled
from truepair.pages.run.indicators import Components, components_of
from truepair.reproduce.figures.drawn import Drawn
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder, read_lines

BINS = 40
FITTED = (0, (1, 1))
ITEMS = 600
"""Test items drawn in a plane; more hide each other."""


def histograms(runs: Mapping[str, RunFolder], *, columns: Mapping[str, str]) -> Drawn:
    """The distribution of some columns of `pairs.parquet`, of the matched and of the mismatched pairs: a row a run.

    Where the method fits a mixture to a column, its two components of the last epoch are drawn as well.

    Args:
        runs: title → run.
        columns: column → title of its axis.
    """
    rows, wrong, fitted = {}, {}, {}
    for title, run in runs.items():
        table = read_pair_table(run.path / "pairs.parquet", ["mismatched", *columns])
        rows[title] = {axis: table[name].to_numpy().astype(float) for name, axis in columns.items()}
        wrong[title] = table["mismatched"].to_numpy()
        fitted[title] = {axis: found for name, axis in columns.items() if (found := mixture_of(run, name)) is not None}
    said = {truth: f"{truth} pairs" for truth in TRUTH}
    return distributions(rows, wrong, said, "share of pairs (%)", fitted)


def mixture_of(run: RunFolder, column: str) -> Components | None:
    """The mixture that a run's method fitted in its last epoch to what a column of its table holds, if it did."""
    field = METHODS[run.read_config()["method"]["name"]].method.fields.get(column.removeprefix("memory_"))
    lines = read_lines(run.metrics)
    return components_of(lines[-1], field.mixture, "") if lines and field is not None and field.mixture else None


def distributions(
    rows: Mapping[str, Mapping[str, Array]],
    wrong: Mapping[str, Array],
    said: Mapping[str, str],
    axis: str,
    fitted: Mapping[str, Mapping[str, Components]] | None = None,
) -> Drawn:
    """A panel a value, a row a title; in each the values of what is right and of what is wrong, in the looks of pairs.

    Args:
        rows: title → name of the value → values, (N,).
        wrong: title → which of them are wrong, (N,) bool.
        said: what the legend calls the `matched` and the `mismatched`.
        axis: what is counted.
        fitted: title → name of the value → two components, each drawn as a share of its own.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    numbers: dict[str, Any] = {}
    across = len(next(iter(rows.values())))
    with styled():
        size = (COLUMN[0] * across * 0.8, COLUMN[1] * len(rows) * 0.8)
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        panels = figure.subplots(len(rows), across, squeeze=False)
        for row, (title, found) in enumerate(rows.items()):
            for column, (name, values) in enumerate(found.items()):
                axes = panels[row, column]
                edges = np.linspace(values.min(), max(values.max(), values.min() + 1e-9), BINS + 1)
                shown = numbers.setdefault(title, {})[name] = {"edges": edges.tolist()}
                for truth, of in (("matched", ~wrong[title]), ("mismatched", wrong[title])):
                    share = np.histogram(values[of], edges)[0] / max(int(of.sum()), 1)
                    axes.stairs(100 * share, edges, color=TRUTH[truth], linestyle=DASHES[truth])
                    shown[truth] = share.tolist()
                if (components := (fitted or {}).get(title, {}).get(name)) is not None:
                    shown["components"] = draw_components(axes, edges, components)
                axes.set_xlabel(name)
            panels[row, 0].set_ylabel(f"{title}\n{axis}" if len(rows) > 1 else axis)
        looks = [Line2D([], [], color=TRUTH[truth], linestyle=DASHES[truth], label=said[truth]) for truth in TRUTH]
        if any((fitted or {}).values()):
            looks.append(Line2D([], [], color=SOFT, linestyle=FITTED, linewidth=1.0, label="fitted components"))
        legend_above(figure, looks)
    return Drawn(figure, numbers)


def draw_components(axes: Any, edges: Array, components: Components) -> dict[str, Any]:
    """Both components as shares per bin, in percent of the component; their parameters, the noisy one first."""
    at = np.linspace(edges[0], edges[-1], 400)
    for density, weight in zip(components.densities(at), components.weights, strict=True):
        axes.plot(at, 100 * (edges[1] - edges[0]) * density / weight, color=SOFT, linestyle=FITTED, linewidth=1.0)
    return {
        "means": list(components.means),
        "deviations": list(components.deviations),
        "weights": list(components.weights),
    }


def corrected_labels(runs: Mapping[str, RunFolder]) -> Drawn:
    """True class × corrected class of the training pairs, each row a distribution: a panel a run.

    Raises:
        InputError: a run's table has no true labels.
    """
    from matplotlib.figure import Figure

    numbers = {}
    with styled():
        figure = Figure(figsize=(COLUMN[0] * len(runs), COLUMN[1]), dpi=DPI, layout="constrained")
        for axes, (title, run) in zip(figure.subplots(1, len(runs), squeeze=False)[0], runs.items(), strict=True):
            table = read_pair_table(run.path / "pairs.parquet", ["true_class", "label_distribution"])
            truth, held = table["true_class"].to_numpy(), np.stack(table["label_distribution"].to_numpy())
            means = np.stack([held[truth == k].mean(axis=0) for k in np.unique(truth)])
            image = axes.imshow(means, vmin=0, vmax=1, cmap="viridis", aspect="auto")
            axes.set(title=title, xlabel="corrected class", ylabel="true class")
            numbers[title] = means.round(4).tolist()
        figure.colorbar(image, ax=figure.axes, label="mean probability")
    return Drawn(figure, numbers)


def plane_of_classes(runs: Mapping[str, RunFolder], *, source: str, options: Mapping[str, Any]) -> Drawn:
    """t-SNE of images and texts of the test split, coloured by class: the features as they are, then a panel a run.

    Features of images and of texts have panels of their own, since they are of different widths; texts that are words
    have none.

    Args:
        source: the data, with `options` of `truepair.load`.

    Raises:
        InputError: the data has no classes.
    """
    from matplotlib.figure import Figure

    from truepair.audit.scoring.vectors import encode
    from truepair.data.open import load
    from truepair.pages.analysis.embedding import plane
    from truepair.training.fit import open_run

    pairs = load(source, "test", **options)
    if pairs.labels is None:
        raise InputError(f"{source} has no classes to colour items by; name the column of the labels")
    drawn = np.sort(np.random.default_rng(0).permutation(len(pairs))[: ITEMS // 2])
    classes, names, numbers = pairs.labels[drawn], [str(name) for name in pairs.class_names], {}
    panels = {
        f"{side}, features as they are": {side: plane(rows, seed=0)} for side, rows in features(pairs, drawn).items()
    }
    for title, run in runs.items():
        vectors = encode(open_run(run.path).model, pairs, device="cpu")
        sides = vectors.images[pairs.image_index[drawn]], vectors.texts[pairs.text_index[drawn]]
        images, texts = np.split(plane(np.concatenate([side.double().numpy() for side in sides]), seed=0), 2)
        panels[title] = {"images": images, "texts": texts}
    with styled():
        figure = Figure(figsize=(COLUMN[1] * len(panels), COLUMN[1] * 1.15), dpi=DPI, layout="constrained")
        for axes, (title, places) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
        ):
            numbers[title] = scatter(axes, places, classes, names)
            axes.set(title=title, xticks=[], yticks=[])
        legend_above(figure, [*figure.axes[0].collections][: len(set(classes.tolist()))])
    return Drawn(figure, numbers)


def features(pairs: Pairs, drawn: IntArray) -> dict[str, Array]:
    """The features of some pairs' images and, where there are any, of their texts, one row each."""
    found = {"images": pairs.images.features[pairs.image_index[drawn]]}
    if pairs.texts.features is not None:
        found["texts"] = pairs.texts.features[pairs.text_index[drawn]]
    return {side: np.asarray(rows, dtype=np.float64).reshape(len(rows), -1) for side, rows in found.items()}


def scatter(axes: Any, places: Mapping[str, Array], classes: Array, names: Sequence[str]) -> list[dict[str, Any]]:
    """Images filled, texts hollow; a colour and a mark a class."""
    numbers = []
    for k in np.unique(classes).tolist():
        colour, marker = RUN_COLOURS[k % len(RUN_COLOURS)], RUN_MARKERS[k // len(RUN_COLOURS) % len(RUN_MARKERS)]
        here = {side: points[classes == k] for side, points in places.items()}
        for side, points in here.items():
            look = {"color": colour} if side == "images" else {"facecolors": "none", "edgecolors": colour}
            axes.scatter(*points.T, s=6, marker=marker, linewidths=0.5, label=names[k], **look)
        numbers.append({"class": names[k], **{side: points.round(3).tolist() for side, points in here.items()}})
    return numbers


def subspaces(runs: Mapping[str, RunFolder], *, source: str) -> Drawn:
    """t-SNE of the invariant and exclusive parts of images and texts of the test split (DisNCL), of one run."""
    from truepair.pages.analysis.embedding import embed
    from truepair.pages.analysis.embedding import scatter as marks
    from truepair.pages.analysis.subject import encoded, load_analysed, open_subject
    from truepair.training.jobs import reading_of_run

    (run,) = runs.values()
    pairs = load_analysed(source, "test", reading_of_run(run.path, source))
    found = embed(encoded(open_subject(run.path), pairs), seed=0)
    points = {name: places.round(3).tolist() for name, places in found.points.items()}
    return Drawn(marks(found), {"points": points, "neighbours": found.neighbours})
