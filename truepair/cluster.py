"""Ray: on the cores of this machine, or of a cluster (`RAY_ADDRESS`)."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from truepair.errors import InputError, TruepairError

RETRIES = 5
"""Times that Ray starts a task again when its worker dies."""


@contextmanager
def connected(workers: int | None) -> Iterator[Any]:
    """The module `ray`, connected: to what this process is connected to already, or to what `RAY_ADDRESS` names.
    Otherwise one is started here, with `workers` cores (None: all), and stopped at the end.

    Raises:
        InputError: it is not installed.
    """
    if importlib.util.find_spec("ray") is None:
        raise InputError(
            "the engine is ray, which is not installed; pip install 'truepair[ray]', or leave the engine out (--engine)"
        )
    ray: Any = import_module("ray")
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False)
    else:
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="warning")
    try:
        yield ray
    finally:
        ray.shutdown()


def task_of(ray: Any, function: Callable[..., Any]) -> Any:
    """The function as a task of Ray: on one core, started again when its worker dies."""
    return ray.remote(num_cpus=1, max_retries=RETRIES)(function)


def result_of(ray: Any, running: Any, what: str, kept: str) -> Any:
    """What a task (`task_of`) returned.

    Args:
        what: the task works on, e.g. "the rows 0 to 999".
        kept: what is not lost, and what to do, e.g. "what is scored is kept; run the same audit again".

    Raises:
        TruepairError: the task's own, as it is, without Ray's traceback around it; or its worker died each time.
    """
    try:
        return ray.get(running)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, TruepairError):
            raise error.cause from None
        raise
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError) as error:
        raise TruepairError(
            f"the worker of Ray died on {what}, in each of {RETRIES + 1} attempts ({error}); {kept}"
        ) from error
