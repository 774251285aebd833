"""What a method is: the loss of a batch, what it remembers about each pair, and when it starts afresh.

A method never touches files, devices, loaders or the construction of optimizers; the training loop never asks which
method it runs. Torch is imported inside functions, since the options of small methods stand in their files and are read
for `--help`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from truepair.methods.auxiliary import AuxiliaryNetworks
from truepair.methods.pair_field import PairField, PairFields

if TYPE_CHECKING:
    from torch import Tensor, nn

    from truepair.correspondence import CorrespondenceMemory
    from truepair.correspondence.mixture_proportion import Estimate
    from truepair.data.batch import PairBatch
    from truepair.engines.similarity import ScoringEngine, SimilarityEngine
    from truepair.engines.subspaces import Parts
    from truepair.methods.preset import Preset

LINEAR_MODELS = "linear models that have not seen the pairs"


@dataclass(frozen=True)
class Stage:
    """A stretch of training with an optimizer of its own, from newly initialised networks or those of the last stage.

    Attributes:
        epochs: its length.
        decay_after: the learning rate first falls after this many of its epochs (`TrainingConfig.decay_at`); None keeps
            it constant.
        goes_on: whether it starts from the networks that the stage before it ended with.
    """

    epochs: int
    decay_after: int | None = None
    goes_on: bool = False


@dataclass(frozen=True)
class EpochPosition:
    """Where training stands: `epoch` counts from 1 within the stage, `stage` from 0.

    Attributes:
        step: the batch of the epoch, from 0, over all turns.
        steps: batches of a turn.
        batch_size: pairs of the largest batch.
        seed: of the run, for what a method draws.
    """

    stage: int
    epoch: int
    stages: tuple[Stage, ...]
    step: int = 0
    steps: int = 1
    batch_size: int = 2
    seed: int = 0

    @property
    def turn(self) -> int:
        """Which pass over the pairs of the epoch, from 0 (`Method.turns`)."""
        return self.step // self.steps

    @property
    def in_last_stage(self) -> bool:
        return self.stage == len(self.stages) - 1

    @property
    def overall(self) -> int:
        """Epochs of all stages up to and including this one, from 1."""
        return sum(stage.epochs for stage in self.stages[: self.stage]) + self.epoch


class Forward:
    """The views of one batch that a method can ask for; each is computed once, when first asked for.

    Args:
        auxiliary: networks that the method trains beside the engine.
        prepare: makes a batch of any pairs of the training set, by their ids, as they are; for `beside`.
    """

    def __init__(
        self,
        engine: SimilarityEngine[Any],
        batch: PairBatch,
        auxiliary: nn.Module | None = None,
        prepare: Callable[[Tensor], PairBatch] | None = None,
    ) -> None:
        self.engine = engine
        self.batch = batch
        self.auxiliary = auxiliary
        self.prepare = prepare

    def beside(self, ids: Tensor) -> Forward:
        """The views of other pairs of the training set, unaltered, through the same networks.

        Args:
            ids: (n,) int64, n ≥ 1; the same pair may come twice.
        """
        assert self.prepare is not None  # methods that ask for it say so: `reads_beside`
        return Forward(self.engine, self.prepare(ids), self.auxiliary, self.prepare)

    def again(self) -> Forward:
        """The views of the same batch, computed anew by the networks as they are then."""
        return Forward(self.engine, self.batch, self.auxiliary, self.prepare)

    @cached_property
    def networks(self) -> list[NetworkForward]:
        """The views of each network; one but for methods that train several (`Method.networks`)."""
        return [NetworkForward(network, self.batch) for network in self.engine.networks()]

    @cached_property
    def similarity(self) -> Tensor:
        """S, (B, B) float32: row = image, column = text, given pairs on the diagonal; the mean of the networks."""
        import torch

        if len(self.networks) == 1:
            return self.networks[0].similarity
        return torch.stack([network.similarity for network in self.networks]).mean(dim=0)

    @cached_property
    def largest(self) -> float | None:
        """The largest S there can be where the model learns with a scale of its own: it times the method's τ."""
        import torch

        engine = self.networks[0].engine
        if not (engine.own_scale and engine.training):
            return None
        return float(torch.as_tensor(engine.learning_factor).detach())

    def through(self, network: ScoringEngine[Any]) -> NetworkForward:
        """The views of the batch through a network that is not trained; to be asked without gradients."""
        return NetworkForward(network, self.batch)

    def backward(self, loss: Tensor) -> None:
        """The gradient of a loss (0-d) of these views, added to that of every parameter."""
        loss.backward()  # type: ignore[no-untyped-call]

    def gradient(self, loss: Tensor) -> dict[nn.Parameter, Tensor]:
        """The gradient of a loss of these views by every parameter that has one, for a step that is only tried."""
        import torch

        parameters = [parameter for parameter in self.engine.parameters() if parameter.requires_grad]
        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        return {parameter: slope for parameter, slope in zip(parameters, found, strict=True) if slope is not None}


