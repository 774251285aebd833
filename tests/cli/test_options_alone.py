"""An option that has no effect without another is refused, by name, before any work."""

import numpy as np
import pytest

from truepair.cli.main import main

TRAIN = ["train", "DATA", "--out", "OUT"]
AUDIT = ["audit", "DATA", "--out", "OUT"]
ALONE = [
    (TRAIN, "--noise-kind image", "--noise-kind has no effect without --noise; leave it out, or give --noise, too"),
    (TRAIN, "--noise-seed 3", "--noise-seed has no effect without --noise or --label-noise or --clean-pairs"),
    (TRAIN, "--label-noise-kind asymmetric", "--label-noise-kind has no effect without --label-noise"),
    (TRAIN, "--split-seed 3", "--split-seed has no effect without --dev-share or --test-share"),
    (TRAIN, "--schedule cosine --decay-factor 0.5", "--decay-factor has no effect beside --schedule cosine"),
    (TRAIN, "--minimum-count 2 --vocabulary v.json", "and so does --vocabulary; leave one of the two out"),
    (AUDIT, "--noise-kind image", "--noise-kind has no effect without --noise"),
    (AUDIT, "--noise-seed 3", "--noise-seed has no effect without --noise"),
    (AUDIT, "--keep 0.5", "--keep has no effect without --export"),
    (["noise", "DATA", "--rate", "0.1", "--out", "OUT"], "--split-seed 3", "without --dev-share or --test-share"),
    (["features", "DATA", "--out", "OUT"], "--split-seed 3", "without --dev-share or --test-share"),
]


@pytest.mark.parametrize(("command", "option", "message"), ALONE)
def test_an_option_without_its_partner_is_refused(command, option, message, tiny, tmp_path, capsys):
    places = {"DATA": str(tiny), "OUT": str(tmp_path / "out")}
    assert main([places.get(word, word) for word in command] + option.split()) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_images_to_score_of_data_without_dev_and_test_are_refused(tmp_path, capsys):
    np.save(tmp_path / "train_ims.npy", np.random.default_rng(0).normal(size=(8, 2, 3)).astype(np.float32))
    (tmp_path / "train_caps.txt").write_text("".join(f"caption {k}\n" for k in range(8)))
    assert main(["train", str(tmp_path), "--score-images", "4", "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "--score-images is for dev and test, but the data have neither" in error and "--dev-share" in error


def test_a_rate_of_nought_is_a_partner(tiny, tmp_path):
    asked = ["train", str(tiny), "--noise", "0", "--noise-kind", "image", "--epochs", "1", "--width", "8", "--quiet"]
    assert main([*asked, "--method", "infonce", "--out", str(tmp_path / "run")]) == 0
