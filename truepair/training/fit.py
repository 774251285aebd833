"""`fit`: pairs in, a finished run out."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.memory import GivenClasses
from truepair.data.pairs import Pairs
from truepair.data.statistics import nothing_to_learn
from truepair.data.word_vectors import WordVectors, read_word_vectors
from truepair.device import check_memory, resolve_device
from truepair.engines.config import EngineConfig
from truepair.engines.retrieval_model import (
    Needs,
    RetrievalModel,
    build_engine,
    load_model,
    parameter_bytes,
    save_model,
)
from truepair.engines.similarity import SimilarityEngine
from truepair.engines.word_start import start_words
from truepair.errors import InputError, RunFolderError
from truepair.evaluation import detection, division_record, evaluate
from truepair.evaluation.class_retrieval import evaluate_classes
from truepair.evaluation.gallery import gallery
from truepair.evaluation.label_correction import label_record
from truepair.evaluation.recall_bound import recall_bounds
from truepair.files import write_json_atomically
from truepair.methods import DEFAULT, build_method
from truepair.methods.auxiliary import ParameterGroups
from truepair.methods.base import Method
from truepair.phrases import counted
from truepair.seeding import torch_seeded
from truepair.training.checks import check_engine, check_labels, check_scores, check_trainable, check_trusted
from truepair.training.config import build_optimizer
from truepair.training.held_out import copies_in_training
from truepair.training.loop import FIGURE_TITLES, Observers, Trained, Training, TrainingData
from truepair.training.pair_table import write_pair_table
from truepair.training.pieces import check_pieces
from truepair.training.run_folder import RunFolder, config_digest, read_lines
from truepair.training.setup import Setup, describe_run
from truepair.training.state import Cursor, TrainingState
from truepair.training.team import Team


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, its figures (`result.json`) and its model.

    Attributes:
        engine: the options of its engine, where that is not in `truepair.engines.ENGINES`.
    """

    folder: RunFolder
    result: dict[str, Any]
    engine: type[EngineConfig] | None = None

    def __repr__(self) -> str:
        splits = {split: self.result.get(split) or {} for split in ("dev", "test")}
        figures = [
            f"{split} {title.format(found[figure])}"
            for split, found in splits.items()
            for figure, title in FIGURE_TITLES.items()
            if figure in found
        ]
        said = [str(self.result["method"]), counted(self.result["pairs"], "pair"), *figures]
        return f"Run({str(self.path)!r}: {', '.join(said)})"

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def model(self) -> RetrievalModel:
        """The best model of the run."""
        return load_model(self.folder.model, self.engine)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One record an epoch."""
        return read_lines(self.folder.metrics)


def open_run(path: Path | str, engine: type[EngineConfig] | None = None) -> Run:
    """A finished run of an earlier session.

    Args:
        engine: the options of its engine, where that is not in `truepair.engines.ENGINES`.

    Raises:
        RunFolderError: there is no run, or it is not finished.
    """
    folder = RunFolder(Path(path))
    folder.read_config()
    if not folder.finished:
        raise RunFolderError(f"{path} holds an unfinished run; continue it with: truepair train --resume {path}")
    return Run(folder, folder.read_result(), engine)


def fit(
    pairs: Pairs,
    *,
    method: str | Method = DEFAULT,
    dev: Pairs | None = None,
    test: Pairs | None = None,
    out: Path | str | None = None,
    setup: Setup | None = None,
    resume: bool = False,
    progress: bool | None = None,
    on_epoch: Callable[[int, int], None] = lambda epoch, of: None,
    **training: Any,
) -> Run:
    """Train a retrieval model on pairs of which an unknown share is mismatched; returns the finished run.

    The truth about the pairs, where `pairs` knows it, never reaches the method; it only scores its beliefs.

    Args:
        pairs: the training pairs.
        method: the name of a method (`truepair.methods.METHODS` lists them), or a `Method` built with other options.
        dev: pairs to choose the best epoch by (largest rSum, or mAP for methods that learn from class labels); None
            keeps the last epoch.
        test: pairs to report the best model on; None leaves `test` out of the result.
        out: run folder, new or empty; None makes one in the system's temporary folder.
        setup: sizes and options; None for the defaults.
        resume: continue the unfinished run in `out` exactly where it stopped.
        progress: show a progress bar; None shows it on a terminal only.
        on_epoch: called with the number of each epoch, from 1, and how many there are, once it is finished and kept.
        **training: single options of `TrainingConfig`, such as `epochs=10, seed=1`.

    Raises:
        InputError: something is wrong with the pairs or options; known before training starts.
        RunFolderError: `out` holds a run already, or (with `resume`) another one.
        DivergedError: the loss is no longer finite.
        KeyboardInterrupt: on Ctrl-C or SIGTERM, once a checkpoint is written.
    """
    setup = (setup or Setup()).with_training(training)
    chosen = build_method(method) if isinstance(method, str) else method
    if resume and out is None:
        raise InputError("resume=True needs out=, the folder of the run to continue")
    check_labels(pairs, dev, test, chosen, setup.model)
    check_engine(chosen, setup.model, scored=pairs.scores is not None)
    check_trusted(pairs, chosen)
    check_scores(pairs, chosen)
    setup = setup.with_preparation(pairs)
    check_trainable(pairs, dev, test, setup)
    chosen.stages(setup.training.epochs, setup.training.decay_epoch)  # refuses lengths it cannot train with
    team = Team.joined()
    team.check(setup.training.batch_size, setup.training.piece_size)
    device = team.device(resolve_device(setup.training.device))
    config = describe_run({"train": pairs, "dev": dev, "test": test}, chosen, setup, device, team.size)
    place = team.told(lambda: Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="truepair-run-")))
    folder = RunFolder(place)
    if resume:
        team.told(lambda: folder.check_config(config))
        if team.told(lambda: folder.finished):
            return open_run(folder.path, type(setup.model))
    run = Assembly(pairs, dev, test, chosen, setup, folder, device, progress, on_epoch, team)
    if team.leads:
        if not resume:
            folder.check_empty()
            folder.check_room(3 * run.state.bytes_on_disk())
        for warning in run.warnings:
            warnings.warn(warning, stacklevel=2)
    with folder.owned() if team.leads else nullcontext():
        if not team.told(lambda: resume and folder.finished):  # in the meantime
            with team.first_before_the_others():
                run.start(config, resume=resume)
            run.train()
            team.told(run.conclude)
    return open_run(folder.path, type(setup.model))


def by_rate(groups: ParameterGroups, own: dict[torch.nn.Parameter, float]) -> ParameterGroups:
    """Groups of parameters, those with learning rates of their own set apart, without those that are frozen.

    Args:
        own: rates in units of their group's.
    """
    if not own:
        return groups
    found: dict[float, list[torch.nn.Parameter]] = {}
    for parameters, scale in groups:
        for parameter in parameters:
            if parameter.requires_grad:
                found.setdefault(scale * own.get(parameter, 1.0), []).append(parameter)
    return [(parameters, scale) for scale, parameters in sorted(found.items(), reverse=True)]


def given_classes(pairs: Pairs) -> GivenClasses:
    assert pairs.labels is not None
    return GivenClasses(torch.from_numpy(pairs.labels), len(pairs.class_names))


def word_vectors_of(setup: Setup) -> WordVectors | None:
    """What the word embedding starts from; None: at random. An InputError where the engine reads no words."""
    if setup.word_vectors is None:
        return None
    vocabulary = None if setup.preparation is None else setup.preparation.embedded_words
    if vocabulary is None:
        raise InputError("--word-vectors start a word embedding, and this engine has none; leave it out")
    return read_word_vectors(setup.word_vectors, vocabulary)


class Assembly:
    """The parts of one run put together: what `fit` starts, trains and concludes."""

    def __init__(
        self,
        pairs: Pairs,
        dev: Pairs | None,
        test: Pairs | None,
        method: Method,
        setup: Setup,
        folder: RunFolder,
        device: torch.device,
        progress: bool | None,
        on_epoch: Callable[[int, int], None],
        team: Team | None = None,
    ) -> None:
        self.pairs, self.dev, self.test, self.team = pairs, dev, test, team or Team()
        self.method, self.setup, self.folder = method, setup, folder
        self.device, self.progress, self.on_epoch = device, progress, on_epoch
        self.warnings = nothing_to_learn(pairs) or copies_in_training(pairs, {"dev": dev, "test": test})
        assert setup.preparation is not None
        self.preparation = setup.preparation
        self.word_vectors = word_vectors_of(setup)
        self.learning_rate = setup.training.rate_for(setup.model.default_rate)
        subspaces = method.auxiliary.subspaces or (0, 0, False)
        self.needs = Needs(method.views, method.networks, *subspaces, head_width=method.head_width)
        # Weights, gradients, two moments of the optimizer; a checkpoint comes once more.
        widths = "; ".join(f"{name} {value}" for name, value in asdict(setup.model).items())  # type: ignore[call-overload]
        copies = 5 + 2 * method.auxiliary.copies
        needed = copies * parameter_bytes(setup.model, self.preparation.sizes, self.needs)
        check_memory(needed, f"an engine of these widths ({widths})", device)
        memory = CorrespondenceMemory(
            len(pairs),
            given_classes(pairs) if method.learns_from_labels else None,
            torch.from_numpy(pairs.trusted) if method.least_trusted and pairs.trusted is not None else None,
            None if pairs.scores is None else torch.from_numpy(pairs.scores),
        )
        method.prepare(memory)
        first = self.fresh(0, None)
        if setup.training.piece_size is not None:
            check_pieces(first.engine.train(), self.team.size)
        self.state = TrainingState(first.engine, first.optimizer, memory, Cursor(), first.auxiliary)

    def fresh(self, stage: int, before: torch.nn.Module | None) -> Trained:
        """Newly initialised engine, auxiliary networks (made knowing those before) and optimizer of a stage."""
        training, method = self.setup.training, self.method
        with torch_seeded(training.seed, "initialise", stage):
            engine = build_engine(self.setup.model, self.preparation.sizes, self.needs)
            auxiliary = method.auxiliary.build(engine, before)
        if self.word_vectors is not None:
            start_words(engine, self.word_vectors)
        engine.to(self.device)
        if auxiliary is not None:
            auxiliary.to(self.device)
        parts = [part for part in engine.modules() if isinstance(part, SimilarityEngine)]
        for part in parts:
            part.use_temperature(method.similarity_temperature)
        own_rates = {parameter: scale for part in parts for parameter, scale in part.rate_scales().items()}
        groups = by_rate(method.auxiliary.parameter_groups(engine, auxiliary), own_rates)
        return Trained(engine, auxiliary, build_optimizer(training, groups, self.learning_rate))

    def start(self, config: dict[str, Any], *, resume: bool) -> None:
        """Enter the folder: begin a run there, or take up the one it holds."""
        self.state.run = config_digest(config)
        if self.team.leads:
            if not resume:
                self.folder.begin(config, self.setup.decisions)
            self.preparation.write(self.folder.path)
        # Vectors of frozen towers are computed once, and found in the cache by the others.
        self.preparation.keep(self.pairs.texts)
        self.preparation.keep_images(self.pairs.images)
        if self.folder.checkpoint.exists():
            self.state.restore(self.folder.checkpoint)

    def train(self) -> None:
        """Run the loop from where the state stands."""
        Training(
            config=self.setup.training,
            learning_rate=self.learning_rate,
            data=TrainingData(self.pairs.without_truth(), self.preparation),
            method=self.method,
            observers=Observers(
                score_dev=self.score_dev if self.dev is not None else None,
                figure=self.method.figure,
                score_memory=self.score_memory,
                keep_best=self.keep_best,
                epoch_done=self.on_epoch,
            ),
            folder=self.folder,
            fresh=self.fresh,
            device=self.device,
            progress=self.progress,
            team=self.team,
        ).run(self.state)

    def conclude(self) -> None:
        """Score the best model and write `pairs.parquet` and, last, `result.json`."""
        best = load_model(self.folder.model, type(self.setup.model))
        best.engine.to(self.device)
        write_pair_table(self.folder.pairs, self.pairs, self.method, self.state.memory)
        share, beliefs = self.method.mismatch_share(self.state.memory), self.method.label_beliefs(self.state.memory)
        share_by = self.method.share_estimated_by(self.state.memory)
        wrong = None if beliefs is None else beliefs.wrong
        result = {
            "method": self.method.name,
            "pairs": len(self.pairs),
            "mismatch_rate": self.pairs.mismatch_rate,
            "label_noise_rate": self.pairs.label_noise_rate,
            "best_epoch": self.state.cursor.best_epoch,
            "dev": self.score(best, self.dev) if self.dev is not None else None,
            "test": self.score(best, self.test) if self.test is not None else None,
            "gallery": self.galleries(),
            **self.score_memory(),
            **({} if share is None else {"mismatch_share": asdict(share), "mismatch_share_by": share_by}),
            **({"wrong_label_share": asdict(wrong)} if wrong is not None else {}),
            **({"recall_bound": below} if (below := self.recall_bounds()) else {}),
            **({"warnings": self.warnings} if self.warnings else {}),
        }
        facts = {**result, "data": self.pairs.name, "training": self.setup.training.saved()}
        self.setup.model.publish(best, self.folder.path, facts)
        write_json_atomically(self.folder.result, result)

    def current_model(self) -> RetrievalModel:
        engine = self.method.auxiliary.model(self.state.engine, self.state.auxiliary)
        return RetrievalModel(engine, self.setup.model, self.preparation, self.needs)

    def score_dev(self) -> dict[str, float]:
        assert self.dev is not None
        return self.score(self.current_model(), self.dev)

    def score(self, model: RetrievalModel, pairs: Pairs) -> dict[str, float]:
        """Recall, or mAP for a method that learns from class labels."""
        return evaluate_classes(model, pairs) if self.method.learns_from_labels else evaluate(model, pairs)

    def galleries(self) -> dict[str, dict[str, int]]:
        """How many images and texts dev and test are ranked among."""
        splits, by_class = {"dev": self.dev, "test": self.test}, self.method.learns_from_labels
        return {name: gallery(pairs, by_class=by_class) for name, pairs in splits.items() if pairs is not None}

    def recall_bounds(self) -> dict[str, Any]:
        """What recall can be at most of dev and test, where equal captions or images set it low."""
        if self.method.learns_from_labels:
            return {}
        return recall_bounds({"dev": self.dev, "test": self.test})

    def score_memory(self) -> dict[str, Any]:
        """The method's division of the pairs (or labels), and its beliefs against the truth where that is known."""
        method, memory = self.method, self.state.memory
        wrong = self.pairs.wrong_labels if method.learns_from_labels else self.pairs.mismatched
        division = method.division(memory).numpy()
        found = None
        if wrong is not None:
            taken = method.taken_as_matched(memory).numpy()
            found = detection(method.belief(memory).numpy(), wrong, taken_as_matched=taken)
        record = division_record(division, wrong, belief=method.belief(memory).numpy())
        scores: dict[str, Any] = {"division": record, "detection": found}
        beliefs = method.label_beliefs(memory)
        if beliefs is not None:
            assert self.pairs.labels is not None
            scores["labels"] = label_record(self.pairs.labels, beliefs.distribution.numpy(), self.pairs.true_labels)
        return scores

    def keep_best(self) -> None:
        save_model(self.folder.model, self.current_model())
