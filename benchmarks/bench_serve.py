"""The service under load: words searched for over HTTP by 1, 8 and 32 clients at once.

python -m benchmarks.bench_serve

`TRUEPAIR_BENCH_SECONDS` says how long each number of clients asks [10]. The data are flickr8k's training pairs where
they are found in `TRUEPAIR_DATA` or ../shared/data, else drawings. The model has weights drawn anew: no time depends on
what it learned. Server and clients share the machine.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import quote

import numpy as np

CLIENTS = (1, 8, 32)


@dataclass(frozen=True)
class Row:
    """One line of the table: milliseconds of a request, and the memory of the server before and after."""

    data: str
    images: int
    captions: int
    clients: int
    seconds: float
    requests: int
    errors: int
    p50_ms: float
    p95_ms: float
    before_mb: float
    after_mb: float


def measure() -> list[Row]:
    """Start a server in a process of its own, ask it by as many clients as `CLIENTS` says, one after the other."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(sending,), daemon=True)
    process.start()
    sending.close()
    port, data, images, captions = receiving.recv()
    seconds = float(os.environ.get("TRUEPAIR_BENCH_SECONDS", "10"))
    try:
        queries = _queries(captions)
        _ask(port, queries, 1, 2.0)  # the threads that the first requests start are no part of what is measured
        rows = []
        for clients in CLIENTS:
            before = _memory(port)
            times, errors, spent = _ask(port, queries, clients, seconds)
            p50, p95 = np.percentile(times, [50, 95]) * 1000
            memory = before / 1e6, _memory(port) / 1e6
            row = Row(data, images, len(captions), clients, spent, len(times), errors, float(p50), float(p95), *memory)
            rows.append(row)
        return rows
    finally:
        process.terminate()
        process.join()


def table(rows: Sequence[Row]) -> str:
    first = rows[0]
    lines = [f"{first.data}: {first.images:,} images, {first.captions:,} captions; 24 images an answer"]
    lines.append(
        f"{'clients':>7}{'seconds':>9}{'requests':>10}{'a second':>10}{'errors':>8}{'p50 ms':>9}{'p95 ms':>9}"
        "  server's memory"
    )
    for row in rows:
        lines.append(
            f"{row.clients:7}{row.seconds:9.0f}{row.requests:10,}{row.requests / row.seconds:10.0f}{row.errors:8}"
            f"{row.p50_ms:9.1f}{row.p95_ms:9.1f}  {row.before_mb:.0f} → {row.after_mb:.0f} MB"
        )
    return "\n".join(lines)


def _queries(captions: Sequence[str]) -> list[str]:
    """Two to six words in a row of captions: few are asked twice, so that each is encoded."""
    rng = np.random.default_rng(0)
    found = []
    for caption in rng.permutation(np.array(captions, dtype=object))[:5000]:
        words = caption.split()
        start = int(rng.integers(max(1, len(words) - 2)))
        found.append(" ".join(words[start : start + int(rng.integers(2, 7))]))
    return found


def _ask(port: int, queries: Sequence[str], clients: int, seconds: float) -> tuple[list[float], int, float]:
    """(seconds of every request, how many failed, seconds in all); each client waits for its answer and asks again."""
    times: list[float] = []
    errors = [0] * clients
    began = time.perf_counter()

    def client(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        own, place = [], number
        while time.perf_counter() - began < seconds:
            asked = time.perf_counter()
            try:
                connection.request("GET", f"/search?limit=24&text={quote(queries[place % len(queries)])}")
                response = connection.getresponse()
                body = response.read()
                errors[number] += response.status != 200 or len(json.loads(body)["results"][0]["hits"]) != 24
            except (OSError, http.client.HTTPException, ValueError):
                errors[number] += 1
                connection.close()
            own.append(time.perf_counter() - asked)
            place += clients
        times.extend(own)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, sum(errors), time.perf_counter() - began


def _memory(port: int) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("truepair_resident_bytes "))


def _serve(told: Connection) -> None:
    import uvicorn

    from truepair.cli.serve import listening
    from truepair.data.config import Augmentation
    from truepair.data.open import load
    from truepair.engines.config import GlobalConfig
    from truepair.engines.model_embedder import ModelEmbedder
    from truepair.engines.retrieval_model import new_model
    from truepair.seeding import torch_seeded
    from truepair.serve.app import create_app
    from truepair.serve.opening import columns_of
    from truepair.serve.pictures import Pictures
    from truepair.serve.search import Searcher
    from truepair.serve.sources import Source
    from truepair.serve.table import PairTable

    folder = Path(os.environ.get("TRUEPAIR_DATA", "../shared/data")) / "flickr8k"
    pairs = load(str(folder) if folder.is_dir() else "scenes:6000", "train")
    config = GlobalConfig()
    preparation = config.preparation(pairs, augmentation=Augmentation(), vocabulary=None, minimum_count=4)
    with torch_seeded(0, "bench"):
        model = new_model(config, preparation)
    places = np.arange(len(pairs), dtype=np.int64)
    source = Source("bench", "run", folder, PairTable(columns_of(pairs)), pairs, places, Pictures(pairs.images, None))
    source.searcher = Searcher(source, lambda: ModelEmbedder(model))
    _ = source.searcher.index
    listener = listening("127.0.0.1", 0)
    told.send((listener.getsockname()[1], pairs.name, len(pairs.images), list(pairs.texts.captions)))
    uvicorn.Server(uvicorn.Config(create_app([source]), log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    print(table(measure()))
