"""Tables of runs: rows × noise rates of one figure, what is kept of the oracle, recalls, divisions by epoch."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from truepair.phrases import counted, listed
from truepair.reproduce.cells import Record
from truepair.reproduce.records import figure_of, seconds_of
from truepair.reproduce.render.markdown import (
    DIVERGED,
    NONE,
    cell,
    of_seeds,
    percent,
    seeds_and_dates,
    table,
    warm_up_mark,
)
from truepair.reproduce.render.ranks import rank_table
from truepair.reproduce.tables import Filled, Section

Place = tuple[str, float]
"""Row and nominal noise rate."""
Groups = Mapping[Place, list[Record]]
RECALLS = ("i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10", "rsum")

OF_KEPT = ("result.test", "result.dev")
"""Figures of the epoch that dev chose; the others are of the end of training."""


def values(section: Section, shown: Filled) -> str:
    """The parts of a section, once for each value of `section.per`."""
    parts = [*parts_of(section.head, shown)]
    for value in dict.fromkeys(run.facts.get(section.per) for run in shown.table.cells):
        here, diverged = (
            [record for record in records if record["cell"].get(section.per) == value]
            for records in (shown.records, shown.diverged)
        )
        names = {section.per: section.options.get("names", {}).get(value, value)}
        parts += parts_of(section.parts, Filled(shown.table, here, diverged), names) if here else []
    return "\n\n".join(parts)


def parts_of(parts: list[dict[str, Any]], shown: Filled, names: Mapping[str, str] | None = None) -> Iterator[str]:
    """Titles and tables. A part has `origin`, `kept`, `recalls`, `ranks` or `figure` (of all rows, or of `rows`).

    One without any is left out.
    """
    titles, records = shown.table.titles, shown.records
    groups = groups_of(records)
    rates = sorted({rate for _, rate in groups})
    for part in parts:
        title = [part["title"].format(**names or {})] if "title" in part and "recalls" not in part else []
        if "origin" in part:
            yield origin(records, part["origin"], part.get("remark", ""))
            yield from stopped(shown.diverged)
        elif "recalls" in part:
            for rate in rates:
                yield part["title"].format(rate=percent(rate))
                yield recall_table(titles, groups, rate)
        elif "ranks" in part:
            rows = {name: titles[name] for name in part["ranks"]}
            if found := rank_table(rows, records, part["figure"], part["digits"]):
                yield from title
                yield found
        elif "kept" in part:
            yield from title
            yield kept_table({name: titles[name] for name in part["kept"]}, groups)
        elif any(figure_of(record, part["figure"]) is not None for record in records):
            yield from title
            rows = {name: titles[name] for name in part.get("rows", titles)}
            stops = places_of(shown.diverged)
            yield value_table(rows, groups, part["figure"], part["digits"], part.get("given"), stops=stops)


def groups_of(records: list[Record]) -> Groups:
    """Records by row and nominal noise rate, over seeds. Without noise the oracle is InfoNCE."""
    groups: dict[tuple[str, float], list[Record]] = defaultdict(list)
    for record in records:
        groups[record["cell"]["method"], record["cell"]["noise"]].append(record)
    if ("infonce", 0.0) in groups:
        groups["oracle", 0.0] = groups["infonce", 0.0]
    return dict(groups)


def places_of(records: Sequence[Record]) -> set[Place]:
    return {(record["cell"]["method"], record["cell"]["noise"]) for record in records}


def value_table(
    titles: Mapping[str, str],
    groups: Groups,
    figure: str,
    digits: int,
    given: str | None = None,
    best: str = "",
    stops: Set[Place] = frozenset(),
) -> str:
    """Rows × rates of one figure, mean ± standard deviation over seeds.

    Args:
        given: a figure of the data, read from all records of a rate, as the first row.
        best: `max` or `min`, to make the best mean of a column bold, as it stands there.
        stops: where runs diverged, which is said where no other run has a figure.
    """
    rates = sorted({rate for _, rate in groups})
    columns = []
    for rate in rates:
        column = {
            name: cell((figure_of(run, figure) for run in groups.get((name, rate), [])), digits) for name in titles
        }
        if best:
            means = {name: float(text.split()[0]) for name, text in column.items() if text != NONE}
            first = (max if best == "max" else min)(means.values())
            column |= {name: f"**{column[name]}**" for name, mean in means.items() if mean == first}
        if figure.startswith(OF_KEPT):
            column = {name: text + warm_up_mark(groups.get((name, rate), [])) for name, text in column.items()}
        column |= {name: DIVERGED for name, text in column.items() if text == NONE and (name, rate) in stops}
        if given:
            runs = (run for (_, at), found in groups.items() if at == rate for run in found)
            column["given"] = cell((figure_of(run, given) for run in runs), digits)
        columns.append(column)
    shown = {**({"given": "as given"} if given else {}), **titles}
    rows = [[title, *(column[name] for column in columns)] for name, title in shown.items()]
    return table(["", *map(percent, rates)], rows)


def kept_table(titles: Mapping[str, str], groups: Groups) -> str:
    """Mean rSum in percent of the oracle's at the same rate, and of that of InfoNCE trained without noise."""
    rates = sorted({rate for _, rate in groups if rate > 0})
    means = {
        place: statistics.fmean(record["result"]["test"]["rsum"] for record in records)
        for place, records in groups.items()
    }

    def share(place: tuple[str, float], of: tuple[str, float]) -> str:
        return f"{100 * means[place] / means[of]:.1f} %" if place in means and of in means else "–"

    rows = []
    for name, title in titles.items():
        oracle = (share((name, rate), ("oracle", rate)) for rate in rates)
        rows.append([f"{title}: share of the oracle at the same noise", *oracle])
        clean = (share((name, rate), ("infonce", 0.0)) for rate in rates)
        rows.append([f"{title}: share of InfoNCE without noise", *clean])
    return table(["", *map(percent, rates)], rows)


