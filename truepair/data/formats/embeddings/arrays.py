"""Vectors in `.npy` files, read by ranges of rows.

Files are read at an offset and never memory-mapped: pages of a map count as memory of the process for as long as the
system likes, and a scan of a billion rows would look as if it held them all. Of objects in a store only the header and
the rows asked for are fetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from truepair.data.pairs import Array
from truepair.data.storage.stored_path import FilePath, StoredPath, gone
from truepair.errors import InputError, TruepairError
from truepair.files import require_file

HEADER_BYTES = 2**14
"""More than any header that NumPy reads."""
_REMEDY = "Write it again with np.save(path, np.ascontiguousarray(vectors, dtype=np.float32))"


@dataclass(frozen=True)
class VectorFile:
    """A checked `.npy` file of vectors: float16, float32 or float64 of either byte order, from the byte `offset` on."""

    path: FilePath
    rows: int
    width: int
    dtype: np.dtype[Any]
    offset: int

    def read(self, start: int, stop: int) -> Array:
        """(stop − start, width) float32 of these rows; what float32 cannot hold becomes infinite.

        Raises InputError where the file is not as it was when it was checked, TruepairError where its store fails.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self.read_stored(start, stop).astype(np.float32, copy=False)

    def read_stored(self, start: int, stop: int) -> Array:
        """(stop − start, width) of these rows in the type of the file; errors as `read`."""
        count = max(0, stop - start)
        try:
            if isinstance(self.path, StoredPath):
                data = self.path.read(*self._place(start, stop))
                values = np.frombuffer(data, dtype=self.dtype, count=len(data) // self.dtype.itemsize)
                values = values.copy()  # one that may be written to, as a file gives
            else:
                offset = self._place(start, stop)[0]
                values = np.fromfile(self.path, dtype=self.dtype, count=count * self.width, offset=offset)
        except OSError as error:
            raise gone(self.path, error) from error
        if len(values) != count * self.width:
            raise InputError(
                f"{self.path}: the rows {start} to {stop - 1} are not there any more; expected {self.rows} rows. It "
                "was changed meanwhile: begin again"
            )
        return values.reshape(count, self.width)

    def expect(self, start: int, stop: int) -> None:
        """Tell that these very rows will be read next: a store may send them in the meantime."""
        if isinstance(self.path, StoredPath):
            self.path.expect(*self._place(start, stop))

    def _place(self, start: int, stop: int) -> tuple[int, int]:
        """Where rows begin and end in the file, in bytes."""
        row = self.width * self.dtype.itemsize
        return self.offset + start * row, self.offset + max(start, stop) * row


def open_vectors(path: FilePath) -> VectorFile:
    """The vectors of a `.npy` file, its header and length checked; no row is read.

    Raises InputError where it is no whole row-major array of (rows, width) floats, TruepairError where its store fails.
    """
    try:
        require_file(path)
        with path.open("rb", buffering=HEADER_BYTES) as file:
            shape, fortran, dtype = _header(file)
            offset = file.tell()
            size = file.seek(0, 2)
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}); expected vectors in a .npy file. Copy it there"
        ) from error
    except TruepairError:
        raise
    except Exception as error:
        # A damaged header raises whatever Python's parser happens to raise: SyntaxError, TokenError, OverflowError, ...
        raise InputError(f"{path} is no plain .npy array ({error}). Copy or download the file again") from error
    if dtype.kind != "f" or dtype.itemsize not in (2, 4, 8):
        raise InputError(f"{path} holds {dtype}; expected vectors of float16, float32 or float64. {_REMEDY}")
    if len(shape) != 2 or min(shape) < 1:
        raise InputError(f"{path} has shape {shape}; expected (rows, width), neither of them 0. {_remedy_of(shape)}")
    if fortran and 1 not in shape:
        raise InputError(f"{path} is stored column by column (Fortran order); expected row by row. {_REMEDY}")
    room = (size - offset) // (shape[1] * dtype.itemsize)
    if room < shape[0]:
        raise InputError(
            f"{path} is cut short: its header says {shape[0]} rows of {shape[1]}, its {size} bytes hold {room}. Copy "
            "or download it again"
        )
    return VectorFile(path, shape[0], shape[1], dtype, offset)


def _remedy_of(shape: tuple[int, ...]) -> str:
    if 0 in shape:
        return "Compute the vectors again, and look at what wrote the file"
    if len(shape) < 2:
        return "A vector for each image or caption is a row: np.save(path, vectors.reshape(-1, width))"
    return (
        "A row is one vector, such as a mean of several: np.save(path, vectors.mean(axis=1)). To train on the regions "
        "of images, give a precomp folder: train_ims.npy (images, regions, width) and train_caps.txt"
    )


def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran order, and type; the file stands at the first byte of the data then."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"its version {version} is not one that arrays of floats have")
