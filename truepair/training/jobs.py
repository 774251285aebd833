"""A job: everything `truepair train` needs, as one value that `config.json` keeps and gives back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from truepair.data.config import Augmentation, DataConfig
from truepair.data.open import load_splits
from truepair.data.text import Vocabulary
from truepair.engines.config import MODELS
from truepair.errors import RunFolderError
from truepair.methods import build_method
from truepair.training.config import TrainingConfig
from truepair.training.fit import Run, fit
from truepair.training.run_folder import RunFolder
from truepair.training.setup import Setup


@dataclass(frozen=True)
class Job:
    """Data by name, method by name, and the setup of the run."""

    data: DataConfig
    method: str = "crcl"
    method_options: dict[str, Any] = field(default_factory=dict)
    setup: Setup = field(default_factory=Setup)


def train_job(job: Job, out: Path, *, resume: bool = False, progress: bool | None = None) -> Run:
    """Load the data and train; see `fit`."""
    method = build_method(job.method, job.method_options)  # options first: they are quicker to check than data
    if not resume:
        RunFolder(out).check_empty()
    vocabulary = None if job.data.vocabulary is None else Vocabulary.read(job.data.vocabulary)
    splits = load_splits(job.data, seed=job.setup.training.seed)
    setup = replace(job.setup, vocabulary=vocabulary, data=asdict(job.data.resolved()))
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
    try:
        model = dict(config["model"])
        options = {name: _tuples(value) for name, value in config["method"]["options"].items()}
        job = Job(
            data=DataConfig(**config["data"]),
            method=config["method"]["name"],
            method_options=options,
            setup=Setup(
                training=TrainingConfig(**config["training"]),
                model=MODELS[model.pop("name")](**model),
                augmentation=Augmentation(**config["augmentation"]),
            ),
        )
    except (KeyError, TypeError) as error:
        raise RunFolderError(f"{folder / 'config.json'} is not a configuration of this version ({error})") from error
    return job, config["threads"]


def _tuples(value: Any) -> Any:
    """JSON knows no tuples; the config dataclasses have no lists."""
    return tuple(value) if isinstance(value, list) else value
