"""Reading the field's index files: one whole number an entry, in a plain .npy file."""

from __future__ import annotations

from pathlib import Path

from truepair.data.pairs import Array
from truepair.errors import InputError
from truepair.files import map_npy


def read_npy_index(path: Path, expected: str) -> Array:
    """The array of an index file, memory-mapped; what it holds is for the caller to check.

    Args:
        expected: what the file should hold, for messages.

    Raises:
        InputError: the file is missing, or not a plain .npy file.
    """
    try:
        return map_npy(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); {expected}. Check the path") from error
    except ValueError as error:
        raise InputError(
            f"{path} is not a plain .npy file ({error}); {expected}. "
            "Write it with np.save(path, index, allow_pickle=False), index of type int64"
        ) from error
