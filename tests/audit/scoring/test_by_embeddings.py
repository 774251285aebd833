"""Scoring by embeddings, with rows in the middle that cannot be used."""

import numpy as np
import pytest

import truepair
from tests.audit.array_collection import ArrayCollection, random_pairs
from tests.audit.small_audits import (
    kept_of,
    rows_of,
    run_cli,
    summary_of,
    write_embeddings,
)
from truepair.audit import AuditOptions
from truepair.audit.scoring.by_embeddings import EmbeddingSpace, captions_of, score_by_embeddings, score_collection
from truepair.audit.scoring.chunks import usable_rows

BAD = {7: np.nan, 8: 0.0, 40: np.inf, 299: np.nan}
SWAPS = [(row, row + 150) for row in range(11, 131, 6)]


PARTNER = {a: b for pair in SWAPS for a, b in (pair, pair[::-1])}


class Named(ArrayCollection):
    """Every pair has words and a name that tell its row, and it is known which are mismatched."""

    def ids(self, start, stop):
        return [f"pair{row}" for row in range(start, min(stop, len(self)))]

    def captions(self, start, stop):
        return [caption_of(row) for row in range(start, min(stop, len(self)))]

    def image_names(self, start, stop):
        return [f"image {row}" for row in range(start, min(stop, len(self)))]

    def mismatched(self):
        return np.isin(np.arange(len(self)), list(PARTNER))


def caption_of(row):
    """Both pairs of the last swap have the same words, and so do two that match."""
    return "the same" if row in SWAPS[-1] else "caption 150" if row == 151 else f"caption {PARTNER.get(row, row)}"


def swapped_pairs(words=True):
    """300 pairs that fit closely, twenty times two that exchanged their captions, four rows that cannot be used."""
    images, _ = random_pairs(300, 256)
    texts = images + 0.2 * np.random.default_rng(1).normal(size=images.shape).astype(np.float32)
    for a, b in SWAPS:
        texts[[a, b]] = texts[[b, a]]
    for row, value in BAD.items():
        (images if row % 2 else texts)[row] = value
    return (Named if words else ArrayCollection)(images, texts)


@pytest.mark.parametrize("words", [True, False])
def test_swapped_captions_are_found_in_spite_of_unusable_rows(tmp_path, words):
    """pair_id, p_match, truth and proposals of one row of the table belong to one pair of the input."""
    result = truepair.audit(swapped_pairs(words), tmp_path / "out", options=AuditOptions(bank=64), progress=False)
    table = {row["row"]: row for row in rows_of(tmp_path / "out")}
    assert list(table) == result.rows.tolist() == [row for row in range(300) if row not in BAD]
    name = "pair{}" if words else "id{}"
    for row, entry in table.items():
        assert entry["pair_id"] == name.format(row)
        assert entry["caption"] == (caption_of(row) if words else "")
        assert entry["flagged"] == (row in PARTNER) == (entry["p_match"] < 0.5), row
        assert entry.get("mismatched", row in PARTNER) == (row in PARTNER)
        expected = name.format(PARTNER[row]) if row in PARTNER else None
        if words and row in SWAPS[-1]:  # nobody is offered what it has already
            assert entry["proposed_caption_pair"] != expected and entry["swap_with"] is None
            assert entry["proposed_image_pair"] != expected
            continue
        assert entry["proposed_image_pair"] == entry["proposed_caption_pair"] == entry["swap_with"] == expected
        if row in PARTNER:
            assert entry["proposed_caption_fit"] > 0.9 and entry["proposed_image_fit"] > 0.9
        if row in PARTNER and words:
            assert entry["proposed_caption"] == f"caption {row}"
            assert entry["proposed_image"] == f"image {PARTNER[row]}"
    assert (result.scores is None) == (not words)
    groups = [(group.kind, group.rows.tolist()) for group in result.duplicates]
    assert groups == ([("same-caption", list(SWAPS[-1])), ("same-caption", [150, 151])] if words else [])
    problems = rows_of(tmp_path / "out", "problems.parquet")
    reasons = {(problem["entry"], problem["row"] - 1000, problem["reason"]) for problem in problems}
    expected = {7: "nan-row", 8: "zero-row", 40: "nan-row", 299: "nan-row"}
    assert {(name.format(row), row, reason) for row, reason in expected.items()} <= reasons


def test_blocks_and_vectors_are_by_row(tmp_path, monkeypatch):
    monkeypatch.setattr("truepair.audit.scoring.by_embeddings.READ_ROWS", 7)
    collection = swapped_pairs()
    space = EmbeddingSpace(collection, score_collection(collection, tmp_path, bank_size=16))
    usable = np.array(sorted(set(range(300)) - set(BAD)))
    images, texts = space.vectors(usable)
    blocks = list(space.blocks())
    assert np.array_equal(np.concatenate([rows for rows, _, _ in blocks]), usable), "every pair came once"
    for rows, block_images, block_texts in blocks:
        here = np.searchsorted(usable, rows)
        assert (images[here] == block_images).all() and (texts[here] == block_texts).all()
    rows = np.array([5, 9, 10, 43, 295])
    expected = collection.images[rows] / np.linalg.norm(collection.images[rows], axis=1, keepdims=True)
    np.testing.assert_allclose(space.vectors(rows)[0], expected, atol=1e-6)
    assert space.vectors(rows[:0])[0].shape == (0, 256)


