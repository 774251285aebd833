"""`truepair evaluate`: the figures of a run, a pretrained model as it is, an ensemble, or two stages of retrieval."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truepair.cli.figures import bound_sentence, class_table, gallery_line, map_table, recall_table, two_stage_report
from truepair.cli.options import errors_name_options
from truepair.cli.shared import DATA_HELP, add_command, add_reading, given_reading
from truepair.device import DEVICE_HELP, resolve_device
from truepair.errors import InputError, RunFolderError

if TYPE_CHECKING:
    import torch

    from truepair.data.pairs import Pairs
    from truepair.engines.ensemble_model import EnsembleModel
    from truepair.engines.retrieval_model import RetrievalModel

DESCRIPTION = """\
Recall, ranks and rSum of a finished run on any data. Several runs answer as an ensemble: the mean of their
similarities (SGR and SAF together are SGRAF). In place of a run, the folder of a pretrained model of images and texts
(CLIP, SigLIP and their like) is scored as it is: zero-shot, nothing is trained.

Local engines (--model sgr, saf) compare every word with every region: of 1,000 images × 5,000 texts, each of the
5,000,000 cells of the similarity matrix takes some 0.1 ms on a CPU, minutes altogether. A terminal shows the cells
computed. With --propose and --top only those cells are computed that a global run puts first.

Runs that learn from class labels (--method uot-rcl, …), and any run with --label, are scored by mAP: everything of the
query's class is right. The data a run was trained on are read as that run read them."""

EPILOG = """\
examples:
  truepair evaluate runs/crcl my_data --folds 5
  truepair evaluate runs/sgr runs/saf my_data
  truepair evaluate clip-folder my_pictures
  truepair evaluate runs/sgr my_data --propose runs/crcl --top 50 --compare
  truepair evaluate runs/crcl my_data --label category --at 50 --per-class

RUNs and DATA stand side by side; options go before or after them."""


def add_evaluate(commands: Any) -> None:
    about = "recall, ranks and rSum (or mAP by class) of a finished run, or of several together, on any data"
    parser = add_command(commands, "evaluate", run_evaluate, about, DESCRIPTION, EPILOG)
    help_text = "folder of a finished run, or of a pretrained model; several: ensemble"
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help=help_text)
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--split", default="test", metavar="NAME", help="train, dev, test or testall [default: test]")
    parser.add_argument("--images", type=int, metavar="N", help="score the first N images and their texts only")
    parser.add_argument("--folds", type=int, metavar="N", help="mean over N folds of images; 5 for the field's 5 × 1K")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    parser.add_argument(
        "--evidence",
        type=float,
        metavar="TAU",
        help="several local runs answer by the mean of their evidence exp(tanh(r)/TAU), as DECL's two do with 0.1",
    )
    parser.add_argument("--device", default="auto", metavar="NAME", help=f"{DEVICE_HELP} [default: auto]")
    add_reading(parser)
    stages = parser.add_argument_group("retrieval in two stages")
    stages.add_argument("--propose", type=Path, metavar="GLOBAL_RUN", help="run that proposes candidates, quickly")
    stages.add_argument("--top", type=int, metavar="K", help="candidates of each query, which RUN then ranks")
    stages.add_argument("--compare", action="store_true", help="compute the whole matrix too: what do two stages lose?")
    classes = parser.add_argument_group("retrieval by class")
    classes.add_argument("--label", metavar="COLUMN", help="column of the data that gives each pair its class")
    classes.add_argument(
        "--at", type=int, metavar="K", help="mAP of the first K as well, divided by min(K, right ones)"
    )
    classes.add_argument("--per-class", action="store_true", help="a table of the mAP of each class as well")


def run_evaluate(options: argparse.Namespace) -> None:
    from truepair.evaluation import evaluate, gallery, recall_bounds
    from truepair.evaluation.evaluate import Watched
    from truepair.files import write_json_atomically

    check_options(options)
    with errors_name_options({"device": "--device"}):
        device = resolve_device(options.device)
    model = ensemble_of(options.runs, device, options.evidence)
    figures: dict[str, Any]
    if scored_by_class(options):
        from truepair.evaluation.class_retrieval import score_classes

        scores = score_classes(Watched(model), pairs_of(options, labelled=True), at=options.at)
        figures, rows = dict(scores.figures()), scores.by_class()
        print(map_table({options.split: figures}))
        figures["gallery"] = scores.items.counts
        print(gallery_line({options.split: figures["gallery"]}))
        if options.per_class:
            figures["by_class"] = [vars(row) for row in rows]
            print("\n" + class_table(rows))
    elif options.propose is None:
        pairs = pairs_of(options)
        figures = {**evaluate(Watched(model), pairs, folds=options.folds)}
        print(recall_table({options.split: figures}))
        figures["gallery"] = gallery(pairs)
        print(gallery_line({options.split: figures["gallery"]}, options.folds))
        for split, below in recall_bounds({options.split: pairs}, folds=options.folds).items():
            figures["recall_bound"] = below
            print(bound_sentence(split, below))
    else:
        from truepair.engines.ensemble_model import gives_cosines
        from truepair.evaluation.two_stage import evaluate_two_stage

        proposer = ensemble_of([options.propose], device)
        if not gives_cosines(proposer.models[0]):
            raise InputError(
                f"--propose {options.propose}: it has a local engine, which would compute every cell itself; propose "
                "with a run of --model global"
            )
        pairs = pairs_of(options)
        found = evaluate_two_stage(proposer, model, pairs, top=options.top, compare=options.compare)
        figures = {**found.to_dict(), "gallery": gallery(pairs)}
        print(two_stage_report(found))
        print(gallery_line({options.split: figures["gallery"]}))
    if options.json:
        write_json_atomically(options.json, figures)


