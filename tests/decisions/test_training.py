"""Training on pairs as people left them."""

import json

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from truepair.cli.main import main
from truepair.data.config import DataConfig
from truepair.data.noise import inject_noise
from truepair.data.open import load
from truepair.decisions.sources import load_decisions
from truepair.decisions.training import decided_pairs, lines_to_keep, load_decided_splits
from truepair.errors import InputError

ROWS = [
    {"pair_id": "0", "verdict": "mismatch"},
    {"pair_id": "1", "verdict": "match"},
    {"pair_id": "2", "verdict": "unsure"},
    {"pair_id": "3", "verdict": "mismatch", "caption": "a corrected caption"},
    {"pair_id": "4", "verdict": "mismatch", "partner": "9"},
    {"pair_id": "5", "verdict": "match", "caption": "said better"},
    {"pair_id": "6", "verdict": "mismatch"},
    {"pair_id": "6", "verdict": None},
]


@pytest.fixture
def decisions(tmp_path):
    def write(rows=ROWS):
        path = tmp_path / "d.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def captions(pairs):
    return {name: pairs.texts.captions[text] for name, text in zip(pairs.ids(), pairs.text_index.tolist(), strict=True)}


def test_mismatched_pairs_go_and_corrections_take_their_place(tiny, decisions):
    given = load(str(tiny), "train")
    before, changed = captions(given), decided_pairs(given, load_decisions(decisions()))
    expected = {**before, "3": "a corrected caption", "4": before["9"], "5": "said better"}
    del expected["0"]
    assert captions(changed) == expected and changed.trusted is None
    images = dict(zip(given.ids(), given.image_index.tolist(), strict=True))
    assert {name: images[name] for name in changed.ids()} == dict(
        zip(changed.ids(), changed.image_index.tolist(), strict=True)
    )
    assert captions(given) == before, "what was given is as it was"
    trusted = decided_pairs(given, load_decisions(decisions()), trust=True)
    assert {trusted.ids()[row] for row in np.flatnonzero(trusted.trusted)} == {"1", "3", "4", "5"}


def test_a_text_that_several_pairs_share_is_corrected_for_one(tiny, decisions):
    given = load(str(tiny), "train").take(np.array([3, 3, 7]))
    changed = given.with_captions({1: "another"})
    assert captions_of(changed) == [*captions_of(given)[:1], "another", *captions_of(given)[2:]]


def captions_of(pairs):
    return [pairs.texts.captions[text] for text in pairs.text_index.tolist()]


def test_train_takes_decisions_and_keeps_where_they_are(tiny, decisions, tmp_path, capsys):
    out, path = tmp_path / "run", decisions()
    quick = ["--method", "infonce", "--epochs", "1", "--width", "16", "--quiet"]
    assert main(["train", str(tiny), *quick, "--decisions", str(path), "--out", str(out)]) == 0
    rows = parquet.read_table(out / "pairs.parquet").to_pydict()
    assert "0" not in rows["pair_id"] and "6" in rows["pair_id"] and "a corrected caption" in rows["caption"]
    config = json.loads((out / "config.json").read_text())
    assert config["data"]["decisions"] == str(path)
    splits = load_decided_splits(DataConfig(str(tiny), decisions=str(path)), seed=0)
    assert splits.train.ids() == rows["pair_id"]


@pytest.mark.parametrize("kind", ["file", "audit"])
def test_a_run_goes_on_with_the_decisions_it_began_with(tiny, decisions, tmp_path, capsys, kind):
    path = decisions()
    if kind == "audit":  # the database of an audit beside its table
        given = captions(load(str(tiny), "train"))
        path = tmp_path / "audit"
        path.mkdir()
        table = {"pair_id": list(given), "image": ["i"] * len(given), "caption": list(given.values())}
        parquet.write_table(pyarrow.table({**table, "p_match": [0.5] * len(given)}), path / "pairs.parquet")
        assert main(["decisions", "import", str(path), str(decisions())]) == 0
    out, moved = tmp_path / "run", tmp_path / "moved"
    quick = ["--method", "infonce", "--epochs", "1", "--width", "16", "--quiet"]
    command = ["train", str(tiny), *quick, "--decisions", str(path)]
    assert main([*command, "--out", str(out)]) == 0
    before = (out / "metrics.jsonl").read_bytes(), (out / "result.json").read_bytes()
    more = decisions([*ROWS, {"pair_id": "7", "verdict": "mismatch"}])
    assert kind == "file" or main(["decisions", "import", str(path), str(more)]) == 0
    assert main([*command, "--out", str(out), "--resume"]) == 0
    out.rename(moved)
    (moved / "result.json").unlink()  # not finished
    assert main(["train", "--resume", str(moved)]) == 0
    assert ((moved / "metrics.jsonl").read_bytes(), (moved / "result.json").read_bytes()) == before
    kept = load_decisions(moved / "decisions.jsonl")
    assert set(kept.current()) == {"0", "1", "2", "3", "4", "5"} and bool(kept.captions) == (kind == "audit")
    splits = load_decided_splits(DataConfig(str(tiny), decisions="gone"), seed=0, kept=moved / "decisions.jsonl")
    assert splits.train.ids() == parquet.read_table(moved / "pairs.parquet")["pair_id"].to_pylist()


