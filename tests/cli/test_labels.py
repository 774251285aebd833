"""`truepair labels`: what it prints and leaves, with and without the data of the run, and what it refuses."""

import argparse
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from pyarrow import parquet

import truepair
from tests.pages.labels.made_runs import columns_of_a_run, write_run
from truepair.cli.labels import add_labels
from truepair.data.config import DataConfig
from truepair.data.pairs import Images
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError, RunFolderError, TruepairError
from truepair.evaluation import evaluate_classes
from truepair.pages.kit.canvas import png_of
from truepair.pages.labels.figures import matrix
from truepair.pages.labels.inspection import examples, find_data, inspect_labels
from truepair.pages.labels.page import moves_of, suspects_of
from truepair.pages.labels.table import read_label_table
from truepair.training.jobs import Job, train_job
from truepair.training.run_folder import RunFolder
from truepair.training.setup import Setup

NAMES = ("<b>war</b>", "art & craft", "music")
SCRIPT = "<script>alert(1)</script>"


def labels(*arguments):
    """Run the command as `truepair labels …` does."""
    parser = argparse.ArgumentParser()
    add_labels(parser.add_subparsers())
    options = parser.parse_args(["labels", *map(str, arguments)])
    return options.command(options)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Images of three classes with one caption each, which names the class and tries to be a script."""
    folder = tmp_path_factory.mktemp("data") / "source"
    folder.mkdir()
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(3, 8))
    for split, count in {"train": 60, "dev": 12, "test": 24}.items():
        classes = np.arange(count) % 3
        np.save(
            folder / f"{split}_ims.npy", (directions[classes] + rng.normal(size=(count, 8)))[:, None].astype(np.float32)
        )
        words = [f"{('red', 'green', 'blue')[label]} {rng.integers(9)} {SCRIPT}" for label in classes]
        (folder / f"{split}_caps.txt").write_text("\n".join(words) + "\n")
        (folder / f"{split}_meta.tsv").write_text("\n".join(["kind", *(NAMES[label] for label in classes)]) + "\n")
    return folder


@pytest.fixture(scope="module")
def trained(source, tmp_path_factory):
    """A run on 40 % label noise."""
    setup = Setup(model=GlobalConfig(width=8, word_width=8)).with_training(
        {"epochs": 4, "batch_size": 20, "minimum_count": 1}
    )
    data = DataConfig(str(source), label="kind", label_noise=0.4)
    return train_job(Job(data, "ce", setup=setup), tmp_path_factory.mktemp("runs") / "run", progress=False)


@pytest.fixture(scope="module")
def made(trained, tmp_path_factory):
    """The folder that the command leaves."""
    out = tmp_path_factory.mktemp("out") / "labels"
    labels(trained.path, "--out", out, "--top", 7)
    return out


def test_prints_the_table_and_where_the_rest_is(trained, tmp_path, capsys):
    labels(trained.path, "--top", 3, "--out", tmp_path / "out")
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    table = read_label_table(trained.folder)
    assert lines[0].startswith("run (ce): 60 labels of 3 classes")
    assert "repaired" in lines[0]
    assert "confidence × (1 − label_belief)" in lines[2]
    rows = lines[4:7]
    assert [row.split()[0] for row in rows] == [table.pair_id[row] for row in table.order[:3]]
    assert lines[7] == ""
    assert [line.rsplit("/")[-1] for line in lines[8:]] == ["index.html", "labels.parquet", "labels.json"]
    assert shown.err == "", "no progress without a terminal"


def test_every_pair_is_ranked_in_the_parquet(made, trained):
    table = read_label_table(trained.folder)
    columns = parquet.read_table(made / "labels.parquet").to_pydict()
    assert columns["rank"] == list(range(1, 61))
    assert columns["pair_id"] == [table.pair_id[row] for row in table.order]
    assert columns["changed"] == sorted(columns["changed"], reverse=True)
    assert columns["suspicion"] == pytest.approx(
        [c * (1 - b) for c, b in zip(columns["confidence"], columns["label_belief"], strict=True)]
    )
    assert [
        given != true for given, true in zip(columns["given_label"], columns["true_label"], strict=True)
    ] == columns["wrong_label"]
    assert set(columns["corrected_label"]) <= set(NAMES)


def test_facts_are_those_of_the_run(made, trained, source):
    facts = json.loads((made / "labels.json").read_text())
    assert facts["record"] == trained.result["labels"]
    assert facts["trained"]["figures"] == pytest.approx(trained.result["test"])
    assert facts["trained"]["figures"] == pytest.approx(
        evaluate_classes(trained.model, truepair.load(source, "test", label="kind"))
    )
    assert len(facts["suspicious"]) == 7
    assert np.array(facts["confusion"]).sum() == 60
    assert np.trace(facts["confusion"]) == 60 - facts["record"]["errors_corrected"]
    assert facts["against"] == "true"
    assert [row["name"] for row in facts["trained"]["by_class"]] == sorted(NAMES)
    assert len(facts["trained"]["precision_recall"]["i2t"]) == 101
    assert len(facts["trained"]["planes"]["learned_images"]) == 24
    assert facts["trained"]["planes"]["raw_texts"] is None
    assert facts["missing"] is None


class Tags(HTMLParser):
    """Which tags there are, what they refer to, and the text between them."""

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.text, self.alts = [], [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        self.alts += [dict(attrs).get("alt")] * (tag == "img")

    def handle_data(self, data):
        self.text += data


def test_the_page_needs_nothing_else_and_runs_nothing(made):
    text = (made / "index.html").read_text()
    page = Tags()
    page.feed(text)
    assert "script" not in page.tags
    assert "<b>war</b>" in page.text, "the name of a class is shown as it is, not as bold"
    assert SCRIPT in page.text
    assert page.links
    assert all(link.startswith("data:image/png;base64,") for link in page.links)
    assert all(page.alts)
    for heading in ["most suspicious", "Corrected against true", "Raw and learned", "Retrieval by class", "examples"]:
        assert heading in page.text
    assert page.text.count("suspicion 0") + page.text.count("suspicion 1") == 7
    assert "✓" in page.text
    assert "width=device-width" in text


def test_examples_hold_the_best_items_of_each_query(trained, source):
    pairs = truepair.load(source, "test", label="kind")
    found = inspect_labels(trained.path)
    similarity = trained.model.similarity(pairs).numpy()
    assert found.trained is not None
    assert {way: len(answers) for way, answers in found.trained.answers.items()} == {"i2t": 5, "t2i": 5}
    for way, ranked in [("i2t", similarity), ("t2i", similarity.T)]:
        for answer in found.trained.answers[way]:
            assert answer.label == pairs.labels[answer.row]
            best = sorted(range(24), key=lambda item, row=ranked[answer.row]: (-row[item], item))[:5]
            assert [item for item, _, _ in answer.hits] == best
            assert [label for _, label, _ in answer.hits] == pairs.labels[best].tolist()
    again = examples(trained.model, pairs, found.trained.scores.items, seed=0)
    assert again == found.trained.answers


def test_pictures_are_shown_where_they_are_those_of_the_run(trained):
    found = inspect_labels(trained.path)
    assert found.images is not None
    pictures = np.zeros((len(found.images), 6, 6, 3), np.uint8)
    with_pictures = replace(found, images=replace(found.images, pictures=pictures))
    assert all(suspect["picture"].source.startswith("data:image/png") for suspect in suspects_of(with_pictures, 5))
    others = Images(found.images.features, tuple(f"x{name}" for name in found.images.ids), pictures)
    assert {suspect["picture"].source for suspect in suspects_of(replace(found, images=others), 5)} == {None}


def test_moves_are_the_commonest_cells_beside_the_diagonal(trained):
    found = inspect_labels(trained.path)
    counts = np.array([[9, 1, 0], [4, 9, 2], [2, 0, 9]])
    names = found.table.classes
    assert moves_of(replace(found, counts=counts)) == [
        (names[1], names[0], 4), (names[1], names[2], 2), (names[2], names[0], 2), (names[0], names[1], 1)
    ]  # fmt: skip


def test_without_the_data_there_are_table_and_parquet(trained, tmp_path, capsys):
    gone = shutil.copytree(trained.path, tmp_path / "gone")
    config = json.loads((gone / "config.json").read_text())
    config["data"]["source"] = str(tmp_path / "nowhere")
    (gone / "config.json").write_text(json.dumps(config))
    (gone / "labels").mkdir()
    (gone / "labels" / "labels.json").write_text("{}")
    (gone / "labels" / "index.html").write_text("of earlier")
    labels(gone)
    shown = capsys.readouterr().out
    assert f"No page, retrieval figures or t-SNE: its data, {tmp_path / 'nowhere'}, are not there any more." in shown
    assert sorted(path.name for path in (gone / "labels").iterdir()) == ["labels.json", "labels.parquet"]
    facts = json.loads((gone / "labels" / "labels.json").read_text())
    assert facts["trained"] is None
    assert facts["record"] == trained.result["labels"]
    assert "nowhere" in facts["missing"]


def test_a_made_run_without_truth_or_data(tmp_path, capsys):
    columns = columns_of_a_run()
    for name in ("true_class", "true_label", "wrong_label"):
        del columns[name]
    run = write_run(tmp_path / "run", columns)
    labels(run)
    shown = capsys.readouterr().out
    assert "trained from Python and does not name its data" in shown
    assert "repaired" not in shown
    assert "truth" not in shown.split("caption")[0]
    facts = json.loads((run / "labels" / "labels.json").read_text())
    assert facts["against"] == "given"
    assert facts["record"]["changed"] == 5
    assert facts["record"]["corrected_accuracy"] is None
    assert facts["wrong_label_share"] is None and "wrong at random" not in shown


def test_the_estimate_of_wrong_labels_is_told(tmp_path, capsys):
    share = {"share": 0.25, "error": 0.02}
    run = write_run(tmp_path / "run", columns_of_a_run(), {"wrong_label_share": share})
    labels(run)
    told = "wrong at random, by linear models that have not learned them: 25 % (95 % interval 21–29 %)."
    assert told in capsys.readouterr().out
    assert json.loads((run / "labels" / "labels.json").read_text())["wrong_label_share"] == share


@pytest.mark.parametrize(
    ("data", "split", "reason"),
    [
        (None, "test", "trained from Python"),
        ({"source": "nowhere"}, "test", "nowhere, are not there any more"),
        ({"source": "SOURCE", "label": "colour"}, "test", "cannot be read any more"),
        ({"source": "SOURCE", "of a later version": 1}, "test", "cannot be read any more"),
        ({"source": "NO_DEV", "label": "kind"}, "dev", "have no split dev"),
    ],
)
def test_reasons_why_there_are_no_data(data, split, reason, source, tmp_path):
    if data is not None:
        ignored = shutil.ignore_patterns("dev_*") if data["source"] == "NO_DEV" else None
        copied = shutil.copytree(source, tmp_path / "copied", ignore=ignored)
        data["source"] = str(tmp_path / "nowhere" if data["source"] == "nowhere" else copied)
    found, why = find_data({"data": data, "training": {"seed": 0}}, split)
    assert found is None
    assert reason in why


def test_bad_input_is_one_clear_line(trained, source, tmp_path):
    other = tmp_path / "other"
    truepair.fit(
        truepair.load(source), method="infonce", out=other, epochs=1, batch_size=20, minimum_count=1,
        setup=Setup(model=GlobalConfig(width=8, word_width=8)), progress=False,
    )  # fmt: skip
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    stolen = tmp_path / "stolen"
    stolen.mkdir()
    (stolen / "index.html").write_text("mine")
    unfinished = shutil.copytree(trained.path, tmp_path / "unfinished")
    (unfinished / "result.json").unlink()
    cases = [
        ([other], InputError, "was trained with --method infonce and holds nothing about class labels"),
        ([unfinished], RunFolderError, "holds an unfinished run"),
        ([tmp_path / "missing"], RunFolderError, "is not a run folder"),
        ([trained.path, "--out", full], InputError, r"holds other things \(notes.txt\); nothing was changed"),
        ([trained.path, "--out", stolen], InputError, r"holds other things \(index.html\)"),
        ([trained.path, "--out", trained.path], InputError, "holds other things"),
        ([trained.path, "--out", full / "notes.txt"], InputError, "is a file; choose another --out"),
        ([trained.path, "--out", full / "notes.txt" / "x"], TruepairError, "notes.txt"),
        ([trained.path, "--top", 0], InputError, "--top is 0"),
        ([trained.path, "--device", "cuda:99"], TruepairError, "cuda:99"),
    ]
    for arguments, kind, message in cases:
        with pytest.raises(kind, match=message) as caught:
            labels(*arguments)
        assert "\n" not in str(caught.value)
    assert (full / "notes.txt").read_text() == "mine"
    assert (stolen / "index.html").read_text() == "mine"
    assert not (trained.path / "labels").exists()


def test_help_states_the_score_and_loads_no_torch():
    code = (
        "import argparse, sys; from truepair.cli.labels import add_labels; parser = argparse.ArgumentParser();"
        "commands = parser.add_subparsers(); add_labels(commands); print(commands.choices['labels'].format_help());"
        "sys.exit('torch' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert re.search(r"confidence of the correction × \(1 − belief\s+in the given label\)", shown)
    for expected in ["--top N", "--split {train,dev,test}", "--out DIR"]:
        assert expected in shown


def test_a_run_folder_with_labels_in_it_is_still_a_run(trained, tmp_path):
    run = shutil.copytree(trained.path, tmp_path / "run")
    labels(run)
    labels(run, "--split", "dev")
    assert json.loads((run / "labels" / "labels.json").read_text())["split"] == "dev"
    assert RunFolder(run).finished


@pytest.mark.parametrize("classes", [2, 17, 150])
@pytest.mark.parametrize("counts", [True, False])
def test_matrices_of_any_number_of_classes_are_drawn(classes, counts):
    rng = np.random.default_rng(classes)
    values = rng.integers(0, 50, (classes, classes)) if counts else rng.random((classes, classes))
    values[1] = 0 if counts else np.nan
    names = tuple(f"a long name of class $ {label}" for label in range(classes))
    figure = matrix(values, names, vertical="true label", counts=counts)
    assert png_of(figure).startswith(b"\x89PNG")
    cells = sum(text.get_text() != "" for text in figure.axes[0].texts)
    written = classes * classes if counts else classes * (classes - 1)
    assert cells == (written if classes <= 16 else 0)
