"""What an audit comes to after some decisions: one row a number of decisions."""

from __future__ import annotations

import statistics

from truepair.reproduce.render.audit import percents
from truepair.reproduce.render.markdown import cell, seeds_and_dates, table
from truepair.reproduce.tables import Filled, Section

TITLES = ("decisions", "estimate", "95 % interval", "holds the truth", "by people alone", "holds the truth")
RANKED = (("auroc", "AUROC of the others"), ("average_precision", "average precision"))


def reviews(section: Section, shown: Filled) -> str:
    """Estimates with their intervals, and how well the undecided pairs are ranked, before and with the decisions."""
    seeds, dates = seeds_and_dates(shown.records)
    first, rows = shown.records[0], []
    truth = [record["mismatch_rate"] for record in shown.records]
    for place, head in enumerate(first["reviews"]):
        found = [record["reviews"][place] for record in shown.records]
        row = [str(head["decisions"])]
        for name in ("estimate", "by_people"):
            value, low, high = ([each[name][end] for each in found] for end in range(3))
            held = sum(a <= t <= b for a, t, b in zip(low, truth, high, strict=True))
            span = " – ".join(percents([statistics.fmean(ends)]) for ends in (low, high))
            known = name == "estimate" or head["decisions"]
            shares = [percents(value), span] if name == "estimate" else [f"{percents(value)} ({span})"]
            row += [*shares, f"{held} of {len(found)}"] if known else ["–", "–"]
        for name, _ in RANKED:
            before, after = ([each[name][step] for each in found] for step in range(2))
            row.append(cell(after, 3) if not head["decisions"] else f"{cell(before, 3)} → {cell(after, 3)}")
        rows.append(row)
    said = (
        f"{first['pairs']:,} pairs, {percents(truth)} % of them mismatched, seeds {seeds} (of the noise, the audit, "
        f"the draws and the reviewer), {dates}: `{first['command']}`. Shares in percent, means ± standard deviations "
        "over seeds, with the mean ends of the intervals. Ranked are the pairs that are not decided: without → with "
        "the decisions."
    )
    picture = f"![Estimate and ranking after so many decisions]({section.options['picture']})"
    return "\n\n".join([said, table([*TITLES, *(title for _, title in RANKED)], rows), picture])
