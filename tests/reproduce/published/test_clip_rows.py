"""Rows of CLIP: pictures with Karpathy's JSON, the weights, zero-shot and fine-tuned, and what is refused."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.encoders.tiny_models import write_model
from tests.reproduce.published.coco_layout import SPLITS, write_coco
from truepair.cli.main import build_parser, main
from truepair.cli.train import job_of
from truepair.errors import InputError
from truepair.reproduce.published import configurations
from truepair.reproduce.published.command import Asked, planned
from truepair.reproduce.published.configurations import NotBuilt, configuration_of
from truepair.reproduce.published.data_sets import find_sources, read_data_sets
from truepair.reproduce.published.printed import all_rows, printed_table, read_printed
from truepair.reproduce.published.weights import SIZES, find_weights

TABLES = ("disncl-4", "gsc-4", "crcl-3", "ugncl-3")
PATCHES = {"B/32": 8, "L/14": 4}
QUICK = "--method infonce --model pretrained --tune full --tower-rate 1 --epochs 1 --batch-size 20 --learning-rate 0.01"

pytestmark = pytest.mark.filterwarnings("ignore::truepair.encoders.hf.tokens.CaptionsCut")


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Size → folder of a tiny model."""
    root = tmp_path_factory.mktemp("clips")
    return {size: write_model(root / size[0], patch=patch) for size, patch in PATCHES.items()}


@pytest.fixture(autouse=True)
def shrunk(tmp_path, monkeypatch):
    """The published protocol and sizes, shrunk to those of the made pictures and models."""
    sets = read_data_sets()
    counts = {"train": SPLITS["train"] + SPLITS["restval"], "dev": SPLITS["val"], "test": SPLITS["test"]}
    splits = {split: (count, 5 * count) for split, count in counts.items()}
    monkeypatch.setitem(sets, "coco-pictures", replace(sets["coco-pictures"], splits=splits))
    for size, patch in PATCHES.items():
        monkeypatch.setitem(SIZES, size, replace(SIZES[size], patch=patch, width=16))
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def coco(tmp_path):
    return write_coco(tmp_path / "coco")


def asked(*data, **others):
    given = {"methods": [], "rates": [], "seeds": [0, 1], "index": None, "jobs": 1, "out": Path("x"), **others}
    return Asked(data=data, **given)


def is_clip(table, row):
    made = configuration_of(table, row)
    return not isinstance(made, NotBuilt) and bool(made.weights)


def test_every_printed_row_resolves_to_what_it_says(coco, clips):
    parser, found = build_parser(), []
    for name in TABLES:
        table = printed_table(name)
        ready, _ = planned(table, asked(coco, weights=[str(clips["L/14"]), str(clips["B/32"])]))
        assert [plan.row for plan in ready] == [row for row in table.rows if row.method.startswith("CLIP")]
        for plan in ready:
            row, cells = plan.row, plan.cells([0, 1])
            large = "L/14" in f"{row.method} {row.note}" or row.method in ("CLIP-L", "CLIP-14")
            assert plan.weights.folder == clips["L/14" if large else "B/32"]
            trained = "fine-tuned" in row.method or "fine-tuned with" in row.note
            found.append((trained, row.noise))
            if not trained:
                (cell,) = cells
                assert cell.command.startswith(f"truepair evaluate {plan.weights.identity} coco-pictures --split test ")
                continue
            assert len(cells) == 2 and str(clips["B/32"].parent) not in cells[0].command
            made = job_of(
                parser.parse_args(["train", str(plan.source), *plan.words(plan.configuration.networks[0], 1)])
            )
            assert (made.method, made.setup.model.name, made.setup.model.tune) == ("infonce", "pretrained", "full")
            assert made.setup.model.encoder == str(plan.weights.folder) and made.setup.model.relative_tower_rate == 1
            training = made.setup.training
            assert (training.epochs, training.decay_at(32, training.decay_epoch), training.seed) == (32, 1.0, 1)
            assert (made.data.noise, made.data.noise_kind) == (row.noise, "caption")
            assert (made.data.table, made.data.caption) == ("dataset_coco.json", "first:5")
    assert len(found) == 17 and sum(not trained for trained, _ in found) == 7
    assert {noise for trained, noise in found if trained} == {0, 0.2, 0.4, 0.5}
    assert sum(is_clip(table, row) for table in read_printed().values() for row in table.rows) == 17


def test_runs_know_the_weights_wherever_they_lie(coco, clips, tmp_path):
    copy, other = tmp_path / "copy", write_model(tmp_path / "other", seed=1)
    shutil.copytree(clips["B/32"], copy)
    table = printed_table("crcl-3")
    names = []
    for folder in (clips["B/32"], copy, other):
        (plan,) = planned(table, asked(coco, rates=["0.2"], weights=[str(folder)]))[0]
        names.append(plan.run_name(plan.configuration.networks[0], 0))
    assert names[0] == names[1] != names[2]


