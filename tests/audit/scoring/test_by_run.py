"""Scoring by a finished run: pairs it was trained on, other pairs, and engines that have no vector of an item."""

import json
import math
import shutil
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
from truepair.audit.rematch.rematch import Items, rematch
from truepair.audit.scoring import cross_attention_space
from truepair.audit.scoring.by_run import beliefs_of, score_by_run
from truepair.audit.scoring.cross_attention_space import CrossAttentionSpace
from truepair.audit.verdict.mixture import mixture_verdict
from truepair.audit.verdict.verdict import verdict_of_scored
from truepair.data.pairs import Images, Pairs, Texts
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.errors import InputError, RunFolderError
from truepair.progress import Progress
from truepair.training.fit import open_run
from truepair.training.setup import Setup

pytestmark = pytest.mark.usefixtures("few_drawings")

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
    return score_by_run(pairs, run, folder, bank=bank, seed=0, device="cpu", progress=Progress(False))


# ---- any engine ----


@pytest.mark.parametrize("engine", list(MODELS))
def test_pairs_the_run_was_trained_on_have_its_memory(tiny, runs, tmp_path, engine, capsys):
    """The model learned them by heart, so they are judged by a mixture and not by synthetic mismatches."""
    out = tmp_path / "out"
    options = ["--noise", "0.4", "--noise-seed", "0"]
    assert run_cli(tiny, out, *options, *BY_RUN, str(runs / engine)) == 0
    rows, facts = rows_of(out), summary_of(out)
    belief = parquet.read_table(runs / engine / "pairs.parquet")["p_match"].to_pylist()
    np.testing.assert_allclose([row["indicator_memory"] for row in rows], belief, atol=1e-6)
    assert facts["scored_by"] == "run" and facts["verdict"]["trained_on"] == len(rows)
    assert facts["options"]["run"] == str(runs / engine) and "folds" not in facts["options"]
    kept = {"matching", "rank", "certainty", "others", "memory"}
    assert set(facts["indicators"]) == kept | ({"structure", "neighbours"} if engine == "global" else set())
    assert ("rematched_at_most" in facts["verdict"]) == (engine != "global")
    before = contents(out)["pairs.parquet"]
    assert run_cli(tiny, out, *options, *BY_RUN, str(runs / engine)) == 0
    assert contents(out)["pairs.parquet"] == before
    assert run_cli(tiny, out, *options, *BY_RUN, str(runs / ("saf" if engine == "sgr" else "sgr"))) == 2
    assert "holds an audit by another run" in capsys.readouterr().err
    assert run_cli(tiny, out, *options, *QUICK) == 2
    assert "scored_by = 'run', now it is 'cross-fitting'" in capsys.readouterr().err
    assert contents(out)["pairs.parquet"] == before


@pytest.mark.parametrize("engine", list(MODELS))
def test_other_pairs_are_measured_by_known_mismatches(tiny, runs, tmp_path, engine):
    out = tmp_path / "out"
    assert run_cli(tiny, out, "--split", "test", *BY_RUN, str(runs / engine)) == 0
    rows, facts = rows_of(out), summary_of(out)
    assert len(rows) == 32 and "indicator_memory" not in rows[0]
    assert facts["verdict"]["trained_on"] == 0
    assert facts["verdict"]["synthetic_mismatches"] == {"random": 32, "near": 32}


def test_scores_of_a_run_are_the_similarities_of_its_model(tiny, runs, tmp_path):
    pairs = truepair.load(tiny, "test")
    for engine in MODELS:
        seen = seen_by(runs / engine, pairs, tmp_path / engine)
        whole = open_run(runs / engine).model.similarity(pairs).numpy()
        np.testing.assert_allclose(seen.given.similarity, whole[pairs.image_index, pairs.text_index], atol=1e-6)
        for known in seen.synthetic.values():
            assert list(known.columns) == list(seen.given.columns)
            assert known.log_odds.shape[1] == seen.given.log_odds.shape[1] == (3 if engine == "global" else 2)


def known_to(run, pairs):
    return ~np.isnan(beliefs_of(run, pairs)[0])


