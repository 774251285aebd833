"""The threads that torch, numpy and scipy compute on."""

from __future__ import annotations

import subprocess
import sys

import scipy.linalg  # noqa: F401  (with the library it computes with)
import torch
from threadpoolctl import threadpool_info

from truepair.device import threads


def counts() -> set[int]:
    libraries = threadpool_info()
    assert sum(library["user_api"] == "blas" for library in libraries) >= 1
    return {torch.get_num_threads(), *(library["num_threads"] for library in libraries)}


def test_threads_hold_for_every_library_and_within_the_block_alone() -> None:
    with threads(2):
        assert counts() == {2}
        with threads(1):
            assert counts() == {1}
        assert counts() == {2}
        with threads(None):
            assert counts() == {2}


def test_the_option_holds_for_a_library_that_is_loaded_later() -> None:
    script = (
        "from truepair.cli.shared import use_threads; use_threads(1); import sys; import numpy, scipy.linalg;"
        "from threadpoolctl import threadpool_info;"
        "print({library['num_threads'] for library in threadpool_info()})"
    )
    environment = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "{1}"
