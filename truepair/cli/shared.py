"""What several commands share: words about their data, CPU threads, and progress for who waits at a terminal."""

from __future__ import annotations

import sys

from truepair.errors import InputError

DATA_HELP = (
    "a folder in the field's precomp layout ({split}_ims.npy, {split}_caps.txt or .tsv, …); a file of labelled "
    "features (.mat, .npz, .h5, .hdf5, .h5py) or Wikipedia's folder of them; a folder of pictures with a .jsonl table; "
    "or scenes, the built-in drawings (scenes:500 for 500 training pictures)"
)


def use_threads(count: int | None) -> None:
    """CPU threads of torch; None leaves them as they are.

    Raises:
        InputError: fewer than one.
    """
    if count is None:
        return
    if count < 1:
        raise InputError(f"--threads is {count}; expected at least 1")
    import torch

    torch.set_num_threads(count)


def say(text: str) -> None:
    """Tell somebody who waits at a terminal what is being done."""
    if sys.stderr.isatty():
        print(f"{text} …", file=sys.stderr)
