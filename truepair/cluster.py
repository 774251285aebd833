"""Ray: on the cores of this machine, or of a cluster (`RAY_ADDRESS`)."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from truepair.errors import InputError


@contextmanager
def connected(workers: int | None) -> Iterator[Any]:
    """The module `ray`, connected: to what this process is connected to already, or to what `RAY_ADDRESS` names.
    Otherwise one is started here, with `workers` cores (None: all), and stopped at the end.

    Raises:
        InputError: it is not installed.
    """
    if importlib.util.find_spec("ray") is None:
        raise InputError(
            "the engine is ray, which is not installed; pip install 'truepair[ray]', or use the local engine"
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
