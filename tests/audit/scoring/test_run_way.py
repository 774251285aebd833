"""The way by a finished run: pairs it was trained on, other pairs, and engines that have no vector of an item."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from pyarrow import parquet

import truepair
from tests.audit.small_audits import (
    QUICK,
    contents,
    rows_of,
    run_cli,
    summary_of,
)
from truepair.audit import AuditOptions
from truepair.audit.scoring import cell_space
from truepair.audit.scoring.cell_space import CellSpace
from truepair.audit.scoring.run_way import by_run, trained_on_them
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.errors import InputError, RunFolderError
from truepair.training.fit import open_run
from truepair.training.setup import Setup

MODELS = {
    "global": GlobalConfig(width=16, word_width=8),
    "saf": SAFConfig(width=16, word_width=8, similarity_width=8),
    "sgr": SGRConfig(width=16, word_width=8, similarity_width=8),
}
BY_RUN = ["--bank", "32", "--quiet", "--run"]


@pytest.fixture(scope="module")
def runs(tiny, tmp_path_factory):
    """Engine → folder of a run on the training pairs, 40 % of them mismatched."""
    folder = tmp_path_factory.mktemp("runs")
    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    for name, model in MODELS.items():
        options = {"epochs": 8 if name == "global" else 1, "batch_size": 16, "minimum_count": 1}
        truepair.fit(noisy, method="infonce", setup=Setup(model=model), out=folder / name, progress=False, **options)
    return folder


def seen_by(run, pairs, folder, *, bank=32):
    return by_run(pairs, run, folder, bank=bank, seed=0, device="cpu", progress=False)


# ---- any engine ----


@pytest.mark.parametrize("engine", list(MODELS))
def test_pairs_the_run_was_trained_on_have_its_memory(tiny, runs, tmp_path, engine, capsys):
    """The model learned them by heart, so no yardstick can be made of them: a mixture judges."""
    out = tmp_path / "out"
    options = ["--noise", "0.4", "--noise-seed", "0"]
    assert run_cli(tiny, out, *options, *BY_RUN, str(runs / engine)) == 0
    rows, facts = rows_of(out), summary_of(out)
    belief = parquet.read_table(runs / engine / "pairs.parquet")["p_match"].to_pylist()
    np.testing.assert_allclose([row["indicator_memory"] for row in rows], belief, atol=1e-6)
    assert facts["way"] == "run" and facts["verdict"]["trained_on_these_pairs"] is True
    assert facts["options"]["run"] == str(runs / engine) and "folds" not in facts["options"]
    kept = {"matching", "rank", "certainty", "memory"}
    assert set(facts["indicators"]) == kept | ({"structure", "neighbours"} if engine == "global" else set())
    assert ("rematched_at_most" in facts["verdict"]) == (engine != "global")
    before = contents(out)["pairs.parquet"]
    assert run_cli(tiny, out, *options, *BY_RUN, str(runs / engine)) == 0
    assert contents(out)["pairs.parquet"] == before
    assert run_cli(tiny, out, *options, *BY_RUN, str(runs / ("saf" if engine == "sgr" else "sgr"))) == 2
    assert "holds an audit by another run" in capsys.readouterr().err
    assert run_cli(tiny, out, *options, *QUICK) == 2
    assert "way = 'run', now it is 'cross-fitting'" in capsys.readouterr().err
    assert contents(out)["pairs.parquet"] == before


@pytest.mark.parametrize("engine", list(MODELS))
def test_other_pairs_are_measured_by_known_mismatches(tiny, runs, tmp_path, engine):
    out = tmp_path / "out"
    assert run_cli(tiny, out, "--split", "test", *BY_RUN, str(runs / engine)) == 0
    rows, facts = rows_of(out), summary_of(out)
    assert len(rows) == 32 and "indicator_memory" not in rows[0]
    assert facts["verdict"]["trained_on_these_pairs"] is False
    assert facts["verdict"]["known_mismatched"] == {"random": 32, "near": 32}


def test_scores_of_a_run_are_the_similarities_of_its_model(tiny, runs, tmp_path):
    pairs = truepair.load(tiny, "test")
    for engine in MODELS:
        seen = seen_by(runs / engine, pairs, tmp_path / engine)
        whole = open_run(runs / engine).model.similarity(pairs).numpy()
        np.testing.assert_allclose(seen.given.similarity, whole[pairs.image_index, pairs.text_index], atol=1e-6)
        for known in seen.yardstick.values():
            assert list(known.columns) == list(seen.given.columns)
            assert known.evidence.shape[1] == seen.given.evidence.shape[1] == (2 if engine == "global" else 1)


def test_trained_on_them_means_pair_by_pair(tiny, runs):
    """Labels and truth do not matter; other captions, other images or fewer pairs do."""
    run, pairs = open_run(runs / "global"), truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    labels = np.zeros(len(pairs), dtype=np.int64)
    for same in (pairs, pairs.without_truth(), replace(pairs, labels=labels, class_names=("a",))):
        assert trained_on_them(run, same)
    texts = replace(pairs.texts, captions=("another", *pairs.texts.captions[1:]))
    renamed = replace(pairs.images, ids=("another", *pairs.images.ids[1:]))
    for other in (truepair.load(tiny), replace(pairs, texts=texts), replace(pairs, images=renamed)):
        assert not trained_on_them(run, other)
    assert not trained_on_them(run, pairs.take(np.arange(95)))
    assert not trained_on_them(replace(run, result={**run.result, "pairs": None}), pairs)  # an imported model


def test_a_run_that_judges_labels_gives_no_memory(tiny, tmp_path):
    """What it believes in is the label of a pair, not that image and caption match."""
    pairs = truepair.load(tiny)
    labelled = replace(pairs, labels=np.arange(96) % 3, class_names=("a", "b", "c"))
    setup = Setup(model=MODELS["global"])
    options = {"epochs": 1, "batch_size": 16, "minimum_count": 1}
    truepair.fit(labelled, method="ce", setup=setup, out=tmp_path / "run", progress=False, **options)
    seen = seen_by(tmp_path / "run", pairs, tmp_path / "work")
    assert seen.details["trained_on_these_pairs"] and not seen.yardstick
    assert "memory" not in seen.given.columns and seen.given.evidence.shape[1] == 2


def test_runs_that_do_not_fit(tiny, runs, tmp_path):
    with pytest.raises(RunFolderError):
        truepair.audit(truepair.load(tiny), run=tmp_path / "none")
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.json").write_text(json.dumps({"pairs": {}}))
    with pytest.raises(RunFolderError, match="unfinished"):
        truepair.audit(truepair.load(tiny), run=unfinished)
    with pytest.raises(InputError, match="features are .* wide, this model takes 8"):
        truepair.audit("scenes:60", run=runs / "global", options=AuditOptions(bank=32), progress=False)


# ---- engines without vectors: the same formulas as by vectors, by cells ----


@pytest.mark.parametrize("engine", ["saf", "global"])
def test_cells_against_plain_loops(tiny, runs, tmp_path, engine):
    """Log odds, matching, rank and certainty of given and of mismatched pairs, from the whole similarity matrix."""
    pairs = truepair.load(tiny)
    model = open_run(runs / engine).model
    space = CellSpace(model, pairs, tmp_path, bank_size=20, seed=0, device="cpu")
    whole = model.similarity(pairs).double().numpy()
    images, texts = pairs.image_index, pairs.text_index
    temperature, background = space.constants
    strangers = [whole[images[j], texts[k]] / temperature for j in space.entries for k in space.entries if j != k]
    assert background == pytest.approx(math.log(np.mean(np.exp(strangers))), abs=1e-4)
    inside = int(space.entries[3])
    image_of = np.array([0, 1, inside, 5, 90, inside])
    caption_of = np.array([0, 1, inside, 60, inside, 2])
    found = space.scores(image_of, caption_of)
    for n, (a, b) in enumerate(zip(image_of, caption_of, strict=True)):
        others = [j for j in space.entries if j not in (a, b)]
        own = whole[images[a], texts[b]]
        odds, evidence, ranks = [], 0.0, []
        for similar in ([whole[images[a], texts[j]] for j in others], [whole[images[j], texts[b]] for j in others]):
            total = sum(math.exp(s / temperature) for s in similar)
            odds.append(own / temperature - math.log(total))
            evidence += (total + math.exp(own / temperature)) / 2 / math.exp(background)
            ties = sum(abs(s - own) <= 1e-6 for s in similar)
            ranks.append(1 + sum(s > own + 1e-6 for s in similar) + ties / 2)
        count = len(others) + 1
        expected = {
            "similarity": own,
            "log_odds": sum(odds) / 2,
            "matching": sum(1 / (1 + math.exp(-o)) for o in odds) / 2,
            "rank": 1 - math.log(math.sqrt(ranks[0] * ranks[1])) / math.log(count),
            "certainty": evidence / (evidence + count),
        }
        for name, value in expected.items():
            assert found[name][n] == pytest.approx(value, abs=2e-4), (n, name)


def test_cells_say_what_vectors_say(tiny, runs, tmp_path):
    """A global model scored both ways, with the same bank."""
    from truepair.audit.scoring.model_space import ModelSpace

    pairs, everything = truepair.load(tiny), np.arange(96)
    model = open_run(runs / "global").model
    cells = CellSpace(model, pairs, tmp_path, bank_size=32, seed=0, device="cpu")
    space = ModelSpace(model, pairs, everything, bank_size=32, seed=0, device="cpu")
    assert space.bank.rows.tolist() == cells.entries.tolist()
    assert cells.constants == pytest.approx((space.bank.temperature, space.bank.background), rel=1e-4)
    by_cells, by_vectors = cells.given_scores(), space.scores(everything, everything)
    assert list(by_cells) == ["similarity", "log_odds", "matching", "rank", "certainty"]
    for name, values in by_cells.items():
        np.testing.assert_allclose(values, by_vectors[name], atol=2e-3, err_msg=name)


def test_what_was_compared_is_not_compared_again(tiny, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(cell_space, "AT_ONCE", 16)
    pairs, model = truepair.load(tiny), open_run(runs / "saf").model
    moved = []
    options = {"bank_size": 16, "seed": 0, "device": "cpu"}
    first = CellSpace(model, pairs, tmp_path, moved=lambda *counts: moved.append(counts), **options).given_scores()
    assert moved[-1] == (48 + 96, 48 + 96) and moved == sorted(moved)
    (tmp_path / "texts-000002.safetensors").unlink()
    (tmp_path / "given.safetensors").unlink()
    made = []
    similarity = CellSpace._similarity
    monkeypatch.setattr(CellSpace, "_similarity", lambda *a: made.append(a) or similarity(*a))
    again = CellSpace(model, pairs, tmp_path, **options).given_scores()
    assert len(made) == 1, "the one piece that was missing"
    for name, values in first.items():
        np.testing.assert_array_equal(again[name], values)


@pytest.mark.parametrize("at_once", [7, 512])
def test_rematch_by_cells_against_a_double_loop(tiny, runs, tmp_path, monkeypatch, at_once):
    """The best caption and image of each suspicious pair among all, its own not offered; only the first ones asked."""
    monkeypatch.setattr(cell_space, "AT_ONCE", at_once)
    monkeypatch.setattr(cell_space, "MOST_REMATCHED", 9)
    pairs = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    model = open_run(runs / "global").model
    space = CellSpace(model, pairs, tmp_path, bank_size=16, seed=0, device="cpu")
    words = {caption: k for k, caption in enumerate(dict.fromkeys(pairs.texts.captions))}
    image_of = pairs.image_index
    caption_of = np.array([words[pairs.texts.captions[text]] for text in pairs.text_index])
    suspicious = np.flatnonzero(pairs.mismatched)[::-1]
    assert len(suspicious) > 9
    found = space.rematch(suspicious, image_of, caption_of)
    assert found.rows.tolist() == suspicious[:9].tolist()
    whole = model.similarity(pairs)
    for n, row in enumerate(found.rows.tolist()):
        own = whole[pairs.image_index[row], pairs.text_index[row]] + 1e-6
        offers = {"caption": (-1, own), "image": (-1, own)}
        for other in range(96):
            caption = whole[pairs.image_index[row], pairs.text_index[other]]
            image = whole[pairs.image_index[other], pairs.text_index[row]]
            if caption_of[other] != caption_of[row] and caption > offers["caption"][1]:
                offers["caption"] = (other, caption)
            if image_of[other] != image_of[row] and image > offers["image"][1]:
                offers["image"] = (other, image)
        for proposed, (best, similarity) in (
            (found.caption_from[n], offers["caption"]),
            (found.image_from[n], offers["image"]),
        ):
            if proposed != best:  # products in blocks differ by rounding: then the two are equally good
                pair = (row, proposed) if proposed == found.caption_from[n] else (proposed, row)
                other = whole[pairs.image_index[pair[0]], pairs.text_index[pair[1]]]
                assert float(other) == pytest.approx(float(similarity), abs=1e-6)
    known = found.caption_from >= 0
    expected = space.scores(found.rows[known], found.caption_from[known])["matching"]
    np.testing.assert_array_equal(found.caption_fit[known], expected)
    assert (found.caption_fit[~known] == 0).all()
    empty = space.rematch(suspicious[:0], image_of, caption_of)
    assert len(empty.rows) == len(empty.caption_from) == len(empty.swap_with) == 0


def test_blocks_of_a_bank_of_one_pair(tiny, runs, tmp_path):
    """Nothing to compare with: nothing is known."""
    pairs = truepair.load(tiny).take(np.array([4]))
    space = CellSpace(open_run(runs / "saf").model, pairs, tmp_path, bank_size=2, seed=0, device="cpu")
    found = space.given_scores()
    assert (found["log_odds"][0], found["matching"][0], found["rank"][0]) == (0, 0.5, 0.5)
    assert torch.isfinite(torch.tensor(space.constants)).all()
