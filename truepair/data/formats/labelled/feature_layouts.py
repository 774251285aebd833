"""Which arrays of a feature file belong to which split: the names that releases of labelled features give them.

`{}` stands for the split. Every spelling of a split goes with every pattern, so a file may mix them:

    tr_img, tr_txt, tr_img_lab, tr_txt_lab, val_…, te_…                                 (MRL's INRIA-Websearch)
    train_imgs_deep, train_texts or train_text, train_imgs_labels, train_texts_labels   (MRL's HDF5 files)
    I_tr, T_tr, L_tr, I_te, …                                                           (Wikipedia and many others)
    train_images, train_texts, train_labels, dev_images, …
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from truepair.errors import InputError
from truepair.phrases import listed

SPELLINGS = {"train": ("train", "tr"), "dev": ("dev", "val", "valid", "va"), "test": ("test", "te")}
IMAGES = ("I_{}", "{}_img", "{}_imgs", "{}_imgs_deep", "{}_images")
TEXTS = ("T_{}", "{}_txt", "{}_text", "{}_texts")
LABELS = ("L_{}", "{}_lab", "{}_labels", "{}_img_lab", "{}_imgs_labels", "{}_txt_lab", "{}_texts_labels")
_WITHOUT_CLASSES = "vectors of pairs without classes belong in a folder, as images.npy and texts.npy"


@dataclass(frozen=True)
class Part:
    """The names of one split's arrays; several label arrays (the images', the texts') must agree row by row."""

    images: str
    texts: str
    labels: tuple[str, ...]


def find_parts(path: Path, names: Collection[str], *, labelled: bool = True) -> dict[str, Part]:
    """The splits among the arrays `names` of a file, `train` always among them; `labelled`: they need labels."""
    parts = {split: _find_part(path, names, split, labelled=labelled) for split in SPELLINGS}
    found = {split: part for split, part in parts.items() if part is not None}
    if "train" not in found:
        raise InputError(
            f"{path} holds {_listing(names)}; expected images, texts and labels of the training split, such as "
            f"train_images, train_texts and train_labels (or {_ways(IMAGES, 'train')}; {_ways(TEXTS, 'train')}; "
            f"{_ways(LABELS, 'train')}). Rename the arrays; {_WITHOUT_CLASSES}"
        )
    return found


def _find_part(path: Path, names: Collection[str], split: str, *, labelled: bool) -> Part | None:
    images, texts, labels = (_present(names, patterns, split) for patterns in (IMAGES, TEXTS, LABELS))
    if not images and not texts:
        return None
    for what, found, patterns in (("images", images, IMAGES), ("texts", texts, TEXTS)):
        if len(found) != 1:
            several = f"several arrays of {split} {what} ({', '.join(found)})" if found else f"no {split} {what}"
            raise InputError(
                f"{path} holds {several}; expected exactly one array, named in one of the ways "
                f"{_ways(patterns, split)}. The file holds {_listing(names)}: rename, remove or add the array"
            )
    if labelled and not labels:
        raise InputError(
            f"{path} holds no {split} labels; expected one class for each pair, in an array named in one of the ways "
            f"{_ways(LABELS, split)}. The file holds {_listing(names)}: add the labels or rename their array; "
            f"{_WITHOUT_CLASSES}"
        )
    return Part(images[0], texts[0], labels)


def _present(names: Collection[str], patterns: tuple[str, ...], split: str) -> tuple[str, ...]:
    spelled = (pattern.format(spelling) for pattern in patterns for spelling in SPELLINGS[split])
    return tuple(name for name in spelled if name in names)


def _ways(patterns: tuple[str, ...], split: str) -> str:
    return ", ".join(pattern.format(spelling) for pattern in patterns for spelling in SPELLINGS[split])


def _listing(names: Collection[str]) -> str:
    return listed(sorted(names)) or "no arrays"
