"""The commands of the package that cells run: each a process of its own that ends when this one is asked to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from truepair.errors import DivergedError, InputError

_running: set[subprocess.Popen[str]] = set()
"""The children of this process, of all its threads."""
_ending = threading.Event()
"""Set once they were asked to end: none is to begin any more."""


def truepair(*words: str, module: str = "truepair") -> str:
    """Run a command of the package on one thread; returns what it printed. An InputError with what it said if it
    failed, a DivergedError where training diverged.
    """
    if _ending.is_set():
        raise InputError(f"interrupted before {words[0]} began")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module, *words]
    # In a group of its own: a Ctrl-C reaches it once, from `ended_together`, and not from the terminal as well.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, process_group=0
    ) as process:
        _running.add(process)
        try:
            printed, said = process.communicate()
        except BaseException:
            process.terminate()  # of a training: a checkpoint after the batch, for which `with` waits
            raise
        finally:
            _running.discard(process)
    if process.returncode:
        failure = DivergedError if process.returncode == DivergedError.exit_code else InputError
        raise failure(said.strip()[-2000:])
    return printed


@contextmanager
def ended_together() -> Iterator[None]:
    """SIGTERM acts like Ctrl-C within, and either ends the commands that still run; a training leaves a checkpoint."""
    in_main = threading.current_thread() is threading.main_thread()  # Python allows handlers there only
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if in_main else None
    _ending.clear()
    try:
        yield
    except KeyboardInterrupt:
        _ending.set()
        for process in [*_running]:
            process.terminate()
        raise
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)
