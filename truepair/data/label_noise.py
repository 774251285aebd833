"""Label noise: give a chosen share of the pairs another class, and read and write index files of labels.

Source: MRL (Learning Cross-Modal Retrieval with Noisy Labels, CVPR 2021), with one label a pair where its released code
draws one for the image and one for the text. A drawn class may be the right one: `Pairs.label_noise_rate` of the result
is the realised rate, `rate` only the nominal one. The pairs themselves stay as they are: see `noise.py` for mismatches.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from truepair.data.index_files import read_index, write_index
from truepair.data.pairs import IntArray, Pairs
from truepair.errors import InputError


def inject_label_noise(
    pairs: Pairs,
    rate: float,
    *,
    kind: Literal["symmetric", "asymmetric"] = "symmetric",
    seed: int,
    partner: IntArray | None = None,
) -> Pairs:
    """The pairs with round(rate * N) of the N labels drawn anew; `true_labels` holds the truth.

    - "symmetric": the class is drawn evenly from all K classes, the present one among them, so that about one in K
      stays: the realised rate is about rate * (1 - 1/K).
    - "asymmetric": the class becomes its partner. As in MRL, half of the classes, drawn by `seed`, have one each of the
      other half; those of the other half (and a class left over) are their own partners, so about half of the chosen
      pairs stay right. `partner` gives other partners.

    The truth stays what it was if it was known, else it is the label before the call. The result depends on `pairs`,
    `rate`, `kind`, `partner` and `seed` alone; the partners drawn depend on K and `seed` alone.

    Args:
        pairs: labelled pairs, of at least two classes.
        rate: in [0, 1].
        seed: at least 0.
        partner: (K,) whole numbers, the class that a pair of class k gets; for "asymmetric" only.

    Raises:
        InputError: the pairs have no labels or a single class; `rate`, `kind`, `seed` or `partner` is out of range.
    """
    if not 0 <= rate <= 1:
        raise InputError(f"rate is {rate}; expected a share from 0 (no pair) to 1 (every pair)")
    if seed < 0:
        raise InputError(f"label noise seed is {seed}; expected a whole number of at least 0")
    if kind not in ("symmetric", "asymmetric"):
        raise InputError(f'label noise kind is {kind!r}; expected "symmetric" or "asymmetric"')
    if partner is not None and kind != "asymmetric":
        raise InputError("partner says which class becomes which, but symmetric noise draws from all; leave it out")
    given, classes = _given(pairs), len(pairs.class_names)
    if classes < 2:
        raise InputError(f"{pairs.name} has a single class; label noise needs at least two")

    from truepair.seeding import generator

    rng = generator(seed, "label noise")
    chosen = rng.permutation(len(pairs))[: round(rate * len(pairs))]
    labels = given.copy()
    if kind == "symmetric":
        labels[chosen] = rng.integers(classes, size=len(chosen))
    else:
        if partner is None:
            partner = _partners(classes, generator(seed, "label partners"))
        labels[chosen] = _checked_partners(partner, classes)[given[chosen]]
    return replace(pairs, labels=labels, true_labels=_truth(pairs))


def write_label_index(pairs: Pairs, path: Path | str) -> None:
    """Write the given labels as an int64[N] .npy file: entry p is the class number of pair p.

    Numbers count the classes of `pairs.class_names` from 0: apply the file to pairs with the same classes.

    Raises:
        InputError: the pairs have no labels, or the file exists with other content.
        TruepairError: the file cannot be written.
    """
    write_index(path, _given(pairs))


def apply_label_index(pairs: Pairs, path: Path | str) -> Pairs:
    """The pairs with the labels of an index file; `true_labels` holds the truth, as `inject_label_noise` does.

    A .npy file is read as `write_label_index` writes it, a .json file as MRL does: a list of class numbers for each
    modality, which must agree as a pair has one label here, or a single such list.

    Raises:
        InputError: the pairs have no labels; the file is missing or not of this form, of the wrong length, or an entry
            is not the number of a class; the lists of a .json file differ in a row.
    """
    truth, classes = _truth(pairs), len(pairs.class_names)
    expected = f"expected {len(pairs)} whole numbers, one a pair of {pairs.name}, from 0 to {classes - 1}"
    made_for = "the index file made for this split of this data set, with the same classes left out"
    index = read_index(
        Path(path), expected, lengths=(len(pairs),), below=classes, what="class", made_for=made_for, lists=True
    )
    return replace(pairs, labels=index, true_labels=truth)


def _given(pairs: Pairs) -> IntArray:
    if pairs.labels is None:
        raise InputError(
            f"{pairs.name} has no labels, so none can be wrong; name the column that holds them (label, --label), or "
            "take a source with classes"
        )
    return pairs.labels


def _truth(pairs: Pairs) -> IntArray:
    return _given(pairs) if pairs.true_labels is None else pairs.true_labels


def _partners(classes: int, rng: np.random.Generator) -> IntArray:
    """(K,) half of the classes get one each of the other half; the others stay."""
    order, half = rng.permutation(classes), classes // 2
    partner = np.arange(classes, dtype=np.int64)
    partner[order[:half]] = order[half : 2 * half]
    return partner


def _checked_partners(partner: IntArray, classes: int) -> IntArray:
    partner = np.asarray(partner)
    if partner.dtype.kind not in "iu" or partner.shape != (classes,):
        raise InputError(
            f"partner holds {partner.dtype} of shape {partner.shape}; expected {classes} whole numbers, one a class"
        )
    outside = np.flatnonzero((partner < 0) | (partner >= classes))
    if len(outside):
        row = int(outside[0])
        raise InputError(f"partner[{row}] is {partner[row]}; expected the number of a class, 0 … {classes - 1}")
    return partner.astype(np.int64)
