"""Cells are run once, resumed, and say what failed; what is kept of a run is complete and names no path."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from truepair.errors import InputError
from truepair.reproduce import __main__ as program
from truepair.reproduce import cells, processes
from truepair.reproduce.cells import Cell, Context, Places
from truepair.reproduce.data_sets import check_data_sets, known_data_sets
from truepair.reproduce.records import read_records
from truepair.reproduce.runner import run_cell, run_cells
from truepair.reproduce.tables import read_specs
from truepair.reproduce.training import cost_of, measure_ensemble, training_cells
from truepair.training.run_folder import RunFolder

ROWS = {"oracle": "infonce --oracle", "infonce": "infonce", "crcl": "crcl"}
BUILT_IN = {"scenes"}
SMALL = "--width 16 --minimum-count 1 --score-images 12"


def grid(data="tiny", **changes):
    options = {"methods": "oracle", "rates": [0.4], "settings": SMALL, "seeds": [1], "epochs": 1}
    return [*training_cells(Context("toy", ROWS, {}), data=data, **(options | changes))]


def test_cells_cover_the_grid_once_and_share_the_clean_oracle():
    found = grid(methods="infonce oracle", rates=[0.0, 0.4], seeds=[0, 1])
    assert len(found) == len({cell.name for cell in found}) == 6
    assert not [cell for cell in found if cell.facts["method"] == "oracle" and cell.facts["noise"] == 0]
    assert [cell.facts["seed"] for cell in found] == [0, 0, 0, 1, 1, 1]


def test_options_of_a_method_for_a_source_stand_before_those_of_its_row():
    one = grid(methods="crcl oracle", method_options={"oracle": "--pooling gpo", "*": "--clip 1"})
    assert [" ".join(cell.command.split()[3:9]) for cell in one] == [
        "--method crcl --clip 1 --noise 0.4",
        "--method infonce --pooling gpo --oracle --noise",
    ]


@pytest.mark.parametrize(
    "given", ["/usr/lib/libopenblas.so.0 libjemalloc.so.2", "/usr/lib/libopenblas.so.0:libjemalloc.so.2"]
)
def test_a_record_names_libraries_that_take_the_place_of_others(monkeypatch, given):
    monkeypatch.setenv("LD_PRELOAD", given)
    assert cost_of([])["preloaded"] == ["libopenblas.so.0", "libjemalloc.so.2"]
    monkeypatch.delenv("LD_PRELOAD")
    assert "preloaded" not in cost_of([])


def test_a_cell_is_trained_once_and_its_record_is_complete(tiny, tmp_path, monkeypatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    (cell,) = grid()
    results, places = tmp_path / "results.jsonl", Places(tiny.parent, tmp_path / "runs")
    run_cells([cell], results, places, jobs=1)
    (kept,) = read_records(results)
    assert kept["command"] == f"truepair train tiny --method infonce --oracle --noise 0.4 --seed 1 --epochs 1 {SMALL}"
    assert (kept["name"], kept["cell"]) == ("tiny-oracle-noise40-seed1", cell.facts)
    assert kept["result"]["test"]["rsum"] > 0 and kept["epochs_trained"] == len(kept["epochs"]) == 1
    assert kept["options"]["model"]["width"] == 16 and kept["threads"] == 1
    assert 0 <= kept["cpu_seconds"] < 60 and 0 <= kept["training_seconds"] < 60
    assert str(tmp_path) not in json.dumps(kept) and str(tiny) not in json.dumps(kept) and "preloaded" not in kept

    monkeypatch.setattr(processes.subprocess, "Popen", lambda *_, **__: pytest.fail("it is there already"))
    run_cells([cell], results, places, jobs=1)
    with pytest.raises(InputError, match="of another command .* delete its line"):
        run_cells(grid(settings=f"{SMALL} --clip 1"), results, places, jobs=1)


def test_a_run_that_was_cut_off_goes_on(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(cells, "truepair", lambda *words, **_: said.append(words))
    cells.train("data", ["--method", "crcl"], tmp_path / "new")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "config.json").write_text("{}")
    cells.train("data", ["--method", "crcl"], tmp_path / "cut")
    assert said[0][:4] == ("train", "data", "--method", "crcl")
    assert said[1] == ("train", "--resume", str(tmp_path / "cut"), "--quiet")


LONG = """
import signal
import sys
from pathlib import Path
from tests.reproduce.test_runner import grid
from truepair.reproduce.cells import Places
from truepair.reproduce.runner import run_cells
data, folder = map(Path, sys.argv[1:])
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell in the background leaves ignored
run_cells(grid(epochs=4000, seeds=[0, 1]), folder / "results.jsonl", Places(data, folder / "runs"), jobs=1)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_table_that_is_stopped_ends_its_training_with_a_checkpoint(tiny, tmp_path, how):
    first, second = (tmp_path / "runs" / "toy" / cell.name for cell in grid(epochs=4000, seeds=[0, 1]))
    command = [sys.executable, "-c", LONG, str(tiny.parent), str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as table:
        while table.poll() is None and not RunFolder(first).metrics.exists():
            time.sleep(0.02)
        table.send_signal(how)
        _, said = table.communicate(timeout=60)
    assert table.returncode == 1 and "Interrupted; the same command continues." in said
    assert RunFolder(first).checkpoint.exists() and not RunFolder(first).lock.exists()
    assert not second.exists()  # the next cell did not begin


def test_a_run_that_two_cells_need_is_trained_by_one_of_them(tmp_path, monkeypatch):
    """As a run of our method is, and what is told a part of the truth beside it."""
    path, begun = tmp_path / "runs" / "toy" / "base", []

    def trained(*words, module="truepair"):
        begun.append(words)
        path.mkdir(parents=True)  # raises where the other one is at it
        RunFolder(path).config.write_text("{}")
        time.sleep(0.2)
        RunFolder(path).result.write_text("{}")

    monkeypatch.setattr(cells, "truepair", trained)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(cells.train, "tiny", ["--seed", "1"], path) for _ in range(2)]
    assert all(each.result().finished for each in both) and len(begun) == 1
    assert [each.name for each in path.parent.iterdir()] == ["base"]


