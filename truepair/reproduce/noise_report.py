"""Turn the records of the noise grid into tables, in place, between markers of the Markdown files that show them.

python -m truepair.reproduce.noise_report
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from truepair.errors import InputError
from truepair.files import write_text_atomically
from truepair.reproduce.analysis_report import analysis_report, read_analyses

Record = dict[str, Any]
Groups = dict[tuple[str, float], list[Record]]

TITLES = {
    "oracle": "oracle (InfoNCE on the truly matched pairs)",
    "crcl": "CRCL",
    "crcl-single": "CRCL without a refining piece",
    "gsc": "GSC",
    "gsc-dual": "GSC, two networks",
    "ugncl": "UGNCL",
    "infonce": "InfoNCE",
    "triplet": "triplet, hardest negatives",
    "disncl": "DisNCL: L_align + L_Dis + L_soft + L_reg",
    "disncl-align-dis-soft": "L_align + L_Dis + L_soft",
    "disncl-align-dis": "L_align + L_Dis",
    "disncl-align-soft": "L_align + L_soft",
    "disncl-align": "L_align",
    "disncl-entangled": "all, but nothing lowered",
    "disncl-fdmer": "FDMER in the place of L_Dis + L_reg",
    "disncl-dmim": "DMIM in their place",
    "disncl-mvib": "MVIB in their place",
}


EXPLORED_TITLES = {"ugncl-letter": "UGNCL to the letter"}
ENGINE_TITLES = {"global": "global engine", "sgr": "SGR", "saf": "SAF", "sgraf": "SGRAF (mean of SGR and SAF)"}


def read_records(folder: Path) -> list[Record]:
    """All records of a results folder.

    Raises:
        InputError: there are none.
    """
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    if not records:
        raise InputError(f"{folder} holds no records; run python -m truepair.reproduce.noise_grid DATA first")
    return records


def group(records: list[Record]) -> Groups:
    """Records of the same method and noise rate, over seeds. Without noise the oracle is InfoNCE."""
    groups: Groups = defaultdict(list)
    for record in records:
        groups[record["cell"]["method"], record["cell"]["noise"]].append(record)
    if ("infonce", 0.0) in groups:
        groups["oracle", 0.0] = groups["infonce", 0.0]
    return groups


def value_table(groups: Groups, read: Callable[[Record], float | None], digits: int) -> str:
    """Markdown table of a figure: a row a method, a column a noise rate, mean ± standard deviation over seeds."""
    rates = sorted({rate for _, rate in groups})
    lines = ["| | " + " | ".join(f"{100 * rate:.0f} %" for rate in rates) + " |", "|---" * (len(rates) + 1) + "|"]
    for method, title in TITLES.items():
        cells = [
            cell([value for value in map(read, groups.get((method, rate), [])) if value is not None], digits)
            for rate in rates
        ]
        if any(text != "–" for text in cells):
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(values: list[float], digits: int) -> str:
    if not values:
        return "–"
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def ratio_table(groups: Groups) -> str:
    """What the methods keep of the oracle and of InfoNCE trained without noise, in percent of mean rSum."""
    rates = sorted({rate for _, rate in groups if rate > 0})
    lines = ["| | " + " | ".join(f"{100 * rate:.0f} %" for rate in rates) + " |", "|---" * (len(rates) + 1) + "|"]
    references: list[tuple[str, Callable[[float], tuple[str, float]]]] = [
        ("share of the oracle at the same noise", lambda rate: ("oracle", rate)),
        ("share of InfoNCE without noise", lambda rate: ("infonce", 0.0)),
    ]
    for method in ("crcl", "crcl-single", "gsc", "gsc-dual", "ugncl", "infonce"):
        for title, reference in references:
            cells = []
            for rate in rates:
                ours, theirs = groups.get((method, rate)), groups.get(reference(rate))
                cells.append(f"{100 * mean_rsum(ours) / mean_rsum(theirs):.1f} %" if ours and theirs else "–")
            if any(text != "–" for text in cells):
                lines.append(f"| {TITLES[method]}: {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def recall_rows(groups: Groups, rate: float) -> str:
    """The six recalls of every method at one noise rate."""
    keys = ["i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10", "rsum"]
    lines = ["| | i→t R@1 | R@5 | R@10 | t→i R@1 | R@5 | R@10 | rSum |", "|---" * 8 + "|"]
    for method, title in TITLES.items():
        records = groups.get((method, rate))
        if records:
            cells = [cell([record["result"]["test"][key] for record in records], 1) for key in keys]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def mean_rsum(records: list[Record]) -> float:
    return statistics.fmean(record["result"]["test"]["rsum"] for record in records)


def detection_of(key: str) -> Callable[[Record], float | None]:
    def read(record: Record) -> float | None:
        value: float | None = (record["result"]["detection"] or {}).get(key)
        return value

    return read


def provenance(records: list[Record]) -> str:
    """Data, seeds, dates and cost, read from the records."""
    seeds = sorted({record["cell"]["seed"] for record in records})
    dates = sorted({record["date"] for record in records})
    hours = sum(record["training_seconds"] for record in records) / 3600
    example = next((r for r in records if r["cell"]["method"] in ("crcl", "disncl")), records[0])
    return (
        f"{len(records)} runs on `{example['cell']['data']}`, seeds {', '.join(map(str, seeds))}, "
        f"{dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'}, {hours:.1f} hours of training on one CPU "
        f"thread each. One of them: `{example['command']}`."
    )


DIVISIONS_SHOWN = (("global", "ugncl"), ("global", "ugncl-letter"), ("global", "gsc"), ("sgr", "ugncl"), ("sgr", "gsc"))

BELIEFS = (
    "**Finding the mismatched pairs, AUROC** of what each method believes of a training pair (CRCL, GSC: label y; "
    "UGNCL: share of the evidence; the others: the matching probability last seen in training):"
)
DIVISIONS = (
    "**Division accuracy** (CRCL: y ≥ 0.1; GSC: the two groups of log odds of y; UGNCL: clean and hard-clean; the "
    "others: probability ≥ 0.5):"
)


def local_report(records: list[Record]) -> str:
    """The section on SGR, SAF and their ensemble."""
    parts = [provenance(records)]
    for engine, title in ENGINE_TITLES.items():
        here = [record for record in records if record["cell"].get("engine", "global") == engine]
        if not here:
            continue
        groups = group(here)
        parts += [f"**{title}, test rSum:**", value_table(groups, lambda record: record["result"]["test"]["rsum"], 1)]
        if any(record["result"]["detection"] for record in here):
            parts += [
                f"**{title}, AUROC:**",
                value_table(groups, detection_of("auroc"), 4),
                f"**{title}, division accuracy:**",
                value_table(groups, detection_of("division_accuracy"), 3),
            ]
    return "\n\n".join(parts)


def disncl_report(records: list[Record]) -> str:
    """The section on DisNCL, its parts and its rivals, for each data set."""
    parts = []
    for data in sorted({record["cell"]["data"] for record in records}):
        here = [record for record in records if record["cell"]["data"] == data]
        groups = group(here)
        parts += [
            provenance(here),
            f"**`{data}`, test rSum:**",
            value_table(groups, lambda record: record["result"]["test"]["rsum"], 1),
            f"**`{data}`, AUROC** of the matching probability in the invariant subspace:",
            value_table(groups, detection_of("auroc"), 4),
            f"**`{data}`, share of the pairs in the clean set of their batch, last epoch, and the share of those "
            "that is matched:**",
            value_table(groups, clean_share, 3),
            value_table(groups, clean_matched, 3),
        ]
    return "\n\n".join(parts)


def clean_share(record: Record) -> float:
    last = record["epochs"][-1]
    return float(last["clean"] / sum(last[part] for part in ("clean", "hard", "noisy")))


def clean_matched(record: Record) -> float | None:
    found: float | None = record["epochs"][-1].get("clean_matched")
    return found


def division_by_epoch(records: list[Record], chosen: tuple[tuple[str, str], ...], rate: float) -> str:
    """Epoch by epoch, how a method divided the pairs: one table for each (engine, method), seed 0."""
    parts = []
    for engine, method in chosen:
        here = [
            record
            for record in records
            if (record["cell"].get("engine", "global"), record["cell"]["method"]) == (engine, method)
            and record["cell"]["noise"] == rate
            and record["cell"]["seed"] == 0
            and record.get("epochs")
        ]
        if not here:
            continue
        title = {**TITLES, **EXPLORED_TITLES}[method]
        lines = [
            f"**{title}, {ENGINE_TITLES[engine]}, {100 * rate:.0f} % noise, seed 0:** parts in pairs, and how many "
            "percent of each are truly matched",
            "",
            "| epoch | clean | matched | hard | matched | noisy | matched | accuracy | AUROC | dev rSum |",
            "|---" * 10 + "|",
        ]
        for line in here[0]["epochs"]:
            cells = [str(line["epoch"])]
            for part in ("clean", "hard", "noisy"):
                share = line.get(f"{part}_matched")
                cells += [str(line[part]), "–" if share is None else f"{100 * share:.0f} %"]
            cells += [f"{line['division_accuracy']:.3f}", f"{line['auroc']:.3f}", f"{line['dev_rsum']:.1f}"]
            lines.append("| " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def full_report(records: list[Record]) -> str:
    """The section of docs/results.md."""
    groups = group(records)
    rates = sorted({rate for _, rate in groups})
    parts = [
        provenance(records),
        "**Test rSum** (caption shuffle; mean ± standard deviation over seeds; epoch chosen on dev):",
        value_table(groups, lambda record: record["result"]["test"]["rsum"], 1),
        "**What is kept:**",
        ratio_table(groups),
        BELIEFS,
        value_table(groups, detection_of("auroc"), 4),
        "**Average precision** of the same:",
        value_table(groups, detection_of("average_precision"), 4),
        DIVISIONS,
        value_table(groups, detection_of("division_accuracy"), 3),
    ]
    for rate in rates:
        parts += [f"**Recall at {100 * rate:.0f} % noise:**", recall_rows(groups, rate)]
    return "\n\n".join(parts)


def longer_report(records: list[Record]) -> str:
    """The section on twice as many epochs."""
    groups = group(records)
    return "\n\n".join(
        [
            provenance(records),
            value_table(groups, lambda record: record["result"]["test"]["rsum"], 1),
            ratio_table(groups),
            "AUROC:",
            value_table(groups, detection_of("auroc"), 4),
        ]
    )


def short_report(records: list[Record]) -> str:
    """The table of the README."""
    groups = group(records)
    return "\n\n".join([value_table(groups, lambda record: record["result"]["test"]["rsum"], 1), provenance(records)])


def replace_section(path: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a file.

    Raises:
        InputError: the file lacks the markers.
    """
    content = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if content.count(begin) != 1 or content.count(end) != 1 or content.index(begin) > content.index(end):
        raise InputError(f"{path} lacks the lines {begin} and {end}, once each and in this order; put them back")
    before, rest = content.split(begin)
    write_text_atomically(path, f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results/noise"), help="JSON records [results/noise]")
    parser.add_argument(
        "--longer", type=Path, default=Path("results/noise-20-epochs"), help="of longer runs [results/noise-20-epochs]"
    )
    parser.add_argument(
        "--local", type=Path, default=Path("results/noise-local"), help="of SGR and SAF [results/noise-local]"
    )
    parser.add_argument(
        "--explored", type=Path, default=Path("results/explored"), help="beside the table [results/explored]"
    )
    parser.add_argument("--disncl", type=Path, default=Path("results/disncl"), help="of DisNCL [results/disncl]")
    parser.add_argument(
        "--analyses",
        type=Path,
        default=Path("results/disncl-analysis"),
        help="analysis.json of DisNCL runs [results/disncl-analysis]",
    )
    options = parser.parse_args()
    records = read_records(options.results)
    replace_section(Path("docs/results.md"), "noise table", full_report(records))
    if any(options.longer.glob("*.json")):
        replace_section(Path("docs/results.md"), "longer table", longer_report(read_records(options.longer)))
    beside = [*records]
    for folder in (options.local, options.explored):
        beside += read_records(folder) if any(folder.glob("*.json")) else []
    if any(options.local.glob("*.json")):
        replace_section(Path("docs/results.md"), "local table", local_report(read_records(options.local)))
    if any(options.disncl.glob("*.json")):
        replace_section(Path("docs/results.md"), "disncl table", disncl_report(read_records(options.disncl)))
    if any(options.analyses.glob("*.json")):
        replace_section(Path("docs/results.md"), "disncl analysis", analysis_report(read_analyses(options.analyses)))
    replace_section(Path("docs/results.md"), "division table", division_by_epoch(beside, DIVISIONS_SHOWN, 0.4))
    replace_section(Path("README.md"), "noise table", short_report(records))
    print(f"docs/results.md and README.md: tables of {len(records)} runs")


if __name__ == "__main__":
    main()
