"""Pictures for tests: small ones of noise, and files that only claim to be pictures."""

import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def noise(seed: int, height: int = 20, width: int = 24) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8)


def picture_bytes(pixels: NDArray[np.uint8], kind: str = "PNG") -> bytes:
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims this many pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b""))
    parts = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def write_pictures(folder: Path, count: int) -> None:
    """p0.png, p1.png, … of noise."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(count):
        (folder / f"p{k}.png").write_bytes(picture_bytes(noise(k)))
