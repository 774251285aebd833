"""A store of objects (S3, Google Cloud, Azure, the web, …) that are read by ranges of bytes.

The talking is done by the drivers of fsspec: s3fs, gcsfs, adlfs and others. They find keys and servers where they
always do (environment, their own configuration files, the role of the machine), on every machine that reads; nothing
secret passes through here.
"""

from __future__ import annotations

import errno
import re
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from truepair.errors import InputError, TruepairError

_DRIVERS = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "http": "aiohttp",
    "https": "aiohttp", "hf": "huggingface_hub",
}  # fmt: skip
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+(?:::[A-Za-z][A-Za-z0-9+.\-]+)*):/")
_NOT_LISTED = (403, 404, 405)
"""What web servers answer that list no folders."""
MOST_BYTES = 128 * 2**20
_AT_ONCE = 16


def is_url(source: str | Path) -> bool:
    """Whether the source is a URL; also one that became a `Path`, which makes "s3:/bucket" of "s3://bucket"."""
    text = str(source)
    found = _URL.match(text)
    return found is not None and (isinstance(source, Path) or text.startswith("/", found.end()))


def two_arrays(source: str | Path) -> list[str]:
    """The names of both arrays of "images.npy,texts.npy"; none where the source is something else."""
    parts = [part.strip() for part in str(source).split(",")]
    return parts if len(parts) == 2 and all(part.endswith(".npy") for part in parts) else []


def scheme_of(url: str) -> str:
    """What stands before "://" of a URL that can be read: it is plain, and nothing secret is in it.

    Raises:
        InputError: it is no such URL; the message does not repeat what may be secret.
    """
    found = _URL.match(url)
    if found is None or not url.startswith("/", found.end()):
        raise InputError(f"{url} is no URL any more; give it as text, not as a Path, which takes a slash away")
    scheme, rest = found[1], url[found.end() + 1 :]
    if "::" in scheme:
        raise InputError(f"a chain of URLs ({scheme}://) is not read; give the plain one, such as s3://bucket/folder")
    account, _, _ = rest.partition("/")[0].rpartition("@")
    web = scheme.lower() in ("http", "https")
    if ":" in account or (web and (account or "?" in rest)):
        raise InputError(
            f"a URL ({scheme}://) with a password or a query in it is not taken: the name of the input stands in the "
            "results for all to read. Give keys to the driver by the environment or by its own configuration"
        )
    return scheme


