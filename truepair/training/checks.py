"""What `fit` refuses before any work: pairs, methods and engines that do not go together."""

from __future__ import annotations

from truepair.data.pairs import Pairs
from truepair.engines.config import EngineConfig
from truepair.errors import InputError
from truepair.methods.base import Method
from truepair.training.setup import Setup


def check_trainable(pairs: Pairs, dev: Pairs | None, test: Pairs | None, setup: Setup) -> None:
    """Refuse, before any work, pairs that cannot be trained on or scored by.

    Raises:
        InputError: too few training pairs, splits that are not prepared alike, or a text with several images in dev or
            test.
    """
    assert setup.preparation is not None
    if len(pairs) < 2:
        raise InputError(
            f"{pairs.name}: {len(pairs)} pair; training needs at least 2, since pairs are told apart by others"
        )
    for split in (dev, test):
        if split is None:
            continue
        setup.preparation.check(split)
        if len(split.texts) == 0:
            raise InputError(f"{split.name}: it holds no caption to score by; leave the split out")
        _ = split.image_of_text


def check_labels(pairs: Pairs, dev: Pairs | None, test: Pairs | None, method: Method, model: EngineConfig) -> None:
    """Refuse pairs without the classes that a method learns from, and engines that give it no vectors.

    Raises:
        InputError: see above; or the splits do not number the same classes.
    """
    if not method.learns_from_labels:
        return
    if not model.gives_vectors:
        raise InputError(
            f"method {method.name} compares items with classes by one vector each, which {model.name} does not "
            "make; use --model mlp or --model global"
        )
    for split in (pairs, dev, test):
        if split is None:
            continue
        if split.labels is None:
            raise InputError(
                f"{split.name}: method {method.name} learns from class labels and the pairs have none; name the column "
                "that holds them with --label"
            )
        if split.class_names != pairs.class_names:
            raise InputError(f"{split.name}: its classes are not those of {pairs.name}; number both the same way")
    assert pairs.labels is not None
    if len(set(pairs.labels.tolist())) < 2:
        raise InputError(f"{pairs.name}: all pairs are of one class; there is nothing to tell apart")


def check_engine(method: Method, model: EngineConfig, *, scored: bool) -> None:
    """Refuse an engine without vectors, or one that starts from nothing, where the method needs the other.

    Args:
        scored: whether the pairs have scores by somebody else's model, which stand in for those of a trained engine.

    Raises:
        InputError: see above.
    """
    if method.needs_vectors and not model.gives_vectors:
        raise InputError(
            f"method {method.name} needs one vector an item, which {model.name} does not make; use --model global, mlp "
            "or pretrained"
        )
    if method.trusts_the_start and not model.starts_trained and not (scored and method.reads_scores):
        raise InputError(
            f"method {method.name} with warm_up_epochs 0 weighs the pairs by the model as it starts, and {model.name} "
            f"starts from weights drawn anew; use --model pretrained, or a warm-up (--{method.name}-warm-up-epochs)"
            f"{', or give --pair-scores' if method.reads_scores else ''}"
        )


def check_scores(pairs: Pairs, method: Method) -> None:
    """Refuse scores of the pairs where the method reads none. Raises InputError."""
    if pairs.scores is not None and not method.reads_scores:
        raise InputError(f"method {method.name} learns nothing from scores of the pairs; leave --pair-scores out")


def check_trusted(pairs: Pairs, method: Method) -> None:
    """Refuse pairs of which too few are known to match, where the method learns from such.

    Raises:
        InputError: see above.
    """
    least, known = method.least_trusted, 0 if pairs.trusted is None else int(pairs.trusted.sum())
    if known < least:
        raise InputError(
            f"method {method.name} learns from pairs that are known to match: at least {least}, and {known} are "
            "given. Name them with --clean-pairs FILE, the id of a pair a line, or draw them "
            "where the noise is injected: --clean-pairs N"
        )
    if known and not least:
        raise InputError(
            f"method {method.name} learns nothing from the {known} pairs that are known to match; leave "
            "--clean-pairs out"
        )
