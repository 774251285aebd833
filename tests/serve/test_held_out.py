"""A split that is drawn again: whoever searches it is told of pairs that the run was trained on, and may go on."""

import json

import pytest
from fastapi.testclient import TestClient

from tests.serve.conftest import HERE, write_pictures
from truepair.cli.main import main
from truepair.serve.app import create_app
from truepair.serve.opening import Asked, open_sources
from truepair.training.pair_table import read_pair_table

TRAIN = ["--method", "infonce", "--epochs", "1", "--batch-size", "8", "--width", "8", "--minimum-count", "1", "--quiet"]
SHARES = ["--dev-share", "0.1", "--test-share", "0.2", "--encoder", "windows"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on 30 cards, whose splits were drawn; the data lie beside it."""
    data = write_pictures(tmp_path_factory.mktemp("held-out") / "cards", count=30)
    assert main(["train", str(data), "--out", str(data.parent / "run"), *SHARES, *TRAIN]) == 0
    return data.parent / "run"


@pytest.fixture
def one_less(run):
    """The data with one picture less than at training."""
    table = run.parent / "cards" / "table.jsonl"
    before = table.read_text()
    table.write_text("".join(before.splitlines(keepends=True)[1:]))
    yield
    table.write_text(before)


@pytest.mark.parametrize("split", ["test", "dev"])
def test_training_pairs_in_a_split_are_told_and_served(run, one_less, split):
    (source,) = open_sources([run], Asked(split=split))
    trained = set(read_pair_table(run / "pairs.parquet", ["pair_id"]).column("pair_id").to_pylist())
    seen = [name for name in source.pairs.ids() if name in trained]
    (notice,) = source.notices
    assert f"{len(seen)} of {len(source.pairs)} pairs of the split {split!r} are among those that" in notice
    assert repr(seen[0]) in notice and "column split" in notice and str(run.parent) not in notice
    client = TestClient(create_app([source]), base_url=HERE)
    assert client.get("/health").json()["sources"][0]["notices"] == [notice]
    assert client.get("/pairs").json()["total"] == len(source.pairs)


def test_the_splits_of_the_training_need_no_words(run):
    for split in ("test", "dev", "train", None):
        (source,) = open_sources([run], Asked(split=split))
        assert source.notices == []


def test_training_pairs_may_be_searched_without_words_about_held_out_data(run, one_less):
    (source,) = open_sources([run], Asked(split="train"))
    assert all("trained on" not in notice for notice in source.notices)


def test_data_elsewhere_with_splits_of_their_own_are_not_looked_at(run, tmp_path):
    other = write_pictures(tmp_path / "other", count=8)
    lines = [json.loads(line) for line in (other / "table.jsonl").read_text().splitlines()]
    table = "".join(
        json.dumps({**line, "split": "test" if row < 4 else "train"}) + "\n" for row, line in enumerate(lines)
    )
    (other / "table.jsonl").write_text(table)
    (source,) = open_sources([run], Asked(data=str(other), split="test"))
    assert source.notices == [] and len(source.pairs) == 4
