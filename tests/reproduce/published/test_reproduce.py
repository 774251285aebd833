"""Rows of the papers' tables resolve to runnable configurations on data in the field's exact layout, and run."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import truepair
from tests.conftest import write_tiny_precomp
from truepair.cli.main import build_parser, main
from truepair.cli.train import job_of
from truepair.data.text import Vocabulary
from truepair.errors import DivergedError, InputError
from truepair.methods import build_method
from truepair.reproduce.published import configurations, data_sets
from truepair.reproduce.published.command import Asked, planned
from truepair.reproduce.published.configurations import NotBuilt, configuration_of
from truepair.reproduce.published.data_sets import DataSet, find_sources, read_data_sets
from truepair.reproduce.published.printed import all_rows, printed_table, read_printed


def write_layout(folder, name):
    """A data set with its published counts, in features of one region of width 2: zeros that take no disk."""
    data = read_data_sets()[name]
    place = folder / data.folder
    place.mkdir()
    for split, (images, captions) in data.splits.items():
        rows = images if split == "train" else captions  # dev and test hold every image once a caption
        np.lib.format.open_memmap(place / f"{split}_ims.npy", mode="w+", dtype=np.float16, shape=(rows, 1, 2))
        if name == "cc152k":
            (place / f"{split}_caps.tsv").write_text("".join(f"{k}\ta\n" for k in range(captions)))
        else:
            (place / f"{split}_caps.txt").write_text("a\n" * captions)
    return place


@pytest.fixture(scope="module")
def layouts(tmp_path_factory):
    """A folder with Flickr30K, MS-COCO and CC152K as the field distributes them."""
    folder = tmp_path_factory.mktemp("field")
    for name in ("f30k", "coco", "cc152k"):
        write_layout(folder, name)
    return folder


def write_features(path, splits, width=2, classes=10):
    """MRL's HDF5 files: all vectors zero, but for labels."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for split, pairs in splits.items():
            for name in ("imgs_deep", "texts"):
                file.create_dataset(
                    f"{split}_{name}", (pairs, width), np.float32, chunks=(min(pairs, 4096), width), fillvalue=1
                )
            for name in ("imgs_labels", "texts_labels"):
                file[f"{split}_{name}"] = np.arange(pairs, dtype=np.int64) % classes
    return path


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """A folder with the feature files of NUS-WIDE and XMediaNet as MRL names them, and their published counts."""
    folder = tmp_path_factory.mktemp("features")
    write_features(folder / "nus_wide_deep_doc2vec_data_42941.h5py", {"train": 42941, "test": 28661})
    write_features(
        folder / "xmedianet_deep_doc2vec_data.h5py", {"train": 32000, "valid": 4000, "test": 4000}, classes=200
    )
    return folder


def asked(*data, **others):
    given = {"methods": [], "rates": [], "seeds": [0], "index": None, "jobs": 1, "out": Path("x"), **others}
    return Asked(data=data, **given)


PIXELS_AND_OTHERS = [
    name for name, table in read_printed().items() if {*table.data} <= {"f30k", "coco1k", "coco5k", "cc152k"}
]
JOBS: dict[str, object] = {}
PARSER = build_parser()  # once: it takes a tenth of a second


def job(words):
    """The job that a command line describes."""
    if words not in JOBS:
        JOBS[words] = job_of(PARSER.parse_args(["train", *words.split()]))
    return JOBS[words]


@pytest.mark.parametrize("name", PIXELS_AND_OTHERS)
def test_every_row_runs_or_says_why_not(layouts, name):
    table = printed_table(name)
    ready, left = planned(table, asked(layouts))
    rows = {plan.row.name for plan in ready}
    for row in table.rows:
        made, why = configuration_of(table, row), {each.name: why for each, why in left.rows}
        if isinstance(made, NotBuilt):
            assert row.name not in rows and why[row.name] == f"not built: {made.reason}"
        elif made.weights:  # those run on pictures: test_clip_rows.py
            assert row.name not in rows and why[row.name] == "no data: coco-pictures"
        elif made.known:
            assert row.name not in rows and why[row.name].startswith("no known pairs: give a file")
        else:
            assert row.name in rows
    for plan in ready:
        for network in plan.configuration.networks:
            found = job(" ".join([plan.data.name, *plan.words(network, 0)]))
            build_method(found.method, found.method_options)
            assert found.data.noise == (plan.row.noise or 0)
            assert found.data.noise_kind == ("image" if name == "disncl-1" and plan.row.noise else "caption")


