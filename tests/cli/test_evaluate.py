"""`truepair evaluate`: one run, several together, two stages; what it prints and leaves, and what it refuses."""

import argparse
import json
import shutil
import subprocess
import sys

import pytest
import torch

import truepair
from truepair.cli.evaluate import add_evaluate
from truepair.cli.figures import bound_sentence, class_table, map_table, recall_table
from truepair.cli.train import summary
from truepair.data.config import Augmentation, DataConfig
from truepair.data.text import Vocabulary
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.ensemble_model import EnsembleModel
from truepair.engines.regions_and_words import InputSizes, RegionsAndWords
from truepair.engines.retrieval_model import RetrievalModel, new_model, save_model
from truepair.errors import InputError, TruepairError
from truepair.evaluation import RecallBound
from truepair.evaluation.class_retrieval import score_classes
from truepair.evaluation.two_stage import evaluate_two_stage
from truepair.training.config import TrainingConfig
from truepair.training.fit import open_run
from truepair.training.jobs import Job, train_job
from truepair.training.setup import Setup


def evaluate(*arguments):
    """Run the command as `truepair evaluate …` does."""
    parser = argparse.ArgumentParser()
    add_evaluate(parser.add_subparsers())
    options = parser.parse_args(["evaluate", *map(str, arguments)])
    return options.command(options)


@pytest.fixture(scope="module")
def runs(tiny, tmp_path_factory):
    """Finished runs a, b (global), sgr, saf and other (local; their engines are drawn, not trained), and an unfinished
    one."""
    folder = tmp_path_factory.mktemp("runs")
    setup = Setup(
        training=TrainingConfig(epochs=2, batch_size=16, minimum_count=1), model=GlobalConfig(width=16, word_width=8)
    )
    for name, seed in [("a", 0), ("b", 1)]:
        truepair.fit(
            truepair.load(tiny), test=truepair.load(tiny, "test"), method="infonce", setup=setup, seed=seed,
            out=folder / name, progress=False,
        )  # fmt: skip
    vocabulary = Vocabulary.read(folder / "a" / "vocabulary.json")
    small = {"width": 16, "word_width": 8, "similarity_width": 8}
    for name, config, width in [
        ("sgr", SGRConfig(**small), 8),
        ("saf", SAFConfig(**small), 8),
        ("other", SAFConfig(**small), 5),
    ]:
        shutil.copytree(folder / "a", folder / name)
        preparation = RegionsAndWords(vocabulary, InputSizes(width, 3, len(vocabulary)), Augmentation())
        torch.manual_seed(len(name))
        save_model(folder / name / "model.safetensors", new_model(config, preparation))
    shutil.copytree(folder / "a", folder / "unfinished")
    (folder / "unfinished" / "result.json").unlink()
    return folder


@pytest.fixture(scope="module")
def labelled(tiny, tmp_path_factory):
    """The tiny data with a class an image; class `rare` has few training pairs."""
    folder = tmp_path_factory.mktemp("labelled") / "data"
    shutil.copytree(tiny, folder)
    for split, count in {"train": 48, "dev": 16, "test": 16}.items():
        names = ["rare" if image in (0, 1) else ("one", "two", "three")[image % 3] for image in range(count)]
        (folder / f"{split}_meta.tsv").write_text("\n".join(["kind", *names]) + "\n")
    return folder


@pytest.fixture(scope="module")
def label_run(labelled, tmp_path_factory):
    """A finished run that learned from these labels, without the rare class."""
    setup = Setup(model=GlobalConfig(width=8, word_width=8)).with_training(
        {"epochs": 2, "batch_size": 16, "minimum_count": 1}
    )
    data = DataConfig(str(labelled), label="kind", label_noise=0.4, least_class_pairs=6)
    return train_job(Job(data, "ce", setup=setup), tmp_path_factory.mktemp("label_runs") / "run", progress=False)


def figures_of(file, images=16):
    """What was written but for the size of what was ranked, which is checked: these images, with two texts each."""
    figures = json.loads(file.read_text())
    assert figures.pop("gallery") == {"images": images, "texts": 2 * images}
    return figures


