"""Splits: what the field calls them, and shares drawn where a source has none."""

from pathlib import Path

import numpy as np
import pytest

from tests.data.formats.made_pictures import write_pictures
from tests.data.test_every_format import make_arrays, make_csv, make_karpathy, make_shards
from truepair.cli.main import main
from truepair.data.config import DataConfig
from truepair.data.formats.shards.shard_names import splits_of as shard_splits
from truepair.data.open import load, load_splits, read_config
from truepair.data.open import open as open_source
from truepair.data.splits import named
from truepair.errors import InputError, TooLargeError


@pytest.mark.parametrize(
    ("asked", "available", "found"),
    [
        ("dev", ("train", "val"), ("val",)),
        ("val", ("dev", "val"), ("val",)),
        ("validation", ("dev",), ("dev",)),
        ("test", ("testall",), ("testall",)),
        ("test", ("test", "testall"), ("test",)),
        ("testall", ("test",), ()),
        ("train", ("train", "restval", "val"), ("train", "restval")),
        ("train", ("restval",), ("restval",)),
        ("restval", ("train", "restval"), ("restval",)),
        ("part", ("part", "train"), ("part",)),
        ("train", ("dev",), ()),
    ],
)
def test_names_of_the_field(asked: str, available: tuple[str, ...], found: tuple[str, ...]) -> None:
    assert named(asked, available) == found


def test_restval_is_read_with_train(tmp_path: Path) -> None:
    folder = make_karpathy(tmp_path / "in")
    assert load(folder).ids() == open_source(folder).ids(0, 99)
    assert len(load(folder, "restval")) == 12


def test_prefixes_of_shards(tmp_path: Path) -> None:
    assert shard_splits([Path(f"shard-{k}.tar") for k in range(3)]) == ()
    assert shard_splits([Path("train-0.tar"), Path("train-1.tar")]) == ("train",)
    assert shard_splits([Path("a-0.tar"), Path("b_0.tar"), Path("0.tar")]) == ("a", "b")
    folder = make_shards(tmp_path / "in")
    (folder / "train-1.tar").rename(folder / "val-0.tar")
    assert load(folder, "train").ids() == open_source(folder, "train").ids(0, 99)
    assert set(load(folder, "dev").ids()).isdisjoint(load(folder).ids())
    with pytest.raises(InputError, match="no shard's name begins with the split 'test'"):
        load(folder, "test")


@pytest.mark.parametrize("make", [make_csv, make_arrays])
def test_shares_are_drawn_by_image(tmp_path: Path, make) -> None:
    source = make(tmp_path / "in")
    whole = load(source)
    config = DataConfig(str(source), dev_share=0.25, test_share=0.1, split_seed=3)
    splits = load_splits(config, seed=0)
    parts = [splits.train, splits.dev, splits.test]
    assert sorted(row for part in parts for row in part.source_rows) == sorted(whole.source_rows)
    assert len(splits.dev.images) == round(0.25 * len(whole.images))
    assert len(splits.test.images) == round(0.1 * len(whole.images))
    names = [set(part.images.ids) for part in parts]
    assert not names[0] & names[1] and not names[0] & names[2] and not names[1] & names[2]
    known = dict(zip(whole.ids(), whole.texts.captions, strict=True))
    for part in parts:
        assert part.source_rows.tolist() == sorted(part.source_rows.tolist())
        assert [known[name] for name in part.ids()] == [part.texts.captions[text] for text in part.text_index]
    again = load(source, "dev", dev_share=0.25, split_seed=3)
    assert again.ids() == splits.dev.ids()
    assert load(source, "dev", dev_share=0.25, split_seed=4).ids() != again.ids()
    assert load_splits(DataConfig(str(source)), seed=0).dev is None


def test_copies_of_a_picture_are_in_one_split(tmp_path: Path) -> None:
    """Whatever they are called; all others are where they are without the copies."""
    write_pictures(tmp_path, 40)
    (tmp_path / "t.csv").write_text("image,caption\n" + "".join(f"p{k}.png,c {k}\n" for k in range(40)))
    shares = {"dev_share": 0.3, "test_share": 0.2}
    before = {split: set(load(tmp_path, split, **shares).images.ids) for split in ("train", "dev", "test")}
    groups = [[0, 7, 21, 35], [3, 4], [12, 39]]
    for first, *others in groups:
        for other in others:
            (tmp_path / f"p{other}.png").write_bytes((tmp_path / f"p{first}.png").read_bytes())
    moved = {f"p{other}.png": f"p{first}.png" for first, *others in groups for other in others}
    after = {split: set(load(tmp_path, split, **shares).images.ids) for split in before}
    for split, names in after.items():
        expected = {f"p{k}.png" for k in range(40) if moved.get(f"p{k}.png", f"p{k}.png") in before[split]}
        assert names == expected
    assert after != before