def recall_table(titles: Mapping[str, str], groups: Groups, rate: float) -> str:
    """The six recalls of every method at one noise rate."""
    rows = [
        [
            title + warm_up_mark(groups[name, rate]),
            *(cell((record["result"]["test"][key] for record in groups[name, rate]), 1) for key in RECALLS),
        ]
        for name, title in titles.items()
        if (name, rate) in groups
    ]
    return table(["", "i→t R@1", "R@5", "R@10", "t→i R@1", "R@5", "R@10", "rSum"], rows)


def origin(records: list[Record], example: str, remark: str) -> str:
    """Data, seeds, dates and cost of the records, and the command of the first of a row. `remark` follows the seeds."""
    seeds, dates = seeds_and_dates(records)
    hours = sum(seconds_of(record) for record in records) / 3600
    shown = next((record for record in records if record["cell"]["method"] == example), records[0])
    return (
        f"{counted(len(records), 'run')} on `{shown['cell']['data']}`, {of_seeds(seeds)}{remark}, {dates}, {hours:.1f} "
        f"hours of training in all, on one CPU thread a run. One of them: `{runnable(shown['command'])}`."
    )


def runnable(command: str) -> str:
    """What to type: `truepair train` wants a folder for the run as well."""
    return f"{command} --out RUN" if command.startswith("truepair train ") else command


def stopped(diverged: Sequence[Record]) -> list[str]:
    """What is said of runs that diverged: a sentence a method and source, in the words of the first of them."""
    alike: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in diverged:
        alike[record["cell"]["method"], record["cell"]["data"]].append(record)
    sentences = []
    for found in alike.values():
        names = listed([f"`{record['name']}`" for record in found])
        are = "it is" if len(found) == 1 else "they are"
        said = str(found[0]["diverged"]["said"]).rstrip(".")
        sentences.append(f"{names} diverged, so {are} not in the tables: {said}.")
    return sentences


def divisions(section: Section, *filled: Filled) -> str:
    """Epoch by epoch, how runs divided the pairs."""
    parts = []
    titles = ("epoch", "clean", "matched", "hard", "matched", "noisy", "matched", "accuracy", "AUROC", "dev rSum")
    wanted = {key: section.options[key] for key in ("noise", "seed")}
    for engine, method, title in section.options["shown"]:
        for record in (record for shown in filled for record in shown.records):
            facts = {"engine": "global", **record["cell"]}
            if {"engine": engine, "method": method, **wanted}.items() <= facts.items():
                told = f"{percent(wanted['noise'])} noise, seed {wanted['seed']}"
                parts.append(f"**{title}, {told}:** parts in pairs, and how many percent of each are truly matched")
                parts.append(table(titles, map(division, record["epochs"])))
    return "\n\n".join(parts)


def division(line: Record) -> list[str]:
    cells = [str(line["epoch"])]
    for part in ("clean", "hard", "noisy"):
        share = line.get(f"{part}_matched")
        cells += [str(line[part]), "–" if share is None else percent(share)]
    return [*cells, f"{line['division_accuracy']:.3f}", f"{line['auroc']:.3f}", f"{line['dev_rsum']:.1f}"]
