"""An ablation over noise: what each part is worth at each rate, and under each kind of noise."""

from __future__ import annotations

from truepair.reproduce.cells import Record
from truepair.reproduce.records import figure_of
from truepair.reproduce.render.ablation import DEV, FEWEST
from truepair.reproduce.render.against import paired, signed
from truepair.reproduce.render.markdown import cell, of_seeds, percent, seeds_and_dates, table
from truepair.reproduce.tables import Filled, Section

Noise = tuple[str, float]


def by_noise(section: Section, shown: Filled) -> str:
    """A table for each data set: a row of the ablation a line, a rate and kind of noise a column.

    The first line has the dev rSum of the whole method, the others what is gained by taking a part away: differences
    in runs of the same seed, their number, and the p of a paired t-test (of three seeds or more, two-sided, without a
    correction for the number of cells, as in `ablation`).

    Options of the section: `whole`, the row of the whole method; `names`, data set → its name in the text.
    """
    parts = []
    for data, name in section.options["names"].items():
        records = [record for record in shown.records if record["cell"]["data"] == data]
        if records:
            seeds, dates = seeds_and_dates(records)
            title = f"**{name[0].upper()}{name[1:]}**, dev rSum, {of_seeds(seeds)}, {dates}:"
            parts += [title, differences(section.options["whole"], shown.table.titles, records)]
    return "\n\n".join(parts)


def differences(whole: str, titles: dict[str, str], records: list[Record]) -> str:
    found: dict[tuple[str, Noise], dict[int, float]] = {}
    for record in records:
        if (value := figure_of(record, DEV)) is not None:
            found.setdefault((record["cell"]["method"], noise_of(record)), {})[record["cell"]["seed"]] = value
    columns = sorted({noise for _, noise in found})
    rows = [name for name in titles if name != whole and any(row == name for row, _ in found)]

    def gaps(row: str, noise: Noise) -> list[float]:
        here, there = found.get((row, noise), {}), found.get((whole, noise), {})
        return [here[seed] - there[seed] for seed in sorted(here.keys() & there.keys())]

    lines = [[titles[whole], *(cell(found.get((whole, noise), {}).values(), 1) for noise in columns)]]
    lines += [[titles[row], *(tested(gaps(row, noise)) for noise in columns)] for row in rows]
    return table(["", *map(told, columns)], lines)


def tested(gaps: list[float]) -> str:
    return signed(gaps, paired(gaps) if len(gaps) >= FEWEST else None)


def noise_of(record: Record) -> Noise:
    """Kind and rate; that of single captions comes first, in the alphabet too."""
    return record["cell"].get("kind", "caption"), record["cell"]["noise"]


def told(noise: Noise) -> str:
    kind, rate = noise
    return percent(rate) if kind == "caption" else f"{percent(rate)}, `{kind}`"
