"""`truepair train`: a model from a data set; leaves a run folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from truepair.cli.figures import bound_sentence, gallery_line, map_table, recall_table
from truepair.cli.options import (
    add_engine_options,
    add_options,
    errors_name_options,
    flag,
    flags_of,
    given_options,
    option_in,
    options_of_others,
    refuse_alone,
)
from truepair.cli.shared import DATA_HELP, use_threads
from truepair.data.config import Augmentation, DataConfig
from truepair.engines import ENGINES, engine_config, engine_configs
from truepair.engines.config import EngineConfig
from truepair.errors import InputError
from truepair.methods import DEFAULT, METHODS
from truepair.methods.base import LINEAR_MODELS
from truepair.option import idle_beside
from truepair.phrases import wrong_share_sentence
from truepair.training.config import TrainingConfig

NEEDS = {
    "noise_kind": ("noise",),
    "noise_seed": ("noise", "label_noise", "clean_pairs"),
    "label_noise_kind": ("label_noise",),
    "split_seed": ("dev_share", "test_share"),
    "score_column": ("pair_scores",),
}
"""Options that have no effect without one of these."""

DESCRIPTION = """\
Train a retrieval model on pairs of which some are mismatched. Leaves a run folder.

The options of a method and of an engine are shown with it:
  truepair train --method gsc --help
  truepair train --method crcl --model sgr --help"""


def add_train(commands: Any, arguments: Sequence[str] = ()) -> None:
    """Add the command; its help shows the options of the method and the engine that `arguments` name, if any.

    The options of all others are taken as well, so that one beside the wrong method gets an answer of its own.
    """
    method, engine = option_in(arguments, "--method"), option_in(arguments, "--model")
    parser = commands.add_parser(
        "train",
        help="train a model; leaves a run folder with its figures",
        usage="truepair train [DATA] --out RUN [--method METHOD] [--model ENGINE] [options]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", nargs="?", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--out", type=Path, metavar="RUN", help="run folder, new or empty (required)")
    parser.add_argument(
        "--resume",
        nargs="?",
        const=True,
        metavar="RUN",
        help="continue the unfinished run in RUN (or in --out) exactly where it stopped, with the options it keeps",
    )
    parser.add_argument(
        "--method",
        choices=sorted(METHODS),
        metavar="METHOD",
        help=f"how to train: {', '.join(sorted(METHODS))} [default: {DEFAULT}]",
    )
    parser.add_argument(
        "--model",
        choices=list(ENGINES),
        metavar="ENGINE",
        help=f"similarity engine: {', '.join(ENGINES)} [default: global; mlp where texts are vectors]",
    )
    parser.add_argument(
        "--as-printed",
        action="store_true",
        default=argparse.SUPPRESS,
        help="every setting of the method's paper; another option that contradicts one is refused",
    )
    parser.add_argument(
        "--printed-for",
        metavar="DATA",
        default=argparse.SUPPRESS,
        help="with --as-printed: the settings that the paper has for these data (coco, cc152k, …; docs/methods.md)",
    )
    parser.add_argument(
        "--ablation",
        action="store_true",
        default=argparse.SUPPRESS,
        help="with --as-printed: options beside it take the place of the printed ones, the engine too, rather than to "
        "be refused",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads [default: all]")
    parser.add_argument(
        "--quiet", action="store_true", help="no progress bar (there is none without a terminal anyway)"
    )
    add_options(parser, "data", DataConfig)
    add_options(parser, "training", TrainingConfig)
    add_options(parser, "augmentation", Augmentation)
    add_engine_options(parser, engine_configs(), engine or ("global" if method else None))
    for name, place in METHODS.items():
        add_options(parser, f"method {name}", place.options, prefix=f"{name}-", hidden=name != method)
    parser.set_defaults(command=run_train)


def run_train(options: argparse.Namespace) -> None:
    from truepair.training.jobs import read_job, train_job
    from truepair.training.run_folder import RunFolder
    from truepair.training.team import Team

    folder = Path(options.resume) if isinstance(options.resume, str) else options.out
    if folder is None or (options.data is None and not options.resume):
        missing = "--out" if folder is None else "DATA"
        raise InputError(
            f"train needs {missing}, as in: truepair train scenes --method crcl --noise 0.4 --out runs/first"
        )
    if options.resume and options.data is None:
        refuse_other_options(options, folder)
        job, threads = read_job(folder)
    else:
        with errors_name_options(flags_beside(options)):
            job, threads = job_of(options), options.threads
    leads = Team.joined().leads  # of several processes one speaks
    earlier = bool(options.resume) and RunFolder(folder).finished
    use_threads(threads)
    try:
        with errors_name_options(flags_beside(options)):
            run = train_job(job, folder, resume=bool(options.resume), progress=False if options.quiet else None)
    except KeyboardInterrupt:
        if leads and (folder / "config.json").exists():  # else it was before training began
            print(f"\nNothing is lost. Continue with: truepair train --resume {folder}", file=sys.stderr)
        raise
    if leads:
        if earlier:
            print(f"{folder} was finished earlier; nothing is left to train.")
        print(summary(run.result))
        print(f"Run folder: {run.path}")


def refuse_other_options(options: argparse.Namespace, folder: Path) -> None:
    """A run is resumed with what its folder says; an option beside it would have no effect, and is refused."""
    known = {"command", "data", "out", "resume", "threads", "quiet", "method", "model"}
    others = [name for name in vars(options) if name not in known]
    others += [name for name in ("method", "model", "threads") if getattr(options, name) is not None]
    if isinstance(options.resume, str) and options.out is not None:
        others.append("out")
    if others:
        option = flag(others[0])
        raise InputError(f"--resume {folder} continues with the options that run was started with; leave {option} out")


def flags_beside(options: argparse.Namespace) -> dict[str, str]:
    """The options of the data, of training, of the chosen engine and method; none of a name that two of them have."""
    method, model = options.method or DEFAULT, options.model or "global"
    flags: dict[str, str] = {}
    of_all = [flags_of(kind) for kind in (DataConfig, TrainingConfig, Augmentation, engine_config(model))]
    for some in (*of_all, flags_of(METHODS[method].options, f"{method}-")):
        shared = flags.keys() & some.keys()
        flags = {name: option for name, option in (flags | some).items() if name not in shared}
    return flags


def job_of(options: argparse.Namespace) -> Any:
    """The `Job` the command line describes; an option of another method or engine than the chosen ones is refused."""
    from truepair.training.jobs import Job
    from truepair.training.setup import Setup

    method = options.method or DEFAULT
    for name, place in METHODS.items():
        foreign = given_options(options, place.options, prefix=f"{name}-")
        if foreign and name != method:
            option = flag(next(iter(foreign)), f"{name}-")
            raise InputError(f"{option} is an option of --method {name}, but the method is {method}; leave it out")
    refuse_alone(vars(options), NEEDS)
    if hasattr(options, "vocabulary") and hasattr(options, "minimum_count"):
        raise InputError(
            "--minimum-count says which words of the captions are read, and so does --vocabulary; leave one of the "
            "two out"
        )
    if getattr(options, "schedule", "steps") == "cosine" and hasattr(options, "decay_factor"):
        raise InputError("--decay-factor has no effect beside --schedule cosine; leave one of the two out")
    data = DataConfig(source=options.data or "", **given_options(options, DataConfig))
    model = options.model or default_engine(data)
    for option, names in options_of_others(options, engine_configs(), model):
        owners = " and ".join(names)
        raise InputError(f"{option} is an option of --model {owners}, but the model is {model}; leave it out")
    if hasattr(options, "printed_for") and not hasattr(options, "as_printed"):
        raise InputError("--printed-for chooses among the settings of a paper; it needs --as-printed")
    if hasattr(options, "ablation") and not hasattr(options, "as_printed"):
        raise InputError("--ablation lets options differ from a paper's settings; it needs --as-printed")
    if getattr(options, "as_printed", False):
        if options.method is None:
            raise InputError("--as-printed needs --method: the settings of which paper?")
        return printed_job(options, data, method)
    kind = engine_config(model)
    refuse_augmentation(options, kind)
    engine, data = kind.for_data(given_options(options, kind), data)
    method_options = given_options(options, METHODS[method].options, prefix=f"{method}-")
    refuse_idle(method, method_options, method_options)
    return Job(
        data=data,
        method=method,
        method_options=method_options,
        setup=Setup(
            training=TrainingConfig(**given_options(options, TrainingConfig)),
            model=engine,
            augmentation=Augmentation(**given_options(options, Augmentation)),
        ),
    )


def refuse_idle(method: str, given: dict[str, Any], whole: dict[str, Any]) -> None:
    """Raises InputError: an option of the method has no effect beside another.

    Args:
        given: the options of the command line.
        whole: all that are not the defaults, these among them.
    """
    config = METHODS[method].options(**whole)
    for pair in idle_beside(config, given):
        option, other = (flag(name, f"{method}-") for name in pair)
        value = getattr(config, pair[1])
        beside = f"without {other}" if value is False else f"beside {other} {value}"
        raise InputError(f"{option} has no effect {beside}; leave one of the two out")


def refuse_augmentation(options: argparse.Namespace, engine: type[EngineConfig]) -> None:
    """Raises InputError: an option alters words or regions, which the engine does not read."""
    given = list(given_options(options, Augmentation))
    given += [name for name in ("minimum_count",) if hasattr(options, name)]
    if given and not engine.augments:
        option = flag(given[0])
        raise InputError(f"{option} is for engines of regions and words; --model {engine.name} has none, leave it out")


def printed_job(options: argparse.Namespace, data: DataConfig, method: str) -> Any:
    """The `Job` that the method's paper describes, with the options beside it that it leaves open, and no others.

    With --ablation the other options take the place of the paper's, the engine as well.
    """
    from truepair.training.as_printed import as_printed
    from truepair.training.jobs import Job
    from truepair.training.setup import Setup

    altered = hasattr(options, "ablation")
    printed = as_printed(method, options.model, getattr(options, "printed_for", None), any_engine=altered)
    preset, model = printed.preset, printed.model
    settings: dict[str, tuple[type[Any], str, dict[str, Any]]] = {
        "method": (METHODS[method].options, f"{method}-", preset.method),
        "model": (type(model), "", vars(model)),
        "training": (TrainingConfig, "", preset.training),
        "augmentation": (Augmentation, "", vars(preset.augmentation)),
    }
    merged: dict[str, dict[str, Any]] = {}
    for part, (kind, prefix, fixed) in settings.items():
        given = given_options(options, kind, prefix=prefix)
        if altered:
            merged[part] = {**fixed, **given}
            if part == "method":
                refuse_idle(method, given, merged[part])
            continue
        for name, value in given.items():
            if fixed.get(name, value) != value:
                option = flag(name, prefix)
                raise InputError(
                    f"{option} {value} contradicts --as-printed: {preset.source} has "
                    f"{'none' if fixed[name] is None else fixed[name]}; leave one of the two out"
                )
            if part == "method" and name in preset.idle:
                option, other = (flag(each, prefix) for each in (name, preset.idle[name]))
                raise InputError(
                    f"{option} has no effect beside --as-printed: {preset.source} has {other} "
                    f"{fixed[preset.idle[name]]}; leave one of the two out"
                )
        merged[part] = {**given, **fixed}
    known = {option.name for option in fields(type(model)) if "help" in option.metadata}  # type: ignore[arg-type]
    engine, data = type(model).for_data({name: v for name, v in merged["model"].items() if name in known}, data)
    setup = Setup(TrainingConfig(**merged["training"]), engine, Augmentation(**merged["augmentation"]))
    return Job(data=data, method=method, method_options=merged["method"], setup=setup)


def default_engine(data: DataConfig) -> str:
    """The MLP where both sides of the data are vectors, which it projects into one space; else the global engine."""
    from truepair.data.open import format_of

    return "mlp" if data.source and format_of(data.source, data.reading).vectors else "global"


def summary(result: dict[str, Any]) -> str:
    """The figures of a finished run as people read them."""
    lines = []
    figures = {split: result[split] for split in ("dev", "test") if result[split] is not None}
    corrected = result.get("labels")
    if figures:
        lines.append(map_table(figures) if corrected else recall_table(figures))
        lines += [gallery_line(result["gallery"])] if "gallery" in result else []  # not in runs of before
        lines += [bound_sentence(split, below) for split, below in result.get("recall_bound", {}).items()]
    else:
        lines.append(
            "No figures: the data have no dev or test split. Training with --dev-share 0.1 --test-share 0.1 keeps "
            "images for them."
        )
    found = result["detection"]
    if corrected and corrected["given_accuracy"] is not None:
        lines.append(
            f"Labels right: {100 * corrected['given_accuracy']:.1f} % as given, "
            f"{100 * corrected['corrected_accuracy']:.1f} % corrected ({corrected['repaired']} repaired, "
            f"{corrected['spoiled']} spoiled); wrong ones found: AUROC {found['auroc']:.4f}"
            if found["auroc"] is not None
            else f"Labels right: all as given, {100 * corrected['corrected_accuracy']:.1f} % corrected"
        )
    if corrected:
        wrong = result.get("wrong_label_share")
        lines += [wrong_share_sentence(**wrong)] if wrong else []
        return "\n".join(lines)
    if found is not None and found["auroc"] is not None:
        lines.append(
            f"Mismatched pairs found: AUROC {found['auroc']:.4f}, average precision {found['average_precision']:.4f}, "
            f"division accuracy {found['division_accuracy']:.4f}  ({100 * result['mismatch_rate']:.1f} % mismatched)"
        )
    share = result.get("mismatch_share")
    if share is not None:
        by = result.get("mismatch_share_by", LINEAR_MODELS)
        lines.append(
            f"Share of mismatched pairs, by {by}: {100 * share['share']:.0f} % "
            f"(95 % interval {100 * share['low']:.0f} to {100 * share['high']:.0f} %)"
        )
    return "\n".join(lines)
