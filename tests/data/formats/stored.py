"""Folders in an object store, for tests."""

import time

import numpy as np

from tests.audit.array_collection import random_pairs

SCORING = {"bank_size": 64, "chunk_rows": 300}


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def aligned(folder, rows=1500, width=16):
    images, texts = random_pairs(rows, width, noise=0.2)
    images[33], texts[1234 % rows, 2] = 0, np.nan
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "images.npy", images.astype(np.float16))
    np.save(folder / "texts.npy", texts)
    (folder / "captions.txt").write_text("".join(f"caption {row}\n" for row in range(rows)))
    return folder