def test_what_the_run_was_trained_on_is_told_pair_by_pair(tiny, runs):
    """By the features of the image and the words; whatever else is changed about the pairs."""
    run, pairs = open_run(runs / "global"), truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    labels = np.zeros(len(pairs), dtype=np.int64)
    spaced = replace(pairs.texts, captions=tuple(f" {caption.upper()}" for caption in pairs.texts.captions))
    features = replace(pairs.images, features=pairs.images.features.astype(np.float32), ids=("x",) * 48)
    for same in (pairs, replace(pairs, labels=labels, class_names=("a",)), replace(pairs, texts=spaced)):
        assert known_to(run, same).all()
    assert known_to(run, replace(pairs, images=features)).all()
    some = pairs.take(np.random.default_rng(0).permutation(96)[:50])
    belief = parquet.read_table(run.folder.pairs, columns=["p_match"])["p_match"].to_numpy()
    np.testing.assert_allclose(beliefs_of(run, some)[0], belief[np.array(some.source_rows)], atol=1e-6)
    changed = replace(pairs.texts, captions=("another", *pairs.texts.captions[1:]))
    assert known_to(run, replace(pairs, texts=changed)).sum() == 96 - (pairs.text_index == 0).sum()
    clean, trained = truepair.load(tiny), set(zip(pairs.image_index.tolist(), pairs.texts.captions, strict=True))
    expected = [key in trained for key in zip(clean.image_index.tolist(), clean.texts.captions, strict=True)]
    assert known_to(run, clean).tolist() == expected and 0 < sum(expected) < 96
    assert not known_to(run, truepair.load(tiny, "test")).any()
    assert not known_to(replace(run, result={**run.result, "pairs": None}), pairs).any()  # an imported model


def test_known_and_other_pairs_are_judged_apart(tiny, runs, tmp_path):
    """Half of the pairs are those of the run: only the others are measured by synthetic mismatches, made of them."""
    pairs = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    other = truepair.load(tiny, "test")
    both = join(pairs, other)
    seen = seen_by(runs / "global", both, tmp_path)
    assert seen.trained_on.tolist() == [True] * 96 + [False] * 32
    assert np.isnan(seen.given.columns["memory"][96:]).all() and not np.isnan(seen.given.columns["memory"][:96]).any()
    assert all(len(table.log_odds) <= 32 and table.log_odds.shape[1] == 3 for table in seen.synthetic.values())
    verdict = verdict_of_scored(seen)
    known = mixture_verdict(seen.given.log_odds[:96])
    np.testing.assert_array_equal(verdict.p_match[:96], known.p_match)
    alone = verdict_of_scored(replace(seen, given=unseen_of(seen), trained_on=None))
    np.testing.assert_array_equal(verdict.p_match[96:], alone.p_match)
    assert verdict.noise_rate == pytest.approx((96 * known.noise_rate + 32 * alone.noise_rate) / 128)
    assert verdict.details["trained_on"] == 96


def test_old_runs_are_told_by_names_and_damaged_tables_are_refused(tiny, runs, tmp_path):
    run, pairs = open_run(runs / "global"), truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    table = parquet.read_table(run.folder.pairs)
    shutil.copytree(runs / "global", tmp_path / "old")
    old = open_run(tmp_path / "old")
    parquet.write_table(table.drop_columns(["image_digest"]), old.folder.pairs)
    beliefs, by_content = beliefs_of(old, pairs)
    assert not by_content and not np.isnan(beliefs).any()
    renamed = replace(pairs.images, ids=("another", *pairs.images.ids[1:]))
    assert known_to(old, replace(pairs, images=renamed)).sum() == 96 - (pairs.image_index == 0).sum()
    parquet.write_table(table.drop_columns(["caption"]), old.folder.pairs)
    with pytest.raises(RunFolderError, match="lacks the column caption"):
        beliefs_of(old, pairs)
    old.folder.pairs.write_bytes(b"PAR1 damaged")
    with pytest.raises(RunFolderError, match="cannot be read"):
        beliefs_of(old, pairs)


def unseen_of(seen):
    part = seen.given.take(np.arange(96, 128))
    return replace(part, log_odds=part.log_odds[:, :3])


def join(first, second):
    """The pairs of two sets as one."""
    features = np.concatenate([np.asarray(pairs.images.features) for pairs in (first, second)])
    images = Images(features, first.images.ids + tuple(f"other {name}" for name in second.images.ids))
    texts = Texts(
        first.texts.captions + second.texts.captions, first.texts.ids + tuple(f"o{k}" for k in second.texts.ids)
    )
    image_index = np.concatenate([first.image_index, second.image_index + len(first.images)])
    text_index = np.concatenate([first.text_index, second.text_index + len(first.texts)])
    return Pairs(images, texts, image_index, text_index)


