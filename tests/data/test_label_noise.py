import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truepair.data.label_noise import apply_label_index, inject_label_noise, write_label_index
from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError

Kind = Literal["symmetric", "asymmetric"]
KINDS: tuple[Kind, ...] = ("symmetric", "asymmetric")


def make_pairs(count: int, classes: int, *, labelled: bool = True) -> Pairs:
    index, names = np.arange(count, dtype=np.int64), tuple(map(str, range(count)))
    labels = np.random.default_rng(count).integers(classes, size=count)
    return Pairs(
        images=Images(np.zeros((count, 3), np.float32), names),
        texts=Texts(names, names),
        image_index=index,
        text_index=index,
        labels=labels if labelled else None,
        class_names=tuple(f"class {k}" for k in range(classes)) if labelled else (),
        name="made",
    )


def given_labels(pairs: Pairs) -> list[int]:
    assert pairs.labels is not None
    return [int(label) for label in pairs.labels]


def true_labels(pairs: Pairs) -> list[int]:
    assert pairs.true_labels is not None
    return [int(label) for label in pairs.true_labels]


some_noise = {
    "count": st.integers(1, 60),
    "classes": st.integers(2, 12),
    "rate": st.floats(0, 1),
    "kind": st.sampled_from(KINDS),
    "seed": st.integers(0, 2**40),
}


@given(**some_noise)
def test_noise_changes_few_labels_and_keeps_the_truth(
    count: int, classes: int, rate: float, kind: Kind, seed: int
) -> None:
    pairs = make_pairs(count, classes)
    before = given_labels(pairs)
    noisy = inject_label_noise(pairs, rate, kind=kind, seed=seed)
    assert true_labels(noisy) == before == given_labels(pairs)
    assert pairs.true_labels is None
    wrong = sum(one != other for one, other in zip(given_labels(noisy), before, strict=True))
    assert wrong <= round(rate * count)
    assert noisy.label_noise_rate == wrong / count
    assert noisy.wrong_labels is not None
    assert int(noisy.wrong_labels.sum()) == wrong
    assert all(0 <= label < classes for label in given_labels(noisy))
    assert noisy.image_index is pairs.image_index
    assert noisy.mismatch_rate is None


@pytest.mark.parametrize("kind", KINDS)
def test_rate_zero_changes_nothing_and_knows_it(kind: Kind) -> None:
    noisy = inject_label_noise(make_pairs(50, 5), 0.0, kind=kind, seed=1)
    assert noisy.label_noise_rate == 0.0
    assert given_labels(noisy) == true_labels(noisy)


@pytest.mark.parametrize(("classes", "rate"), [(2, 1.0), (10, 0.4), (10, 1.0), (200, 0.8)])
def test_symmetric_noise_draws_evenly_from_all_classes(classes: int, rate: float) -> None:
    pairs = make_pairs(40_000, classes)
    noisy = inject_label_noise(pairs, rate, seed=5)
    expected = rate * (1 - 1 / classes)
    assert noisy.label_noise_rate == pytest.approx(expected, abs=0.01)
    wrong = [one for one, truth in zip(given_labels(noisy), true_labels(noisy), strict=True) if one != truth]
    share = np.bincount(wrong, minlength=classes) / len(wrong)
    assert share.max() < 1.5 / classes
    assert share.min() > 0.5 / classes


@pytest.mark.parametrize("classes", [2, 3, 10, 11, 200])
def test_asymmetric_noise_maps_half_of_the_classes_onto_the_other_half(classes: int) -> None:
    noisy = inject_label_noise(make_pairs(classes * 30, classes), 1.0, kind="asymmetric", seed=3)
    targets: dict[int, set[int]] = {}
    for truth, label in zip(true_labels(noisy), given_labels(noisy), strict=True):
        targets.setdefault(truth, set()).add(label)
    assert all(len(found) == 1 for found in targets.values())
    partner = {truth: found.pop() for truth, found in targets.items()}
    moved = {truth: other for truth, other in partner.items() if truth != other}
    assert len(moved) == classes // 2
    assert len(set(moved.values())) == classes // 2
    assert not set(moved) & set(moved.values())


def test_partners_depend_on_the_seed_and_the_classes_alone() -> None:
    def moves(count: int, rate: float, seed: int) -> set[tuple[int, int]]:
        noisy = inject_label_noise(make_pairs(count, 10), rate, kind="asymmetric", seed=seed)
        return {pair for pair in zip(true_labels(noisy), given_labels(noisy), strict=True) if pair[0] != pair[1]}

    assert moves(2000, 1.0, 1) == moves(3000, 0.5, 1)
    assert moves(2000, 1.0, 1) != moves(2000, 1.0, 2)