def test_one_run_repeats_its_figures(runs, tiny, tmp_path, capsys):
    evaluate(runs / "a", tiny, "--json", tmp_path / "figures.json")
    figures = figures_of(tmp_path / "figures.json")
    expected = json.loads((runs / "a" / "result.json").read_text())["test"]
    assert figures == expected
    printed = capsys.readouterr()
    assert printed.out == recall_table({"test": expected}) + "\nRanked: 16 images and 32 texts (test)\n"
    assert printed.err == "", "no progress without a terminal"


def test_where_captions_are_equal_the_most_that_recall_can_be_is_said(runs, tiny, tmp_path, capsys):
    """After training and beside the figures of a run, and kept with both; by folds it is another."""
    folder = tmp_path / "shop"
    shutil.copytree(tiny, folder)
    for split in ("dev", "test"):
        captions = (folder / f"{split}_caps.txt").read_text().splitlines()
        (folder / f"{split}_caps.txt").write_text("\n".join(["a gift", *captions[1:-1], "a gift"]) + "\n")
    captions = (folder / "test_caps.txt").read_text().splitlines()
    (folder / "test_caps.txt").write_text("\n".join(["a gift"] * (len(captions) - 1) + captions[-2:-1]) + "\n")

    evaluate(runs / "a", folder, "--json", tmp_path / "figures.json")
    found = json.loads((tmp_path / "figures.json").read_text())["recall_bound"]
    pairs = truepair.load(folder, "test")
    assert found == RecallBound.of(pairs).to_dict() and found["shared_captions"] == len(pairs) - 1
    assert capsys.readouterr().out.splitlines()[-1] == bound_sentence("test", found)
    evaluate(runs / "a", folder, "--folds", 4, "--json", tmp_path / "folds.json")
    by_folds = json.loads((tmp_path / "folds.json").read_text())["recall_bound"]
    assert by_folds == RecallBound.of(pairs, folds=4).to_dict() and by_folds["rsum"] > found["rsum"]

    job = Job(DataConfig(str(folder)), "infonce", setup=Setup(TrainingConfig(epochs=1, minimum_count=1)))
    result = train_job(job, tmp_path / "run", progress=False).result
    assert result["recall_bound"] == {"test": found}, "of dev two captions are equal, which is not worth saying"
    assert bound_sentence("test", found) in summary(result).splitlines()
    assert result["test"]["rsum"] <= found["rsum"]


@pytest.mark.parametrize("names", [("a", "b"), ("sgr", "saf"), ("saf",)])
def test_several_runs_are_an_ensemble(names, runs, tiny, tmp_path):
    evaluate(*(runs / name for name in names), tiny, "--split", "dev", "--json", tmp_path / "figures.json")
    figures = figures_of(tmp_path / "figures.json")
    ensemble = EnsembleModel([open_run(runs / name).model for name in names])
    assert figures == truepair.evaluate(ensemble, truepair.load(tiny, "dev"))
    assert figures != truepair.evaluate(open_run(runs / "b").model, truepair.load(tiny, "dev"))


def test_several_runs_may_answer_by_their_evidence(runs, tiny, tmp_path):
    evaluate(runs / "sgr", runs / "saf", tiny, "--evidence", "0.1", "--json", tmp_path / "figures.json")
    model = EnsembleModel([open_run(runs / name).model for name in ("sgr", "saf")], evidence=0.1)
    assert figures_of(tmp_path / "figures.json") == truepair.evaluate(model, truepair.load(tiny, "test"))
    with pytest.raises(InputError, match="--evidence has no effect on one run"):
        evaluate(runs / "sgr", tiny, "--evidence", "0.1")