def test_after_an_interrupt_nothing_begins(tiny):
    with pytest.raises(KeyboardInterrupt), processes.ended_together():
        raise KeyboardInterrupt
    with pytest.raises(InputError, match="interrupted before describe began"):
        processes.truepair("describe", str(tiny))
    with processes.ended_together():
        assert "captions an image" in processes.truepair("describe", str(tiny))


def test_a_failing_cell_says_which_and_why_and_leaves_no_record(tmp_path):
    (cell,) = grid("nowhere")
    results = tmp_path / "results.jsonl"
    with pytest.raises(InputError, match=r"nowhere-oracle-noise40-seed1 failed: truepair: error: .*nowhere"):
        run_cell(cell, results, Places(tmp_path, tmp_path / "runs"))
    assert not results.exists()


def test_a_run_that_diverged_is_a_record_of_when_and_why_and_is_not_run_again(tiny, tmp_path, monkeypatch):
    (cell,) = grid(settings=f"{SMALL} --learning-rate 1e30 --batch-size 8", epochs=2)
    results, places = tmp_path / "results.jsonl", Places(tiny.parent, tmp_path / "runs")
    run_cells([cell], results, places, jobs=1)
    (kept,) = read_records(results)
    assert kept["diverged"]["epoch"] == 1 and kept["epochs"] == [] and "result" not in kept
    assert kept["diverged"]["said"].startswith("training diverged in epoch 1, batch ")
    assert kept["options"]["training"]["learning_rate"] == 1e30 and str(tmp_path) not in json.dumps(kept)
    monkeypatch.setattr(processes.subprocess, "Popen", lambda *_, **__: pytest.fail("it is there already"))
    run_cells([cell], results, places, jobs=1)


def test_class_labels_keep_their_map(tmp_path, in_this_process):
    import numpy as np

    from tests.methods.labelled import labelled_pairs

    arrays = {}
    for split, short in (("train", "tr"), ("test", "te")):
        pairs = labelled_pairs(60, seed=len(split))
        arrays |= {f"I_{short}": pairs.images.features, f"T_{short}": pairs.texts.features, f"L_{short}": pairs.labels}
    np.savez(tmp_path / "toy.npz", **arrays)
    settings = "--epochs 6 --batch-size 16 --region-share 0 --model mlp"
    at = Context("toy", {"uot-rcl": "uot-rcl"}, {})
    (cell,) = training_cells(
        at, data="toy.npz", methods="uot-rcl", rates=[0.4], settings=settings, seeds=[0], noise="label-noise"
    )
    assert cell.name == "toy.npz-uot-rcl-labels40-seed0"
    kept = cell.measure(Places(tmp_path, tmp_path / "runs"))
    assert 0 < kept["result"]["test"]["map_i2t"] <= 1
    assert len([epoch for epoch in kept["epochs"] if epoch["dev_map"] > 0]) == 6


