"""Seeded randomness without global state: every draw comes from a generator named by what it is for.

Because a generator depends on (seed, purpose, position) alone and never on what was drawn before, a resumed run draws
the very numbers an uninterrupted one would have drawn.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_sequence(seed: int, purpose: str, *position: int) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, zlib.crc32(purpose.encode()), *position])


def generator(seed: int, purpose: str, *position: int) -> np.random.Generator:
    """NumPy generator for one purpose ("shuffle", "augment", …) at one position (stage, epoch, step, …)."""
    return np.random.default_rng(seed_sequence(seed, purpose, *position))


@contextmanager
def torch_seeded(seed: int, purpose: str, *position: int, device: torch.device | None = None) -> Iterator[None]:
    """Within the block torch's own generators (initialisation, dropout) of the CPU and of `device` are seeded; after it
    they are as before. Those of other devices are not touched, as `torch.manual_seed` would.
    """
    cuda = [device] if device is not None and device.type == "cuda" else []
    value = int(seed_sequence(seed, purpose, *position).generate_state(1, np.uint64)[0] >> np.uint64(1))
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(value)
        for one in cuda:
            with torch.cuda.device(one):
                torch.cuda.manual_seed(value)
        yield
