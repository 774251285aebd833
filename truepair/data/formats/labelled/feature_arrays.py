"""Numbers out of .mat, .npz and HDF5 files, array by array; nothing in them is ever executed.

Files of MATLAB 5 and .npz are read an array at a time and kept for the process, since all splits share them; of HDF5
files, MATLAB 7.3's among them, only the rows asked for are read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.pairs import Array
from truepair.device import check_memory
from truepair.errors import InputError
from truepair.files import open_file

FEATURE_SUFFIXES = (".mat", ".npz", ".h5", ".hdf5", ".h5py")
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MATLAB_7_3 = b"MATLAB 7.3"


class ArrayFile(ABC):
    """The arrays of one file by name. Attributes: `path`, and `names` of all arrays, the unusable ones included."""

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        self.path = path
        self.names = names

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array of `names`; raises InputError if it is not one of plain numbers."""

    @abstractmethod
    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Rows [start, stop) of an array of `names`, read-only; raises InputError if it is not one of plain numbers."""

    def words(self, name: str) -> list[str] | None:
        """The texts of a row of texts of that name; None where there is none."""
        return None

    def refuse(self, name: str, found: str) -> InputError:
        return InputError(
            f"{self.path}: {name} is {found}; expected a plain array of numbers, one row a pair. Save it again as a "
            "matrix"
        )


def open_arrays(path: Path) -> ArrayFile:
    """The arrays of a feature file, by its suffix; a .mat file is of version 5 or 7.3."""
    try:
        with open_file(path) as file:
            head = file.read(1024)
        status = path.stat()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}); expected a feature file ({', '.join(FEATURE_SUFFIXES)}"
            "). Check the path"
        ) from error
    matlab_5 = path.suffix == ".mat" and not (head.startswith(_MATLAB_7_3) or _HDF5_SIGNATURE in head)
    if matlab_5 or path.suffix == ".npz":
        return _WholeFile(path, (status.st_mtime_ns, status.st_size), _names(path))
    return _Hdf5File(path, transposed=head.startswith(_MATLAB_7_3))


class _WholeFile(ArrayFile):
    """An .npz file or a .mat file of version 5: arrays come whole and are shared by all who ask in this process."""

    def __init__(self, path: Path, version: tuple[int, int], names: tuple[str, ...]) -> None:
        super().__init__(path, names)
        self.version = version

    def shape(self, name: str) -> tuple[int, ...]:
        return self._array(name).shape

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        return self._array(name)[start:stop]

    def words(self, name: str) -> list[str] | None:
        array = _whole_array(self.path, self.version, name) if name in self.names else None
        return None if array is None or array.dtype.kind != "U" or array.ndim != 1 else list(array.tolist())

    def _array(self, name: str) -> Array:
        array = _whole_array(self.path, self.version, name)
        if array.dtype.kind not in "fiub" or array.ndim == 0:
            kind = {"O": "a cell array or object", "V": "a structure", "U": "text"}.get(array.dtype.kind)
            raise self.refuse(name, kind or f"{array.dtype} of shape {array.shape}")
        return array


class _Hdf5File(ArrayFile):
    """An HDF5 file. MATLAB writes its columns as rows there: `transposed`."""

    def __init__(self, path: Path, *, transposed: bool) -> None:
        self.transposed = transposed
        with _reading(path, "HDF5"), _hdf5().File(path, "r") as file:
            names = tuple(name for name in file if not name.startswith("#"))
        super().__init__(path, names)

    def shape(self, name: str) -> tuple[int, ...]:
        with self._dataset(name) as dataset:
            shape: tuple[int, ...] = dataset.shape
        return shape[::-1] if self.transposed else shape

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        with self._dataset(name) as dataset:
            length = dataset.shape[-1 if self.transposed else 0]
            count = len(range(*slice(start, stop).indices(length)))
            _check_size(self.path, name, dataset.size // max(1, length) * count)
            rows = np.asarray(dataset[..., start:stop].T if self.transposed else dataset[start:stop])
        rows.flags.writeable = False
        return rows

    @contextmanager
    def _dataset(self, name: str) -> Iterator[Any]:
        with _reading(self.path, "HDF5"), _hdf5().File(self.path, "r") as file:
            dataset = file[name]
            kind = dataset.attrs.get("MATLAB_class", b"")
            # A cell array holds references, a structure or sparse matrix is a group, and text is stored as numbers.
            if not hasattr(dataset, "dtype") or kind in (b"char", b"cell") or "MATLAB_empty" in dataset.attrs:
                what = f"a MATLAB {kind.decode()}" if kind in (b"char", b"cell") else "a group or empty"
                raise self.refuse(name, what)
            if dataset.dtype.kind not in "fiub" or not dataset.shape:
                raise self.refuse(name, f"{dataset.dtype} of shape {dataset.shape}")
            yield dataset


# Wikipedia's file has four arrays, the largest layout sixteen: a source or two stay, a third pushes the first out.
@lru_cache(maxsize=24)
def _whole_array(path: Path, version: tuple[int, int], name: str) -> Array:
    """The array as stored; `version` (time and size of the file) tells a new file of the same name from the old."""
    if path.suffix == ".npz":
        with _reading(path, ".npz"), np.load(path, allow_pickle=False) as archive:
            _check_size(path, name, archive.zip.getinfo(f"{name}.npy").file_size // 4)
            array = np.asarray(archive[name])
    else:
        from scipy.io import loadmat, whosmat
        from scipy.sparse import issparse

        with _reading(path, "MATLAB"):
            _check_size(path, name, next(math.prod(shape) for found, shape, _ in whosmat(path) if found == name))
            array = loadmat(path, variable_names=[name])[name]
        array = np.asarray(array.toarray() if issparse(array) else array)
    # Half of what MATLAB stores, and all that features can use; whole numbers keep their type, labels may need it.
    if array.dtype.kind == "f" and array.dtype.itemsize > 4 and array.ndim == 2 and min(array.shape) > 1:
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    array.flags.writeable = False
    return array


def _check_size(path: Path, name: str, numbers: int) -> None:
    """Refuse an array that the memory cannot hold: compressed, any number of zeros fits into a small file.

    Numbers may be of 8 bytes, and are copied once while they are checked.
    """
    check_memory(16 * numbers, f"{path}: {name} with {numbers:,} numbers")


def _names(path: Path) -> tuple[str, ...]:
    if path.suffix == ".mat":
        from scipy.io import whosmat

        with _reading(path, "MATLAB"):
            return tuple(name for name, _, _ in whosmat(path))
    with _reading(path, ".npz"):
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array without a name")
        with archive:
            return tuple(archive.files)


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a damaged file makes a reader raise into one error: they raise nearly anything."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path} cannot be read as a {kind} file ({str(error) or type(error).__name__}); expected arrays of plain "
            "numbers. Copy or download the file again, or save it again without objects"
        ) from error


def _hdf5() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise InputError(
            "this file is HDF5 (as MATLAB 7.3's are) and h5py, which reads it, is not installed; install it with: "
            "pip install 'truepair[hdf5]'"
        ) from error
    return h5py