def test_what_the_docs_count_as_not_built_is_so():
    tables = read_printed().values()
    left = sum(isinstance(configuration_of(table, row), NotBuilt) for table in tables for row in table.rows)
    page = Path(__file__).parents[3] / "docs" / "reproduce.md"
    said = re.search(r"\((\d+) of the (\d+) rows\)", page.read_text(encoding="utf-8"))
    assert said is not None and (int(said[1]), int(said[2])) == (left, len(list(all_rows())))


def test_the_plan_says_which_weights_are_which_and_what_was_chosen(coco, clips, capsys):
    words = ["reproduce", "crcl-3", "--data", str(coco), "--weights", str(clips["B/32"]), "--dry-run"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "CRCL:3:coco5k:0:CLIP (ViT-B/32)\n  truepair evaluate clip-" in shown
    assert "CRCL:3:coco5k:0.2:CLIP (ViT-B/32)\n  truepair train coco-pictures --method infonce" in shown
    assert f": CLIP ViT-B/32, 16 pixels, {clips['B/32']}" in shown
    assert "CLIP (ViT-B/32): DisNCL prints 32 epochs" in shown
    assert any("no weights: CLIP ViT-L/14 (CLIP (ViT-L/14); coco5k; " in line for line in shown.splitlines())
    assert "The weights of CLIP ViT-L/14 are openai/clip-vit-large-patch14 on the hub" in shown and "1,710 MB" in shown
    assert any("no data: coco (" in line and "CRCL" in line for line in shown.splitlines())


def test_data_that_are_missing_are_described(tmp_path, clips, capsys):
    (tmp_path / "wikipedia").mkdir()
    words = ["reproduce", "crcl-3", "--data", str(tmp_path), "--weights", str(clips["B/32"]), "--dry-run"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "82,783 pictures, 13 GB" in said and "caption_datasets.zip" in said and "coco_precomp/" in said


def in_process(*words):
    assert main(words) == 0
    return ""


@pytest.fixture
def quick(monkeypatch):
    for module in ("cells", "published.runs"):  # in this process: a new one would import torch once more
        monkeypatch.setattr(f"truepair.reproduce.{module}.truepair", in_process)
    spec = configurations._spec()
    monkeypatch.setattr(configurations, "_spec", lambda: {**spec, "clip": {**spec["clip"], "fine_tuned": QUICK}})


@pytest.mark.usefixtures("quick")
def test_zero_shot_and_fine_tuned_rows_run(coco, clips, tmp_path, capsys):
    out, clip = tmp_path / "out", tmp_path / "clip"
    shutil.copytree(clips["B/32"], clip)
    words = ["reproduce", "gsc-4", "--data", str(coco), "--rows", "CLIP-B", "--noise", "0", "0.2", "--seeds", "3", "4"]
    assert main([*words, "--out", str(out), "--weights", str(clip)]) == 0
    lines = [json.loads(line) for line in (out / "gsc-4.jsonl").read_text().splitlines()]
    records = {record["name"]: record for record in lines}
    assert set(records) == {"coco5k-0-clip-b", "coco5k-0.2-clip-b-seed3", "coco5k-0.2-clip-b-seed4"}
    zero_shot, tuned = records["coco5k-0-clip-b"], records["coco5k-0.2-clip-b-seed3"]
    assert zero_shot["weights"] == tuned["weights"] and zero_shot["weights"].startswith("clip-")
    assert "seed" not in zero_shot["cell"] and len(tuned["runs"]) == 1 and tuned["epochs_trained"] == 1
    assert tuned["realised_noise"] == pytest.approx(0.2, abs=0.1)
    assert zero_shot["figures"] != tuned["figures"] and len(list((out / "runs").glob("coco-pictures-*"))) == 2
    config = json.loads(next((out / "runs").glob("*seed3*/config.json")).read_text())
    assert (config["data"]["caption"], config["model"]["encoder"]) == ("first:5", str(clip))
    # All test images with five captions each, by the command for everybody.
    capsys.readouterr()
    file = tmp_path / "figures.json"
    given = ["--table", "dataset_coco.json", "--caption", "first:5", "--json", str(file)]
    assert main(["evaluate", str(clip), str(coco), *given]) == 0
    assert json.loads(file.read_text())["rsum"] == zero_shot["figures"]["rsum"]
    shown = (out / "gsc-4.md").read_text()
    assert "| CLIP-B | coco5k | 0 | 1 |" in shown and "| CLIP-B | coco5k | 0.2 | 2 |" in shown and "| 361.6 |" in shown
    # The same weights elsewhere are the same rows; others are not.
    clip.rename(tmp_path / "moved")
    stamp = (out / "gsc-4.jsonl").stat().st_mtime_ns
    assert main([*words, "--out", str(out), "--weights", str(tmp_path / "moved")]) == 0
    assert (out / "gsc-4.jsonl").stat().st_mtime_ns == stamp
    other = write_model(tmp_path / "other", seed=1)
    assert main([*words, "--out", str(out), "--weights", str(other)]) == 2
    assert "is of another command" in capsys.readouterr().err


# --- Bad input ----------------------------------------------------------------------------------------------------


def refusal(*data, table="crcl-3", **others):
    with pytest.raises(InputError) as caught:
        planned(printed_table(table), asked(*data, **others))
    return str(caught.value)


def test_folders_that_are_no_clip_of_the_tables_are_refused(clips, tmp_path):
    other, siglip = write_model(tmp_path / "16", patch=16), write_model(tmp_path / "siglip", "siglip")
    (tmp_path / "empty").mkdir()
    expected = "expected ViT-B/32 (patches of 8 pixels, width 16) or ViT-L/14 (patches of 4 pixels, width 16)"
    for given, said in (
        ([other], f"--weights {other} is a CLIP with patches of 16 pixels and width 16; {expected}"),
        ([siglip], f"--weights {siglip} is a siglip model; expected the folder of a CLIP: ViT-B/32"),
        (["windows"], "--weights windows is no pretrained model; expected the folder of a CLIP"),
        ([tmp_path / "empty"], "is a folder without a model that is understood"),
        ([clips["B/32"], clips["B/32"]], "are both ViT-B/32; give one of them"),
    ):
        with pytest.raises(InputError) as caught:
            find_weights([str(name) for name in given])
        assert said in str(caught.value)


def test_width_tells_sizes_apart_too(clips, monkeypatch):
    monkeypatch.setitem(SIZES, "B/32", replace(SIZES["B/32"], width=17))
    with pytest.raises(InputError, match="patches of 8 pixels and width 16; expected ViT-B/32 .* width 17"):
        find_weights([str(clips["B/32"])])


def test_weights_without_effect_are_refused(coco, clips, capsys):
    assert "crcl-1 has no rows of CLIP" in refusal(coco, table="crcl-1", weights=[str(clips["B/32"])])
    assert main(["reproduce", "crcl-3", "--weights", "x"]) == 2
    assert "--weights has no effect without --data" in capsys.readouterr().err


def test_pictures_that_are_missing_are_refused(coco, clips):
    (coco / "val2014" / "COCO_val2014_000000000020.jpg").unlink()
    said = refusal(coco, weights=[str(clips["B/32"])])
    assert f"{coco} lacks 1 of the 34 pictures that dataset_coco.json names, the first is val2014/COCO_val2014_" in said
    shutil.rmtree(coco / "train2014")
    assert f"{coco} lacks 15 of the 34 pictures" in refusal(coco, weights=[str(clips["B/32"])])


def edited(coco, change):
    path = coco / "dataset_coco.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content)))


def images_but(content, wanted):
    return {**content, "images": [entry for entry in content["images"] if wanted(entry)]}


def test_json_of_other_splits_is_refused(coco):
    table = coco / "dataset_coco.json"
    edited(coco, lambda content: images_but(content, lambda entry: entry["split"] != "restval"))
    expected = "expected 20 with 100, as in the published dataset_coco.json"
    assert f"{table} has 14 train images with 70 captions, 5 of each at most; {expected}" in refusal(coco)


def test_images_with_fewer_captions_are_refused(coco):
    def without(content):
        content["images"][-1]["sentences"][2:] = [{"raw": ""}]
        return content

    edited(coco, without)
    assert "has 8 test images with 37 captions, 5 of each at most; expected 8 with 40" in refusal(coco)


def test_json_that_is_missing_or_something_else_is_refused(coco):
    edited(coco, lambda content: content["images"])
    assert "dataset_coco.json holds a list; expected Karpathy's splits" in refusal(coco)
    edited(coco, lambda content: {"images": [3]})
    assert "entry 0 of images is int, not an object" in refusal(coco)
    (coco / "dataset_coco.json").unlink()
    assert f"{coco}/dataset_coco.json is missing; expected Karpathy's splits. The pictures of MS-COCO" in refusal(coco)


def test_index_files_of_features_are_not_for_pictures(coco, clips, tmp_path):
    np.save(tmp_path / "coco_precomp_0.2.npy", np.arange(100) // 5)
    _, left = planned(printed_table("crcl-3"), asked(coco, weights=[str(clips["B/32"])], index=tmp_path))
    reasons = {(row.method, row.rate): why for row, why in left.rows}
    assert reasons["CLIP (ViT-B/32)", "0.2"].startswith("the field's index files number the captions of its features")


def test_pictures_are_found_beside_other_data(coco, tmp_path):
    assert find_sources([tmp_path]) == {"coco-pictures": coco} == find_sources([coco])
    (coco / "f30k_precomp").mkdir()
    assert find_sources([coco]) == {"coco-pictures": coco, "f30k": coco / "f30k_precomp"}
    (tmp_path / "other").mkdir()
    np.save(tmp_path / "other" / "train_ims.npy", np.zeros((113287, 1, 1), np.float16))
    assert find_sources([tmp_path])["coco"] == tmp_path / "other"
    shutil.copy(coco / "dataset_coco.json", tmp_path / "other")  # features, with the JSON they were made by
    assert find_sources([tmp_path])["coco"] == tmp_path / "other"
