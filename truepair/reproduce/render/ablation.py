"""An ablation: rows of one noise rate beside the whole method, and parts added alone beside none of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from truepair.reproduce.cells import Record
from truepair.reproduce.records import figure_of
from truepair.reproduce.render.against import paired
from truepair.reproduce.render.markdown import cell, of_seeds, seeds_and_dates, table
from truepair.reproduce.tables import Filled, Section

FEWEST = 3  # seeds for a test
DEV, AUROC, PRECISION = "result.dev.rsum", "result.detection.auroc", "result.detection.average_precision"


def ablation(section: Section, shown: Filled) -> str:
    """A table for each data set and noise rate: dev rSum, its difference from a row of the same seeds with the p of a
    paired t-test (of three seeds or more), detection, and the options of the method that make the row.

    Options of the section: `whole`, the row of the whole method; `names`, data set → its name in the text; where parts
    are added alone, `none`, the row without any, and `added`, how the names of rows begin that are compared with it.
    """
    parts = []
    for data, name in section.options["names"].items():
        of_data = [record for record in shown.records if record["cell"]["data"] == data]
        for rate in sorted({record["cell"]["noise"] for record in of_data}):
            records = [record for record in of_data if record["cell"]["noise"] == rate]
            parts += [f"**{name[0].upper()}{name[1:]}**, {told(records)}:", rows_of(section, shown, records)]
    return "\n\n".join(parts)


def told(records: Sequence[Record]) -> str:
    seeds, dates = seeds_and_dates(records)
    words = next(words for record in records if "--train-pairs" in (words := record["command"].split()))
    pairs = words[words.index("--train-pairs") + 1]
    return f"{records[0]['cell']['noise']:.0%} noise, `--train-pairs {pairs}`, {of_seeds(seeds)}, {dates}".replace(
        "%", " %"
    )


def rows_of(section: Section, shown: Filled, records: Sequence[Record]) -> str:
    whole, none, added = (section.options.get(key, "") for key in ("whole", "none", "added"))
    found = {
        name: {r["cell"]["seed"]: r for r in records if r["cell"]["method"] == name} for name in shown.table.titles
    }

    def differences(name: str, other: str) -> list[float]:
        """From the other row, seed by seed."""
        both = sorted(found[name].keys() & found[other].keys())
        pairs = ((figure_of(found[name][seed], DEV), figure_of(found[other][seed], DEV)) for seed in both)
        return [here - there for here, there in pairs if here is not None and there is not None]

    lines = []
    for name, title in shown.table.titles.items():
        if runs := found[name].values():
            base = none if added and name.startswith(added) else whole
            gaps = [] if name == base else differences(name, base)
            gap = "" if name == base else signed(cell(gaps, 1))
            chance = f"{paired(gaps):.3f}" if len(gaps) >= FEWEST else ""
            figures = (
                cell((figure_of(run, figure) for run in runs), n)
                for figure, n in ((DEV, 1), (AUROC, 4), (PRECISION, 4))
            )
            first, *rest = figures
            options = options_of_method(next(iter(runs))["command"])
            shown_options = f"`{options}`" if options else ""
            lines.append([title, str(len(runs)), first, gap, chance, *rest, shown_options])
    return table(["", "seeds", "dev rSum", "difference", "p", "AUROC", "average precision", "options"], lines)


def options_of_method(command: str) -> str:
    """Those options of a training command that are of its method (`--crcl-labels given`), and `--oracle`."""
    method = re.search(r"--method (\S+)", command)
    if not method:
        return ""
    own = rf"--oracle|--(?:no-)?{re.escape(method[1])}-\S+(?: (?!--)\S+)?"
    return " ".join(re.findall(own, command))


def signed(gap: str) -> str:
    """`+1.0 ± 0.5` for a difference above 0."""
    return f"+{gap}" if gap and gap[0].isdigit() else gap
