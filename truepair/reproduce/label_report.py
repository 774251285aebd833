"""Turn the records of the label-noise grid into the tables of `docs/results.md`.

python -m truepair.reproduce.label_report
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from truepair.reproduce.noise_report import Record, cell, read_records, replace_section

Groups = dict[tuple[str, float], list[Record]]

TITLES = {
    "ce": "cross entropy",
    "mrl": "MRL",
    "elr-cmr": "ELR-CMR",
    "uot-rcl": "UOT-RCL",
    "uot-rcl-given-labels": "… with the labels as given (no L_PLC)",
    "uot-rcl-no-relation": "… without L_BHG",
    "uot-rcl-random-set": "… with a random confident set",
    "uot-rcl-uniform": "… with equal class sizes",
    "uot-rcl-letter": "UOT-RCL to the letter",
}

FIGURES: tuple[tuple[str, Callable[[Record], float | None], int], ...] = (
    ("mAP, image → text, test", lambda record: record["result"]["test"]["map_i2t"], 3),
    ("mAP, text → image, test", lambda record: record["result"]["test"]["map_t2i"], 3),
    ("share of the training labels that are right after correction", lambda record: labels(record, "corrected"), 3),
)
"""Title, figure and digits of each table."""


def labels(record: Record, which: str) -> float | None:
    found: float | None = record["result"]["labels"][f"{which}_accuracy"]
    return found


def group(records: list[Record]) -> Groups:
    """Records of one data set, by method and nominal label noise."""
    groups: Groups = defaultdict(list)
    for record in records:
        groups[record["cell"]["method"], record["cell"]["noise"]].append(record)
    return groups


def table(groups: Groups, read: Callable[[Record], float | None], digits: int, *, with_given: bool = False) -> str:
    """A row a method, a column a noise rate, mean ± standard deviation over seeds."""
    rates = sorted({rate for _, rate in groups})
    lines = ["| | " + " | ".join(f"{100 * rate:.0f} %" for rate in rates) + " |", "|---" * (len(rates) + 1) + "|"]
    if with_given:
        given = [[labels(r, "given") for (_, at), rs in groups.items() if at == rate for r in rs] for rate in rates]
        lines.append(row("as given", [mean_of(values, digits) for values in given]))
    for method, title in TITLES.items():
        cells = [mean_of([read(record) for record in groups.get((method, rate), [])], digits) for rate in rates]
        if any(text != "–" for text in cells):
            lines.append(row(title, cells))
    return "\n".join(lines)


def mean_of(values: list[float | None], digits: int) -> str:
    return cell([value for value in values if value is not None], digits)


def row(title: str, cells: list[str]) -> str:
    return f"| {title} | " + " | ".join(cells) + " |"


def label_report(records: list[Record]) -> str:
    """The section of docs/results.md: each data set with its tables."""
    parts = []
    for data in sorted({record["cell"]["data"] for record in records}, reverse=True):
        here = [record for record in records if record["cell"]["data"] == data]
        parts.append(provenance(here))
        for title, read, digits in FIGURES:
            parts += [f"**`{data}`, {title}:**", table(group(here), read, digits, with_given="correction" in title)]
    return "\n\n".join(parts)


def provenance(records: list[Record]) -> str:
    """Data, seeds, dates and cost, read from the records."""
    seeds = sorted({record["cell"]["seed"] for record in records})
    dates = sorted({record["date"] for record in records})
    hours = sum(record["training_seconds"] for record in records) / 3600
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    example = next((record for record in records if record["cell"]["method"] == "uot-rcl"), records[0])
    return (
        f"{len(records)} runs on `{example['cell']['data']}`, seeds {', '.join(map(str, seeds))} (rows with one figure "
        f"and no deviation: seed 0), {when}, {hours:.1f} hours of training on one CPU thread each. One of them: "
        f"`{example['command']}`."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results/labels"), help="JSON records [results/labels]")
    records = read_records(parser.parse_args().results)
    replace_section(Path("docs/results.md"), "label table", label_report(records))
    print(f"docs/results.md: tables of {len(records)} runs")


if __name__ == "__main__":
    main()
