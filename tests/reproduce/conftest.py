"""Commands of cells without a process of their own each, for tests that are not about processes."""

import contextlib
import io
from importlib import import_module

import pytest

from truepair.cli.main import main
from truepair.errors import DivergedError, InputError
from truepair.reproduce import processes

IN_ROOMS = ("audits", "cells", "embedding_audits", "training")
"""The modules of `truepair.reproduce` that run commands of the program itself."""


def called(*words: str, module: str = "truepair") -> str:
    """What the command prints; what `processes.truepair` raises where it fails. Another program has its process."""
    if module != "truepair":
        return processes.truepair(*words, module=module)
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = main([*words])
    if code:
        raise (DivergedError if code == DivergedError.exit_code else InputError)(said.getvalue().strip()[-2000:])
    return printed.getvalue()


@pytest.fixture
def in_this_process(monkeypatch):
    """To start Python and torch anew for each command takes longer than what these tests let it do."""
    for name in IN_ROOMS:
        room = import_module(f"truepair.reproduce.{name}")
        assert room.truepair is processes.truepair
        monkeypatch.setattr(room, "truepair", called)
