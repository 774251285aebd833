"""Scoring a collection: the same numbers as in one piece, unusable rows listed, resumption to the byte."""

import time

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from tests.audit.array_collection import ArrayCollection, random_pairs
from tests.processes import Started
from truepair.audit.scoring import chunks
from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.by_embeddings import score_collection
from truepair.audit.scoring.chunks import unit_vectors, usable_rows
from truepair.audit.scoring.indicators import score
from truepair.audit.scoring.scoring_folder import open_scored
from truepair.errors import InputError, TruepairError

OPTIONS = {"bank_size": 40, "chunk_rows": 100, "neighbours": 5}


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def broken_collection(count=350):
    images, texts = random_pairs(count, 12, noise=0.3)
    images[7, 3], texts[7, 0], texts[120, 0], images[349] = np.nan, np.inf, -np.inf, 0
    texts[200], images[200, 1] = 0, np.nan
    images[11] *= 1e30
    texts[12] *= 1e-38
    return ArrayCollection(images, texts)


def test_scores_are_those_of_the_collection_in_one_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "READ_ROWS", 64)
    images, texts = random_pairs(350, 12, noise=0.3)
    collection = ArrayCollection(images, texts)
    found = score_collection(collection, tmp_path / "s", **OPTIONS)
    assert found.rows.tolist() == list(range(350)) and not len(found.unusable) and not found.reasons
    assert sorted(path.name for path in (tmp_path / "s" / "chunks").iterdir()) == [
        f"00000{k}.safetensors" for k in range(4)
    ]
    x, y = (normalize(torch.from_numpy(side).double(), dim=1).float() for side in (images, texts))
    rows = torch.arange(350)
    bank = found.bank()
    assert len(bank) == 40 and bank.neighbours == 5
    again = Bank.of(x[bank.rows], y[bank.rows], bank.rows, neighbours=5)
    torch.testing.assert_close(bank.images, again.images)
    assert (bank.temperature, bank.background) == pytest.approx((again.temperature, again.background), rel=1e-5)
    whole = score(x, y, bank, image_rows=rows, text_rows=rows)
    indicators = ["matching", "rank", "structure", "neighbours", "certainty"]
    assert list(found.columns) == ["similarity", "log_odds", *indicators]
    assert found.columns["similarity"] == pytest.approx(whole["similarity"].numpy(), abs=1e-6)
    assert found.columns["log_odds"] == pytest.approx(whole["log_odds"].numpy(), abs=1e-4)
    for name in indicators:
        assert found.columns[name].dtype == np.float32
        assert found.columns[name] == pytest.approx(whole[name].numpy(), abs=1e-5), name


def test_rows_that_cannot_be_scored_are_listed_and_never_drawn(tmp_path):
    found = score_collection(broken_collection(), tmp_path, **{**OPTIONS, "bank_size": 1000})
    bad = [7, 120, 200, 349]
    assert found.unusable.tolist() == bad
    assert found.reasons == ["nan-row", "nan-row", "nan-row", "zero-row"]
    assert found.rows.tolist() == [row for row in range(350) if row not in bad]
    assert all(np.isfinite(v).all() for v in found.columns.values())
    assert found.bank().rows.tolist() == found.rows.tolist()
    problems = found.problems(broken_collection())
    assert [(p.entry, p.file, p.row, p.reason, p.used) for p in problems][-1] == (
        "id349", "arrays.npy", 1349, "zero-row", False,
    )  # fmt: skip


def test_unit_vectors_of_very_long_and_very_short_rows():
    vectors = np.array([[3e38, -3e38], [1e-38, 1e-38], [1e-44, 0], [3, 4]], dtype=np.float32)
    units = unit_vectors(vectors, vectors, np.arange(4))
    half = 0.5**0.5
    expected = torch.tensor([[half, -half], [half, half], [1, 0], [0.6, 0.8]])
    torch.testing.assert_close(units.images, expected)
    assert not len(units.unusable)


def test_a_second_audit_computes_nothing_and_changes_nothing(tmp_path, monkeypatch):
    collection = broken_collection()
    told = []
    score_collection(collection, tmp_path, moved=told.append, **OPTIONS)
    assert told == [0, 100, 200, 300, 350]
    before = files_of(tmp_path)
    monkeypatch.setattr(ArrayCollection, "read", None)
    told.clear()
    again = score_collection(collection, tmp_path, moved=told.append, **OPTIONS)
    assert files_of(tmp_path) == before and told == [350] and len(again.rows) == 346