class NetworkForward:
    """The views of one batch through one network."""

    def __init__(self, engine: ScoringEngine[Any], batch: PairBatch) -> None:
        self.engine = engine
        self.batch = batch

    @property
    def images(self) -> Any:
        """Encodings of the B images."""
        return self._split_images[0]

    @property
    def texts(self) -> Any:
        """Encodings of the B texts."""
        return self._split_texts[0]

    @property
    def parts(self) -> tuple[Parts, Parts]:
        """Features, invariant and exclusive parts of the B images and of the B texts (engines with subspaces)."""
        image, text = self._split_images[1], self._split_texts[1]
        assert image is not None
        assert text is not None
        return image, text

    @cached_property
    def _split_images(self) -> tuple[Any, Parts | None]:
        return self.engine.split_images(self.batch.images)

    @cached_property
    def _split_texts(self) -> tuple[Any, Parts | None]:
        return self.engine.split_texts(self.batch.texts)

    @cached_property
    def view_scores(self) -> list[Tensor]:
        """Raw scores r of every view of the images, each (B, B) float32; one view but for methods with `views` > 1."""
        return [at_least_single(scores) for scores in self.engine.view_scores(self.images, self.texts)]

    @cached_property
    def similarity(self) -> Tensor:
        """S, (B, B) float32: row = image, column = text, given pairs on the diagonal; the mean of the views."""
        import torch

        views = [self.engine.as_similarity(scores) for scores in self.view_scores]
        return views[0] if len(views) == 1 else torch.stack(views).mean(dim=0)

    @cached_property
    def view_rankings(self) -> list[Tensor]:
        """What ranking losses see of every view, each (B, B) in [−1, 1]: the cosine, or tanh(r) of a logit."""
        return [self.engine.as_ranking(scores) for scores in self.view_scores]

    @property
    def image_vectors(self) -> Tensor:
        """One vector an image, (B, D): its encoding, or the mean of its encoded regions."""
        return self.engine.vectors(self.images)

    @property
    def text_vectors(self) -> Tensor:
        """One vector a text, (B, D): its encoding, or the mean of its encoded words."""
        return self.engine.vectors(self.texts)

    @cached_property
    def image_similarity(self) -> Tensor:
        """⟨I_i, I_j⟩, (B, B) float32: the images of the batch among themselves."""
        return self.engine.as_similarity(at_least_single(self.engine.image_scores(self.images)))

    @cached_property
    def text_similarity(self) -> Tensor:
        """⟨T_i, T_j⟩, (B, B) float32: the texts of the batch among themselves."""
        return self.engine.as_similarity(at_least_single(self.engine.text_scores(self.texts)))


def at_least_single(scores: Tensor) -> Tensor:
    """What mixed precision computed in half precision, in single; all else as it is."""
    return scores.float() if scores.element_size() < 4 else scores


@dataclass(frozen=True)
class BatchLoss:
    """Loss of every pair of a batch, (B,), and named scalars to log; the loop takes the mean."""

    per_pair: Tensor
    scalars: dict[str, float]


@dataclass(frozen=True)
class WrongShare:
    """An estimate of the share of class labels that are wrong at random, in [0, 1], and its standard error.

    Labels that are wrong in a way that depends on their class are not among them.
    """

    share: float
    error: float


@dataclass(frozen=True)
class LabelBeliefs:
    """What a method believes about the class of every pair.

    Attributes:
        distribution: how probable each class is held to be, (N, K), rows sum to one.
        confidence: how sure that is, (N,) in [0, 1].
        wrong: an estimate of the share of given labels that are wrong; None: there is none.
    """

    distribution: Tensor
    confidence: Tensor
    wrong: WrongShare | None = None


