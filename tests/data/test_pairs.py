from dataclasses import replace

import numpy as np
import pytest

from truepair.data.classes import keep_classes
from truepair.data.noise import inject_noise
from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError


def made_pairs(*, named: bool = True) -> Pairs:
    """Six pairs of four images; pair p says "caption p", comes from row 10 p and is called "pair p"."""
    rows = np.arange(6, dtype=np.int64)
    return Pairs(
        Images(np.arange(8, dtype=np.float32).reshape(4, 2), ("a", "b", "c", "d")),
        Texts(tuple(f"caption {p}" for p in range(6)), tuple(f"text {p}" for p in range(6))),
        np.array([0, 0, 1, 2, 2, 3], dtype=np.int64),
        rows,
        labels=np.array([0, 0, 0, 1, 1, 2], dtype=np.int64),
        class_names=("x", "y", "z"),
        source_rows=10 * rows,
        pair_ids=[f"pair {p}" for p in range(6)] if named else None,
    )


def test_ids_are_the_names_given_else_the_source_rows() -> None:
    assert made_pairs().ids(1, 3) == ["pair 1", "pair 2"]
    assert made_pairs(named=False).ids(1, 3) == ["10", "20"]
    plain = Pairs(Images(np.zeros((2, 1), np.float32), ("a", "b")), Texts(("c", "d"), ("c", "d")), *[np.arange(2)] * 2)
    assert plain.source_rows.tolist() == [0, 1]
    assert plain.ids() == ["0", "1"]


@pytest.mark.parametrize("named", [True, False])
def test_ids_stay_with_their_pairs_whatever_is_left_out(named: bool) -> None:
    pairs = made_pairs(named=named)
    noisy = inject_noise(pairs, 0.7, seed=3)
    train, _ = keep_classes(pairs, (), least=2)
    kept = (
        pairs.take(np.array([5, 0])),
        noisy,
        noisy.matched_only(),
        train,
        pairs.first_images(3),
        train.take(np.array([4])),
    )
    assert [len(some) for some in kept] == [2, 6, len(noisy) - noisy.mismatched.sum(), 5, 5, 1]
    for some in kept:
        said = [some.texts.captions[text].split()[1] for text in some.text_index]
        assert some.ids() == [f"pair {p}" if named else str(10 * int(p)) for p in said]
        assert some.source_rows.tolist() == [10 * int(p) for p in said]


def test_a_name_and_a_row_for_each_pair() -> None:
    with pytest.raises(InputError, match="2 source rows for 6 entries"):
        replace(made_pairs(), source_rows=np.arange(2))
    with pytest.raises(InputError, match="1 pair ids for 6 entries"):
        replace(made_pairs(), pair_ids=["one"])