class Store:
    """A connection to a store by its driver, `fs`; a copy in another process connects anew.

    Raises:
        InputError: fsspec does not know such URLs or lacks their driver, or this one may hold a secret.
        TruepairError: the driver cannot begin.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.fs = _driver(url)
        self.fs.invalidate_cache()  # a process that has lived for long remembers listings
        self._ahead = ReadAhead(self._fetch)

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.url,)

    def within(self, url: str) -> str:
        """The name of an object as the driver writes it: without "s3://", mostly."""
        return str(self.fs._strip_protocol(url))

    def full(self, name: str) -> str:
        """The URL of an object."""
        return str(self.fs.unstrip_protocol(name))

    def read(self, name: str, start: int, stop: int) -> bytes:
        """The bytes [start, stop), fewer where the object ends before.

        Raises:
            OSError: there is no such object, or it may not be read.
            InputError: the server gives no parts of objects.
            TruepairError: the store fails, whatever its driver tried.
        """
        return self._ahead.read(name, start, stop)

    def expect(self, name: str, start: int, stop: int) -> None:
        """Tell what will be read next; a driver that can do several things at a time begins to fetch it."""
        if self.fs.async_impl:
            self._ahead.expect(name, start, stop)

    def info(self, name: str) -> dict[str, Any]:
        """What the store says of an object; errors as `read`."""
        try:
            found: dict[str, Any] = self.fs.info(name)
        except Exception as error:
            raise _as_ours(self.full(name), error) from error
        return found

    def listed(self, name: str) -> list[dict[str, Any]]:
        """What lies in a folder; nothing where there is none, or where it cannot be listed. Errors as `read`."""
        try:
            found: list[dict[str, Any]] = self.fs.ls(name, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except Exception as error:
            if getattr(error, "status", None) in _NOT_LISTED:
                return []
            raise _as_ours(self.full(name), error) from error
        return [entry for entry in found if entry["name"].rstrip("/").startswith(name.rstrip("/") + "/")]

    def _fetch(self, name: str, start: int, stop: int) -> bytes:
        try:
            data: bytes = self.fs.cat_file(name, start=start, end=stop)
        except Exception as error:
            raise _as_ours(self.full(name), error) from error
        if len(data) > stop - start:
            raise InputError(
                f"{self.full(name)}: {stop - start} bytes were asked for, and {len(data)} came; its server does not "
                "give parts of files. Put the files where one does, or copy them to this machine"
            )
        return data


class ReadAhead:
    """Ranges of bytes that are fetched before somebody reads them, so that nobody waits for a store: under way or
    here, up to a number of bytes; the oldest make room for new ones.

    Args:
        fetch: gives the bytes of (object, start, stop); called from up to 16 threads at a time.
    """

    def __init__(self, fetch: Callable[[str, int, int], bytes], most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._fetch = fetch
        self._coming: OrderedDict[tuple[str, int, int], Future[bytes]] = OrderedDict()
        self._bytes = 0
        self._threads: ThreadPoolExecutor | None = None

    def expect(self, name: str, start: int, stop: int) -> None:
        """Begin to fetch what will be read next, unless it is larger than all that may be held."""
        asked = (name, start, stop)
        if asked in self._coming or not 0 < stop - start <= self.most_bytes:
            return
        while self._bytes + stop - start > self.most_bytes:
            self._take(next(iter(self._coming))).cancel()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="truepair-store")
        self._coming[asked] = self._threads.submit(self._fetch, *asked)
        self._bytes += stop - start

    def read(self, name: str, start: int, stop: int) -> bytes:
        """The bytes, as `fetch` gives them; what was expected is handed over and no longer held."""
        asked = (name, start, stop)
        return self._take(asked).result() if asked in self._coming else self._fetch(*asked)

    def _take(self, asked: tuple[str, int, int]) -> Future[bytes]:
        self._bytes -= asked[2] - asked[1]
        return self._coming.pop(asked)


def _driver(url: str) -> Any:
    from fsspec.core import url_to_fs
    from fsspec.registry import get_filesystem_class

    scheme = scheme_of(url)
    try:
        get_filesystem_class(scheme)
    except ImportError as error:
        package = _DRIVERS.get(scheme)
        remedy = f"pip install {package}" if package else "install what it asks for"
        raise InputError(
            f"{scheme}:// cannot be read here ({_first_line(error)}); {remedy}, on all machines that are to read"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{scheme}:// is no kind of store that fsspec knows; expected s3://, gs://, az://, https:// or the like. "
            "Correct the URL"
        ) from error
    try:
        return url_to_fs(url)[0]
    except Exception as error:
        raise _failed(url, error) from error


def _as_ours(url: str, error: Exception) -> Exception:
    """The error to raise instead: OSError for an object that is not to be had, else that of a store that fails."""
    if isinstance(error, FileNotFoundError) or getattr(error, "status", None) == 404:
        return FileNotFoundError(errno.ENOENT, "no such object", url)
    if isinstance(error, PermissionError):
        return PermissionError(errno.EACCES, f"access denied: {_first_line(error)}", url)
    return _failed(url, error)


def _failed(url: str, error: Exception) -> TruepairError:
    return TruepairError(
        f"{url} could not be read, its store fails ({type(error).__name__}: {_first_line(error)}). Look at the "
        "network and the driver's keys, and run the same command again: what is scored is kept, and it goes on"
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]
