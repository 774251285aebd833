"""`truepair noise` and `truepair describe` on labelled sources."""

import json
from pathlib import Path

import numpy as np
import pytest

from truepair.cli.main import main
from truepair.data.describe import describe
from truepair.data.label_noise import inject_label_noise
from truepair.data.noise import apply_noise_index
from truepair.data.open import load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A precomp folder whose classes are a (12), b (6), c (2) in training; test has a and d."""
    rng = np.random.default_rng(0)
    for split, kinds in (("train", "aaaaaabbbc" * 2), ("test", "aad")):
        np.save(tmp_path / f"{split}_ims.npy", rng.normal(size=(len(kinds), 2, 3)).astype(np.float32))
        (tmp_path / f"{split}_caps.txt").write_text("".join(f"caption {k}\n" for k in range(len(kinds))))
        (tmp_path / f"{split}_meta.tsv").write_text("\n".join(["kind", *kinds]) + "\n")
    return tmp_path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    arrays = {"I_tr": rng.random((9, 4)), "T_tr": rng.random((9, 2)), "L_tr": np.arange(9) % 3}
    arrays |= {"I_te": rng.random((6, 4)), "T_te": rng.random((6, 2)), "L_te": np.array([0, 1, 2, 0, 5, 5])}
    np.savez(tmp_path / "f.npz", **arrays)
    return tmp_path / "f.npz"


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric"])
def test_noise_writes_a_label_index(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    out = folder / "labels.npy"
    asked = ["noise", str(folder), "--rate", "0.5", "--kind", kind, "--label", "kind", "--seed", "3", "--out", str(out)]
    assert main(asked) == 0
    expected = inject_label_noise(load(folder, label="kind"), 0.5, kind=kind, seed=3)
    assert np.array_equal(np.load(out), expected.labels)
    assert expected.label_noise_rate is not None
    assert f"{100 * expected.label_noise_rate:.2f} % of 20 labels wrong ({kind}, 4 classes)" in capsys.readouterr().out


def test_noise_leaves_out_small_classes_as_train_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "labels.npy"
    asked = ["noise", str(folder), "--rate", "1", "--kind", "symmetric", "--label", "kind", "--least-class-pairs", "5"]
    assert main([*asked, "--out", str(out)]) == 0
    assert np.load(out).shape == (18,)
    assert set(np.load(out).tolist()) == {0, 1}
    assert "of 18 labels wrong (symmetric, 2 classes)" in capsys.readouterr().out


def test_noise_within_classes_is_an_index_that_training_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "index.npy"
    asked = ["noise", str(folder), "--rate", "1", "--kind", "class", "--label", "kind", "--seed", "3"]
    assert main([*asked, "--out", str(out)]) == 0
    assert "mismatched (class shuffle)" in capsys.readouterr().out
    pairs = load(folder, label="kind")
    noisy = apply_noise_index(pairs, out)
    assert noisy.mismatched is not None and noisy.mismatched.sum() >= 10
    assert pairs.labels is not None  # one caption an image: the class of an image is that of its pair
    assert np.array_equal(pairs.labels[noisy.image_index], pairs.labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "class"], "exchanges captions within classes, and the pairs have no labels"),
        (["--kind", "symmetric"], "has no labels, so none can be wrong; name the column"),
        (["--label", "kind"], "--label is for wrong labels, but --kind caption mismatches pairs; leave it out"),
        (["--kind", "image", "--least-class-pairs", "2"], "--least-class-pairs is for wrong labels"),
        (["--kind", "symmetric", "--label", "sort"], "has no column 'sort'; its columns are kind"),
    ],
)
def test_noise_refuses(folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    assert main(["noise", str(folder), "--rate", "0.5", "--out", str(folder / "x.npy"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "x.npy").exists()


def test_describe_counts_the_classes_of_a_column(folder: Path) -> None:
    test, train = describe(folder, label="kind").splits
    assert train.class_counts == {"a": 12, "b": 6, "c": 2}
    assert test.class_counts == {"a": 2, "d": 1}
    assert train.unseen_classes == ()
    assert test.unseen_classes == ("d",)
    assert describe(folder).splits[0].class_counts == {}
    text = describe(folder, label="kind").render()
    assert "3 classes of 2 to 12 pairs: a 12, b 6, c 2" in text
    assert "d (can be retrieved, but not learned)" in text
    assert "has no column 'sort'" in describe(folder, label="sort").render()


def test_describe_a_feature_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, dev, test = describe(file).splits
    assert train.text_features is not None
    assert train.text_features.shape == (9, 2)
    assert train.class_counts == {"0": 3, "1": 3, "2": 3, "5": 0}
    assert (dev.unseen_classes, test.unseen_classes) == ((), ("5",))
    assert train.label_noise_rate is None
    assert main(["describe", str(file)]) == 0
    text = capsys.readouterr().out
    assert "f.npz/test" in text
    assert "words a caption" not in text
    assert "5 (can be retrieved, but not learned)" in text
    assert main(["describe", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["splits"][2]["unseen_classes"] == ["5"]


def test_describe_tells_the_share_of_wrong_labels(folder: Path) -> None:
    noisy = inject_label_noise(load(folder, label="kind"), 0.9, seed=1)
    (split,) = describe(noisy).splits
    assert split.label_noise_rate == noisy.label_noise_rate
    assert "wrong labels" in describe(noisy).render()


def test_describe_offers_the_columns_of_a_table(tmp_path: Path) -> None:
    from PIL import Image

    lines = []
    for k in range(4):
        Image.new("RGB", (20, 20), (40 * k, 0, 0)).save(tmp_path / f"{k}.png")
        lines.append(json.dumps({"image": f"{k}.png", "caption": f"red {k}", "kind": "ab"[k % 2], "shade": k}))
    (tmp_path / "table.jsonl").write_text("\n".join(lines))
    (split,) = describe(tmp_path).splits
    assert split.label_columns == {"kind": 2, "shade": 4}
    assert split.class_counts == {}
    (split,) = describe(tmp_path, label="kind").splits
    assert split.class_counts == {"a": 2, "b": 2}
    assert split.text_features is None