def test_a_run_of_an_earlier_version_keeps_no_decisions_and_goes_on_with_those_it_names(tiny, decisions, tmp_path):
    out, path = tmp_path / "run", decisions()
    quick = ["--method", "infonce", "--epochs", "1", "--width", "16", "--quiet"]
    assert main(["train", str(tiny), *quick, "--decisions", str(path), "--out", str(out)]) == 0
    (out / "decisions.jsonl").unlink()
    (out / "result.json").unlink()
    assert main(["train", "--resume", str(out)]) == 0 and (out / "result.json").exists()


def test_a_file_of_decisions_that_is_there_already_is_no_runs(tiny, decisions, tmp_path, capsys):
    out = tmp_path / "run"
    out.mkdir()
    (out / "decisions.jsonl").write_text("mine")
    assert main(["train", str(tiny), "--decisions", str(decisions()), "--out", str(out), "--quiet"]) == 2
    assert "is not an empty folder" in capsys.readouterr().err and (out / "decisions.jsonl").read_text() == "mine"


def test_what_cannot_be_trained_on(tiny, decisions):
    given = load(str(tiny), "train")
    everything = [{"pair_id": name, "verdict": "mismatch"} for name in given.ids()]
    with pytest.raises(InputError, match="call every pair of tiny/train mismatched"):
        decided_pairs(given, load_decisions(decisions(everything)))
    with pytest.raises(InputError, match="none of its 1 decided pairs is among these"):
        decided_pairs(given, load_decisions(decisions([{"pair_id": "other", "verdict": "match"}])))
    judged = [{"pair_id": "0", "verdict": "match", "given_caption": "of other data"}]
    with pytest.raises(InputError, match="'0' was judged with the caption 'of other data'"):
        decided_pairs(given, load_decisions(decisions(judged)))


def test_decisions_about_pairs_that_noise_has_changed_are_refused(tiny, decisions, tmp_path):
    """Their ids and captions are the same; the image that was judged is another one."""
    given = load(str(tiny), "train")
    noisy = inject_noise(given, 0.5, seed=0)
    images = {name: given.images.ids[image] for name, image in zip(given.ids(), given.image_index, strict=True)}
    moved = [given.ids()[row] for row in np.flatnonzero(noisy.mismatched)[:1]]
    same = [given.ids()[row] for row in np.flatnonzero(~noisy.mismatched)[:2]]
    told = [{"pair_id": name, "verdict": "match", "given_image": images[name]} for name in (*same, *moved)]
    with pytest.raises(InputError, match=rf"pair '{moved[0]}' was judged with the image .*audit of the same noise"):
        decided_pairs(noisy, load_decisions(decisions(told)), trust=True)
    with pytest.raises(InputError, match=rf"pair '{moved[0]}' was mismatched by noise"):
        decided_pairs(noisy, load_decisions(decisions([{"pair_id": moved[0], "verdict": "match"}])))
    kept = decided_pairs(noisy, load_decisions(decisions(told[:2])), trust=True)
    assert kept.trusted.sum() == 2 and len(kept) == len(noisy)
    now = noisy.images.ids[noisy.image_index[np.flatnonzero(noisy.mismatched)[0]]]
    of_the_same_noise = load_decisions(decisions([{"pair_id": moved[0], "verdict": "mismatch", "given_image": now}]))
    assert len(decided_pairs(noisy, of_the_same_noise)) == len(noisy) - 1
    (tmp_path / "kept.jsonl").write_bytes(lines_to_keep(of_the_same_noise))
    assert load_decisions(tmp_path / "kept.jsonl").images == {moved[0]: now}
