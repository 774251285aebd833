"""`truepair audit`: which pairs are mismatched, how sure that is, and what would fit better."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from truepair.audit.options import AuditOptions, CrossFitting
from truepair.cli.options import add_option, add_options, errors_name_options, flags_of, given_options, refuse_alone
from truepair.cli.shared import DATA_HELP, add_command, add_reading, given_reading, use_threads
from truepair.data.config import NOISE_KIND_HELP
from truepair.errors import InputError

FORMATS = ("own", "ids", "csv", "jsonl", "parquet")
LAYOUTS = ("datacomp", "img2dataset", "imagefolder", "open-clip", "label-studio", "fiftyone")

DESCRIPTION = """\
Find the mismatched pairs of a data set. Every pair gets a calibrated probability that it matches and the reasons
against it; suspicious ones the caption and the image that fit better. Nothing of the data is changed.

Pairs are scored by models trained on folds, each pair by one that never saw it; or by a finished run (--run); or,
where DATA are embeddings, as they are; or by a model of images and texts (--encoder FOLDER: CLIP, SigLIP, …), as it is
or, where it knows too little of such data, by heads trained on its vectors."""

EPILOG = """\
examples:
  truepair audit my_pictures --out audits/first
  truepair audit "img.npy,txt.npy" --embeddings --out audits/clip
  truepair audit my_pictures --encoder openai-clip-folder --out audits/by-clip
  truepair audit my_precomp --run runs/first --out audits/by-run
  truepair audit my_pictures --out audits/first --export own --export ids"""


def add_audit(commands: Any) -> None:
    about = "which pairs are mismatched, how sure that is, and what would fit"
    parser = add_command(commands, "audit", run_audit, about, DESCRIPTION, EPILOG)
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder for the results; an audit cut off goes on there"
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--embeddings", action="store_true", help="DATA must be embeddings: train nothing")
    ways.add_argument("--run", type=Path, metavar="RUN", help="score by the model and the memory of a finished run")
    parser.add_argument(
        "--export",
        action="append",
        choices=(*FORMATS, *LAYOUTS),
        default=[],
        metavar="FORMAT",
        help=f"write the kept pairs and the weights of all to DIR/export: {', '.join(FORMATS)}; or in a "
        f"layout that other tools read: {', '.join(LAYOUTS)}; may be repeated [own: the format of DATA]",
    )
    parser.add_argument(
        "--decisions",
        type=Path,
        metavar="FROM",
        help="what people decided: an audit that was reviewed, its decisions.sqlite, or an exported file",
    )
    parser.add_argument("--split", metavar="NAME", help="split to audit [default: train, or all of a table]")
    parser.add_argument("--label", metavar="COLUMN", help="column that gives each pair its class")
    add_reading(parser, shares=False)
    shared = add_options(parser, "audit", AuditOptions)
    add_option(shared, CrossFitting.__dataclass_fields__["device"], str)  # a run scores on it, too
    add_options(parser, "models that are trained (neither embeddings nor --run)", CrossFitting, leave_out=("device",))
    trial = parser.add_argument_group("trial with a known truth")
    trial.add_argument("--noise", type=float, metavar="X", help="share of pairs to mismatch first")
    trial.add_argument(
        "--noise-kind",
        choices=["caption", "image", "class", "nearest"],
        help=f"{NOISE_KIND_HELP} [default: caption]",
    )
    trial.add_argument("--noise-seed", type=int, metavar="N", help="seed of it [default: 0]")
    trial.add_argument("--noise-index", type=Path, metavar="FILE", help="an index file of the field that says how")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads [default: all]")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")


def run_audit(options: argparse.Namespace) -> None:
    """An error names the options that it is of."""
    with errors_name_options(flags_of(AuditOptions) | flags_of(CrossFitting)):
        audit(options)


def audit(options: argparse.Namespace) -> None:
    """Open, audit, write, print the summary."""
    from truepair.audit.early_checks import check_request
    from truepair.audit.folder import AuditFolder
    from truepair.audit.people import digest_of
    from truepair.audit.tables import summary_text
    from truepair.data.open import open as open_source
    from truepair.decisions.sources import load_decisions
    from truepair.pages.audit.page import audit_with_page

    if options.noise and options.noise_index:
        raise InputError("--noise and --noise-index both say how to mismatch the pairs; give one of them")
    given = {name for name, value in vars(options).items() if value not in (None, [])}
    refuse_alone(given, {"noise_kind": ("noise",), "noise_seed": ("noise",), "keep": ("export",)})
    trial: dict[str, Any] = {
        "noise": options.noise or 0.0,
        "noise_kind": options.noise_kind or "caption",
        "noise_seed": options.noise_seed or 0,
        "noise_index": options.noise_index,
    }
    noisy = bool(options.noise) or options.noise_index is not None
    how: dict[str, Any] = {
        "run": options.run,
        "options": AuditOptions(**given_options(options, AuditOptions)),
        "crossfit": CrossFitting(**given_options(options, CrossFitting)),
        "export": options.export,
    }
    decided = None if options.decisions is None else load_decisions(options.decisions)
    check_request(
        options.data,
        options.out,
        **how,
        embeddings=options.embeddings,
        noise=noisy,
        table=options.table,
        decisions=None if decided is None else digest_of(decided),
    )
    use_threads(options.threads)
    quiet = False if options.quiet else None
    reading = {name: getattr(options, name) for name in ("table", "split", "caption", "image", "label")}
    reading["encoder"] = given_reading(options, run=options.run).get("encoder")
    try:
        collection = mismatched(open_source(options.data, **reading, progress=quiet), **trial)
        asked = {"source": options.data, "run": options.run, **reading, **(trial if noisy else {})}
        asked |= {} if decided is None else {"decisions": str(options.decisions)}
        how |= {"decisions": decided, "encoder": reading["encoder"]}
        result = audit_with_page(collection, options.out, **how, progress=quiet, asked=asked)
    except KeyboardInterrupt:
        if AuditFolder(options.out).begun:
            print("\nNothing is lost. The same command goes on where it stopped.", file=sys.stderr)
        raise
    print(summary_text(result))
    print(f"\n{options.out / 'report.html'}\n{options.out / 'pairs.parquet'}\n{options.out / 'summary.json'}")
    if options.export:
        print(AuditFolder(options.out).export)


def mismatched(collection: Any, *, noise: float, noise_kind: Any, noise_seed: int, noise_index: Path | None) -> Any:
    """The collection with the noise of a trial in it."""
    from truepair.data.noise import apply_noise_index, inject_noise

    if noise_index is not None:
        collection.pairs = apply_noise_index(collection.pairs, noise_index)
    elif noise:
        with errors_name_options({"rate": "--noise", "seed": "--noise-seed"}):
            collection.pairs = inject_noise(collection.pairs, noise, kind=noise_kind, seed=noise_seed)
    return collection
