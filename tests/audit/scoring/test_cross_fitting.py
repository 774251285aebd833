"""Cross-fitting: no pair is scored by a model that saw it, and everything stands where it belongs."""

import numpy as np
import pytest
import torch
from pyarrow import parquet

import truepair
from truepair.audit.options import CrossFitting
from truepair.audit.scoring.cross_fitting import cross_fit
from truepair.audit.scoring.folds import make_folds
from truepair.audit.scoring.indicators import score
from truepair.audit.scoring.synthetic_mismatches import KINDS
from truepair.audit.scoring.vectors import encode, has_vectors
from truepair.engines.config import GlobalConfig
from truepair.errors import RunFolderError
from truepair.methods import build_method
from truepair.training.fit import Assembly, open_run
from truepair.training.run_folder import RunFolder
from truepair.training.setup import Setup

OPTIONS = CrossFitting(folds=3, epochs=1, width=16)
DRAWS = {"bank": 20, "seed": 0}


@pytest.fixture(scope="module")
def fitted(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crossfit") / "work"
    pairs = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    return pairs, cross_fit(pairs, OPTIONS, folder, **DRAWS), folder


def test_scores_are_those_of_the_model_that_did_not_see_the_pair(fitted):
    """Done again by hand for every fold: its model was trained on the others, and scores its own."""
    pairs, seen, folder = fitted
    folds = make_folds(pairs, folds=3, synthetic_share=OPTIONS.synthetic_share, seed=0)
    assert len(seen.rows) == len(pairs) and len(seen.spaces) == 3
    all_of = {kind: np.full(len(folds.pairs), np.nan) for kind in ("similarity", "rank")}
    for fold, space in enumerate(seen.spaces):
        run = open_run(folder / f"fold{fold}")
        table = parquet.read_table(run.folder.pairs)
        trained = list(zip(table["image_index"].to_pylist(), table["text_index"].to_pylist(), strict=True))
        held = folds.held_out(fold)
        images = set(folds.pairs.image_index[held].tolist())
        assert not images & {image for image, _ in trained}
        assert set(space.covered.tolist()) == {row for row in held.tolist() if row < folds.given}
        assert set(space.bank.rows.tolist()) <= set(space.covered.tolist()) and len(space.bank) == 20
        vectors = encode(run.model, pairs)
        found = score(
            vectors.images[folds.pairs.image_index[held]],
            vectors.texts[folds.pairs.text_index[held]],
            space.bank,
            image_rows=torch.from_numpy(folds.image_of[held]),
            text_rows=torch.from_numpy(folds.caption_of[held]),
        )
        all_of["similarity"][held], all_of["rank"][held] = found["similarity"], found["rank"]
    parts = [seen.given, *(seen.synthetic[kind] for kind in KINDS)]
    rows = [np.arange(folds.given), *(folds.of_kind(kind) for kind in KINDS)]
    for part, here in zip(parts, rows, strict=True):
        assert len(part.log_odds) == len(here) > 0 and part.log_odds.shape[1] == 4
        np.testing.assert_allclose(part.columns["similarity"], all_of["similarity"][here], atol=1e-6)
        np.testing.assert_allclose(part.columns["rank"], all_of["rank"][here], atol=1e-6)


def test_memory_is_what_the_other_models_believed(fitted):
    pairs, seen, folder = fitted
    folds = make_folds(pairs, folds=3, synthetic_share=OPTIONS.synthetic_share, seed=0)
    believed = [[] for _ in range(len(folds.pairs))]
    for fold in range(3):
        belief = parquet.read_table(folder / f"fold{fold}" / "pairs.parquet")["p_match"].to_pylist()
        for row, value in zip(folds.trained_on(fold).tolist(), belief, strict=True):
            believed[row].append(value)
    assert {len(values) for values in believed} == {2}
    expected = [sum(values) / 2 for values in believed]
    np.testing.assert_allclose(seen.given.columns["memory"], expected[: len(pairs)], atol=1e-6)
    logits = [np.mean([np.log(v / (1 - v)) for v in np.clip(values, 1e-4, 1 - 1e-4)]) for values in believed]
    np.testing.assert_allclose(seen.given.log_odds[:, 3], logits[: len(pairs)], atol=1e-6)
    for kind in KINDS:
        np.testing.assert_allclose(
            seen.synthetic[kind].columns["memory"], np.array(expected)[folds.of_kind(kind)], atol=1e-6
        )


def test_going_on_gives_the_same_columns_in_the_same_order(fitted, monkeypatch):
    """A file of tensors knows no order; the table of pairs has one."""
    pairs, seen, folder = fitted
    monkeypatch.setattr("truepair.audit.scoring.cross_fitting.fit", lambda *a, **o: pytest.fail("trained again"))
    again = cross_fit(pairs, OPTIONS, folder, **DRAWS)
    assert list(again.given.columns) == list(seen.given.columns)
    assert list(seen.given.indicators) == [
        "matching",
        "rank",
        "structure",
        "neighbours",
        "certainty",
        "others",
        "memory",
    ]
    for name, values in seen.given.columns.items():
        np.testing.assert_array_equal(again.given.columns[name], values)
    np.testing.assert_array_equal(again.given.log_odds, seen.given.log_odds)


def test_a_folder_of_other_options_is_refused(fitted):
    pairs, _, folder = fitted
    with pytest.raises(RunFolderError, match="other pairs, with other options or of another version"):
        cross_fit(pairs, CrossFitting(folds=3, epochs=2, width=16), folder, **DRAWS)
    with pytest.raises(RunFolderError, match="other pairs, with other options or of another version"):
        cross_fit(pairs.take(np.arange(90)), OPTIONS, folder, **DRAWS)


@pytest.mark.parametrize("method", ["crcl", "truepair", "gsc", "ugncl", "disncl"])
def test_vectors_have_the_cosines_of_every_engine_a_method_trains(tiny, method):
    """Several views, several networks, subspaces: one vector an item, and its cosine is the model's similarity."""
    pairs = truepair.load(tiny, "test")
    setup = Setup(model=GlobalConfig(width=16, word_width=8)).with_preparation(pairs)
    asked = (pairs, None, None, build_method(method), setup, RunFolder(tiny))
    model = Assembly(*asked, torch.device("cpu"), False, lambda epoch, of: None).current_model()
    assert has_vectors(model, pairs)
    vectors = encode(model, pairs)
    assert torch.allclose(vectors.images @ vectors.texts.T, model.similarity(pairs), atol=1e-6)
    assert torch.allclose(vectors.images.norm(dim=1), torch.ones(16), atol=1e-6)


def test_mismatches_that_no_model_trained_on_are_measured_by_too(fitted):
    """As many as there are pairs, scored by the model of their fold, by all evidence but the memory."""
    pairs, seen, folder = fitted
    np.testing.assert_array_equal(seen.held_out.given, seen.given.log_odds[:, :3])
    assert 0.9 * len(pairs) < len(seen.held_out.known) <= len(pairs)
    again = [space.mismatched("random", space.covered)["log_odds"] for space in seen.spaces]
    np.testing.assert_allclose(seen.held_out.known[:, 0], np.concatenate(again), atol=1e-6)
    assert all((folder / f"unseen{fold}.safetensors").is_file() for fold in range(3))
    assert not seen.local  # of so few pairs


def test_local_ranks_are_those_of_every_models_own_pairs(fitted, monkeypatch):
    from truepair.audit.scoring import cross_fitting, local_ranks

    pairs, seen, folder = fitted
    monkeypatch.setattr(local_ranks, "LEAST_PAIRS", 10)
    asked = []
    monkeypatch.setattr(cross_fitting, "ranks_of_spaces", lambda spaces, rng: asked.extend(spaces))
    cross_fit(pairs, OPTIONS, folder, **DRAWS)
    assert len(asked) == 3
    for (images, texts), space in zip(asked, seen.spaces, strict=True):
        expected = space.vectors(space.covered)
        assert torch.equal(images, expected[0]) and torch.equal(texts, expected[1])
