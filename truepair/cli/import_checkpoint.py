"""`truepair import`: a checkpoint that others published becomes a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truepair.cli.shared import add_command

DESCRIPTION = """\
Make a run of an SGR or SAF model that SGRAF, NCR, DECL, GSC, CRCL or UGNCL published, or of CRCL's global model (VSE∞),
for truepair evaluate. Nothing in the file is executed. Of a file with two networks (NCR, GSC+) the run is their
ensemble, of UGNCL's two views their mean evidence, as their authors score them.

Captions are split into words and punctuation marks as the authors did (NLTK's word_tokenize), but for rare cases such
as quotation marks and "mr."; the words of the vocabulary that are therefore never read are listed.
"""


def add_import(commands: Any) -> None:
    about = "make a run of a model that SGRAF, NCR, DECL, GSC, CRCL or UGNCL published"
    parser = add_command(commands, "import", run_import, about, DESCRIPTION)
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="file of torch.save (….pth.tar)")
    parser.add_argument(
        "--vocabulary",
        type=Path,
        required=True,
        metavar="FILE",
        help="the *_vocab.json file the model was trained with (SCAN's for Flickr30K and MS-COCO, NCR's for CC152K)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="run folder, new or empty")
    parser.add_argument("--which", choices=["A", "B"], help="one network of a file with two [default: both]")


def run_import(options: argparse.Namespace) -> None:
    from truepair.training.importing import import_checkpoint

    run = import_checkpoint(options.checkpoint, vocabulary=options.vocabulary, out=options.out, which=options.which)
    print(summary(run.folder.read_config()))
    print(f"Run folder: {run.path}")


def summary(config: dict[str, Any]) -> str:
    """What was imported, and how captions are read, as people read it."""
    imported, model, sizes = config["imported"], config["model"], config["sizes"]
    source = imported["source"]
    said = [f"{name} {source[key]}" for key, name in (("epoch", "epoch"), ("best_rsum", "dev rSum")) if key in source]
    networks = {1: "one network", 2: "ensemble of two networks"}[sizes["networks"]]
    views = f", {sizes['views']} views of an image" if sizes["views"] > 1 else ""
    width, most = sizes["feature_width"], sizes["regions"]
    regions = f"{most} regions of width {width} at most" if most else f"any number of regions of width {width}"
    lines = [
        f"{imported['file']}: {model['name'].upper()}, {networks} ({', '.join(imported['networks'])}){views}"
        + (f"; its authors note {', '.join(said)}" if said else ""),
        f"Takes {regions}; knows {sizes['vocabulary_size']} words.",
    ]
    unread = config["unreachable_words"]
    if unread:
        lines.append(
            f"{len(unread)} words of the vocabulary are never read, because captions are split differently here: "
            f"{' '.join(unread[:12])}{' …' if len(unread) > 12 else ''}"
        )
    return "\n".join(lines)