@pytest.mark.parametrize("order", ["first", "last", "between"])
def test_options_stand_before_or_after_runs_and_data(order, runs, tiny, tmp_path):
    options = ["--images", "8", "--json", tmp_path / "figures.json"]
    places = [runs / "a", runs / "b", tiny]
    arguments = {
        "first": [*options, *places],
        "last": [*places, *options],
        "between": [*options[:2], *places, *options[2:]],
    }
    evaluate(*arguments[order])
    pairs = truepair.load(tiny, "test").first_images(8)
    expected = truepair.evaluate(EnsembleModel([open_run(runs / name).model for name in "ab"]), pairs)
    assert figures_of(tmp_path / "figures.json", images=8) == expected


def test_folds_are_those_of_the_first_images(runs, tiny, tmp_path, capsys):
    evaluate(runs / "a", tiny, "--images", "12", "--folds", "3", "--json", tmp_path / "figures.json")
    pairs = truepair.load(tiny, "test").first_images(12)
    expected = truepair.evaluate(open_run(runs / "a").model, pairs, folds=3)
    assert figures_of(tmp_path / "figures.json", images=12) == expected
    said = f"Ranked: 12 images and {len(pairs.texts)} texts (test, in 3 folds)"
    assert capsys.readouterr().out.splitlines()[-1] == said


def test_two_stages_print_and_leave_what_they_found(runs, tiny, tmp_path, capsys):
    evaluate(
        runs / "sgr", runs / "saf", tiny, "--propose", runs / "a", "--top", 4, "--compare",
        "--json", tmp_path / "two.json",
    )  # fmt: skip
    found = figures_of(tmp_path / "two.json")
    model = EnsembleModel([open_run(runs / name).model for name in ("sgr", "saf")])
    pairs = truepair.load(tiny, "test")
    expected = evaluate_two_stage(open_run(runs / "a").model, model, pairs, top=4, compare=True).to_dict()
    times = {"seconds", "full_seconds"}
    assert {name: found[name] for name in found if name not in times} == {
        name: expected[name] for name in expected if name not in times
    }
    assert found["full"] == truepair.evaluate(model, pairs)
    printed = capsys.readouterr().out
    for line in ["proposer alone", "top 4 ranked", "every cell", "difference", f"{found['cells']} cells computed"]:
        assert line in printed
    assert printed.splitlines()[-1] == "Ranked: 16 images and 32 texts (test)"

    evaluate(runs / "saf", tiny, "--propose", runs / "a", "--top", 4, "--json", tmp_path / "alone.json")
    assert json.loads((tmp_path / "alone.json").read_text())["full"] is None
    assert "every cell" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUNS/a", "RUNS/b"], "RUNS/b is a run folder, not data; the data come last"),
        (["DATA", "RUNS/a"], "RUNS/a is a run folder, not data"),
        (["RUNS/a", "RUNS/missing", "DATA"], "RUNS/missing: no such run folder"),
        (["RUNS/a", "DATA", "DATA"], "is not a run folder"),
        (["RUNS/unfinished", "DATA"], "unfinished run"),
        (["RUNS/a", "RUNS/unfinished", "DATA"], "RUNS/unfinished holds an unfinished run"),
        (["RUNS/a", "RUNS/b/../a", "DATA"], "is given twice"),
        (["RUNS/a", "nowhere"], "nowhere"),
        (["RUNS/a", "RUNS/saf", "DATA"], "RUNS/a gives cosines"),
        (["RUNS/saf", "RUNS/other", "DATA"], "RUNS/other: "),
        (["RUNS/a", "scenes:5"], "RUNS/a: scenes/test: features are 56 wide, this model takes 8"),
        (["RUNS/a", "DATA", "--images", "0"], "--images is 0"),
        (["RUNS/a", "DATA", "--folds", "5"], "16 images do not divide"),
        (["RUNS/saf", "DATA", "--top", "5"], "two stages need --propose too"),
        (["RUNS/saf", "DATA", "--propose", "RUNS/a"], "two stages need --top too"),
        (["RUNS/saf", "DATA", "--compare"], "give --propose and --top as well"),
        (["RUNS/saf", "DATA", "--propose", "RUNS/a", "--top", "5", "--folds", "2"], "do not go together"),
        (["RUNS/saf", "DATA", "--propose", "RUNS/a", "--top", "0"], "top is 0"),
        (["RUNS/saf", "DATA", "--propose", "RUNS/sgr", "--top", "5"], "--propose RUNS/sgr: it has a local engine"),
        (["RUNS/saf", "DATA", "--propose", "RUNS/gone", "--top", "5"], "RUNS/gone: no such run folder"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message, runs, tiny, tmp_path):
    out = tmp_path / "figures.json"
    replaced = [argument.replace("RUNS", str(runs)).replace("DATA", str(tiny)) for argument in arguments]
    with pytest.raises(TruepairError) as caught:
        evaluate(*replaced, "--json", out)
    assert message.replace("RUNS", str(runs)) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not out.exists()


