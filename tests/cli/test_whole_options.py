"""Options are taken by their whole names: an abbreviation of one may be the name that another command has."""

import pytest

from truepair.cli.main import main


@pytest.mark.parametrize(
    "command",
    [
        ["train", "data", "--out", "run", "--split", "3"],  # of --split-seed
        ["train", "data", "--out", "run", "--epoch", "3"],
        ["audit", "data", "--out", "audit", "--synthetic", "0.1"],
        ["decisions", "show", "audit", "--hel"],
        ["labels", "run", "--to", "3"],
    ],
)
def test_an_abbreviation_is_refused(command, capsys):
    with pytest.raises(SystemExit) as refused:
        main(command)
    assert refused.value.code == 2
    assert "unrecognized arguments: --" in capsys.readouterr().err
