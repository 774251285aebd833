"""A method that comes to other figures gets a new revision: earlier runs and records are told from those of now."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from truepair import methods
from truepair.cli.main import main
from truepair.data.formats.scenes import scenes
from truepair.data.formats.scenes.scenes import draw_scenes
from truepair.data.text import Vocabulary
from truepair.encoders.descriptor import DESCRIPTOR_SIZE
from truepair.methods import METHODS, build_method
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.first_labels import FREQUENT
from truepair.reproduce import __main__ as program
from truepair.reproduce import cells, revisions
from truepair.reproduce.cells import Cell, Context, Places, train
from truepair.reproduce.records import keep_record, read_records
from truepair.reproduce.render.markdown import of_versions
from truepair.reproduce.revisions import NO_FREQUENT_CAPTION, outdated
from truepair.reproduce.runner import missing_cells, run_cells
from truepair.reproduce.tables import Table
from truepair.reproduce.training import measure_ensemble, training_cells
from truepair.training.run_folder import RunFolder

ROWS = {"infonce": "infonce", "triplet": "triplet"}


@pytest.fixture
def changed(monkeypatch):
    """Call it, and InfoNCE has a second revision."""
    return lambda: monkeypatch.setitem(METHODS, "infonce", replace(METHODS["infonce"], revision=2))


def grid(methods="infonce", settings="--width 16 --minimum-count 1", **options):
    given = {"data": "tiny", "methods": methods, "rates": [0.4], "settings": settings, "seeds": [1], **options}
    return [*training_cells(Context("toy", ROWS, {}), **given)]


def record(method, revision=None, **more):
    kept = {"name": method} if revision is None else {"name": method, "revision": revision}
    return {"name": f"{method} {revision}", "truepair": "0.1.0", "options": {"method": kept}, **more}


def test_records_of_an_earlier_revision_are_told_from_those_of_now_and_of_other_methods(changed):
    several = {"name": "two networks", "methods": [{"name": "triplet"}, {"name": "infonce"}]}
    kept = [record("infonce"), record("infonce", 2), record("triplet"), several, {"name": "audit"}]
    assert outdated(kept) == []
    changed()
    assert [one["name"] for one in outdated(kept)] == ["infonce None", "two networks"]
    assert of_versions(kept) == (
        "° 2 runs of an earlier revision of the method (`infonce None`, `two networks`), which came to other figures."
    )


def test_a_run_with_an_option_that_a_revision_left_as_it_was_is_of_today(monkeypatch):
    untouched = {3: (("temperature", "low"), ("labels", "given"))}
    monkeypatch.setitem(METHODS, "infonce", replace(METHODS["infonce"], revision=3, untouched=untouched))

    def run(revision, **options):
        return {
            "name": f"{revision}",
            "options": {"method": {"name": "infonce", "revision": revision, "options": options}},
        }

    today = [run(2, labels="given"), run(2, temperature="low", labels="refined"), run(3), run(3, labels="given")]
    assert outdated(today) == []
    older = [run(2), run(2, labels="refined"), run(1, labels="given")]  # what the second one changed holds for all
    assert outdated(older) == older


def test_a_run_on_data_that_a_revision_left_as_they_were_is_of_today(monkeypatch):
    monkeypatch.setitem(METHODS, "infonce", replace(METHODS["infonce"], revision=3))
    on = {("infonce", 3): "products", ("crcl", 2): "drawings"}
    as_before = {place: (lambda kept, data=data: kept.get("cell") == {"data": data}) for place, data in on.items()}
    monkeypatch.setattr(revisions, "AS_BEFORE", as_before)

    def runs(data):
        return [record("infonce", revision, cell={"data": data}) for revision in (1, 2, 3)]

    assert [kept["name"] for kept in outdated(runs("products"))] == ["infonce 1"]
    assert [kept["name"] for kept in outdated(runs("drawings"))] == ["infonce 1", "infonce 2"]
    of_no_data = [record("infonce", 2), record("infonce", 3)]
    assert outdated(of_no_data) == of_no_data[:1]


def test_where_our_method_is_as_before_no_caption_is_frequent(fashion, monkeypatch):
    """Nor in the parts of 3,000 pairs that some tables take."""
    sentences = fashion.parent / "flickr8k" / "dataset_flickr8k.json"
    if not sentences.is_file():
        pytest.skip(f"real data not found at {sentences}; set TRUEPAIR_DATA to the folder that holds flickr8k")
    blank = np.zeros((36, DESCRIPTOR_SIZE), dtype=np.float32)
    monkeypatch.setattr(scenes, "grid_descriptor", lambda picture: blank)  # captions need no pictures
    monkeypatch.setattr(scenes, "paint", lambda *of: blank)
    photographs = json.loads(sentences.read_text(encoding="utf-8"))
    captions = {
        "fashion_precomp": (fashion / "train_caps.txt").read_text(encoding="utf-8").splitlines(),
        "scenes": [caption for group in draw_scenes(2000, seed=0).captions for caption in group],
        "flickr8k": [
            sentence["raw"]
            for image in photographs["images"]
            if image["split"] == "train"
            for sentence in image["sentences"]
        ],
    }
    assert set(captions) == NO_FREQUENT_CAPTION
    for name, said in captions.items():
        words = Vocabulary.build(said)
        (_, most), *_ = Counter(tuple(sorted(words.encode(caption))) for caption in said).most_common(1)
        assert most <= FREQUENT * 3000, name


def test_our_method_is_as_before_where_linear_models_were_taken_as_they_are_now():
    def of(data, noise, pairs=10_000):
        return record("truepair", 7, cell={"data": data, "noise": noise}, result={"pairs": pairs})

    today = [of("scenes", 0.8), of("scenes", 0.4, 3000), of("fashion_precomp", 0.8, 3000), of("icons", 0.4)]
    assert outdated(today) == []
    audit = {"cell": {"data": "scenes", "noise": 0.4}, "pairs": 2500, "methods": [{"name": "truepair", "revision": 7}]}
    assert outdated([audit]) == []
    diverged = record("truepair", 7, cell={"data": "scenes", "noise": 0.8}, diverged={"epoch": 2})
    changed = [of("scenes", 0.6, 3000), of("scenes", 0.8, 3000), of("clipart", 0.8), diverged]
    assert outdated(changed) == changed


def test_our_method_is_as_before_where_its_first_network_is_not_asked_or_of_all_pairs():
    def of(data, noise):
        return record("truepair", 8, cell={"data": data, "noise": noise}, result={"pairs": 10_000})

    assert outdated([of("fashion_precomp", 0.8), of("emoji", 0.8), of("icons", 0.4), of("clipart", 0.4)]) == []
    assert len(outdated([of("icons", 0.8), of("clipart", 0.8)])) == 2


def test_our_method_is_as_before_where_it_makes_no_linear_models():
    method = {"name": "truepair", "revision": 5}
    for name, value, of_today in (
        ("labels", "given", True),
        ("first_labels", "given", True),
        ("first_labels", "held-out", False),
        ("credit", "label", False),
        ("credit", "posterior", False),
    ):
        assert methods.is_outdated({**method, "options": {name: value}}) is not of_today
        makes = build_method("truepair", {name: value})
        assert makes.begins(EpochPosition(0, 1, makes.stages(5, 4))) is not of_today


def test_a_run_of_an_earlier_revision_is_set_aside_and_not_gone_on_with(
    tiny, tmp_path, changed, capsys, monkeypatch, in_this_process
):
    (cell,), trained = grid(epochs=1), []
    results, places = tmp_path / "toy.jsonl", Places(tiny.parent, tmp_path / "runs")
    run_cells([cell], results, places, jobs=1)
    run = RunFolder(places.runs / "toy" / cell.name)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    changed()
    assert main(["train", "--resume", str(run.path)]) == 2
    assert "another revision of the method infonce" in capsys.readouterr().err
    for number in range(2):
        for path, content in before.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if number:
            run.result.unlink()  # as if it had been cut off
        monkeypatch.setattr(cells, "truepair", lambda *words: trained.append(words))
        train("tiny", [], run.path)
        assert not run.path.exists()  # its place is free, and nothing of it is lost
        aside = run.path.with_name(f"{run.path.name}-revision1{'-2' * number}")
        for path, content in before.items():
            there = aside / path.relative_to(run.path)
            assert not there.exists() if number and path == run.result else there.read_bytes() == content
    assert [words[0] for words in trained] == ["train"] * 2


def test_a_run_and_an_ensemble_keep_the_revision(tiny, tmp_path, changed, in_this_process):
    changed()
    (plain, single) = grid("infonce triplet", epochs=1)
    places, known = Places(tiny.parent, tmp_path / "runs"), {f"toy/{cell.name}": cell for cell in (plain, single)}

    for cell in (plain, single):  # in this process, which alone knows of the revision
        out = ["--out", str(places.runs / "toy" / cell.name), "--threads", "1", "--quiet"]
        assert main(["train", str(tiny), *cell.command.split()[3:], *out]) == 0
    config = RunFolder(places.runs / "toy" / plain.name).read_config()["method"]
    assert (config["name"], config["revision"]) == ("infonce", 2)
    kept = measure_ensemble(Context("toy", ROWS, known), [plain.name, single.name], "tiny", "12", places)
    assert kept["methods"] == [{"name": "infonce", "revision": 2}, {"name": "triplet"}]


def test_runs_of_an_earlier_revision_stay_until_they_are_asked_for_anew(tmp_path, monkeypatch, capsys, changed):
    def measure(places):
        return {"options": {"method": {"name": "infonce", "revision": 2}}}

    old, now = (Cell(name, {"seed": 0}, f"do {name}", measure) for name in ("old", "now"))
    results = tmp_path / "toy.jsonl"
    for cell, revision in ((old, None), (now, 2)):
        keep_record(results, {**record("infonce", revision), "name": cell.name, "command": cell.command})
    monkeypatch.setattr(program, "TABLES", {"toy": Table("toy", "a table", [old, now], {})})
    changed()
    assert missing_cells([old, now], results) == [] and missing_cells([old, now], results, anew=True) == [old]

    def run(*words):
        monkeypatch.setattr("sys.argv", ["reproduce", "run", "toy", "--results", str(tmp_path), *words])
        assert program.main() == 0
        return capsys.readouterr().err

    assert "kept: 1 run of an earlier revision of the method" in run()
    assert len(outdated(read_records(results))) == 1
    assert "earlier revision" not in run("--anew")
    assert outdated(read_records(results)) == [] and len(read_records(results)) == 2


def test_what_a_table_lacks_is_listed_by_row_with_its_seeds_and_hours(changed, tmp_path, monkeypatch, capsys):
    of = [*grid("infonce triplet", rates=[0.2, 0.4], seeds=[0, 1]), *grid("triplet", noise_kind="nearest")]
    table = Table("toy", "", of, {})
    monkeypatch.setitem(program.TABLES, "toy", table)
    monkeypatch.setattr("sys.argv", ["reproduce", "list", "toy", "--results", str(tmp_path)])
    program.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "4 missing    0 to run anew      ? core-hours" in lines[1]
    for cell in of:
        if cell.facts["method"] == "infonce" and cell.facts["noise"] == 0.2:
            known = record("infonce", training_seconds=5400 if cell.facts["seed"] else 9000)
            keep_record(
                tmp_path / "toy.jsonl", {**known, "name": cell.name, "cell": cell.facts, "command": cell.command}
            )
    changed()
    program.main()
    head, infonce, triplet = capsys.readouterr().out.splitlines()
    assert "2 of    9 runs" in head and "(2 of an earlier revision)" in head
    assert "tiny infonce " in infonce and "2 missing    2 to run anew    8.0 core-hours" in infonce
    assert infonce.endswith("rates (seeds): 0.2 (0, 1), 0.4 (0, 1)")
    assert "5 missing    0 to run anew   10.0 core-hours" in triplet
    assert triplet.endswith("rates (seeds): 0.2 (0, 1), 0.4 (0, 1), nearest 0.4 (1)")


def test_a_table_that_is_not_there_is_refused(monkeypatch, capsys):
    for command in ("list", "report"):
        monkeypatch.setattr("sys.argv", ["reproduce", command, "toy"])
        assert program.main() == 2
        assert "toy is no table; there are audit" in capsys.readouterr().err
