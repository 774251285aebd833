"""What every engine says of itself, and the options of those here; importable without torch: `--help` is instant."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from truepair.data.config import Augmentation, DataConfig
from truepair.errors import InputError
from truepair.option import Options, option

if TYPE_CHECKING:
    from truepair.data.pairs import Pairs
    from truepair.data.preparation import Preparation
    from truepair.data.text import Vocabulary
    from truepair.engines.retrieval_model import RetrievalModel
    from truepair.engines.similarity import SingleViewEngine

Pooling = Literal["gpo", "mean", "max"]


class EngineConfig(Options, ABC):
    """The options of an engine, a frozen dataclass; it makes the engine, and the preparation of what the engine reads.

    Attributes:
        name: of the engine, on the command line and in files.
        starts_trained: whether it starts from a model that compares images with texts already.
        gives_vectors: whether it makes one vector an item, which methods that learn from class labels need.
        augments: whether its training batches are altered as `Augmentation` says.
        width: D of its encodings.
    """

    name: ClassVar[str]
    gives_vectors: ClassVar[bool] = True
    starts_trained: ClassVar[bool] = False
    augments: ClassVar[bool] = True
    width: int

    @classmethod
    def for_data(cls, options: dict[str, Any], data: DataConfig) -> tuple[EngineConfig, DataConfig]:
        """The engine of these options for some data, and how these are read for it."""
        return cls(**options), data

    @property
    def default_rate(self) -> float:
        """The learning rate to train it at. Adam's best rate falls as layers grow wider, so this does, too.

        On `fashion_precomp` (width 256, 10 epochs, dev rSum of InfoNCE on matched pairs) 0.004 beat 0.002 and 0.0005.
        """
        return min(0.004, 1.024 / self.width)

    @abstractmethod
    def preparation(
        self, pairs: Pairs, *, augmentation: Augmentation, vocabulary: Vocabulary | None, minimum_count: int
    ) -> Preparation:
        """What prepares batches for an engine that is trained on these pairs.

        Args:
            augmentation: how training batches are altered, for engines that read regions or words.
            vocabulary, minimum_count: the words to read captions with; None makes them of those seen that often.

        Raises:
            InputError: the engine cannot read these pairs.
        """

    @abstractmethod
    def read_preparation(self, described: dict[str, Any], folder: Path) -> Preparation:
        """The preparation of a saved model, of what it said of itself and the files it wrote into the folder.

        Raises:
            InputError: they are missing or damaged.
        """

    @abstractmethod
    def build(self, sizes: Any, *, compared_width: int | None = None) -> SingleViewEngine[Any]:
        """The engine, newly initialised.

        Args:
            sizes: those of the preparation.
            compared_width: width of the vectors that are compared, where they are not the encoders' own (DisNCL).
        """

    def publish(self, model: RetrievalModel, folder: Path, facts: dict[str, Any]) -> None:
        """Write a finished model into the folder of its run in a form that others read; nothing by default.

        Args:
            facts: what a reader of it wants to know: see `truepair.training.fit.Assembly.conclude`.
        """


class RegionWordConfig(EngineConfig):
    """Engines whose preparation is `RegionsAndWords`."""

    reads_vectors: ClassVar[bool] = False  # texts may be vectors instead of words

    @property
    def positions(self) -> bool:
        """Whether regions are known by their place, so that no image may have more than in training."""
        return False

    def preparation(
        self, pairs: Pairs, *, augmentation: Augmentation, vocabulary: Vocabulary | None, minimum_count: int
    ) -> Preparation:
        from truepair.engines.regions_and_words import RegionsAndWords

        if pairs.texts.features is not None and not self.reads_vectors:
            raise InputError(
                f"{pairs.name}: its texts are vectors, {self.name} reads words; use --model mlp for such data"
            )
        # An engine that reads vectors begins with batch normalisation, to which the scale of features does not matter.
        return RegionsAndWords.of(
            pairs, augmentation, vocabulary, minimum_count, positions=self.positions, scaled=not self.reads_vectors
        )

    def read_preparation(self, described: dict[str, Any], folder: Path) -> Preparation:
        from truepair.engines.regions_and_words import RegionsAndWords

        return RegionsAndWords.read(described, folder, positions=self.positions)


@dataclass(frozen=True)
class GlobalConfig(RegionWordConfig):
    """Sizes of the global engine."""

    name: ClassVar[str] = "global"

    width: int = option(256, "embedding width D (1024 in the papers)", least=2)
    word_width: int = option(300, "width of the word embedding (300 in the papers)", least=1)
    pooling: Pooling = option(
        "max", "how regions and words become one vector; gpo = generalized pooling (VSE∞), for long training"
    )

    def build(self, sizes: Any, *, compared_width: int | None = None) -> SingleViewEngine[Any]:
        from truepair.engines.global_engine import GlobalEngine

        return GlobalEngine(sizes.feature_width, sizes.vocabulary_size, self)


@dataclass(frozen=True)
class SAFConfig(RegionWordConfig):
    """Sizes of the SAF engine (region–word attention, attention filtration) of SGRAF."""

    name: ClassVar[str] = "saf"
    gives_vectors: ClassVar[bool] = False

    width: int = option(256, "embedding width D (1024 in the papers)", least=2)
    word_width: int = option(300, "width of the word embedding (300 in the papers)", least=1)
    similarity_width: int = option(128, "width of a similarity vector (256 in SGRAF)", least=1)
    dropout: float = option(
        0.4, "dropout of word embeddings and of the global vectors' attention (SGRAF)", least=0, below=1
    )

    @property
    def positions(self) -> bool:
        return True

    def build(self, sizes: Any, *, compared_width: int | None = None) -> SingleViewEngine[Any]:
        from truepair.engines.region_word.local_engine import LocalEngine

        return LocalEngine(
            sizes.feature_width, sizes.regions, sizes.vocabulary_size, self, compared_width=compared_width
        )

    def head(self) -> Any:
        """The network that makes one vector of the nodes of a pair, newly initialised: attention filtration."""
        from truepair.engines.region_word.filtration import AttentionFiltration

        return AttentionFiltration(self.similarity_width)


@dataclass(frozen=True)
class SGRConfig(SAFConfig):
    """Sizes of the SGR engine (region–word attention, similarity graph reasoning) of SGRAF."""

    name: ClassVar[str] = "sgr"

    reasoning_steps: int = option(3, "steps of graph reasoning (SGRAF: 3)", least=1)

    def head(self) -> Any:
        from truepair.engines.region_word.reasoning import GraphReasoning

        return GraphReasoning(self.similarity_width, self.reasoning_steps)


@dataclass(frozen=True)
class MLPConfig(RegionWordConfig):
    """Sizes of the MLP engine (three fully connected layers a side) of MRL and UOT-RCL."""

    name: ClassVar[str] = "mlp"
    reads_vectors: ClassVar[bool] = True

    width: int = option(512, "embedding width D (512 in MRL and UOT-RCL)", least=2)
    hidden_width: int = option(1024, "width of the two hidden layers (4096 in MRL)", least=1)
    regions: Literal["mean", "joined"] = option(
        "mean",
        "how regions become one vector: their mean, or one after the other, for a fixed grid; joined "
        "needs --region-share 0",
    )

    @property
    def positions(self) -> bool:
        return self.regions == "joined"

    def preparation(
        self, pairs: Pairs, *, augmentation: Augmentation, vocabulary: Vocabulary | None, minimum_count: int
    ) -> Preparation:
        if self.positions and augmentation.region_share:
            raise InputError(
                "--regions joined tells regions by their place, which dropping some would shift; add --region-share 0"
            )
        return super().preparation(pairs, augmentation=augmentation, vocabulary=vocabulary, minimum_count=minimum_count)

    def build(self, sizes: Any, *, compared_width: int | None = None) -> SingleViewEngine[Any]:
        from truepair.engines.mlp_engine import MLPEngine

        return MLPEngine(sizes.feature_width, sizes.regions, sizes.vocabulary_size, sizes.text_width, self)