@pytest.mark.parametrize("lost", ["chunks/000001.safetensors", "bank.safetensors"])
def test_what_is_missing_is_made_again_to_the_byte(tmp_path, lost):
    score_collection(broken_collection(), tmp_path, **OPTIONS)
    before = files_of(tmp_path)
    (tmp_path / lost).unlink()
    (tmp_path / "chunks" / ".000002.safetensors.1a2b.tmp").write_bytes(b"half")
    score_collection(broken_collection(), tmp_path, **OPTIONS)
    assert files_of(tmp_path) == before


def audit_slowly(folder):
    collection = broken_collection()
    read = collection.read

    def slow(start, stop):
        time.sleep(0.3 if stop - start == 100 and start else 0)
        return read(start, stop)

    collection.read = slow
    score_collection(collection, folder, **OPTIONS)


def test_a_killed_audit_goes_on_and_ends_with_the_same_bytes(tmp_path):
    score_collection(broken_collection(), tmp_path / "whole", **OPTIONS)
    with Started(tmp_path / "said", audit_slowly, tmp_path / "killed") as process:
        until = time.monotonic() + 60
        while not (tmp_path / "killed" / "chunks" / "000001.safetensors").exists():
            assert time.monotonic() < until and process.poll() is None, process.err
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert not (tmp_path / "killed" / "chunks" / "000003.safetensors").exists()
    score_collection(broken_collection(), tmp_path / "killed", **OPTIONS)
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")


def test_no_more_rows_are_read_at_once_than_said(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "READ_ROWS", 64)
    collection = ArrayCollection(*random_pairs(9000, 4))
    score_collection(collection, tmp_path, **{**OPTIONS, "chunk_rows": 3000, "bank_size": 20})
    assert collection.most_read <= 4096  # of scattered rows; chunks read 64


def test_another_audit_in_the_same_folder_is_refused(tmp_path):
    collection = broken_collection()
    score_collection(collection, tmp_path, **OPTIONS)
    with pytest.raises(InputError, match="bank_size is 40, now 41"):
        score_collection(collection, tmp_path, **{**OPTIONS, "bank_size": 41})
    with pytest.raises(InputError, match="fingerprint is 'arrays-350', now 'others-350'"):
        score_collection(ArrayCollection(collection.images, collection.texts, "others"), tmp_path, **OPTIONS)
    assert len(score_collection(collection, tmp_path, **OPTIONS).rows) == 346


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bank_size": 0}, "bank_size is 0"),
        ({"chunk_rows": 0}, "chunk_rows is 0"),
        ({"neighbours": 0}, "neighbours is 0"),
        ({"workers": 0}, "workers is 0"),
        ({"engine": "spark"}, "engine is 'spark'; expected one of local, ray"),
    ],
)
def test_options_out_of_range_are_refused(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        score_collection(broken_collection(), tmp_path, **(OPTIONS | change))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TruepairError, match="file cannot be written to"):
        score_collection(broken_collection(), tmp_path / "file", **OPTIONS)


def test_a_collection_without_a_usable_row_is_refused(tmp_path):
    collection = ArrayCollection(np.zeros((5, 3), dtype=np.float32), np.ones((5, 3), dtype=np.float32))
    with pytest.raises(InputError, match="none of the 5 pairs can be scored"):
        score_collection(collection, tmp_path, **OPTIONS)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_very_few_pairs(tmp_path, count):
    found = score_collection(ArrayCollection(*random_pairs(count, 6)), tmp_path, **OPTIONS)
    assert len(found.rows) == count
    assert all(np.isfinite(values).all() for values in found.columns.values())


def test_rows_are_drawn_over_the_whole_collection_past_unusable_ones():
    images, texts = random_pairs(20_000, 3)
    images[:, 0][np.arange(20_000) % 10 != 0] = np.nan
    units = usable_rows(ArrayCollection(images, texts), 500, seed=0, purpose="test")
    assert len(units.rows) == 500 and (np.diff(units.rows) > 0).all() and (units.rows % 10 == 0).all()
    assert np.abs(np.histogram(units.rows, bins=4, range=(0, 20_000))[0] - 125).max() < 45
    expected = normalize(torch.from_numpy(images[units.rows]), dim=1)
    torch.testing.assert_close(units.images, expected)


def test_an_unfinished_or_damaged_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="scoring.json cannot be read"):
        open_scored(tmp_path)
    score_collection(broken_collection(), tmp_path, **OPTIONS)
    chunk = tmp_path / "chunks" / "000002.safetensors"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-10])
    with pytest.raises(InputError, match="000002.safetensors cannot be read"):
        open_scored(tmp_path)
    chunk.unlink()
    with pytest.raises(InputError, match="000002.safetensors cannot be read"):
        open_scored(tmp_path)
