"""Which data, and how it is altered for training; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from truepair.errors import InputError
from truepair.option import option


@dataclass(frozen=True)
class DataConfig:
    """Which pairs to train on, and what is done to them first."""

    source: str
    noise: float = option(0.0, "share of training pairs to mismatch on purpose, in [0, 1]")
    noise_kind: Literal["caption", "image", "class"] = option(
        "caption",
        "what is shuffled: single captions (NCR), whole images (DECL), or captions among pairs of one "
        "class (needs --label)",
    )
    noise_seed: int | None = option(None, "seed of both kinds of noise; default: --seed")
    noise_index: str | None = option(None, "an index file (.npy) of the field that says which image each caption gets")
    label: str | None = option(None, "column that gives each pair its class; feature files have their own labels")
    label_noise: float = option(0.0, "share of training labels to draw anew on purpose, in [0, 1]")
    label_noise_kind: Literal["symmetric", "asymmetric"] = option(
        "symmetric", "a label drawn anew is any class (symmetric) or the partner of its class (asymmetric)"
    )
    label_noise_index: str | None = option(
        None, "an index file (.npy, or MRL's .json) with the label of each training pair"
    )
    least_class_pairs: int | None = option(None, "leave out classes with fewer than N training pairs, in all splits")
    dev_pairs: int | None = option(
        None, "feature files: the first N test pairs are for validation; default: a third, or their own"
    )
    train_pairs: int | None = option(None, "train on the first N pairs only; default: all")
    score_images: int | None = option(None, "score dev and test by their first N images and the captions of these only")
    oracle: bool = option(
        False, "reference: train on the truly matched pairs only, which needs the truth (noise or index)"
    )
    vocabulary: str | None = option(
        None, "a *_vocab.json of the field to read captions with; default: made from the captions"
    )

    def __post_init__(self) -> None:
        for name, least in (("train_pairs", 2), ("score_images", 2), ("least_class_pairs", 1), ("dev_pairs", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} is {value}; expected at least {least}")

    def resolved(self) -> DataConfig:
        """The same with absolute paths, so that a run can be repeated from anywhere."""

        def absolute(path: str | None) -> str | None:
            return path if path is None or path.startswith("scenes") else str(Path(path).resolve())

        return replace(
            self,
            source=absolute(self.source) or "",
            noise_index=absolute(self.noise_index),
            label_noise_index=absolute(self.label_noise_index),
            vocabulary=absolute(self.vocabulary),
        )


@dataclass(frozen=True)
class Augmentation:
    """How training batches are altered, on copies: as in CRCL's released training, here for every method."""

    word_share: float = option(0.2, "share of words dealt with: 50 % masked, 10 % replaced, 40 % dropped (CRCL)")
    region_share: float = option(0.2, "share of regions dropped (CRCL, VSE∞)")

    def __post_init__(self) -> None:
        for name, share in (("word share", self.word_share), ("region share", self.region_share)):
            if not 0 <= share < 1:
                raise InputError(f"{name} is {share}; expected a value in [0, 1)")