def test_partners_can_be_given() -> None:
    swap = np.array([1, 0, 2])
    noisy = inject_label_noise(make_pairs(300, 3), 1.0, kind="asymmetric", seed=1, partner=swap)
    assert given_labels(noisy) == [swap[label] for label in true_labels(noisy)]
    half = inject_label_noise(make_pairs(300, 3), 0.5, kind="asymmetric", seed=1, partner=swap)
    changed = sum(one != other for one, other in zip(given_labels(half), true_labels(half), strict=True))
    assert 70 < changed < 130


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_seed_decides(kind: Kind) -> None:
    pairs = make_pairs(200, 6)
    first = inject_label_noise(pairs, 0.5, kind=kind, seed=7)
    np.random.seed(0)  # noqa: NPY002 - the global state is what must not matter
    again, other = (inject_label_noise(pairs, 0.5, kind=kind, seed=seed) for seed in (7, 8))
    assert given_labels(first) == given_labels(again)
    assert given_labels(first) != given_labels(other)


def test_known_truth_stays() -> None:
    pairs = make_pairs(400, 10)
    twice = inject_label_noise(inject_label_noise(pairs, 0.3, seed=1), 0.3, seed=2)
    assert true_labels(twice) == given_labels(pairs)
    assert twice.label_noise_rate is not None
    assert 0.36 < twice.label_noise_rate < 0.54


def test_labels_and_images_are_not_altered_in_the_same_rows() -> None:
    """With one seed for both kinds of noise they must not fall on the same pairs."""
    from truepair.data.noise import inject_noise

    noisy = inject_noise(inject_label_noise(make_pairs(4000, 20), 0.5, seed=0), 0.5, seed=0)
    assert noisy.wrong_labels is not None
    assert noisy.mismatched is not None
    both = float((noisy.wrong_labels & noisy.mismatched).mean())
    assert both == pytest.approx(0.5 * 0.475, abs=0.03)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rate_out_of_range(rate: float) -> None:
    with pytest.raises(InputError, match=rf"^rate is {rate}; expected a share from 0"):
        inject_label_noise(make_pairs(3, 2), rate, seed=0)


def test_other_arguments_are_checked() -> None:
    pairs = make_pairs(9, 3)
    wrong: Any = "sym"
    with pytest.raises(InputError, match="label noise seed is -1; expected a whole number of at least 0"):
        inject_label_noise(pairs, 0.5, seed=-1)
    with pytest.raises(InputError, match='label noise kind is \'sym\'; expected "symmetric" or "asymmetric"'):
        inject_label_noise(pairs, 0.5, kind=wrong, seed=0)
    with pytest.raises(InputError, match="made has no labels, so none can be wrong; name the column"):
        inject_label_noise(make_pairs(9, 3, labelled=False), 0.5, seed=0)
    with pytest.raises(InputError, match="made has a single class; label noise needs at least two"):
        inject_label_noise(make_pairs(9, 1), 0.5, seed=0)
    with pytest.raises(InputError, match="symmetric noise draws from all; leave it out"):
        inject_label_noise(pairs, 0.5, seed=0, partner=np.array([1, 0, 2]))
    for partner, message in (
        (np.array([1, 0]), r"partner holds int64 of shape \(2,\); expected 3 whole numbers"),
        (np.array([1.0, 0.0, 2.0]), r"partner holds float64"),
        (np.array([1, 3, 2]), r"partner\[1\] is 3; expected the number of a class, 0 … 2"),
        (np.array([1, 0, -1]), r"partner\[2\] is -1"),
    ):
        with pytest.raises(InputError, match=message):
            inject_label_noise(pairs, 0.5, kind="asymmetric", seed=0, partner=partner)


# ---- index files ----


@given(**some_noise)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory, count: int, classes: int, rate: float, kind: Kind, seed: int
) -> None:
    path = tmp_path_factory.mktemp("labels") / "index.npy"
    pairs = make_pairs(count, classes)
    noisy = inject_label_noise(pairs, rate, kind=kind, seed=seed)
    write_label_index(noisy, path)
    stored = np.load(path, allow_pickle=False)
    assert stored.dtype == np.int64
    assert stored.shape == (count,)
    again = apply_label_index(pairs, path)
    assert given_labels(again) == given_labels(noisy)
    assert true_labels(again) == given_labels(pairs)


def test_the_lists_of_mrl(tmp_path: Path) -> None:
    path = tmp_path / "noise_labels_0.4_sym.json"
    for content in ([[2, 0, 1, 1]] * 2, [[2, 0, 1, 1]], [2, 0, 1, 1]):
        path.write_text(json.dumps(content))
        assert given_labels(apply_label_index(make_pairs(4, 3), path)) == [2, 0, 1, 1]