def test_figures_do_not_replace_a_file(runs, tiny, tmp_path):
    (tmp_path / "mine.json").write_text("mine")
    with pytest.raises(InputError, match="mine.json is there already and is not overwritten"):
        evaluate(runs / "a", tiny, "--json", tmp_path / "mine.json")
    assert (tmp_path / "mine.json").read_text() == "mine"


def test_a_folder_that_is_not_there_is_told_before_anything_is_read(runs, tiny, tmp_path):
    with pytest.raises(InputError, match="none is no folder; make it, or name a file for --json in one"):
        evaluate(runs / "none", tiny, "--json", tmp_path / "none" / "mine.json")


def test_a_run_without_data_is_a_usage_error(runs, capsys):
    with pytest.raises(SystemExit):
        evaluate(runs / "a")
    assert "DATA" in capsys.readouterr().err


def test_help_names_ensembles_stages_and_cost_and_loads_no_torch():
    code = (
        "import argparse, sys; from truepair.cli.evaluate import add_evaluate; parser = argparse.ArgumentParser();"
        "commands = parser.add_subparsers(); add_evaluate(commands); print(commands.choices['evaluate'].format_help());"
        "sys.exit('torch' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    for expected in ["RUN [RUN ...] DATA", "ensemble", "--propose GLOBAL_RUN", "--top K", "0.1 ms"]:
        assert expected in shown


def test_the_table_is_aligned():
    names = ["i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10", "rsum", "i2t_median_rank", "t2i_median_rank"]
    figures = dict.fromkeys(names, 100.0)
    for rows in ({"test": figures}, {"proposer alone": figures, "difference": dict.fromkeys(names, -3.25)}):
        lines = recall_table(rows).splitlines()
        assert len({len(line) for line in lines}) == 1
        assert lines[1].startswith(next(iter(rows)))


def test_a_device_that_is_not_there_is_refused_before_any_work(runs, tiny):
    with pytest.raises(TruepairError, match="device is 'cuda:99'"):
        evaluate(runs / "a", tiny, "--device", "cuda:99")


def test_the_figures_of_a_device_are_those_of_the_processor(runs, tiny, monkeypatch):
    """The model is moved to the device that was named (all machines have the processor under two names)."""
    moved = []
    to = RetrievalModel.to
    monkeypatch.setattr(RetrievalModel, "to", lambda self, device: (moved.append(str(device)), to(self, device))[1])
    evaluate(runs / "a", tiny, "--device", "cpu:0")
    assert moved == ["cpu:0"]


def test_a_run_that_learned_from_labels_repeats_its_map(label_run, labelled, tmp_path, capsys):
    """Its own data are read as it read them: without the rare class, with the true labels."""
    evaluate(label_run.path, labelled, "--json", tmp_path / "figures.json")
    figures = figures_of(tmp_path / "figures.json", images=14)
    assert figures == label_run.result["test"]
    said = "Ranked: 14 images and 28 texts (test)"  # of 16 and 32, without the rare class
    assert capsys.readouterr().out == f"{map_table({'test': figures})}\n{said}\n"
    assert label_run.result["gallery"]["test"] == {"images": 14, "texts": 28}
    evaluate(label_run.path, labelled, "--split", "train", "--label", "kind", "--per-class")
    assert "rare" not in capsys.readouterr().out


def test_any_run_can_be_scored_by_class(runs, labelled, tmp_path, capsys):
    evaluate(
        runs / "a", runs / "b", labelled, "--label", "kind", "--at", 5, "--per-class", "--json", tmp_path / "f.json"
    )
    figures = figures_of(tmp_path / "f.json")
    model = EnsembleModel([open_run(runs / name).model for name in "ab"])
    pairs = truepair.load(labelled, "test", label="kind")
    expected = dict(score_classes(model, pairs, at=5).figures())
    assert {name: figures[name] for name in expected} == expected
    rows = score_classes(model, pairs).by_class()
    assert figures["by_class"] == [vars(row) for row in rows]
    assert {row.name for row in rows} == {"one", "two", "three", "rare"}
    said = "Ranked: 16 images and 32 texts (test)"
    assert capsys.readouterr().out == f"{map_table({'test': expected})}\n{said}\n\n{class_table(rows)}\n"


def test_images_limit_the_pairs_scored_by_class(runs, labelled, tmp_path):
    evaluate(runs / "a", labelled, "--label", "kind", "--images", "8", "--json", tmp_path / "f.json")
    pairs = truepair.load(labelled, "test", label="kind").first_images(8)
    assert figures_of(tmp_path / "f.json", images=8) == dict(score_classes(open_run(runs / "a").model, pairs).figures())


def test_other_data_than_its_own_are_read_with_the_given_label(label_run, labelled, tmp_path):
    other = shutil.copytree(labelled, tmp_path / "other")
    evaluate(label_run.path, other, "--label", "kind", "--json", tmp_path / "f.json")
    expected = dict(score_classes(label_run.model, truepair.load(other, "test", label="kind")).figures())
    assert figures_of(tmp_path / "f.json") == expected
    assert expected != label_run.result["test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUNS/a", "DATA", "--label", "kind", "--folds", "2"], "--folds is for recall of pairs"),
        (["RUN", "DATA", "--folds", "2"], "--folds is for recall of pairs"),
        (["RUN", "DATA", "--folds", "0"], "--folds is 0; expected at least 1"),
        (["RUN", "DATA", "--propose", "RUNS/a", "--top", "2"], "--propose is for recall of pairs"),
        (["RUNS/a", "DATA", "--at", "5"], "--at is for retrieval by class; name the column"),
        (["RUNS/a", "DATA", "--per-class"], "--per-class is for retrieval by class"),
        (["RUN", "DATA", "--at", "0"], "--at is 0"),
        (["RUNS/a", "DATA", "--label", "colour"], "colour"),
        (["RUN", "TINY"], "the pairs have no class labels; name the column that holds them (--label COLUMN"),
        (["RUN", "DATA", "--split", "nothing"], "nothing"),
    ],
)
def test_bad_input_about_classes_is_one_clear_line(arguments, message, runs, label_run, labelled, tiny, tmp_path):
    places = {"RUNS": runs, "RUN": label_run.path, "DATA": labelled, "TINY": tiny}
    replaced = [str(places.get(argument, argument)).replace("RUNS", str(runs)) for argument in arguments]
    with pytest.raises(TruepairError) as caught:
        evaluate(*replaced, "--json", tmp_path / "figures.json")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "figures.json").exists()


def test_the_tables_of_classes_are_aligned(label_run):
    figures = {
        "map_i2t": 0.5,
        "map_t2i": 0.25,
        "map": 0.375,
        "map_i2t_at_50": 1.0,
        "map_t2i_at_50": 0.0,
        "map_at_50": 0.5,
    }
    lines = map_table({"dev": figures, "test": figures}).splitlines()
    assert lines[0].split() == [
        "mAP",
        "i→t",
        "mAP",
        "t→i",
        "mAP",
        "mean",
        *["mAP@50", "i→t", "mAP@50", "t→i", "mAP@50", "mean"],
    ]
    assert lines[2].split() == ["test", "0.500", "0.250", "0.375", "1.000", "0.000", "0.500"]
    assert len({len(line) for line in lines}) == 1
