"""A store for tests, `slow://`: a local folder behind a driver that answers after a while, counts, and may fail."""

import asyncio
from pathlib import Path

import fsspec
from fsspec.asyn import AsyncFileSystem


class SlowStore(AsyncFileSystem):
    """Names are paths below `root`. `asked` are the ranges that were fetched; `fails` raises what it returns."""

    protocol = "slow"
    cachable = True
    root = Path()
    seconds = 0.0
    asked: list = []  # noqa: RUF012 (shared on purpose)
    fails = staticmethod(lambda name, start: None)
    whole = False

    async def _cat_file(self, path, start=None, end=None, **kwargs):
        await asyncio.sleep(self.seconds)
        name = self._strip_protocol(path)
        type(self).asked.append((name, start, end))
        error = type(self).fails(name, start)
        if error is not None:
            raise error
        with (self.root / name).open("rb") as file:
            file.seek(0 if self.whole else start)
            return file.read() if self.whole else file.read(end - start)

    async def _info(self, path, **kwargs):
        await asyncio.sleep(self.seconds)
        return self._told(self._strip_protocol(path))

    async def _ls(self, path, detail=True, **kwargs):
        await asyncio.sleep(self.seconds)
        folder = self.root / self._strip_protocol(path)
        return [self._told(child.relative_to(self.root).as_posix()) for child in folder.iterdir()]

    def _told(self, name):
        path = self.root / name
        if path.is_dir():
            return {"name": name, "size": 0, "type": "directory"}
        status = path.stat()
        return {"name": name, "size": status.st_size, "type": "file", "ETag": f'"{status.st_mtime_ns}"'}


def slow_store(root, seconds=0.0):
    """The class, put to its beginning."""
    fsspec.register_implementation("slow", SlowStore, clobber=True)
    SlowStore.root, SlowStore.seconds, SlowStore.asked, SlowStore.whole = Path(root), seconds, [], False
    SlowStore.fails = staticmethod(lambda name, start: None)
    return SlowStore
