"""`truepair evaluate` on data that have changed since: no figures on pairs that the run was trained on."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import truepair
from truepair.cli.main import main
from truepair.errors import InputError
from truepair.training.held_out import check_held_out

SHARES = {"dev_share": 0.1, "test_share": 0.2}
TRAIN = ["--method", "infonce", "--epochs", "1", "--batch-size", "8", "--width", "8", "--minimum-count", "1", "--quiet"]


def table_of(folder: Path, rows: list[int]) -> None:
    lines = [json.dumps({"image": f"{row}.png", "caption": f"a thing of number {row}"}) for row in rows]
    (folder / "table.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on 30 pictures, whose splits were drawn; the data lie beside it."""
    place = tmp_path_factory.mktemp("changed")
    (place / "data").mkdir()
    for row in range(31):
        pixels = np.random.default_rng(row).integers(256, size=(16, 18, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / "data" / f"{row}.png")
    table_of(place / "data", list(range(30)))
    shares = ["--dev-share", "0.1", "--test-share", "0.2", "--encoder", "windows"]
    assert main(["train", str(place / "data"), "--out", str(place / "run"), *shares, *TRAIN]) == 0
    return place / "run"


@pytest.mark.parametrize("split", ["test", "dev"])
@pytest.mark.parametrize("rows", [list(range(1, 30)), [30, *range(30)]], ids=["one picture less", "one more"])
def test_a_split_that_holds_training_pairs_is_refused(
    run: Path, rows: list[int], split: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = run.parent / "data"
    table_of(data, rows)
    assert main(["evaluate", str(run), str(data), "--split", split]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    trained = {row["pair_id"] for row in rows_of(run / "pairs.parquet")}
    drawn = truepair.load(data, split, **SHARES, encoder="windows").ids()
    assert f"{len(trained & set(drawn))} of {len(drawn)} pairs of the split {split!r} are among those that" in said.err
    assert "column split" in said.err


def test_the_data_as_they_were_are_scored(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = run.parent / "data"
    table_of(data, list(range(30)))
    for split in ("test", "dev", "train"):
        assert main(["evaluate", str(run), str(data), "--split", split]) == 0
    assert main(["evaluate", str(run), str(data), "--split-seed", "7"]) == 2
    assert "the shares or the seed are not those of the run" in capsys.readouterr().err


def test_other_data_are_not_looked_at(run: Path, tmp_path: Path) -> None:
    data = run.parent / "data"
    table_of(data, list(range(1, 30)))
    shutil.copytree(data, tmp_path / "other")
    pairs = truepair.load(data, "test", **SHARES, encoder="windows")
    reading = truepair.data.config.Reading(**SHARES)
    check_held_out(run, pairs, str(tmp_path / "other"), "test", reading)
    check_held_out(run, pairs, str(data), "test", truepair.data.config.Reading())
    with pytest.raises(InputError, match="figures on them would mean nothing"):
        check_held_out(run, pairs, str(data), "test", reading)


def rows_of(path: Path) -> list[dict[str, object]]:
    import pyarrow.parquet as pq

    return list(pq.read_table(path, columns=["pair_id"]).to_pylist())
