"""Runs that are told a part of the truth: what they are told is right, and told when it should be."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet

import truepair
from truepair.cli.main import main as cli
from truepair.errors import InputError
from truepair.reproduce import limits
from truepair.reproduce.cells import Cell, Context, Places
from truepair.reproduce.limits import TOLD, limit_cells, main
from truepair.reproduce.told import truth_of


@pytest.fixture(scope="module")
def plain(tiny, tmp_path_factory):
    """A run of our method of two stages with three epochs each."""
    folder = tmp_path_factory.mktemp("runs") / "toy" / "tiny-truepair-noise40-seed1"
    words = "--noise 0.4 --seed 1 --epochs 3 --width 16 --minimum-count 1 --batch-size 24 --truepair-pieces 3 --quiet"
    assert (
        cli(["train", str(tiny), "--method", "truepair", *words.split(), "--threads", "1", "--out", str(folder)]) == 0
    )
    return folder


def test_a_partner_has_a_caption_that_belongs_to_the_image(tiny):
    pairs = truepair.inject_noise(truepair.load(tiny), 0.6, seed=2)
    truth = truth_of(pairs)
    assert (truth.matched == ~pairs.mismatched).all() and pairs.mismatched.sum() > 40
    for place, partner in enumerate(truth.partner.tolist()):
        if partner != place:
            assert pairs.mismatched[place] and pairs.mismatched[partner]
            assert pairs.true_image[partner] == pairs.image_index[place]
        elif pairs.mismatched[place]:  # no caption of its image was taken away
            assert not (pairs.mismatched & (pairs.true_image == pairs.image_index[place])).any()


def test_captions_of_one_image_are_given_in_turn(tiny):
    pairs = truepair.load(tiny).take(np.arange(6))  # images 0, 0, 1, 1, 2, 2
    assert pairs.image_index.tolist() == [0, 0, 1, 1, 2, 2]
    shifted = replace(pairs, image_index=np.array([1, 1, 2, 2, 0, 2]), true_image=pairs.image_index)
    assert truth_of(shifted).partner.tolist() == [2, 3, 4, 4, 0, 5]


def test_without_the_truth_nothing_is_told(tiny):
    with pytest.raises(InputError, match="nobody knows"):
        truth_of(truepair.load(tiny).without_truth())


def test_a_run_of_another_method_is_refused(tiny, tmp_path):
    words = ["--method", "infonce", "--epochs", "1", "--width", "16", "--minimum-count", "1", "--quiet"]
    assert cli(["train", str(tiny), *words, "--threads", "1", "--out", str(tmp_path / "run")]) == 0
    with pytest.raises(InputError, match="--method infonce"):
        main(["labels", str(tmp_path / "run"), "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def run(plain, out, told):
    main([told, str(plain), "--out", str(out)])
    epochs = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    table = parquet.read_table(out / "pairs.parquet")
    return {name: table[name].to_numpy() for name in ("mismatched", "memory_credit")}, epochs


@pytest.mark.parametrize("told", ["labels", "last-labels"])
def test_labels_are_the_truth_from_when_they_are_told(plain, tmp_path, told):
    columns, epochs = run(plain, tmp_path / "run", told)
    assert (columns["memory_credit"] == ~columns["mismatched"]).all()
    share = columns["mismatched"].mean()
    known = [epoch["disbelieved"] == pytest.approx(share, abs=1e-6) for epoch in epochs]
    assert known == ([True] * 6 if told == "labels" else [False] * 3 + [True] * 3)


def test_partners_are_taught_and_the_division_is_its_own(plain, tmp_path):
    columns, epochs = run(plain, tmp_path / "run", "partners")
    assert not (columns["memory_credit"] == ~columns["mismatched"]).all()
    assert 0.2 < epochs[3]["partner_probability"] <= 0.4  # one for most of the mismatched pairs
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    run(plain, tmp_path / "run", "partners")  # finished: nothing is done again
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_a_cell_is_of_the_run_of_our_method_and_keeps_what_other_cells_keep(plain, monkeypatch):
    known = {f"toy/{plain.name}": Cell(plain.name, {}, "truepair train", lambda places: pytest.fail("it is there"))}
    at = Context("toy", {f"told-{name}": name for name in TOLD}, known)
    cells = [*limit_cells(at, data="tiny", methods=" ".join(at.rows), rates=[0.4], seeds=[1])]
    assert cells[0].command == (
        f"python -m truepair.reproduce.limits labels runs/toy/{plain.name} "
        "--out runs/toy/tiny-told-labels-noise40-seed1"
    )
    assert len({cell.name for cell in cells}) == 3
    monkeypatch.setattr(limits, "truepair", lambda *words, module: main(words))
    record = cells[0].measure(Places(plain, plain.parent.parent))
    assert record["told"] == "labels" and record["result"]["method"] == "truepair" and len(record["epochs"]) == 6
    assert record["options"]["method"]["options"]["pieces"] == [3] and str(plain.parent) not in json.dumps(record)
