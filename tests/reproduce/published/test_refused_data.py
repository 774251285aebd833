"""Data, index files and options that rows of the papers' tables refuse."""

import numpy as np
import pytest

from tests.reproduce.published.field_layouts import asked, index_of, job, refusal
from truepair.cli.main import main
from truepair.data.text import Vocabulary
from truepair.errors import InputError
from truepair.reproduce.published.command import planned
from truepair.reproduce.published.printed import printed_table


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


def test_splits_of_other_networks_are_refused(f30k):
    np.save(f30k / "dev_ims.npy", np.zeros((1014, 1, 3), np.float16))
    said = refusal(f30k)
    assert f"{f30k}/dev_ims.npy has 1 × 3 numbers an image, {f30k}/train_ims.npy 1 × 2; expected the same" in said


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