def test_shares_that_cannot_be_drawn(tmp_path: Path) -> None:
    source = make_csv(tmp_path / "in")
    for shares, message in (
        ({"dev_share": 1.5}, "--dev-share is 1.5; expected a share"),
        ({"dev_share": 0.6, "test_share": 0.5}, "leave no image to train on"),
        ({"dev_share": 0.001}, "36 images are too few for these shares, dev gets none"),
        ({"test_share": 0.5}, "has no split 'dev', nor any other"),
    ):
        with pytest.raises(InputError, match=message):
            load(source, "dev", **shares)
    with pytest.raises(InputError, match=r"has splits of its own \(restval, train\); leave out --dev-share"):
        load(make_karpathy(tmp_path / "karpathy"), "dev", dev_share=0.5)
    with pytest.raises(InputError, match="for which there is no option dev_share"):
        load("scenes:8", dev_share=0.5)


def test_a_share_of_features_that_memory_cannot_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lie on the disk, and a share of their rows is copied."""
    write_pictures(tmp_path, 10)
    (tmp_path / "t.csv").write_text("image,caption\n" + "".join(f"p{k}.png,c {k}\n" for k in range(10)))
    assert len(load(tmp_path, "train", dev_share=0.2)) == 8
    monkeypatch.setattr("truepair.device.memory_of", lambda device=None: 10_000)
    with pytest.raises(TooLargeError, match=r"train, 8 of its images \(splits of its own .* needs about"):
        load(tmp_path, "train", dev_share=0.2)


def test_a_run_is_evaluated_on_the_split_it_drew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, run = make_csv(tmp_path / "in"), tmp_path / "run"
    options = ["--epochs", "1", "--width", "8", "--minimum-count", "1", "--quiet", "--dev-share", "0.2"]
    assert main(["train", str(source), "--out", str(run), "--caption", "caption_2", *options]) == 0
    trained = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("dev"))
    assert main(["evaluate", str(run), str(source), "--split", "dev"]) == 0
    assert trained in capsys.readouterr().out
    assert main(["evaluate", str(run), str(source)]) == 2
    assert "has no split 'test'" in capsys.readouterr().err


def test_what_runs_keep_of_their_data(tmp_path: Path) -> None:
    """Runs of earlier versions read the first caption of each line of a .jsonl table, and kept no option for it."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("{}")
    old = {"source": str(folder), "noise": 0.4, "label": None}
    assert DataConfig.read(old).caption == "first"
    assert DataConfig.read(DataConfig(str(folder)).saved()).caption == "all"
    assert "caption" not in DataConfig(str(folder), caption="first").saved()
    for caption in (None, "first", "title"):
        config = DataConfig(str(tmp_path), caption=caption, dev_share=0.1)
        assert DataConfig.read(config.saved()) == config
    plain = DataConfig("scenes").saved()
    assert {"table", "image", "caption", "dev_share", "test_share", "split_seed"}.isdisjoint(plain)
    assert DataConfig("scenes:5:1").saved()["source"] == "scenes:5:1"
    photos = DataConfig("scenes_photos", noise_index="scenes.npy", vocabulary="scenes_vocab.json").saved()
    assert photos["source"] == str(Path("scenes_photos").resolve())
    assert photos["noise_index"] == str(Path("scenes.npy").resolve())
    assert photos["vocabulary"] == str(Path("scenes_vocab.json").resolve())
    two = DataConfig("a.npy,b.npy").saved()["source"]
    assert two == f"{Path('a.npy').resolve()},{Path('b.npy').resolve()}"
    assert np.array(DataConfig("s3://bucket/x").saved()["source"]) == "s3://bucket/x"


def test_a_run_on_embeddings_beside_a_jsonl_file_goes_on_and_is_scored(tmp_path: Path) -> None:
    """Runs keep `caption: all` of any folder with a .jsonl file; embeddings take no such option."""
    folder, run = tmp_path / "in", tmp_path / "run"
    folder.mkdir()
    for side in ("images", "texts"):
        np.save(folder / f"{side}.npy", np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32))
    (folder / "notes.jsonl").write_text("{}\n")
    options = ["--epochs", "1", "--width", "8", "--batch-size", "8", "--quiet", "--test-share", "0.2"]
    assert main(["train", str(folder), "--out", str(run), *options, "--method", "infonce"]) == 0
    assert main(["evaluate", str(run), str(folder)]) == 0
    (run / "result.json").unlink()
    assert main(["train", "--resume", str(run), "--quiet"]) == 0
    for caption in ({"caption": "all"}, {}):
        assert read_config({"source": str(folder), **caption}).caption is None
