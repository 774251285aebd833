"""Rows of the papers' tables resolve to runnable configurations on data in the field's exact layout."""

import re

import pytest

import truepair
from tests.reproduce.published.field_layouts import asked, job, refusal, write_features
from truepair.cli.main import main
from truepair.methods import build_method
from truepair.reproduce.published.command import planned
from truepair.reproduce.published.configurations import NotBuilt, configuration_of
from truepair.reproduce.published.data_sets import find_sources
from truepair.reproduce.published.printed import all_rows, printed_table, read_printed

PIXELS_AND_OTHERS = [
    name for name, table in read_printed().items() if {*table.data} <= {"f30k", "coco1k", "coco5k", "cc152k"}
]


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
