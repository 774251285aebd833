"""`truepair features`: what is written opens as the pictures do, from one cache, and goes on after a kill."""

import importlib.util
import json

import numpy as np
import pytest
from PIL import Image

import truepair
from tests.faults.damage import killed
from truepair.cli.main import main
from truepair.data.features.reduction import pooled
from truepair.data.pictures import describing, feature_cache
from truepair.encoders.windows import Windows

COUNT = 40


def write_table(folder, captions=lambda number: 2, count=COUNT):
    rng, lines = np.random.default_rng(0), []
    folder.mkdir()
    for number in range(count):
        Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(folder / f"{number}.png")
        said = [f"caption {k} of picture {number}" for k in range(captions(number))]
        split = ("train", "train", "val", "test")[number % 4]
        lines.append({"image": f"{number}.png", "caption": said, "split": split})
    (folder / "table.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def photos(tmp_path):
    return write_table(tmp_path / "photos")


def test_features_open_as_the_pictures_do(photos, tmp_path, capsys, monkeypatch):
    out = tmp_path / "features"
    assert main(["features", str(photos), "--out", str(out), "--quiet"]) == 0
    assert "20 images x 36 regions x 56" in capsys.readouterr().out
    monkeypatch.setattr(describing, "prepare", lambda *_: pytest.fail("described again"))
    for split in ("train", "dev", "test"):
        there, here = truepair.load(photos, split), truepair.load(out, split)
        assert np.array_equal(there.images.features, here.images.features)
        assert (there.texts.captions, there.images.ids) == (here.texts.captions, here.images.ids)
        assert np.array_equal(there.image_index, here.image_index)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert main(["features", str(photos), "--out", str(out), "--quiet"]) == 0
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}
    record = json.loads((out / "features.json").read_text())
    assert record["finished"] and record["name"] == "windows" and record["encoder"].startswith("windows-")


def test_pooled_and_projected_to_arrays(photos, tmp_path, capsys):
    out, features = tmp_path / "arrays", truepair.load(photos, "train").images.features
    options = ["--layout", "arrays", "--grid", "2", "--project", "5"]
    assert main(["features", str(photos), "--out", str(out), *options]) == 0
    assert {path.name for path in out.iterdir()} == {
        "features.json", "projection.npy",
        *(f"{split}_{part}" for split in ("train", "dev", "test") for part in ("images.npy", "ids.txt")),
    }  # fmt: skip
    mean, *basis = np.load(out / "projection.npy")
    found = np.load(out / "train_images.npy")
    assert found.shape == (20, 4, 5) and found.dtype == np.float16
    assert np.allclose(found, (pooled(features, 2) - mean) @ np.array(basis).T, atol=5e-3)
    assert (out / "train_ids.txt").read_text().split()[:3] == ["0.png", "1.png", "4.png"]
    assert main(["features", str(photos), "--out", str(tmp_path / "vectors"), "--grid", "1"]) == 0
    vectors = np.load(tmp_path / "vectors" / "test_ims.npy")
    assert vectors.shape == (10, 56)
    assert np.allclose(vectors, truepair.load(photos, "test").images.features.mean(1, dtype=np.float32), atol=2e-3)


def test_different_numbers_of_captions_are_told(tmp_path, capsys):
    photos = write_table(tmp_path / "photos", captions=lambda number: 1 + (number % 8 == 0))
    assert main(["features", str(photos), "--out", str(tmp_path / "out")]) == 0
    assert "In train images have different numbers of captions" in capsys.readouterr().out
    pairs, written = truepair.load(photos, "train"), truepair.load(tmp_path / "out", "train")
    assert written.texts.captions == pairs.texts.captions
    assert np.array_equal(written.images.features[written.image_index], pairs.images.features[pairs.image_index])


def test_what_cannot_be_extracted(photos, tmp_path, tiny, capsys):
    out = tmp_path / "out"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    assert main(["features", str(photos), "--out", str(out), "--quiet"]) == 0
    capsys.readouterr()
    for words, said in (
        ([str(tiny), "--out", str(tmp_path / "new")], "holds no pictures to describe"),
        ([str(photos), "--out", str(tmp_path / "full")], "is not empty and holds no features; nothing was changed"),
        ([str(photos), "--out", str(out), "--grid", "2"], "holds features with grid None, now it is 2"),
        ([str(photos), "--out", str(tmp_path / "new"), "--grid", "7"], "a grid of 6 x 6; expected 1 to 6"),
        ([str(photos), "--out", str(tmp_path / "new"), "--project", "56"], "expected 1 to 55"),
        ([str(photos), "--out", str(tmp_path / "new2"), "--workers", "0"], "workers is 0; expected at least 1"),
        ([str(photos), "--out", str(tmp_path / "new2"), "--memory", "0"], "memory is 0.0; expected a value above 0"),
    ):
        assert main(["features", *words]) == 2
        assert said in capsys.readouterr().err
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


