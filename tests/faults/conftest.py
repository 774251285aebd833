import shutil

import pytest

from tests.faults.damage import train


@pytest.fixture(scope="session")
def trained(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("faults") / "run"
    assert train(tiny, out) == 0
    return out


@pytest.fixture
def run(trained, tmp_path):
    """A finished run to be damaged."""
    return shutil.copytree(trained, tmp_path / "run")


@pytest.fixture
def refused(capsys):
    """Runs a command and returns its one line of complaint: exit code 2, no traceback."""
    from truepair.cli.main import main

    def run_it(*arguments: object) -> str:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as usage:  # argparse
            code = usage.code
        told = capsys.readouterr().err
        assert code == 2, told
        assert "Traceback" not in told
        return told

    return run_it