def test_rows_of_class_labels_run_on_the_files_of_the_field(features):
    ready, left = planned(printed_table("uot-rcl-1"), asked(features))
    found = {(plan.row.method, plan.row.data): plan.words(plan.configuration.networks[0], 0) for plan in ready}
    assert {method for method, _ in found} == {"MRL", "ELRCMR", "UOT-RCL"}
    assert {data for _, data in found} == {"nuswide10", "xmedianet"}
    assert "--dev-pairs 5000" in " ".join(found["MRL", "nuswide10"])
    assert "--dev-pairs" not in found["MRL", "xmedianet"]  # its validation is a part of its own
    for plan in ready:
        of_row = job(" ".join([str(plan.source), *plan.words(plan.configuration.networks[0], 0)]))
        assert of_row.data.label_noise == plan.row.noise and of_row.setup.model.name == "mlp"
    assert any("not built: no such method here" in line for line in left.lines)


@pytest.mark.parametrize(("name", "table"), [("nus_wide", "uot-rcl-1"), ("xmedianet", "uot-rcl-1")])
def test_feature_files_with_other_counts_are_refused(tmp_path, name, table):
    path = write_features(tmp_path / f"{name}_deep_doc2vec_data.h5py", {"train": 100, "test": 40})
    assert f"{path} has 100 train pairs; expected" in refusal(path, table)


def test_feature_files_are_found_in_folders_of_their_own(tmp_path):
    """As MRL's code has them: datasets/NUS-WIDE/…h5py, datasets/wiki_data/…h5py."""
    for folder, name in (("NUS-WIDE", "nus_wide_deep_doc2vec_data_42941"), ("wiki_data", "wiki_deep_doc2vec_data")):
        (tmp_path / folder).mkdir()
        write_features(tmp_path / folder / f"{name}.h5py", {"train": 10, "test": 5})
    found = find_sources([tmp_path])
    assert {name: path.name for name, path in found.items()} == {
        "nuswide10": "nus_wide_deep_doc2vec_data_42941.h5py",
        "wikipedia": "wiki_deep_doc2vec_data.h5py",
    }
    assert find_sources([tmp_path / "NUS-WIDE"])["nuswide10"] == found["nuswide10"]


def test_half_of_a_labelled_data_set_says_where_it_comes_from(tmp_path):
    (tmp_path / "NUS-WIDE").mkdir()
    said = refusal(tmp_path, "uot-rcl-1")
    assert f"{tmp_path}/NUS-WIDE holds no feature file that is known; expected 42,941 train pairs of NUS-WIDE" in said
    assert "nus_wide_deep_doc2vec_data_42941.h5py, features of VGG-19" in said
    path = write_features(tmp_path / "xmedianet_deep_doc2vec_data.h5py", {"train": 32000, "valid": 4000}, classes=200)
    said = refusal(path, "uot-rcl-1")
    assert f"{path} has no split 'test'; it has train, dev. In all expected 8,000 test pairs of XMediaNet" in said


@pytest.mark.parametrize(
    "name", [name for name, table in read_printed().items() if table.number in ("4", "5", "6", "V", "IV")]
)
def test_ablations_are_the_printed_settings_but_for_one(layouts, name):
    """Every ablation that runs differs from its paper's settings, and from every other row of its table."""
    table = printed_table(name)
    rows = [row for row in table.rows if not row.note]
    made = {row.method: configuration_of(table, row) for row in rows}
    assert not any(isinstance(found, NotBuilt) for found in made.values())
    networks = [found.networks for found in made.values()]
    assert len(set(networks)) == len(networks)
    for found in made.values():
        for network in found.networks:
            of_row = job(f"x {network}")
            printed = truepair.as_printed(of_row.method, of_row.setup.model.name)
            changed = {k for k, v in of_row.method_options.items() if printed.preset.method.get(k, v) != v}
            changed |= (
                {"batch_size"} if of_row.setup.training.batch_size != printed.setup.training.batch_size else set()
            )
            options = vars(build_method(of_row.method, of_row.method_options).config)
            added = set(of_row.method_options) - set(printed.preset.method)
            assert bool(changed | {k for k in added if options[k] != vars(printed.method.config)[k]}) == (
                "--ablation" in network
            ), network


