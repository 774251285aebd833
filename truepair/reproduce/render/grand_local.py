"""SGR, SAF and both together, of the grand table: another experiment than that of the global engine, shown apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truepair.reproduce.cells import Record
from truepair.reproduce.records import figure_of
from truepair.reproduce.render.markdown import OLDER, cell, percent, table
from truepair.reproduce.revisions import outdated

RSUM = "result.test.rsum"
ENGINES = {"sgr": "SGR", "saf": "SAF", "sgraf": "both (SGRAF)"}


def local_engines(titles: Mapping[str, str], records: Sequence[Record]) -> list[str]:
    """Heading and table; nothing where there are no such runs."""
    here = [record for record in records if record["cell"].get("engine") in ENGINES]
    if not here:
        return []
    facts = here[0]["cell"]
    trained = sorted({record["result"]["pairs"] for record in here if "pairs" in record["result"]})
    words: list[str] = next((record["command"].split() for record in here if "--images" in record["command"]), [])
    scored = f", scored on {words[words.index('--images') + 1]} test images" if words else ""
    of = f", trained on {' and '.join(f'{count:,}' for count in trained)} pairs" if trained else ""
    head = (
        f"**`{facts['data']}`, {percent(facts['noise'])}, SGR and SAF, each alone and both together, test rSum.** "
        f"Networks of a size of minutes{of}{scored}, {facts['epochs']} epochs: these figures stand beside each other "
        "only, not beside those of the global engine above."
    )
    rows = []
    for name, title in titles.items():
        found = {
            engine: [
                record
                for record in here
                if record["cell"]["engine"] == engine
                and record["cell"]["method"] == name
                and figure_of(record, RSUM) is not None
            ]
            for engine in ENGINES
        }
        if any(found.values()):
            rows.append([title, *map(shown, found.values())])
    return [head, table(["", *ENGINES.values()], rows)]


def shown(records: Sequence[Record]) -> str:
    few = f" ({len(records)})" if len(records) in (1, 2) else ""
    return cell((figure_of(record, RSUM) for record in records), 1) + few + (OLDER if outdated(records) else "")