def test_apply_keeps_a_known_truth(tmp_path: Path) -> None:
    pairs = make_pairs(30, 4)
    write_label_index(pairs, tmp_path / "i.npy")
    mended = apply_label_index(inject_label_noise(pairs, 1.0, seed=1), tmp_path / "i.npy")
    assert mended.label_noise_rate == 0.0


def test_write_keeps_a_different_file_and_needs_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    noisy = inject_label_noise(make_pairs(40, 4), 0.5, seed=1)
    write_label_index(noisy, path)
    write_label_index(noisy, path)
    with pytest.raises(InputError, match=r"x\.npy exists with other content"):
        write_label_index(inject_label_noise(make_pairs(40, 4), 0.5, seed=2), path)
    with pytest.raises(InputError, match="made has no labels"):
        write_label_index(make_pairs(4, 2, labelled=False), tmp_path / "y.npy")
    assert not (tmp_path / "y.npy").exists()


EXPECTED = r".*expected 5 whole numbers, one a pair of made, from 0 to 2"
BAD_ARRAYS = {
    "length": (np.zeros(4, np.int64), "has 4 entries;" + EXPECTED + ".*with the same classes left out"),
    "float": (np.zeros(5), r"holds float64 of shape \(5,\);" + EXPECTED + r".*astype\(np.int64\)"),
    "bool": (np.zeros(5, bool), "holds bool"),
    "rank": (np.zeros((5, 1), np.int64), r"holds int64 of shape \(5, 1\)"),
    "high": (np.array([0, 3, 2, 9, 1]), r", row 1 \(from 0\): the class number is 3;" + EXPECTED + ".*2 rows are out"),
    "negative": (np.array([0, 1, 2, -1, 1]), r", row 3 \(from 0\): the class number is -1"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_unusable_arrays(tmp_path: Path, case: str) -> None:
    array, message = BAD_ARRAYS[case]
    np.save(tmp_path / "index.npy", array)
    with pytest.raises(InputError, match=r"index\.npy.*" + message):
        apply_label_index(make_pairs(5, 3), tmp_path / "index.npy")


BAD_JSON = {
    "not json": ("[1, 2", r"is not JSON \(.*" + EXPECTED),
    "deep": ("[" * 200_000, r"is not JSON"),
    "object": ('{"labels": []}', "holds dict where a list should be"),
    "nested": ("[[[0, 1]]]", r", row 0 \(from 0\): found '\[0, 1\]'"),
    "mixed": ("[[0, 1, 2, 0, 1], 3]", "holds int where a list should be"),
    "float": ("[0, 1.5, 2, 0, 1]", r", row 1 \(from 0\): found '1\.5'"),
    "bool": ("[0, true, 2, 0, 1]", r", row 1 \(from 0\): found 'True'"),
    "huge": ("[0, 1, 2, 0, 1000000000000000000000]", r", row 4 \(from 0\): found '1000000"),
    "lengths": ("[[0, 1, 2, 0, 1], [0, 1, 2, 0]]", "list 0 has 5 entries and list 1 4"),
    "differ": (
        "[[0, 1, 2, 0, 1], [0, 1, 1, 0, 2]]",
        r", row 2 .*list 0 says 2 and list 1 1;.* 2 rows differ.*keep one",
    ),
    "empty": ("[]", "has 0 entries"),
    "high": ("[[0, 1, 2, 0, 3]]", r", row 4 \(from 0\): the class number is 3"),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_unusable_json(tmp_path: Path, case: str) -> None:
    content, message = BAD_JSON[case]
    (tmp_path / "index.json").write_text(content)
    with pytest.raises(InputError, match=r"index\.json.*" + message):
        apply_label_index(make_pairs(5, 3), tmp_path / "index.json")


@pytest.mark.parametrize("name", ["none.npy", "none.json"])
def test_missing_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=name + r" cannot be read \(No such file.*" + EXPECTED + ".*Check the path"):
        apply_label_index(make_pairs(5, 3), tmp_path / name)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "index.npy", np.array([{}] * 5, dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"index\.npy is not a plain \.npy file"):
        apply_label_index(make_pairs(5, 3), tmp_path / "index.npy")


def test_pairs_without_labels_take_no_index(tmp_path: Path) -> None:
    np.save(tmp_path / "index.npy", np.zeros(5, np.int64))
    with pytest.raises(InputError, match="made has no labels"):
        apply_label_index(make_pairs(5, 3, labelled=False), tmp_path / "index.npy")