def test_clean_pairs_of_mscn_are_as_many_as_in_the_paper(layouts):
    ready, _ = planned(printed_table("crcl-1"), asked(layouts, methods=["MSCN"], rates=["0.4"]))
    assert {plan.data.name: job(" ".join(["x", *plan.configuration.networks])).data.clean_pairs for plan in ready} == {
        "f30k": "2900",
        "coco": "11329",
    }


def test_methods_that_are_built_are_not_listed_as_missing():
    """A method of `METHODS` named like a printed one has rows that run."""
    from truepair.methods import METHODS

    built = {name.lower() for name in METHODS}
    for row in all_rows():
        if row.method.lower() in built and row.data != "nuswide":
            table = next(t for t in read_printed().values() if (t.paper, t.number) == (row.paper, row.number))
            assert not isinstance(configuration_of(table, row), NotBuilt), row.name


def test_settings_are_those_of_the_data_and_the_noise(layouts):
    ready, _ = planned(printed_table("crcl-1"), asked(layouts, methods=["CRCL", "DECL"], rates=["0.2", "0.6"]))
    jobs = {
        (plan.row.method, plan.row.data, plan.row.rate): job(
            " ".join([plan.data.name, *plan.words(plan.configuration.networks[0], 0)])
        )
        for plan in ready
    }
    crcl = jobs["CRCL", "coco1k", "0.2"]
    assert crcl.setup.training.epochs == 22 and crcl.method_options["pieces"] == (4, 4, 4)
    assert jobs["CRCL", "f30k", "0.2"].setup.training.epochs == 32
    warm_up = {key[1:]: job.method_options["warm_up_epochs"] for key, job in jobs.items() if key[0] == "DECL"}
    assert warm_up == {("f30k", "0.2"): 5, ("f30k", "0.6"): 2, ("coco1k", "0.2"): 2, ("coco1k", "0.6"): 1}


def test_the_two_scores_of_coco_share_a_run(layouts):
    ready, _ = planned(printed_table("crcl-6"), asked(layouts, methods=["SGR"], rates=["0.2"]))
    one = next(plan for plan in ready if plan.row.data == "coco1k")
    five = next(p for p in planned(printed_table("gsc-4"), asked(layouts))[0] if p.row.method == "NCR")
    ncr = next(
        p
        for p in planned(printed_table("crcl-1"), asked(layouts, methods=["NCR"], rates=[five.row.rate]))[0]
        if p.row.data == "coco1k"
    )
    assert five.run_name(five.configuration.networks[0], 0) == ncr.run_name(ncr.configuration.networks[0], 0)
    assert one.data.score["coco1k"] == "--split testall --folds 5" and five.data.score["coco5k"] == "--split testall"


