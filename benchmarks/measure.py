"""Wall time and extra memory of a call, measured so that the figure belongs to the call and to nothing before it."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

LINUX_CLEAR_REFS = Path("/proc/self/clear_refs")
LINUX_STATUS = Path("/proc/self/status")


def median_seconds(call: Callable[[], object], repeats: int, *, warm_up: bool = True) -> float:
    """Median wall time of `repeats` calls, in seconds, after one that is not timed unless `warm_up` is off."""
    if warm_up:
        call()
    return statistics.median(_seconds(call) for _ in range(repeats))


def extra_peak_bytes(prepare: Callable[[], Callable[[], object]]) -> int:
    """How far the resident memory rises above what is there before the call, at its peak.

    A fresh process runs `prepare`, which builds the inputs and returns the call to measure; only that call counts.
    Imports and thread pools that the first use brings in belong to `prepare`: call once on something small there.

    Elsewhere than on Linux the peak cannot be reset, and the figure is too low when `prepare` itself reached higher.

    Args:
        prepare: must be picklable (a module's function, or a `functools.partial` of one).
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_measure_and_send, args=(prepare, sending))
    process.start()
    sending.close()  # so that a process that dies shows as the end of the pipe, instead of a wait for ever
    try:
        return int(receiving.recv())
    except EOFError:
        process.join()
        raise RuntimeError(
            f"the measured process ended with status {process.exitcode} before it had a figure"
        ) from None
    finally:
        process.join()


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _measure_and_send(
    prepare: Callable[[], Callable[[], object]], sending: multiprocessing.connection.Connection
) -> None:
    call = prepare()
    if LINUX_CLEAR_REFS.exists():
        LINUX_CLEAR_REFS.write_text("5")  # proc(5): the peak starts again from the memory resident now
    before = peak_bytes()
    result = call()
    sending.send(peak_bytes() - before)
    del result  # it was part of the peak


def peak_bytes() -> int:
    """The most memory this process has held so far."""
    # getrusage keeps the parent's peak across fork and exec and cannot be reset; the kernel's own line can.
    if LINUX_STATUS.exists():
        line = next(line for line in LINUX_STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
