"""The grand table: all methods of pairs in one frame, from whatever records there are; what is missing is counted."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from truepair.pages.grand.page import GrandRun, grand_page
from truepair.reproduce.cells import Record
from truepair.reproduce.missing import core_hours
from truepair.reproduce.records import figure_of, kept_in_warm_up, of_older_version, seconds_of
from truepair.reproduce.render.critical import SURE, critical_difference, friedman_chance, not_told_apart
from truepair.reproduce.render.grand_local import local_engines
from truepair.reproduce.render.markdown import (
    DIVERGED,
    NONE,
    OLDER,
    cell,
    percent,
    seeds_and_dates,
    table,
    warm_up_mark,
)
from truepair.reproduce.render.ranks import LEAST_SHARED, chance_of, holm, mean_ranks
from truepair.reproduce.render.values import RECALLS as WITH_SUM
from truepair.reproduce.render.values import stopped
from truepair.reproduce.revisions import outdated
from truepair.reproduce.tables import Filled, Section

RECALLS = WITH_SUM[:-1]
RSUM, AUROC = "result.test.rsum", "result.detection.auroc"
COSTS = "**What a run costs**, median minutes of training on one CPU thread; by the clock in runs before 2026-11-27"
OPENBLAS = (
    "; runs with OpenBLAS in the place of PyTorch's own linear algebra ([how much faster](speed.md)) in columns of "
    "their own"
)
KINDS = {"caption": "captions", "nearest": "hard", "image": "images"}
REFERENCE, UNTOLD = "oracle", "infonce"
"""A row that is told the truth: shown, not ranked; and what it is where no pair is mismatched."""

Condition = tuple[str, str, float]
"""Source, kind of noise, rate."""
Run = tuple[Condition, int]
"""A condition and a seed."""


def page_of(shown: Filled) -> str:
    """The page of the same runs, to sort, filter and inspect."""
    titles = shown.table.titles
    found = rank([record for record in shown.records if engine_of(record) == "global"])
    return grand_page(
        [run_of(titles, record) for record in shown.records],
        total=len(shown.table.cells),
        diverged=[seconds_of(record) / 60 for record in shown.diverged],
        ranks={titles[name]: value for name, value in found.ranks.items()} if found else {},
        distance=found.distance if found else 0.0,
        blocks=len(found.blocks) if found else 0,
    )


def run_of(titles: Mapping[str, str], record: Record) -> GrandRun:
    """A record as the page shows it."""
    facts, test = record["cell"], record["result"]["test"]
    kind = KINDS[facts.get("kind", "caption")]
    return GrandRun(
        name=record["name"],
        method=titles[facts["method"]],
        data=facts["data"],
        engine=engine_of(record),
        noise=percent(facts["noise"]) + ("" if kind == "captions" else f" {kind}"),
        seed=facts["seed"],
        rsum=round(test["rsum"], 2),
        dev=round(record["result"]["dev"]["rsum"], 2),
        auroc=figure_of(record, AUROC),
        minutes=round(seconds_of(record) / 60, 2),
        epochs=record.get("epochs_trained"),
        date=record["date"],
        version=record["truepair"] + (" (earlier revision)" if outdated([record]) else ""),
        command=record["command"],
        recalls=tuple(round(test[name], 2) for name in RECALLS),
        curve=tuple(
            round(line["dev_rsum"], 1) for line in record.get("epochs", ()) if line.get("dev_rsum") is not None
        ),
        best=record["result"].get("best_epoch"),
        warm_up=kept_in_warm_up(record),
        linear_algebra="OpenBLAS" if with_openblas(record) else "PyTorch's",
    )


@dataclass(frozen=True)
class Gap:
    """How far a method is from the best, in the runs (of a condition and seed) that both have.

    Attributes:
        mean: of the differences, in points of test rSum.
        runs: how many both have.
        chance: p of Wilcoxon's test of the differences, with Holm's correction.
    """

    mean: float
    runs: int
    chance: float


@dataclass(frozen=True)
class Ranking:
    """Methods over the blocks that all of them have, the best first.

    Attributes:
        ranks: method → mean rank.
        blocks: conditions that count; in each, a method has the mean over its own seeds.
        chance: p of Friedman's test; None for fewer than three methods or two blocks.
        distance: Nemenyi's critical difference.
        groups: methods that it does not tell apart.
        gaps: method → its distance from the best, of all but that one, ranked or not.
        unranked: methods with too few runs.
    """

    ranks: dict[str, float]
    blocks: list[Condition]
    chance: float | None
    distance: float
    groups: list[tuple[str, ...]]
    gaps: dict[str, Gap]
    unranked: list[str]


def grand(section: Section, shown: Filled) -> str:
    """All parts of the page between the markers."""
    titles = shown.table.titles
    of_global = [record for record in shown.records if engine_of(record) == "global"]
    older = {record["name"] for record in (*of_older_version(shown.records), *outdated(shown.records))}
    parts = [coverage(shown), *stopped(shown.diverged)]
    for source in dict.fromkeys(run.facts["data"] for run in shown.table.cells):
        here = [record for record in of_global if record["cell"]["data"] == source]
        for figure, digits, what in (
            (RSUM, 1, "test rSum"),
            (AUROC, 3, "AUROC of the mismatched pairs, at the end of training"),
        ):
            if here:
                stops = {(run["cell"]["method"], condition_of(run)) for run in shown.diverged}
                parts += [f"**`{source}`, {what}:**", figures_table(titles, here, figure, digits, older, stops)]
    if (ranking := rank(of_global)) is not None:
        parts += ranking_text(titles, ranking)
    of_both = OPENBLAS if any(map(with_openblas, of_global)) else ""
    parts += [f"{COSTS}{of_both}, and hours of all runs there are, those of SGR and SAF included:"]
    parts += [costs(titles, of_global, [*shown.records, *shown.diverged])]
    return "\n\n".join([*parts, *local_engines(titles, shown.records)])


def coverage(shown: Filled) -> str:
    """How many runs are there, of how many; by source and engine. One that diverged is there, and has no figures."""
    there = names_of(shown)
    groups: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for run in shown.table.cells:
        groups[run.facts["data"], run.facts.get("engine", "global")].append(run.name in there)
    hours = sum(seconds_of(record) for record in (*shown.records, *shown.diverged)) / 3600
    missing = [run for run in shown.table.cells if run.name not in there]
    total = len(shown.table.cells)
    seeds, dates = seeds_and_dates(shown.records)
    stops = f", of which {len(shown.diverged)} diverged" if shown.diverged else ""
    head = (
        f"{len(there)} of {total} runs are there{stops}, {len(missing)} are missing (–). Seeds {seeds}, {dates}, "
        f"{hours:.1f} core-hours of training; the missing ones take about "
        f"{core_hours(missing, shown.records):.0f} more."
    )
    rows = [
        [f"`{data}`, {engine}", str(sum(found)), str(len(found) - sum(found))]
        for (data, engine), found in groups.items()
    ]
    return head + "\n\n" + table(["", "runs there", "missing"], rows)


def names_of(shown: Filled) -> set[str]:
    """The runs that are there."""
    return {str(record["name"]) for record in (*shown.records, *shown.diverged)}


def engine_of(record: Record) -> str:
    return str(record["cell"].get("engine", "global"))


def condition_of(record: Record) -> Condition:
    facts = record["cell"]
    return facts["data"], facts.get("kind", "caption"), facts["noise"]


def figures_table(
    titles: Mapping[str, str],
    records: Sequence[Record],
    figure: str,
    digits: int,
    older: Set[str] = frozenset(),
    stops: Set[tuple[str, Condition]] = frozenset(),
) -> str:
    """Methods × conditions of one source: mean ± standard deviation over seeds, their number where it is not three.

    Args:
        older: names of runs of another version or an earlier revision, whose figures are marked.
        stops: methods and conditions of runs that diverged, which is said where no other run has a figure.
    """
    groups: dict[tuple[str, Condition], list[Record]] = defaultdict(list)
    for record in records:
        if figure_of(record, figure) is not None:
            method, at = record["cell"]["method"], condition_of(record)
            groups[method, at].append(record)
            if method == UNTOLD and at[2] == 0:
                groups[REFERENCE, at].append(record)
    conditions = sorted({at for _, at in groups}, key=lambda at: (list(KINDS).index(at[1]), at[2]))
    heads = [percent(rate) if kind == "caption" else f"{percent(rate)} {KINDS[kind]}" for _, kind, rate in conditions]
    rows = []
    for name, title in titles.items():
        cells = []
        for at in conditions:
            found = groups.get((name, at), [])
            few = f" ({len(found)})" if len(found) in (1, 2) else ""
            marks = OLDER if any(record["name"] in older for record in found) else ""
            marks += warm_up_mark(found) if figure == RSUM else ""
            text = cell((figure_of(record, figure) for record in found), digits) + few + marks
            cells.append(DIVERGED if text == NONE and (name, at) in stops else text)
        rows.append([title, *cells])
    return table(["", *heads], rows)


def rank(records: Sequence[Record]) -> Ranking | None:
    """The ranking of the methods by test rSum; None where no two share a block."""
    found: dict[str, dict[Run, float]] = defaultdict(dict)
    for record in records:
        value = figure_of(record, RSUM)
        if record["cell"]["method"] != REFERENCE and value is not None:
            found[record["cell"]["method"]][condition_of(record), record["cell"]["seed"]] = value
    conditions = {name: {at for at, _ in runs} for name, runs in found.items()}
    most = max(map(len, conditions.values()), default=0)
    names = [name for name in found if len(conditions[name]) >= LEAST_SHARED * most]
    blocks = sorted(set.intersection(*(conditions[name] for name in names))) if names else []
    if len(names) < 2 or not blocks:
        return None
    means = {
        name: [statistics.fmean(value for (at, _), value in found[name].items() if at == block) for block in blocks]
        for name in names
    }
    ranks = mean_ranks(means)
    ranks = {name: ranks[name] for name in sorted(ranks, key=lambda name: ranks[name])}
    best = next(iter(ranks))
    gaps = {
        name: [found[name][run] - found[best][run] for run in sorted(found[name].keys() & found[best].keys())]
        for name in [*ranks, *(set(found) - set(ranks))]
        if name != best
    }
    gaps = {name: gap for name, gap in gaps.items() if gap}
    chances = holm({name: chance_of(gap) for name, gap in gaps.items()})
    distance = critical_difference(len(ranks), len(blocks))
    return Ranking(
        ranks=ranks,
        blocks=blocks,
        chance=friedman_chance(means) if len(names) > 2 and len(blocks) > 1 else None,
        distance=distance,
        groups=not_told_apart(ranks, distance),
        gaps={name: Gap(statistics.fmean(gap), len(gap), chances[name]) for name, gap in gaps.items()},
        unranked=sorted(set(found) - set(names)),
    )


def ranking_text(titles: Mapping[str, str], found: Ranking) -> list[str]:
    """A row a method, and what the tests say."""
    best = next(iter(found.ranks))
    rows = [[titles[best], f"{found.ranks[best]:.2f}", "", "", ""]]
    ranked = [(name, f"{rank:.2f}") for name, rank in found.ranks.items() if name != best]
    by_gap = sorted(found.unranked, key=lambda name: -found.gaps[name].mean if name in found.gaps else 0.0)
    ranked += [(name, "–") for name in by_gap]
    rows += [[titles[name], rank, *told(found.gaps.get(name))] for name, rank in ranked]
    where = ", ".join(
        f"`{data}` {percent(rate)}{'' if kind == 'caption' else ' ' + KINDS[kind]}" for data, kind, rate in found.blocks
    )
    friedman = "" if found.chance is None else f"Friedman's test: p = {found.chance:.2g}. "
    groups = "; ".join(" – ".join(titles[name] for name in group) for group in found.groups)
    apart = f"It does not tell apart: {groups}." if groups else "It tells all of them apart."
    left = ", ".join(titles[name] for name in found.unranked)
    return [
        f"**Mean ranks by test rSum** over the {len(found.blocks)} conditions that all of these have ({where}); a "
        f"method's figure is its mean over seeds. *Difference* is from {titles[best]}, the mean over all runs of one "
        "condition and seed that both have, also of other conditions; *p* is that of Wilcoxon's signed-rank test of "
        "these, two-sided, with Holm's correction; it takes the runs for independent, though seeds of one condition "
        "are alike.",
        table(["", "mean rank", "difference", "runs", "p"], rows),
        f"{friedman}Critical difference of mean ranks (Nemenyi, 5 %): {found.distance:.2f}. {apart}"
        + (f" Not ranked, with too few runs: {left}." if left else ""),
    ]


def told(gap: Gap | None) -> list[str]:
    """Difference, number of runs and p."""
    if gap is None:
        return ["–", "0", "–"]
    said = f"{gap.chance:.3f}" if gap.chance >= 0.001 else "< 0.001"
    return [f"{gap.mean:+.1f}", str(gap.runs), said + ("" if gap.chance < SURE else ", not told apart")]


def costs(titles: Mapping[str, str], records: Sequence[Record], every: Sequence[Record]) -> str:
    """Methods × sources, median minutes of a run: those with OpenBLAS apart; and hours of every run."""
    hours: dict[str, float] = defaultdict(float)
    for record in every:
        hours[record["cell"]["method"]] += seconds_of(record) / 3600
    minutes: dict[tuple[bool, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        cell = record["cell"]
        minutes[with_openblas(record), cell["data"]][cell["method"]].append(seconds_of(record) / 60)
    columns = sorted(minutes, key=lambda column: column[0])  # in the order in which sources come
    rows = [
        [
            title,
            *(f"{statistics.median(found):.1f}" if (found := minutes[at].get(name)) else "–" for at in columns),
            f"{hours[name]:.1f}",
        ]
        for name, title in titles.items()
    ]
    sources = [f"`{source}`" + ", OpenBLAS" * apart for apart, source in columns]
    return table(["", *sources, "hours"], rows)


def with_openblas(record: Record) -> bool:
    """Whether it took the place of PyTorch's own linear algebra (LD_PRELOAD), as far as the record says."""
    return any("openblas" in library for library in record.get("preloaded", ()))
