"""The table of what linear models find before training: π by one division into folds and by several, and AUROC."""

from __future__ import annotations

from collections.abc import Sequence

from truepair.methods.truepair.first_labels import DIVISIONS
from truepair.reproduce.render.markdown import cell, of_seeds, percent, seeds_and_dates, table
from truepair.reproduce.tables import Filled, Section


def held_out(section: Section, shown: Filled) -> str:
    """A line for each part of the data and noise rate, over seeds."""
    lines = []
    for part in dict.fromkeys(each.facts["part"] for each in shown.table.cells):
        for rate in sorted({each.facts["noise"] for each in shown.table.cells}):
            found = [
                record["held_out"]
                for record in shown.records
                if (record["cell"]["part"], record["cell"]["noise"]) == (part, rate)
            ]
            if not found:
                continue
            alone, together = ([each for one in found for each in one[key]] for key in ("alone", "together"))
            shares = [
                span([each[end] for each in estimates]) for estimates in (alone, together) for end in ("share", "low")
            ]
            aurocs = [cell([one["auroc"][rounds] for one in found], 3) for rounds in range(len(found[0]["auroc"]))]
            aurocs.append(cell([one["auroc_of_means"] for one in found], 3))
            taken = sum(one["taken"] for one in found)
            recall = span([one["recall"] for one in found])
            lines.append([part, percent(rate), str(len(found)), *shares, *aurocs, recall, f"{taken} of {len(found)}"])
    if not lines:
        return "No run is there yet."
    seeds, dates = seeds_and_dates(shown.records)
    aurocs = [f"AUROC, rounds: {number}" for number in range(len(lines[0]) - 10)]
    aurocs.append(f"AUROC, {DIVISIONS} divisions")
    titles = ["", "noise", "seeds", "π, one division", "begins at", "π, five", "begins at", *aurocs, "recall", "taken"]
    command = shown.records[0]["command"]
    return "\n\n".join([f"{of_seeds(seeds).capitalize()}, {dates}; one of them: `{command}`.", table(titles, lines)])


def span(values: Sequence[float]) -> str:
    """`0.73 to 0.80`, or one figure where that is all."""
    low, high = (f"{value:.2f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