class Method(ABC):
    """What one paper changes. Subclasses hold a small frozen config dataclass of their own.

    Every method keeps the field `seen_probability` p̂: how probable the model found the pair when it last trained on
    it. It is what a method without labels of its own believes about a pair.

    Attributes:
        printed: the method as its paper prints it, where it has one.
        fields: what it keeps of every pair, as pages show it; fields that are not named are shown under their own name.
        figure: the dev score that selects the best epoch: `rsum`, or `map` for methods that learn from class labels.
        learns_from_labels: whether it needs the classes of the pairs, and corrects these rather than the pairs.
        trusts_the_start: whether it believes what the engine says before it is trained.
        single_stage: options with which it trains in one stage, so that the network never starts afresh.
        needs_vectors: whether it compares encodings itself, as one vector an item.
        networks: networks trained side by side, each with parameters of its own.
        turns: passes over the pairs that an epoch takes, each in an order of its own.
        views: views of the images a network makes, by as many projections of the regions.
        reads_beside: whether it looks at other pairs of the training set than those of the batch (`Forward.beside`).
        reads_scores: whether it weighs pairs by somebody else's scores, where there are some (`Pairs.scores`).
        least_trusted: how many pairs that are known to match it needs at least; 0: it learns from none.
        head_width: hidden width of the similarity head that its networks score by; 0 for none.
        auxiliary: the networks it trains beside the engine, and what these ask of engine, optimizer and loop.
    """

    name: ClassVar[str]
    printed: ClassVar[Preset | None] = None
    fields: ClassVar[PairFields] = {"seen_probability": PairField("matching probability", r"\hat{p}", shown="believed")}
    probability_temperature: ClassVar[float] = 0.05
    figure: ClassVar[str] = "rsum"
    learns_from_labels: ClassVar[bool] = False
    single_stage: ClassVar[Mapping[str, Any]] = {}
    needs_vectors: ClassVar[bool] = False
    reads_beside: bool = False
    reads_scores: ClassVar[bool] = False
    least_trusted: int = 0
    networks: int = 1
    head_width: int = 0
    turns: int = 1
    views: int = 1
    auxiliary: AuxiliaryNetworks = AuxiliaryNetworks()

    def __init__(self, config: Any) -> None:
        self.config = config  # the method's own frozen dataclass

    @property
    def trusts_the_start(self) -> bool:
        return False

    @property
    def similarity_temperature(self) -> float | None:
        """τ by which the loss divides every similarity of an image and a text; None where it compares them itself."""
        return None

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        """The stretches of training; the result of the last one, of `epochs` epochs, is the model."""
        return (Stage(epochs, decay_after),)

    def prepare(self, memory: CorrespondenceMemory) -> None:
        """Register the per-pair fields the method keeps."""
        memory.register("seen_probability", 1.0)

    def may_keep(self, position: EpochPosition) -> bool:
        """Whether the model as it is after this epoch may become the one that is kept, if dev finds it the best."""
        return position.in_last_stage

    def surveys(self, position: EpochPosition) -> bool:
        """Whether the method wants to see all pairs, unaltered and without learning, before this epoch."""
        return False

    def surveys_again(self, position: EpochPosition) -> bool:
        """Whether a run that goes on at this position has to repeat the survey before the first epoch of the stage,
        since not all that was seen is in the memory.
        """
        return False

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:  # noqa: B027
        """One batch of such a pass: shuffled, in evaluation mode, without gradients; nothing is kept by default."""

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """Before the first batch of an epoch, after a survey; returns named scalars to log."""
        return {}

    @abstractmethod
    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        """Loss of one batch, and what is remembered from it."""

    def finish_turn(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """After the last batch of a turn that is not the last of its epoch; returns named scalars to log."""
        return {}

    def finish_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """After the last batch of an epoch; returns named scalars to log."""
        return {}

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        """How much each pair, or its given label, is believed to be right, (N,) in [0, 1]."""
        return memory.read("seen_probability")

    def mismatch_share(self, memory: CorrespondenceMemory) -> Estimate | None:
        """An estimate of π, the share of mismatched pairs, from models that did not learn them; None: there is none."""
        return None

    def share_estimated_by(self, memory: CorrespondenceMemory) -> str:
        """Whose estimate that is, for a sentence."""
        return LINEAR_MODELS

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """The method's division of the pairs, (N,) int64 of `Part`; by default the belief cut at 0.5."""
        import torch

        from truepair.correspondence.division import Part

        return torch.where(self.belief(memory) >= 0.5, int(Part.CLEAN), int(Part.NOISY))

    def taken_as_matched(self, memory: CorrespondenceMemory) -> Tensor:
        """The pairs on the trusted side, (N,) bool: the clean ones, and the hard ones believed to match."""
        from truepair.correspondence.division import Part

        division = self.division(memory)
        return (division == Part.CLEAN) | ((division == Part.HARD) & (self.belief(memory) >= 0.5))

    def label_beliefs(self, memory: CorrespondenceMemory) -> LabelBeliefs | None:
        """What is believed of the class labels; None for methods that learn from pairs."""
        return None

    def remember_probability(self, forward: Forward, memory: CorrespondenceMemory) -> None:
        """Keep p̂ of the batch (see the class), by the model's own scale where it learns with that."""
        from truepair.correspondence import matching_probability

        temperature = self.probability_temperature
        if self.similarity_temperature is not None and forward.largest is not None:
            temperature = self.similarity_temperature  # which the scale has been multiplied by
        probability = matching_probability(forward.similarity.detach(), temperature=temperature)
        memory.write("seen_probability", forward.batch.ids, probability)