def check_options(options: argparse.Namespace) -> None:
    """Refuse, before anything is loaded, what does not go together."""
    from truepair.training.run_folder import RunFolder

    if RunFolder(Path(options.data)).config.exists():
        raise InputError(
            f"{options.data} is a run folder, not data; the data come last, as in: truepair evaluate runs/a runs/b DATA"
        )
    places = [run.resolve() for run in options.runs]
    twice = next((run for run, place in zip(options.runs, places, strict=True) if places.count(place) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is given twice; an ensemble counts every run once, so leave one out")
    if options.json is not None and options.json.exists():
        raise InputError(f"{options.json} is there already and is not overwritten; name another file for --json")
    if options.json is not None and not options.json.absolute().parent.is_dir():
        raise InputError(f"{options.json.parent} is no folder; make it, or name a file for --json in one that is there")
    if options.evidence is not None and len(options.runs) == 1:
        raise InputError("--evidence has no effect on one run, whose order it leaves as it is; give several")
    if options.images is not None and options.images < 1:
        raise InputError(f"--images is {options.images}; expected at least 1")
    if options.folds is not None and options.folds < 1:
        raise InputError(f"--folds is {options.folds}; expected at least 1")
    if (options.propose is None) != (options.top is None):
        missing = "--propose" if options.propose is None else "--top"
        raise InputError(f"two stages need {missing} too, as in: --propose runs/global --top 50")
    if options.compare and options.propose is None:
        raise InputError("--compare sets two stages against the whole matrix; give --propose and --top as well")
    if options.folds is not None and options.propose is not None:
        raise InputError("--folds and --propose do not go together; leave one of them out")
    check_class_options(options)


def check_class_options(options: argparse.Namespace) -> None:
    """Raises InputError: an option of one kind of score stands beside the other."""
    if not scored_by_class(options):
        alone = "--at" if options.at is not None else "--per-class" if options.per_class else None
        if alone is not None:
            raise InputError(f"{alone} is for retrieval by class; name the column of the classes with --label")
        return
    if options.folds is not None or options.propose is not None:
        alone = "--folds" if options.folds is not None else "--propose"
        raise InputError(
            f"{alone} is for recall of pairs, but labels are scored by mAP over all items; leave {alone} out"
        )
    if options.at is not None and options.at < 1:
        raise InputError(f"--at is {options.at}; expected at least 1")


def scored_by_class(options: argparse.Namespace) -> bool:
    """Whether mAP is asked for: by --label, or by a run that learned from labels."""
    from truepair.methods import learns_from_labels
    from truepair.training.run_folder import RunFolder

    folders = [RunFolder(run) for run in options.runs]
    methods = [(folder.read_config().get("method") or {}).get("name") for folder in folders if folder.config.exists()]
    return options.label is not None or any(learns_from_labels(method or "") for method in methods)


def ensemble_of(runs: list[Path], device: torch.device, evidence: float | None = None) -> EnsembleModel:
    """The models of finished runs, and pretrained ones as they are, as one; one alone is itself."""
    from truepair.engines.ensemble_model import EnsembleModel

    missing = next((run for run in runs if not run.is_dir()), None)
    if missing is not None:
        raise RunFolderError(
            f"{missing}: no such run folder; give the folders of finished runs, and the data last, as in: "
            "truepair evaluate runs/a runs/b DATA"
        )
    models, names = [model_of(run).to(device) for run in runs], [str(run) for run in runs]
    return EnsembleModel(models, names, evidence=evidence)


def model_of(folder: Path) -> RetrievalModel:
    """The model of a finished run, or a pretrained one as it is."""
    from truepair.encoders.hf.folder import is_model_folder
    from truepair.training.fit import open_run

    if is_model_folder(folder):
        from truepair.engines.pretrained.zero_shot import zero_shot

        return zero_shot(folder)
    return open_run(folder).model


def pairs_of(options: argparse.Namespace, *, labelled: bool = False) -> Pairs:
    """The pairs to evaluate on; data that a run was trained on are read and split as that run did it.

    Where the classes of labels count, only a run of the same labels says so: its classes are those of the model.
    """
    from truepair.data.config import DataConfig, Reading
    from truepair.data.open import load, read_config
    from truepair.decisions.training import load_decided_splits
    from truepair.training.held_out import check_held_out
    from truepair.training.run_folder import RunFolder

    asked, given = DataConfig(options.data).resolved().source, given_reading(options, run=options.runs[0])
    pairs, reading = None, Reading()
    for folder in map(RunFolder, options.runs):
        config = folder.read_config()
        data = config.get("data") or {}
        if data.get("source") != asked or (labelled and options.label not in (None, data.get("label"))):
            continue
        if labelled:
            known = read_config(data)
            splits = load_decided_splits(known, seed=config["training"]["seed"], kept=folder.decisions)
            pairs, reading = getattr(splits, options.split, None), known.reading
        else:
            given = {**vars(replace(read_config(data).reading, label=None)), **given}
        break
    if pairs is None:
        pairs, reading = load(options.data, options.split, **given), Reading(**given)
    for run in [*options.runs, *([] if options.propose is None else [options.propose])]:
        check_held_out(run, pairs, options.data, options.split, reading)
    return pairs if options.images is None else pairs.first_images(options.images)
