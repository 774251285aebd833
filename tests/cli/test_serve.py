"""`truepair serve`: its help, and what it refuses before anything is opened."""

import subprocess
import sys

import pytest

from truepair.cli.main import main
from truepair.cli.serve import address, listening
from truepair.errors import InputError


def test_help_needs_neither_torch_nor_the_extra():
    code = (
        "import argparse, sys; from truepair.cli.serve import add_serve; parser = argparse.ArgumentParser();"
        "commands = parser.add_subparsers(); add_serve(commands); print(commands.choices['serve'].format_help());"
        "assert not {'torch', 'fastapi', 'uvicorn', 'numpy'} & set(sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "--data" in shown and "--token" in shown and "--allow-host" in shown


def test_a_port_in_use_says_what_to_do(capsys, tmp_path):
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(tmp_path), "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"port {port}" in said and "choose another --port, or 0" in said


def test_what_cannot_be_listened_on_or_opened(capsys, tmp_path):
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    for arguments, words in (
        (["--port", "99999"], "expected 0 to 65535"),
        (["--host", "no.such.host.invalid", "--port", "0"], "is no address of this machine"),
        (["--token", "short"], "the token is too short"),
        (["--port", "0"], "holds neither a run nor an audit"),
    ):
        assert main(["serve", str(tmp_path), *arguments]) == 2
        assert words in capsys.readouterr().err


def test_the_extra_that_is_missing_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", str(tmp_path)]) == 2
    assert "pip install 'truepair[serve]'" in capsys.readouterr().err


def test_the_address_has_the_token():
    assert address("0.0.0.0", 80, "abc") == "http://127.0.0.1:80/?token=abc"
    assert address("::1", 80, None) == "http://[::1]:80/"
    with pytest.raises(InputError):
        listening("127.0.0.1", -1)
