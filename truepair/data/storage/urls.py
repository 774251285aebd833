"""Which names of inputs are URLs, and which of these are taken."""

from __future__ import annotations

import re
from pathlib import Path

from truepair.errors import InputError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+(?:::[A-Za-z][A-Za-z0-9+.\-]+)*):/")


def is_url(source: str | Path) -> bool:
    """Whether the source is a URL; also one that became a `Path`, which makes "s3:/bucket" of "s3://bucket"."""
    text = str(source)
    found = _URL.match(text)
    return found is not None and (isinstance(source, Path) or text.startswith("/", found.end()))


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
