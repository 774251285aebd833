"""Processes for tests of `truepair`, forked from one that has imported it: to import it takes seconds."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

_fork_server = multiprocessing.get_context("forkserver")
_fork_server.set_forkserver_preload(["truepair.cli.main", "truepair.training.jobs", "truepair.audit"])


def without_fsync() -> None:
    """No test cuts the power, and what a killed process has written is there: on a slow disk, minutes of waiting."""
    os.fsync = lambda descriptor: None


class Started:
    """A process that calls a function, whose value is its exit code; what it prints goes to files in `folder`."""

    def __init__(
        self,
        folder: Path,
        function: Callable[..., int | None],
        *arguments: object,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._process = _fork_server.Process(
            target=_call, args=(folder, dict(environment or {}), function, arguments), daemon=True
        )
        self._process.start()

    def __enter__(self) -> "Started":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        self._process.kill()
        self._process.join()

    @property
    def out(self) -> str:
        return (self._folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self._folder / "err").read_text()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self, seconds: float = 240) -> int:
        """The exit code, of one that was killed the signal's number below zero."""
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a process of a test", seconds)
        return self._process.exitcode


def truepair_command(folder: Path, *words: object, **more: Mapping[str, str]) -> Started:
    """`truepair WORDS` in a process of its own."""
    from truepair.cli.main import main

    return Started(folder, main, [str(word) for word in words], **more)


def _call(
    folder: Path, environment: dict[str, str], function: Callable[..., int | None], arguments: tuple[object, ...]
) -> None:
    for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
        opened = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, stream.fileno())
        os.close(opened)
    os.environ.update(environment)
    without_fsync()
    import torch

    torch.set_num_threads(1)
    sys.exit(function(*arguments))
