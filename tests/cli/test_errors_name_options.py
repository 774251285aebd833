"""Errors of the library name fields of a config; on the command line they name the options that set them."""

import pytest

from truepair.cli.main import main
from truepair.cli.options import errors_name_options, in_flags
from truepair.errors import NaNError

FLAGS = {"scale": "--crcl-scale", "active_weight": "--crcl-active-weight", "seed": "--seed"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("scale and active_weight are 0", "--crcl-scale and --crcl-active-weight are 0"),
        ("seed is -1; expected at least 0", "--seed is -1; expected at least 0"),
        ("the seed is -1", "the seed is -1"),  # words of a sentence stay
        ("scale is learned by gradient; leave it out", "scale is learned by gradient; leave it out"),
        ("scale and seed are unlike each other", "scale and seed are unlike each other"),
        ("scale_of is 1", "scale_of is 1"),
        (
            "holds features, for which there is no option seed (3)",
            "holds features, for which there is no option --seed (3)",
        ),
        ("/data/active_weight/x.npy: no such file", "/data/active_weight/x.npy: no such file"),
        (
            "active_weight.npy holds 'active_weight' and active_weight=1",
            "active_weight.npy holds 'active_weight' and active_weight=1",
        ),
        ("--active_weight is spelled wrong", "--active_weight is spelled wrong"),
    ],
)
def test_names_of_fields_become_options(message, expected):
    assert in_flags(message, FLAGS) == expected


def test_the_error_stays_of_its_kind():
    with pytest.raises(NaNError, match="^--seed is NaN$"), errors_name_options(FLAGS):
        raise NaNError("seed is NaN")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--epochs", "0"], "--epochs is 0; "),
        (["--word-share", "2"], "--word-share is 2.0; "),
        (["--crcl-scale", "0", "--crcl-active-weight", "0"], "--crcl-scale and --crcl-active-weight are 0"),
        (["--schedule", "cosine", "--decay-after", "3"], "leave out --decay-after and --decay-every"),
        (["--dev-share", "2"], "--dev-share"),
        (["--noise", "2"], "--noise is 2.0; "),
        (["--label-noise", "-1"], "--label-noise is -1.0; "),
        (["--label", "kind"], "no option --label ('kind')"),
    ],
)
def test_train_names_its_options(options, expected, tmp_path, capsys):
    assert main(["train", "scenes:60", "--method", "crcl", "--out", str(tmp_path / "run"), *options]) == 2
    assert expected in capsys.readouterr().err


def test_commands_that_read_data_name_their_options(tmp_path, capsys):
    made = ["--rate", "0.1", "--out", str(tmp_path / "noise.npy")]
    assert main(["noise", "scenes:60", *made, "--dev-share", "2"]) == 2
    assert "--dev-share" in capsys.readouterr().err
    assert main(["noise", "scenes:60", "--rate", "2", *made[2:]]) == 2
    assert "--rate is 2.0; " in capsys.readouterr().err
    assert main(["demo", "--epochs", "0", "--out", str(tmp_path / "demo")]) == 2
    assert "--epochs is 0; " in capsys.readouterr().err
    assert main(["audit", "scenes:60", "--noise", "2", "--out", str(tmp_path / "audit")]) == 2
    assert "--noise is 2.0; " in capsys.readouterr().err


def test_an_audit_names_its_options(tmp_path, capsys):
    assert main(["audit", "scenes:60", "--out", str(tmp_path / "audit"), "--epochs", "0"]) == 2
    assert "--epochs is 0" in capsys.readouterr().err
