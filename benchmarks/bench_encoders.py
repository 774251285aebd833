"""Encoders of pictures: images a second from JPEG bytes to features, and what folding, layout and bf16 bring.

python -m benchmarks.bench_encoders
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from truepair.data.formats.scenes.scenes import draw_scenes
from truepair.data.pictures.describing import torch_threads
from truepair.encoders import encoder_of
from truepair.encoders.efficientnet_lite0 import EfficientNetLite0
from truepair.encoders.encoder import Encoder
from truepair.encoders.weights import weights_file

COUNT, SIDE = 64, 224


@dataclass(frozen=True)
class Row:
    """One line of the table: CPU time of an image, and images a second by the clock on all cores.

    `cosine` is the mean cosine of the network's regions with those of the plain network.
    """

    work: str
    way: str
    cpu_ms: float
    images_per_second: float | None
    cosine: float | None


def measure() -> list[Row]:
    """The network by itself on one thread, then every encoder from JPEG bytes on all cores."""
    pictures = [_jpeg(pixels) for pixels in draw_scenes(COUNT, seed=0).pictures]
    rows = _of_network(pictures) if weights_file() is not None else []
    for name in ("windows", "efficientnet", "both"):
        if name == "windows" or weights_file() is not None:
            rows.append(_of_encoder(encoder_of(name), pictures))
    return rows


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'work':24}{'way':44}{'CPU ms/image':>13}{'images/s':>10}{'cosine':>9}"]
    for row in rows:
        speed = "" if row.images_per_second is None else f"{row.images_per_second:.0f}"
        cosine = "" if row.cosine is None else f"{row.cosine:.5f}"
        lines.append(f"{row.work:24}{row.way:44}{row.cpu_ms:13.1f}{speed:>10}{cosine:>9}".rstrip())
    return "\n".join(lines)


def _of_network(pictures: Sequence[bytes]) -> list[Row]:
    plain = EfficientNetLite0()
    path = weights_file()
    assert path is not None
    plain.load_state_dict(torch.load(path, weights_only=True))
    plain.eval()
    pixels = np.stack([np.asarray(Image.open(BytesIO(data))) for data in pictures])
    images = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - 127) / 128
    found = []
    with torch.inference_mode(), torch_threads(1):
        reference = plain(images)
        for way, network, batch in _ways(plain):
            result, seconds = _timed(network, images, batch)
            cosine = float(torch.cosine_similarity(result, reference, dim=1, eps=1e-3).mean())
            found.append(Row("EfficientNet-Lite0", way, 1000 * seconds, None, cosine))
    return found


def _ways(plain: EfficientNetLite0) -> list[tuple[str, Callable[[Tensor], Tensor], int]]:
    folded = EfficientNetLite0()
    folded.load_state_dict(plain.state_dict())
    last = folded.fused().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    short = EfficientNetLite0()
    short.load_state_dict(plain.state_dict())
    half = short.fused().bfloat16()
    return [
        ("batch normalisation apart, batches of 32", plain, 32),
        ("folded, channels last, batches of 32", last, 32),
        ("folded, channels last, batches of 8", last, 8),
        ("folded, bf16, batches of 8", lambda part: half(part.bfloat16()), 8),
    ]


def _timed(call: Callable[[Tensor], Tensor], images: Tensor, batch: int) -> tuple[Tensor, float]:
    """The result, and CPU seconds an image, the better of two runs after a first."""
    best, parts = float("inf"), [images[at : at + batch] for at in range(0, len(images), batch)]
    for _ in range(3):
        start = time.process_time()
        result = torch.cat([call(part).float() for part in parts])
        best = min(best, time.process_time() - start)
    return result, best / len(images)


def _of_encoder(encoder: Encoder, pictures: Sequence[bytes]) -> Row:
    def work(part: Sequence[bytes]) -> None:
        encoder.encode([encoder.prepare(data) for data in part])

    parts = [pictures[start : start + encoder.batch] for start in range(0, len(pictures), encoder.batch)] * 4
    cpu, wall = float("inf"), float("inf")
    with torch_threads(1), ThreadPoolExecutor(os.cpu_count()) as threads:
        for _ in range(3):
            started = time.process_time(), time.perf_counter()
            list(threads.map(work, parts))
            cpu = min(cpu, time.process_time() - started[0])
            wall = min(wall, time.perf_counter() - started[1])
    count = 4 * len(pictures)
    return Row(
        f"encoder {encoder.name}",
        f"JPEG bytes to features, {os.cpu_count()} cores",
        1000 * cpu / count,
        count / wall,
        None,
    )


def _jpeg(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    buffer = BytesIO()
    Image.fromarray(pixels).resize((SIDE, SIDE)).save(buffer, "JPEG", quality=76)
    return buffer.getvalue()


if __name__ == "__main__":
    print(table(measure()))
