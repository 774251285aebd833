"""Turn the `analysis.json` files of `truepair analyse` into the tables of `docs/results.md`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from truepair.errors import InputError

Facts = dict[str, Any]

LEAKS: tuple[tuple[str, int, Callable[[Facts], float]], ...] = (
    ("MINE, nats", 2, lambda found: found["mine"]["mean"]),
    ("JS, nats", 3, lambda found: found["jensen_shannon"]["mean"]),
    ("JS without noise, nats", 3, lambda found: found["without_noise"]),
)
PROBED = ("V_S", "V_X", "F_V", "T_S", "T_X", "F_T")


def read_analyses(folder: Path) -> dict[str, Facts]:
    """Name of the file → the facts, all of a folder.

    Raises:
        InputError: there are none.
    """
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise InputError(f"{folder} holds no analyses; copy the analysis.json of truepair analyse there")
    return found


def analysis_report(analyses: dict[str, Facts]) -> str:
    """For each analysis: leakage, retrieval by part and, of drawings, the probes."""
    parts = []
    for name, facts in analyses.items():
        other = f" The other run: `{facts['against']['name']}`." if facts["against"] else ""
        parts.append(
            f"**`{name}`**: `{facts['run']['name']}`, {facts['split']} split, {facts['images']:,} images; seed "
            f"{facts['seed']}.{other}"
        )
        if facts["run"]["leakage"]:
            parts.append(leakage_table(facts))
        parts.append(retrieval_table(facts))
        if facts["run"]["probes"]:
            parts.append(probe_table(facts))
    return "\n\n".join(parts)


def leakage_table(facts: Facts) -> str:
    """What the parts of a side tell of each other, with the noise of the discriminators and without."""
    run, against = facts["run"]["leakage"], (facts["against"] or {}).get("leakage")
    lines = ["| information between the parts | the run | the other | left |", "|---|---|---|---|"]
    for title, digits, value in LEAKS:
        for side, found in run.items():
            here, there = value(found), value(against[side]) if against else None
            other = "" if there is None else f"{there:.{digits}f}"
            left = f"{100 * here / there:.0f} %" if there else ""
            lines.append(f"| I({'; '.join(found['parts'])}), {title} | {here:.{digits}f} | {other} | {left} |")
    return "\n".join(lines)


def retrieval_table(facts: Facts) -> str:
    """rSum of what is compared; chance last."""
    lines = ["| rSum when compared | the run | the other |", "|---|---|---|"]
    for row, figures in facts["run"]["retrieval"].items():
        other = f"{facts['against']['retrieval'][row]['rsum']:.1f}" if facts["against"] else ""
        lines.append(f"| {row} | {figures['rsum']:.1f} | {other} |")
    chance = f"{facts['chance']['rsum']:.1f}"
    return "\n".join([*lines, f"| chance | {chance} | {chance if facts['against'] else ''} |"])


def probe_table(facts: Facts) -> str:
    """(accuracy − chance)/(1 − chance) of linear probes: groups of factors × parts."""
    lines = [f"| run | parts | factors | {' | '.join(PROBED)} |", f"|---|---|---|{'---|' * len(PROBED)}"]
    for title, run in (("the run", facts["run"]), ("the other", facts["against"])):
        if run is None or not run["probes"]:
            continue
        noisy = run["probes"].get("with_noise")
        blurs = [(f"noise of {noisy['noise']:g} of their spread", noisy)] if noisy else []
        for state, probes in (*blurs, ("as they are", run["probes"])):
            for group, gains in probes["summary"].items():
                values = " | ".join(f"{gains[part]:.2f}" for part in PROBED)
                lines.append(f"| {title} | {state} | {group} | {values} |")
    return "\n".join(lines)
