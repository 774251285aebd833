"""A job: everything `truepair train` needs, as one value that `config.json` keeps and gives back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from truepair.data.config import Augmentation, DataConfig, Reading
from truepair.data.open import Splits, is_drawn, read_config, takes_encoder, with_encoder
from truepair.data.text import Vocabulary
from truepair.decisions.training import decided_for, lines_to_keep, splits_with
from truepair.encoders import FIRST, resolved_name
from truepair.encoders.hf.folder import is_model_folder
from truepair.engines import ENGINES, engine_config
from truepair.engines.config import RegionWordConfig
from truepair.errors import RunFolderError
from truepair.files import options_from
from truepair.methods import DEFAULT, METHODS, build_method
from truepair.training.config import TrainingConfig
from truepair.training.fit import Run, fit
from truepair.training.run_folder import RunFolder
from truepair.training.setup import Setup
from truepair.training.team import Team

_T = TypeVar("_T")


@dataclass(frozen=True)
class Job:
    """Data by name, method by name, and the setup of the run."""

    data: DataConfig
    method: str = DEFAULT
    method_options: dict[str, Any] = field(default_factory=dict)
    setup: Setup = field(default_factory=Setup)


def train_job(job: Job, out: Path, *, resume: bool = False, progress: bool | None = None) -> Run:
    """Load the data and train; see `fit`."""
    method = build_method(job.method, job.method_options)  # options first: they are quicker to check than data
    team, folder = Team.joined(), RunFolder(out)
    team.check(job.setup.training.batch_size, job.setup.training.piece_size)
    team.told(folder.check_free if resume else folder.check_empty)  # before the data are read
    with team.first_before_the_others():
        kept = folder.decisions if resume else None
        splits, setup = load_job(job, trust=method.least_trusted > 0, kept=kept)
    return fit(
        splits.train,
        method=method,
        dev=splits.dev,
        test=splits.test,
        out=out,
        setup=setup,
        resume=resume,
        progress=progress,
    )


def load_job(job: Job, *, trust: bool = False, kept: Path | None = None) -> tuple[Splits, Setup]:
    """The pairs of a job, and its setup with what belongs to the data.

    Args:
        trust, kept: as `load_decided_splits`.
    """
    vocabulary = None if job.data.vocabulary is None else Vocabulary.read(job.data.vocabulary)
    data = with_encoder(job.data)
    decided = decided_for(data, kept)
    splits = splits_with(decided, data, seed=job.setup.training.seed, trust=trust)
    if vocabulary is None and splits.captions is not None and isinstance(job.setup.model, RegionWordConfig):
        vocabulary = Vocabulary.build(splits.captions, minimum_count=job.setup.training.minimum_count)
    setup = replace(job.setup, vocabulary=vocabulary, word_vectors=data.word_vectors, data=data.saved())
    return splits, setup if decided is None else replace(setup, decisions=lines_to_keep(decided))


def encoder_of_run(folder: Path) -> str | None:
    """The name of the encoder that described the pictures a run was trained on; None where that is unknown. In place of
    a run there may be the folder of a pretrained model, which describes pictures itself.
    """
    if is_model_folder(folder):
        return resolved_name(str(folder))
    data = RunFolder(folder).read_config().get("data")
    if data is None:
        return None
    config = read_config(data, f"{folder / 'config.json'}: data", error=RunFolderError)
    return FIRST if is_drawn(config.source) else config.encoder


def reading_of_run(folder: Path, source: str) -> Reading:
    """How to open a source for the model of a run: as it was opened for training, where it is the same; another one
    with the encoder of the run, where it holds pictures.

    Raises:
        InputError: the source is none that is understood.
    """
    data = RunFolder(folder).read_config().get("data")
    if data is not None and data.get("source") == DataConfig(source).resolved().source:
        return read_config(data, f"{folder / 'config.json'}: data", error=RunFolderError).reading
    return Reading(encoder=encoder_of_run(folder) if takes_encoder(source) else None)


def read_job(folder: Path) -> tuple[Job, int | None]:
    """The job a run folder was started with, and its number of CPU threads.

    Raises:
        RunFolderError: no run there, or one started from Python, whose pairs only that program can give.
    """
    config = RunFolder(folder).read_config()
    if config.get("imported"):
        raise RunFolderError(f"{folder} holds an imported model; there is no training of it to continue")
    if config.get("data") is None:
        raise RunFolderError(f"{folder} was started from Python; continue it there with truepair.fit(…, resume=True)")

    def options(kind: type[_T], values: Any, part: str) -> _T:
        return options_from(kind, values, f"{folder / 'config.json'}: {part}", error=RunFolderError)

    model, method = dict(config.get("model") or {}), config.get("method") or {}
    engine, name, threads = model.pop("name", None), method.get("name"), config.get("threads")
    for part, found, known in (("model", engine, list(ENGINES)), ("method", name, list(METHODS))):
        if not isinstance(found, str) or found not in known:
            raise RunFolderError(
                f"{folder / 'config.json'}: {part} is {found!r}; expected one of {', '.join(known)}. Restore the file "
                "from a copy"
            )
    assert isinstance(engine, str)
    assert isinstance(name, str)
    given = method.get("options")
    chosen = vars(options(METHODS[name].options, given, "method.options"))
    job = Job(
        data=read_config(config["data"], f"{folder / 'config.json'}: data", error=RunFolderError),
        method=name,
        method_options={option: chosen[option] for option in given or {}},
        setup=Setup(
            training=options(TrainingConfig, config.get("training"), "training"),
            model=options(engine_config(engine), model, "model"),
            augmentation=options(Augmentation, config.get("augmentation"), "augmentation")
            if engine_config(engine).augments
            else Augmentation(),
        ),
    )
    if threads is not None and (type(threads) is not int or not 0 < threads < 2**15):
        raise RunFolderError(f"{folder / 'config.json'}: threads is {threads!r}; expected a number of CPU threads")
    return job, threads
