"""What is trained and how, as one value, and as the complete JSON that a run keeps of it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch

from truepair.data.config import Augmentation
from truepair.data.formats.precomp.precomp_files import chunks
from truepair.data.pairs import Array, Pairs
from truepair.data.preparation import Preparation
from truepair.data.text import Vocabulary
from truepair.engines.config import EngineConfig, GlobalConfig
from truepair.errors import InputError
from truepair.methods import revision_of
from truepair.methods.base import Method
from truepair.training.config import TrainingConfig


@dataclass(frozen=True)
class Setup:
    """Sizes and options of a run, beside its pairs and its method.

    Attributes:
        model: the engine, by its options.
        augmentation: how training batches are altered, by engines of regions and words.
        vocabulary: the words to read captions with; None builds them from the training captions.
        word_vectors: what word embeddings start from: a GloVe file, or "glove-6b-50d"; None: at random.
        data: how the command line loaded the pairs (a `DataConfig` as dict), so that the run can be repeated from its
            folder; None for pairs made in Python.
        preparation: what makes batches for the engine; `with_preparation` makes it.
        decisions: what people decided of the pairs, as the run keeps it (`RunFolder.decisions`); None: nothing.
    """

    training: TrainingConfig = field(default_factory=TrainingConfig)
    model: EngineConfig = field(default_factory=GlobalConfig)
    augmentation: Augmentation = field(default_factory=Augmentation)
    vocabulary: Vocabulary | None = None
    word_vectors: str | None = None
    data: dict[str, Any] | None = None
    preparation: Preparation | None = None
    decisions: bytes | None = None

    def with_training(self, options: dict[str, Any]) -> Setup:
        """The same setup with some training options replaced.

        Raises:
            InputError: there is no such option, or its value is out of range.
        """
        known = [option.name for option in fields(TrainingConfig)]
        for name in options:
            if name not in known:
                raise InputError(f"training has no option {name!r}; it has {', '.join(known)}")
        return replace(self, training=replace(self.training, **options))

    def with_preparation(self, pairs: Pairs) -> Setup:
        """The same setup, with the preparation that its engine makes of the training pairs.

        Raises:
            InputError: the engine cannot read them.
        """
        made = self.model.preparation(
            pairs,
            augmentation=self.augmentation,
            vocabulary=self.vocabulary,
            minimum_count=self.training.minimum_count,
        )
        return replace(self, preparation=made)


def describe_run(
    splits: dict[str, Pairs | None], method: Method, setup: Setup, device: torch.device, processes: int = 1
) -> dict[str, Any]:
    """The content of `config.json`: everything that determines a run's numbers.

    Raises:
        InputError: features are not finite floats; the message names image and split.
    """
    from truepair import __version__

    train = splits["train"]
    return {
        "truepair": __version__,
        "data": setup.data,
        "pairs": {
            name: None
            if pairs is None
            else {"name": pairs.name, "count": len(pairs), "fingerprint": fingerprint(pairs)}
            for name, pairs in splits.items()
        },
        # Nothing without labels, so that runs of before there were any go on.
        **({} if train is None or train.labels is None else {"classes": list(train.class_names)}),
        "method": {"name": method.name, **revision_of(method.name), "options": asdict(method.config)},
        "model": {"name": setup.model.name, **asdict(setup.model)},  # type: ignore[call-overload]
        **({} if setup.preparation is None else setup.preparation.record()),
        "training": {**setup.training.saved(), "device": str(device)},
        # A CPU adds in another order with another number of threads: an exact resume needs the same.
        "threads": torch.get_num_threads() if device.type == "cpu" else None,
        # So do several processes, whose gradients are added up.
        **({"processes": processes} if processes > 1 else {}),
    }


def fingerprint(pairs: Pairs) -> str:
    """A short hash of captions, table, labels and features. Raises InputError for features that are not finite."""
    digest = hashlib.sha256()
    for caption in pairs.texts.captions:
        digest.update(caption.encode("utf-8") + b"\0")
    digest.update(pairs.image_index.tobytes() + pairs.text_index.tobytes())
    for labels in (pairs.labels, pairs.true_labels, pairs.trusted, pairs.scores):
        if labels is not None:
            digest.update(labels.tobytes())
    digest_features(digest, pairs.name, "image", pairs.images.features)
    if pairs.texts.features is not None:
        digest_features(digest, pairs.name, "text", pairs.texts.features)
    return digest.hexdigest()[:16]


def digest_features(digest: Any, name: str, side: str, features: Array) -> None:
    if features.dtype.kind != "f":
        raise InputError(f"{name}: {side} features are {features.dtype}; expected float16 or float32")
    digest.update(f"{features.shape} {features.dtype}".encode())
    for start, rows in chunks(features):
        if not np.isfinite(rows).all():
            row = start + int(np.flatnonzero(~np.isfinite(rows).reshape(len(rows), -1).all(axis=1))[0])
            raise InputError(f"{name}: features of {side} {row} (from 0) are not finite; remove or extract it again")
        digest.update(np.ascontiguousarray(rows).tobytes())