def test_an_ensemble_is_the_mean_similarity_of_its_members(tiny, tmp_path, in_this_process):
    from truepair.data.open import load
    from truepair.engines.ensemble_model import EnsembleModel
    from truepair.evaluation import evaluate
    from truepair.training.fit import open_run

    members = {f"toy/{cell.name}": cell for cell in grid(methods="oracle infonce")}
    places = Places(tiny.parent, tmp_path / "runs")
    names = [name.removeprefix("toy/") for name in members]
    kept = measure_ensemble(Context("toy", ROWS, members), names, "tiny", "12", places)
    model = EnsembleModel([open_run(places.runs / name).model for name in members])
    expected = evaluate(model, load(tiny, "test").first_images(12))
    assert kept["result"]["test"] == expected and kept["members"] == names
    assert kept["result"]["dev"]["rsum"] > 0 and kept["epochs_trained"] == 2
    (shown,) = grid(methods="infonce", seeds=[0], engine="sgraf", members=["sgr", "saf"])
    assert shown.name == "tiny-sgraf-infonce-noise40-seed0"
    assert shown.command == (
        "truepair evaluate tiny-sgr-infonce-noise40-seed0 tiny-saf-infonce-noise40-seed0 tiny --images 12"
    )


def test_cells_run_as_tasks_of_ray(tmp_path, cluster):
    def cell(name, broken=False):
        def measure(places):
            if broken:
                raise InputError("no such data")
            return {"where": str(places.runs), "square": int(name) ** 2}

        return cells.Cell(name, {"seed": 0}, f"do {name}", measure)

    results, places = tmp_path / "results.jsonl", Places(tmp_path, tmp_path / "runs")
    with pytest.raises(InputError, match="2 failed: no such data"):
        run_cells([cell("1"), cell("2", broken=True), cell("3")], results, places, jobs=2, engine="ray")
    assert [record["square"] for record in read_records(results)] == [1, 9]  # the others are not lost
    run_cells([cell("1"), cell("2"), cell("3")], results, places, jobs=None, engine="ray")
    assert [record["square"] for record in read_records(results)] == [1, 4, 9]


def cells_of(*data):
    return [Cell(f"{name}-{place}", {"data": name}, "", lambda places: {}) for place, name in enumerate(data)]


def test_the_data_set_of_every_table_is_known():
    tables, _ = read_specs()
    named = {cell.facts["data"] for table in tables.values() for cell in table.cells}
    assert named - BUILT_IN == set(known_data_sets()) & named
    assert not BUILT_IN & set(known_data_sets())


@pytest.mark.parametrize("data", ["fashion", "fashion_precomp"])
def test_what_is_missing_is_named_with_its_runs_and_what_it_holds(tmp_path, data):
    wanted = rf"{tmp_path} has no folder fashion_precomp, which 2 runs of .* product photos .* --root, or .* --data"
    with pytest.raises(InputError, match=wanted):
        check_data_sets(cells_of(data, "scenes", data), Places(tmp_path, tmp_path))


def test_what_is_there_or_built_in_is_not_missed(tmp_path):
    (tmp_path / "flickr8k").mkdir()
    check_data_sets(cells_of("photographs", "flickr8k", "scenes"), Places(tmp_path, tmp_path))


def test_a_table_of_missing_data_ends_before_any_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "run_cells", lambda *given, **more: pytest.fail("began"))
    words = ["run", "ours-icons", "--root", str(tmp_path), "--results", str(tmp_path), "--runs", str(tmp_path / "runs")]
    monkeypatch.setattr("sys.argv", ["truepair.reproduce", *words])
    assert program.main() == 2
    said = capsys.readouterr().err
    assert "no folder icons, which 30 runs" in said and "examples/icons.py" in said
