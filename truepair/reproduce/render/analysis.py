"""The tables of `truepair analyse`: what the subspaces of DisNCL runs hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truepair.reproduce.render.markdown import table
from truepair.reproduce.tables import Filled, Section

Facts = dict[str, Any]

LEAKS: tuple[tuple[str, int, Callable[[Facts], float]], ...] = (
    ("MINE, nats", 2, lambda found: found["mine"]["mean"]),
    ("JS, nats", 3, lambda found: found["jensen_shannon"]["mean"]),
    ("JS without noise, nats", 3, lambda found: found["without_noise"]),
)
PROBED = ("V_S", "V_X", "F_V", "T_S", "T_X", "F_T")


def analyses(section: Section, shown: Filled) -> str:
    """For each analysis: leakage, retrieval by part and, of drawings, the probes."""
    parts = []
    for record in shown.records:
        facts = record["analysis"]
        other = f" The other run: `{facts['against']['name']}`." if facts["against"] else ""
        parts.append(
            f"**`{record['name']}`**: `{facts['run']['name']}`, {facts['split']} split, {facts['images']:,} images; "
            f"seed {facts['seed']}.{other}"
        )
        parts += [leakage_table(facts)] if facts["run"]["leakage"] else []
        parts.append(retrieval_table(facts))
        parts += [probe_table(facts)] if facts["run"]["probes"] else []
    return "\n\n".join(parts)


def leakage_table(facts: Facts) -> str:
    """What the parts of a side tell of each other, with the noise of the discriminators and without."""
    run, against = facts["run"]["leakage"], (facts["against"] or {}).get("leakage")
    rows = []
    for title, digits, value in LEAKS:
        for side, found in run.items():
            here, there = value(found), value(against[side]) if against else None
            other = "" if there is None else f"{there:.{digits}f}"
            left = f"{100 * here / there:.0f} %" if there else ""
            rows.append([f"I({'; '.join(found['parts'])}), {title}", f"{here:.{digits}f}", other, left])
    return table(["information between the parts", "the run", "the other", "left"], rows)


def retrieval_table(facts: Facts) -> str:
    """rSum of what is compared; chance last."""
    other = {row: f"{figures['rsum']:.1f}" for row, figures in (facts["against"] or {}).get("retrieval", {}).items()}
    rows = [[row, f"{figures['rsum']:.1f}", other.get(row, "")] for row, figures in facts["run"]["retrieval"].items()]
    chance = f"{facts['chance']['rsum']:.1f}"
    rows.append(["chance", chance, chance if facts["against"] else ""])
    return table(["rSum when compared", "the run", "the other"], rows)


def probe_table(facts: Facts) -> str:
    """(accuracy − chance)/(1 − chance) of linear probes: groups of factors × parts."""
    rows = []
    for title, run in (("the run", facts["run"]), ("the other", facts["against"])):
        if run is None or not run["probes"]:
            continue
        noisy = run["probes"].get("with_noise")
        blurs = [(f"noise of {noisy['noise']:g} of their spread", noisy)] if noisy else []
        for state, probes in (*blurs, ("as they are", run["probes"])):
            for group, gains in probes["summary"].items():
                rows.append([title, state, group, *(f"{gains[part]:.2f}" for part in PROBED)])
    return table(["run", "parts", "factors", *PROBED], rows)