def test_the_plan_is_shown_without_running(layouts, capsys):
    assert main(["reproduce", "crcl-2", "--data", str(layouts), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert (
        "CRCL:2:cc152k:real:CRCL\n  truepair train cc152k --method crcl --model sgr --as-printed --printed-for cc152k"
        in shown
    )
    (line,) = (line for line in shown.splitlines() if "(MSCN; cc152k; real)" in line)
    assert line.startswith("1 row left out, no known pairs: give a file of training pairs that are known to match")


def test_a_row_that_needs_known_pairs_takes_them_from_a_file(layouts, tmp_path, capsys):
    known = tmp_path / "known.txt"
    known.write_text("0\n5\n")
    words = ["reproduce", "crcl-2", "--data", str(layouts / "cc152k_precomp"), "--dry-run"]
    assert main([*words, "--rows", "MSCN", "CRCL", "--clean-pairs", str(known)]) == 0
    shown = capsys.readouterr().out
    name = re.search(r"--method mscn .* --clean-pairs (known-\w{8}\.txt) ", shown)[1]
    assert f"{name} is {known}" in shown and shown.count("--clean-pairs") == 1
    assert main([*words, "--rows", "CRCL", "--clean-pairs", str(known)]) == 2
    assert "--clean-pairs has no effect: no row asked for of crcl-2 needs the file" in capsys.readouterr().err
    assert main([*words, "--clean-pairs", str(tmp_path / "none.txt")]) == 2
    assert f"--clean-pairs {tmp_path}/none.txt is no file" in capsys.readouterr().err


def test_data_that_are_missing_are_described(layouts, capsys):
    ready, left = planned(printed_table("crcl-1"), asked(layouts / "f30k_precomp"))
    assert {plan.row.data for plan in ready} == {"f30k"}
    (line,) = (line for line in left.lines if "no data: coco (" in line)
    of_coco = [row for row, why in left.rows if why == "no data: coco"]
    assert line.startswith(f"{len(of_coco)} rows left out, ") and line.endswith("; coco1k; 0.2, 0.4, 0.6, 0.8)")
    assert any(line.startswith("MS-COCO in the precomp layout comes with SCAN") for line in left.lines)
    of_other_tables = layouts / "cc152k_precomp"
    assert main(["reproduce", "crcl-1", "--data", str(of_other_tables), "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert "29,000 × 36 × 2048 float32, 8.6 GB" in error
    assert f"{of_other_tables} is cc152k, of which no row is" in error and len(error.splitlines()) < 10


def test_the_plan_says_where_settings_of_other_data_are_taken(layouts, capsys):
    assert main(["reproduce", "disncl-3", "--data", str(layouts), "--dry-run"]) == 0
    shown = capsys.readouterr().out.splitlines()
    silent = "no settings for CC152K are printed or released: those of Flickr30K"
    assert {f"{method}: {silent}" for method in ("RCL", "SAF")} <= set(shown)
    assert not any(line.startswith(("NCR: ", "CRCL: ")) for line in shown)
    ready, _ = planned(printed_table("gsc-3"), asked(layouts, methods=["RINCE-SGR"]))
    assert ready[0].configuration.remark == f"epochs: 60, as GSC, which reports it; {silent}"


def test_rows_that_are_never_run_say_so_before_any_data_are_looked_at(tmp_path, capsys):
    asked_for = ["--rows", "MCCA", "--data", str(tmp_path / "nowhere")]
    assert main(["reproduce", "uot-rcl-1", *asked_for]) == 2
    error = capsys.readouterr().err
    assert "nothing of uot-rcl-1 can be run, whatever the data" in error and "nowhere" not in error


# --- Bad input ----------------------------------------------------------------------------------------------------


@pytest.fixture
def f30k(tmp_path):
    return write_layout(tmp_path, "f30k")


def refusal(folder, table="crcl-1", **others):
    with pytest.raises(InputError) as caught:
        planned(printed_table(table), asked(folder, **others))
    return str(caught.value)


def test_other_counts_are_refused_with_file_expected_and_found(f30k):
    np.save(f30k / "train_ims.npy", np.zeros((28999, 1, 2), np.float16))
    assert f"{f30k}/train_ims.npy has 28,999 rows; expected 29,000" in refusal(f30k)


def test_captions_that_are_missing_are_refused(f30k):
    (f30k / "dev_caps.txt").write_text("a\n" * 5069)
    assert f"{f30k}/dev_caps.txt has 5,069 lines; expected 5,070" in refusal(f30k)


def test_half_a_data_set_is_refused(f30k):
    (f30k / "test_ims.npy").unlink()
    assert f"{f30k}/test_ims.npy is missing; expected 1,000 images of f30k_precomp. Flickr30K in" in refusal(f30k)


def test_captions_that_are_not_there_are_named_as_they_are_distributed(f30k):
    (f30k / "test_caps.txt").unlink()
    assert f"{f30k}/test_caps.txt (or .tsv) is missing; expected 5,000 captions of f30k_precomp." in refusal(f30k)


def test_of_two_files_the_one_that_cannot_be_read_is_named(f30k):
    path = f30k / "train_ims.npy"
    path.write_bytes(path.read_bytes()[:1000])
    said = refusal(f30k)
    assert f"{path} cannot be read (" in said and "expected 29,000 images of f30k_precomp" in said
    assert "get it again. Flickr30K in the precomp layout comes with SCAN" in said
    assert "train_caps" not in said.split(". Flickr30K")[0]


def write_vocabulary(path, words):
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    specials = ["<pad>", "<start>", "<end>", "<unk>"]
    Vocabulary((*specials, *(f"w{k}" for k in range(words - len(specials))))).write(path)


@pytest.mark.parametrize("place", ["f30k_precomp/f30k_precomp_vocab.json", "vocab/f30k_precomp_vocab.json"])
def test_a_vocabulary_is_read_where_it_lies(f30k, place):
    ready = planned(printed_table("crcl-1"), asked(f30k))[0]
    assert "--vocabulary" not in ready[0].words(ready[0].configuration.networks[0], 0)
    write_vocabulary(f30k.parent / place, 8481)
    for plan in planned(printed_table("crcl-1"), asked(f30k))[0]:
        words = plan.words(plan.configuration.networks[0], 0)
        assert words[words.index("--vocabulary") + 1] == str(f30k.parent / place)
        command = plan.cell(0).command
        assert "--vocabulary f30k_precomp_vocab-" in command and str(f30k.parent) not in command
    write_vocabulary(f30k.parent / place, 8480)
    assert f"{f30k.parent / place} has 8,480 words; expected 8,481" in refusal(f30k)


def test_a_folder_that_is_no_data_set_is_refused(tmp_path):
    assert f"{tmp_path} is none of the data sets" in refusal(tmp_path)
    path = tmp_path / "train_ims.npy"
    np.save(path, np.zeros((30000, 1, 2), np.float16))
    assert f"{path} has 30,000 rows; published are 29,000 (f30k_precomp), 113,287 (coco_precomp)" in refusal(tmp_path)
    path.write_bytes(path.read_bytes()[:1000])
    assert f"{path} cannot be read (" in refusal(tmp_path)


def test_features_of_whole_pictures_are_refused(f30k):
    """Each image has regions there."""
    np.save(f30k / "dev_ims.npy", np.zeros((1014, 2), np.float16))
    assert f"{f30k}/dev_ims.npy has the shape (1014, 2); expected images × regions × width" in refusal(f30k)


def test_a_path_that_is_not_there_says_where_the_data_of_the_rows_come_from(tmp_path):
    said = refusal(tmp_path / "f30k_precomp", methods=["CRCL"])
    assert f"{tmp_path}/f30k_precomp does not exist; expected the folder of a data set" in said
    assert "Flickr30K in the precomp layout comes with SCAN" in said and "MS-COCO in the precomp layout" in said
    assert "CC152K comes with" not in said


def test_dev_that_holds_every_image_once_is_the_same(f30k):
    np.save(f30k / "dev_ims.npy", np.zeros((1014, 1, 2), np.float16))
    assert planned(printed_table("crcl-1"), asked(f30k))[0]


def test_rows_that_are_not_five_of_each_image_are_refused(f30k):
    """5,070 rows in another order have the right number, and would be 5,070 images with one caption each."""
    rows = np.repeat(np.arange(1014, dtype=np.float16)[:, None, None], 5, axis=0) * np.ones((1, 1, 2), np.float16)
    np.save(f30k / "dev_ims.npy", rows)
    assert planned(printed_table("crcl-1"), asked(f30k))[0]
    np.save(f30k / "dev_ims.npy", rows.reshape(1014, 5, 1, 2).swapaxes(0, 1).reshape(5070, 1, 2))
    assert f"{f30k}/dev_ims.npy, rows 0 … 4 (from 0) differ; expected each of the 1,014 images 5 times" in refusal(f30k)


def index_of(rate, length=145000, images=29000, places=7):
    """Captions, or images, moved by a number of places; 7 parts the captions of each image."""
    index = np.arange(length) * images // length
    index[: int(rate * length)] = np.roll(index[: int(rate * length)], places)
    return index


def test_index_files_are_found_by_the_released_names_and_checked(f30k, tmp_path):
    folder = tmp_path / "index"
    folder.mkdir()
    np.save(folder / "f30k_precomp_0.4.npy", index_of(0.4))
    ready, _ = planned(printed_table("crcl-1"), asked(f30k, rates=["0.4"], index=folder))
    assert all(plan.noise == ("--noise-index", str(folder / "f30k_precomp_0.4.npy")) for plan in ready)
    for wrong, said in (
        (index_of(0.2), "mismatches 20.0 % of the captions; expected 40 %"),
        (index_of(0.4, 5070, 1014), "has 5070 entries; expected 145,000 whole numbers"),
        (index_of(0.4, 29000), "has 29000 entries; expected 145,000 whole numbers"),
        (index_of(0.4) + 1, "expected 145,000 whole numbers"),
        (
            np.where(np.arange(145000) < 58000, 7, index_of(0)),
            "names image 7 58,000 times; expected each image 5 times",
        ),
    ):
        np.save(folder / "f30k_precomp_0.4.npy", wrong)
        assert said in refusal(f30k, rates=["0.4"], index=folder)
    assert "holds no index of f30k at 0.6" in refusal(f30k, rates=["0.6"], index=folder)


def test_rows_and_rates_that_the_table_lacks_are_refused(f30k):
    assert "crcl-1 has no row MRL; it has SCAN" in refusal(f30k, methods=["MRL"])
    assert "crcl-1 has no noise rate 0.5; it has 0.2, 0.4, 0.6, 0.8" in refusal(f30k, rates=["0.5"])


def test_options_without_effect_are_refused(capsys):
    for words, said in (
        (["--data", "x"], "--data has no effect without a TABLE"),
        (["crcl-1", "--seeds", "1"], "--seeds has no effect without --data"),
        (["crcl-1", "--dry-run"], "--dry-run has no effect without --data"),
        (["crcl-1", "--data", "x", "--seeds", "0", "-1"], "--seeds has -1; expected 0 or more"),
    ):
        assert main(["reproduce", *words]) == 2
        assert said in capsys.readouterr().err
    assert main(["reproduce", "crcl-1", "--rows", "CRCL", "--noise", "0.4"]) == 0
    assert capsys.readouterr().out.count("\nCRCL ") == 2


def test_settings_of_other_data_need_as_printed():
    with pytest.raises(InputError, match="--printed-for chooses among the settings of a paper; it needs --as-printed"):
        job("f30k --method crcl --model sgr --printed-for coco")
    with pytest.raises(InputError, match="settings of their own have coco, cc152k, cc152k-vse, not f31k"):
        job("f30k --method crcl --model sgr --as-printed --printed-for f31k")


# --- A run --------------------------------------------------------------------------------------------------------

QUICK = "--width 8 --word-width 8 --batch-size 16 --minimum-count 1 --epochs 1"


def in_process(*words):
    assert main(words) == 0
    return ""


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Tiny data in the place of Flickr30K, and quick networks in that of CRCL's."""
    folder = write_tiny_precomp(tmp_path / "f30k_precomp")
    splits = {"train": (48, 96), "dev": (16, 32), "test": (16, 32)}
    score = {"f30k": "--split test"}
    tiny = DataSet(name="f30k", folder="f30k_precomp", layout="precomp", splits=splits, score=score, where="")
    monkeypatch.setattr(data_sets, "read_data_sets", lambda: {"f30k": tiny})
    for module in ("command", "runs"):
        monkeypatch.setattr(f"truepair.reproduce.published.{module}.read_data_sets", lambda: {"f30k": tiny})
    for module in ("cells", "published.runs"):  # in this process: a new one would import torch once more
        monkeypatch.setattr(f"truepair.reproduce.{module}.truepair", in_process)
    spec = configurations._spec()
    networks = [f"--method infonce {QUICK}", f"--method triplet {QUICK}"]
    monkeypatch.setattr(configurations, "_spec", lambda: {**spec, "ours": {"CRCL": networks}})
    return folder


def test_a_table_is_run_once_and_shown_beside_what_is_printed(quick, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["reproduce", "crcl-1", "--data", str(quick), "--rows", "CRCL", "--noise", "0.4", "--out", str(out)]
    assert main(words) == 0
    (record,) = map(json.loads, (out / "crcl-1.jsonl").read_text().splitlines())
    assert record["name"] == "f30k-0.4-crcl-seed0" and len(record["runs"]) == 2
    assert record["realised_noise"] == pytest.approx(0.4, abs=0.1)
    results = [json.loads((out / "runs" / run / "result.json").read_text()) for run in record["runs"]]
    alone = [result["test"]["rsum"] for result in results]
    assert record["members"] == [{"model": "global", "rsum": value} for value in alone]
    rsum = record["figures"]["rsum"]
    assert rsum == pytest.approx(sum(value for name, value in record["figures"].items() if name != "rsum"))
    shown = capsys.readouterr().out
    assert f"{rsum:.1f}" in shown and f"{rsum - 505.2:.1f}" in shown and "505.2" in shown and "≠" in shown
    assert "| 505.2 |" in (out / "crcl-1.md").read_text()
    said = f"CRCL, f30k, 0.4: the networks alone, rSum: global (1) {alone[0]:.1f}, global (2) {alone[1]:.1f}"
    assert said in shown and said in (out / "crcl-1.md").read_text()
    stamp = (out / "crcl-1.jsonl").stat().st_mtime_ns
    assert main(words) == 0 and (out / "crcl-1.jsonl").stat().st_mtime_ns == stamp
    # Another version's run is marked; a record of other options is refused.
    (out / "crcl-1.jsonl").write_text(json.dumps({**record, "truepair": "0.0"}) + "\n")
    capsys.readouterr()
    assert main(words) == 0 and "° run with truepair 0.0; this is" in capsys.readouterr().out
    (out / "crcl-1.jsonl").write_text(json.dumps({**record, "command": "x"}) + "\n")
    (out / "crcl-1.md").unlink()
    assert main(words) == 2 and "is of another command" in capsys.readouterr().err
    assert not (out / "crcl-1.md").exists()


def test_a_run_that_diverged_is_told_and_a_row_that_fails_keeps_the_others(quick, tmp_path, monkeypatch, capsys):
    out, spec = tmp_path / "out", configurations._spec()
    rows = {"CRCL": [f"--method infonce {QUICK}"], "NCR": [f"--method infonce {QUICK} --learning-rate 1e30"]}
    monkeypatch.setattr(configurations, "_spec", lambda: {**spec, "ours": rows | {"DECL": [f"--method decl {QUICK}"]}})

    def in_process_or_diverged(*words):
        if (code := main(words)) != 0:
            said = capsys.readouterr().err
            raise (DivergedError if code == 3 else InputError)(said[said.rindex("truepair: error") :])
        return ""

    for module in ("cells", "published.runs"):
        monkeypatch.setattr(f"truepair.reproduce.{module}.truepair", in_process_or_diverged)
    words = ["reproduce", "crcl-1", "--data", str(quick), "--noise", "0.4", "--out", str(out)]
    assert main([*words, "--rows", "CRCL", "NCR"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^NCR +f30k +0\.4 +0 \+ 1 diverged +– +75\.3 +– ", shown, re.M)
    assert "f30k-0.4-ncr-seed0 diverged: training diverged in epoch 1" in shown
    page, stamp = (out / "crcl-1.md").read_text(), (out / "crcl-1.jsonl").stat().st_mtime_ns
    assert "| NCR | f30k | 0.4 | 0 + 1 diverged | – | 75.3 | – |" in page and "| CRCL | f30k | 0.4 | 1 |" in page
    assert str(tmp_path) not in (out / "crcl-1.jsonl").read_text() + page
    assert main([*words, "--rows", "CRCL", "NCR"]) == 0 and (out / "crcl-1.jsonl").stat().st_mtime_ns == stamp
    # A row that fails does not keep the others from being shown.
    (out / "crcl-1.md").unlink()
    assert main([*words, "--rows", "CRCL", "DECL"]) == 2
    said = capsys.readouterr().err
    assert "f30k-0.4-decl-seed0 failed: " in said and f"The rows that ran are in {out}/crcl-1.md" in said
    assert (out / "crcl-1.md").read_text() == page


def test_sources_are_known_by_name_or_by_count(layouts, tmp_path):
    assert set(find_sources([layouts])) == {"f30k", "coco", "cc152k"}
    other = tmp_path / "features"
    other.symlink_to(layouts / "coco_precomp")
    assert find_sources([other]) == {"coco": other}
    with pytest.raises(InputError, match="are both coco; give one of them"):
        find_sources([layouts, other])