def test_a_run_that_judges_labels_gives_no_memory(tiny, tmp_path):
    """What it believes in is the label of a pair, not that image and caption match."""
    pairs = truepair.load(tiny)
    labelled = replace(pairs, labels=np.arange(96) % 3, class_names=("a", "b", "c"))
    setup = Setup(model=MODELS["global"])
    options = {"epochs": 1, "batch_size": 16, "minimum_count": 1}
    truepair.fit(labelled, method="ce", setup=setup, out=tmp_path / "run", progress=False, **options)
    seen = seen_by(tmp_path / "run", pairs, tmp_path / "work")
    assert seen.details["trained_on"] == 96 and not seen.synthetic
    assert "memory" not in seen.given.columns and seen.given.log_odds.shape[1] == 3


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
    space = CrossAttentionSpace(model, pairs, tmp_path, bank_size=20, seed=0, device="cpu")
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
    cells = CrossAttentionSpace(model, pairs, tmp_path, bank_size=32, seed=0, device="cpu")
    space = ModelSpace(model, pairs, everything, bank_size=32, seed=0, device="cpu")
    assert space.bank.rows.tolist() == cells.entries.tolist()
    assert cells.constants == pytest.approx((space.bank.temperature, space.bank.background), rel=1e-4)
    by_cells, by_vectors = cells.given_scores(), space.scores(everything, everything)
    assert list(by_cells) == ["similarity", "log_odds", "matching", "rank", "certainty", "others"]
    for name, values in by_cells.items():
        np.testing.assert_allclose(values, by_vectors[name], atol=2e-3, err_msg=name)


def test_what_was_compared_is_not_compared_again(tiny, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(cross_attention_space, "AT_ONCE", 16)
    pairs, model = truepair.load(tiny), open_run(runs / "saf").model
    moved = []
    options = {"bank_size": 16, "seed": 0, "device": "cpu"}
    first = CrossAttentionSpace(model, pairs, tmp_path, moved=moved.append, **options).given_scores()
    assert moved[-1] == 48 + 96 and moved == sorted(moved)
    (tmp_path / "texts-000002.safetensors").unlink()
    (tmp_path / "given.safetensors").unlink()
    made = []
    similarity = CrossAttentionSpace._similarity
    monkeypatch.setattr(CrossAttentionSpace, "_similarity", lambda *a: made.append(a) or similarity(*a))
    again = CrossAttentionSpace(model, pairs, tmp_path, **options).given_scores()
    assert len(made) == 1, "the one piece that was missing"
    for name, values in first.items():
        np.testing.assert_array_equal(again[name], values)


@pytest.mark.parametrize("at_once", [7, 512])
def test_rematch_by_cells_against_a_double_loop(tiny, runs, tmp_path, monkeypatch, at_once):
    """The best caption and image of each suspicious pair among all, its own not offered; only the first ones asked."""
    monkeypatch.setattr(cross_attention_space, "AT_ONCE", at_once)
    monkeypatch.setattr(cross_attention_space, "MOST_REMATCHED", 9)
    pairs = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    model = open_run(runs / "global").model
    space = CrossAttentionSpace(model, pairs, tmp_path, bank_size=16, seed=0, device="cpu")
    words = {caption: k for k, caption in enumerate(dict.fromkeys(pairs.texts.captions))}
    image_of = pairs.image_index
    caption_of = np.array([words[pairs.texts.captions[text]] for text in pairs.text_index])
    suspicious = np.flatnonzero(pairs.mismatched)[::-1]
    assert len(suspicious) > 9
    items = Items(np.arange(96), image_of, caption_of)
    found = rematch(suspicious, [space], items)
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
    order = np.argsort(found.rows[known])  # in which they were compared
    expected = space.scores(found.rows[known][order], found.caption_from[known][order])["matching"]
    np.testing.assert_array_equal(found.caption_fit[known][order], expected)
    assert (found.caption_fit[~known] == 0).all()
    empty = rematch(suspicious[:0], [space], items)
    assert len(empty.rows) == len(empty.caption_from) == len(empty.swap_with) == 0


def test_blocks_of_a_bank_of_one_pair(tiny, runs, tmp_path):
    """Nothing to compare with: nothing is known."""
    pairs = truepair.load(tiny).take(np.array([4]))
    space = CrossAttentionSpace(open_run(runs / "saf").model, pairs, tmp_path, bank_size=2, seed=0, device="cpu")
    found = space.given_scores()
    assert (found["log_odds"][0], found["matching"][0], found["rank"][0]) == (0, 0.5, 0.5)
    assert torch.isfinite(torch.tensor(space.constants)).all()