def retold(folder, names):
    """The table with other splits, in turn."""
    table = folder / "table.jsonl"
    lines = [json.loads(line) for line in table.read_text().splitlines()]
    told = [{**line, **({} if names is None else {"split": names[row % len(names)]})} for row, line in enumerate(lines)]
    for line in told if names is None else ():
        del line["split"]
    table.write_text("".join(json.dumps(line) + "\n" for line in told))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (["--dev-share", "0.2"], ["--test-share", "0.2"], "--dev-share 0.2, now it is None"),
        (["--test-share", "0.2"], ["--test-share", "0.2", "--split-seed", "1"], "--split-seed 0, now it is 1"),
        ([], ["--caption", "first"], "caption None, now it is 'first'"),
    ],
)
def test_other_pairs_are_not_written_beside_the_first(photos, tmp_path, capsys, first, second, said):
    retold(photos, None)
    command = ["features", str(photos), "--out", str(tmp_path / "out"), "--quiet"]
    assert main([*command, *first]) == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert main([*command, *second]) == 2
    assert f"holds features with {said}; nothing was changed" in capsys.readouterr().err
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert main([*command, *first]) == 0


def test_a_record_without_reading_options_is_of_their_defaults(photos, tmp_path):
    command = ["features", str(photos), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(command) == 0
    record = tmp_path / "out" / "features.json"
    told = json.loads(record.read_text())
    options = ("table", "caption", "image", "label", "dev_share", "test_share", "split_seed")
    record.write_text(json.dumps({name: value for name, value in told.items() if name not in options}))
    assert main(command) == 0
    assert json.loads(record.read_text()) == told


def test_files_of_a_split_that_is_gone_are_refused(photos, tmp_path, capsys):
    command = ["features", str(photos), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(command) == 0
    retold(photos, ["train", "train", "extra"])
    assert main(command) == 2
    assert "holds dev_caps.txt, which is of no split that is written there now" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["train", "dev", "val"], "the splits 'dev' and 'val' would both become dev_ims.npy"),
        (["train", "../evil"], "the split '../evil' cannot name a file"),
        (["train", "a/b"], "the split 'a/b' cannot name a file"),
    ],
)
def test_splits_that_cannot_name_files_are_refused_first(photos, tmp_path, capsys, monkeypatch, names, said):
    retold(photos, names)
    monkeypatch.setattr(describing, "prepare", lambda *_: pytest.fail("described before"))
    out = tmp_path / "place" / "out"
    assert main(["features", str(photos), "--out", str(out), "--quiet"]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install 'truepair[ray]'")
def test_ray_gives_the_same_bytes(cluster, photos, tmp_path, monkeypatch):
    for engine in ("local", "ray"):
        monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / f"cache-{engine}"))
        out = str(tmp_path / engine)
        assert main(["features", str(photos), "--out", out, "--engine", engine, "--workers", "1", "--quiet"]) == 0
    (local,), (ray,) = (sorted((tmp_path / engine).glob("train_ims.npy")) for engine in ("local", "ray"))
    assert local.read_bytes() == ray.read_bytes()


def test_a_killed_extraction_goes_on(photos, tmp_path, monkeypatch):
    """Killed once a part is kept; the next one describes only what is left, to the same bytes."""
    monkeypatch.setattr(feature_cache, "BLOCK", 4)
    monkeypatch.setattr(Windows, "batch", 4)
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "whole"))
    command = ["features", str(photos), "--quiet", "--workers", "1", "--out"]
    assert main([*command, str(tmp_path / "whole-features")]) == 0
    (of_train,) = (path for path in (tmp_path / "whole").glob("*-3.npy") if len(np.load(path)) == 20)
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "killed"))
    killed("after", f"{of_train.name}.part.json", [*command, str(tmp_path / "killed-features")])
    (part,) = (tmp_path / "killed").glob("*.part.json")
    assert json.loads(part.read_text())["done"] == 4
    prepare, seen = describing.prepare, []
    monkeypatch.setattr(describing, "prepare", lambda *given: seen.append(given) or prepare(*given))
    assert main([*command, str(tmp_path / "killed-features")]) == 0
    of_dev_and_test = 20
    assert len(seen) <= 16 + of_dev_and_test
    for path in (tmp_path / "whole-features").iterdir():
        assert path.read_bytes() == (tmp_path / "killed-features" / path.name).read_bytes()
