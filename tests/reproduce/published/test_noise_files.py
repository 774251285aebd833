"""Index files of the field: which is taken for what a table shuffles, and what is refused."""

import shutil

import numpy as np
import pytest

from tests.reproduce.published.field_layouts import asked, index_of, refusal, write_layout
from truepair.cli.main import main
from truepair.reproduce.published.command import planned, show_plan
from truepair.reproduce.published.printed import printed_table


@pytest.fixture(scope="module")
def f30k(tmp_path_factory):
    return write_layout(tmp_path_factory.mktemp("field"), "f30k")


@pytest.fixture
def indexes(tmp_path):
    """A folder with BiCro's file of 40 % and RCL's, and one with L2RM's, which is RCL's with each entry five times."""
    both, repeated = tmp_path / "both", tmp_path / "repeated"
    (both / "f30k_precomp").mkdir(parents=True)
    repeated.mkdir()
    of_images = index_of(0.4, 29000)
    np.save(both / "f30k_precomp_0.4.npy", index_of(0.4))
    np.save(both / "f30k_precomp" / "noise_inx_0.4.npy", of_images)
    np.save(repeated / "f30k_precomp_0.4.npy", np.repeat(of_images, 5))
    return both, repeated


def taken(f30k, table, index):
    ready, _ = planned(printed_table(table), asked(f30k, rates=["0.4"], index=index))
    (path,) = {plan.index for plan in ready}
    return path


def test_the_file_is_that_of_what_the_table_shuffles(f30k, indexes):
    both, repeated = indexes
    assert taken(f30k, "crcl-1", both) == both / "f30k_precomp_0.4.npy"
    assert taken(f30k, "disncl-1", both) == both / "f30k_precomp" / "noise_inx_0.4.npy"
    assert taken(f30k, "disncl-1", repeated) == repeated / "f30k_precomp_0.4.npy"


def test_another_kind_of_noise_is_refused_though_name_length_and_rate_are_right(f30k, indexes):
    both, repeated = indexes
    said = refusal(f30k, rates=["0.4"], index=repeated)
    assert f"{repeated}/f30k_precomp_0.4.npy shuffles images: its entries have the captions of each image" in said
    assert "expected captions shuffled. BiCro and PC² have such files" in said
    (both / "f30k_precomp" / "noise_inx_0.4.npy").unlink()
    said = refusal(f30k, "disncl-1", rates=["0.4"], index=both)
    assert f"{both}/f30k_precomp_0.4.npy shuffles captions" in said and "expected images shuffled. RCL and L2RM" in said
    np.save(both / "f30k_precomp_0.4.npy", np.arange(1014))
    said = refusal(f30k, "disncl-1", rates=["0.4"], index=both)
    assert "has 1014 entries; expected 29,000 or 145,000 whole numbers" in said


def test_what_is_no_folder_or_lacks_a_rate_says_what_else_can_be_done(f30k, indexes):
    both, _ = indexes
    for path in (both / "nowhere", both / "f30k_precomp_0.4.npy"):
        assert f"--noise-index {path} is no folder; expected the one that holds" in refusal(f30k, index=path)
    said = refusal(f30k, rates=["0.8"], index=both)
    assert f"{both} holds no index of f30k at 0.8" in said and "or leave --noise-index out" in said
    assert "there are with --noise, name only data sets with an index in --data" in said


def test_an_index_without_effect_is_refused(f30k, indexes):
    both, _ = indexes
    assert "--noise-index has no effect: no row asked for of crcl-2" in refusal(f30k, "crcl-2", index=both)
    assert "--noise-index has no effect: no row asked for of uot-rcl-2" in refusal(f30k, "uot-rcl-2", index=both)


def test_runs_know_an_index_by_its_content_wherever_it_lies(f30k, indexes, tmp_path, monkeypatch, capsys):
    both, _ = indexes
    shutil.copytree(both, tmp_path / "copy")
    shutil.copytree(both, tmp_path / "other")
    np.save(tmp_path / "other" / "f30k_precomp_0.4.npy", index_of(0.4, places=8))
    commands, names = [], []
    for folder in (both, tmp_path / "copy", tmp_path / "other"):
        given = asked(f30k, methods=["CRCL"], rates=["0.4"], index=folder)
        (plan,), left = planned(printed_table("crcl-1"), given)
        commands.append(plan.cell(0).command)
        names.append(plan.run_name(plan.configuration.networks[0], 0))
        index = plan.words(plan.configuration.networks[0], 0)
        assert index[index.index("--noise-index") + 1] == str(folder / "f30k_precomp_0.4.npy")
        shown = show_plan([plan], left, [0])
        assert f"\n  f30k is {f30k}\n" in shown and f".npy is {folder}/f30k_precomp_0.4.npy\n" in shown
    assert commands[0] == commands[1] != commands[2] and names[0] == names[1] != names[2]
    assert str(tmp_path) not in commands[0]
    monkeypatch.chdir(f30k.parent)  # a relative path is the same place for every process
    words = ["reproduce", "crcl-1", "--data", "f30k_precomp", "--rows", "CRCL", "--noise", "0.4", "--dry-run"]
    assert main(words) == 0 and f"\n  f30k is {f30k}\n" in capsys.readouterr().out