def test_synthetic_mismatches_are_scored_as_others_are(tmp_path):
    """The evidence of the synthetic mismatches has the columns of that of the pairs, and is lower."""
    collection = swapped_pairs()
    options = {"bank": 64, "seed": 0, "engine": "local", "workers": 1}
    seen = score_by_embeddings(collection, tmp_path, **options)
    assert seen.rows.tolist() == sorted(set(range(300)) - set(BAD)) and seen.bank == 64
    for known in seen.synthetic.values():
        assert known.log_odds.shape[1] == seen.given.log_odds.shape[1] == 2
        assert list(known.columns) == list(seen.given.columns)
        assert np.median(known.log_odds[:, 0]) < np.quantile(seen.given.log_odds[:, 0], 0.2)
    assert {(p.entry, p.reason) for p in seen.problems} == {
        ("pair7", "nan-row"), ("pair8", "zero-row"), ("pair40", "nan-row"), ("pair299", "nan-row"),
    }  # fmt: skip


def test_captions_tell_texts_apart_with_and_without_words():
    collection = swapped_pairs(words=False)
    units = usable_rows(collection, 300, seed=0, purpose="test")
    assert len(set(captions_of(collection, units))) == 296
    collection.texts[1] = collection.texts[2]
    units = usable_rows(collection, 300, seed=0, purpose="test")
    names = captions_of(collection, units)
    assert names[1] == names[2] and len(set(names)) == 295
    assert captions_of(swapped_pairs(), units)[:4] == ["caption 0", "caption 1", "caption 2", "caption 3"]


def test_arrays_on_the_command_line(tmp_path, capsys):
    images, texts = random_pairs(300, 16, noise=0.4)
    source = write_embeddings(tmp_path / "vectors", images, texts)
    options = ["--embeddings", "--bank", "64", "--quiet", "--export", "own"]
    assert run_cli(source, tmp_path / "out", *options) == 0
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 300 and summary_of(tmp_path / "out")["scored_by"] == "embeddings"
    assert np.mean([row["p_match"] for row in rows[:120]]) < np.mean([row["p_match"] for row in rows[120:]]) - 0.2
    kept = np.load(tmp_path / "out" / "export" / "own" / "images.npy")
    np.testing.assert_array_equal(kept, images[[row["row"] for row in kept_of(rows)]])
    before = (tmp_path / "out" / "pairs.parquet").read_bytes()
    assert run_cli(source, tmp_path / "out", *options) == 0
    assert (tmp_path / "out" / "pairs.parquet").read_bytes() == before
    capsys.readouterr()
    np.save(tmp_path / "vectors" / "img.npy", np.roll(images, 1, axis=0))
    assert run_cli(source, tmp_path / "out", *options) == 2
    assert "holds an audit of other pairs" in capsys.readouterr().err


def test_clip_retrieval_layout_on_the_command_line(tmp_path):
    import pyarrow
    from pyarrow import parquet

    images, texts = random_pairs(120, 16, noise=0.3)
    images[30] = np.nan
    folder = tmp_path / "clip"
    for part in ("img_emb", "text_emb", "metadata"):
        (folder / part).mkdir(parents=True)
    for shard, rows in enumerate((slice(0, 50), slice(50, 120))):
        np.save(folder / "img_emb" / f"img_emb_{shard}.npy", images[rows].astype(np.float16))
        np.save(folder / "text_emb" / f"text_emb_{shard}.npy", texts[rows].astype(np.float16))
        numbers = range(120)[rows]
        columns = {"image_path": [f"{k}.jpg" for k in numbers], "caption": [f"thing {k}" for k in numbers]}
        parquet.write_table(pyarrow.table(columns), folder / "metadata" / f"metadata_{shard}.parquet")
    assert run_cli(folder, tmp_path / "out", "--embeddings", "--bank", "32", "--quiet") == 0
    rows = rows_of(tmp_path / "out")
    assert [row["pair_id"] for row in rows] == [f"{k}.jpg" for k in range(120) if k != 30]
    assert [row["caption"] for row in rows] == [f"thing {k}" for k in range(120) if k != 30]
    (problem,) = [p for p in rows_of(tmp_path / "out", "problems.parquet") if p["reason"] == "nan-row"]
    assert (problem["entry"], problem["row"]) == ("30.jpg", 30) and "img_emb_0" in problem["file"]


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_local_ranks_are_asked_where_there_are_enough_pairs(tmp_path, noise):
    from tests.audit.scoring.test_local_ranks import made

    images, texts = made(1500, noise=noise, within="kind")
    found = truepair.audit(
        ArrayCollection(images.numpy(), texts.numpy()), tmp_path / "out", options=AuditOptions(bank=256), progress=False
    )
    assert found.verdict.details["near_asked"] == 450
    assert found.verdict.noise_rate_low <= noise <= found.verdict.noise_rate_high
    assert found.verdict.near.share == pytest.approx(noise, abs=0.17) and (found.verdict.noise_rate > 0.1) == (
        noise > 0
    )
