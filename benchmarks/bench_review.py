"""The review view at 1e6 pairs in a headless Chromium: until the first picture is seen, from a verdict to the next.

python -m benchmarks.bench_review

Pictures are 1,000 drawn ones of 640 x 480, each in many pairs. Needs playwright, and Chromium at TRUEPAIR_CHROMIUM or
on the path. `TRUEPAIR_BENCH_PAIRS` says how many pairs [1000000]. Service and browser share the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PICTURES = 1000
VERDICTS = 60
PAUSE_MS = 250
"""Between two verdicts: a fast reviewer."""

_SHOWN = "(() => { const i = document.querySelector('.frame img'); return !!i && i.complete && i.naturalWidth > 0; })()"
_JUDGE = """async ([count, pause]) => {
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const times = [];
  for (let place = 0; place < count; place += 1) {
    const before = document.querySelector('.caption-shown').textContent;
    const began = performance.now();
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: place % 5 ? 'a' : 'x', bubbles: true }));
    for (;;) {
      await painted();
      const image = document.querySelector('.frame img');
      const other = document.querySelector('.caption-shown').textContent !== before;
      if (other && image && image.complete && image.naturalWidth) break;
    }
    times.push(performance.now() - began);
    await new Promise((done) => setTimeout(done, pause));
  }
  return times;
}"""


@dataclass(frozen=True)
class Row:
    """One line of the table: milliseconds, but for the opening."""

    pairs: int
    order: str
    opening_s: float
    first_ms: float
    next_p50_ms: float
    next_p95_ms: float
    next_max_ms: float


def measure() -> list[Row]:
    """Serve an audit of that many pairs, and review it in both orders."""
    from playwright.sync_api import sync_playwright

    pairs = int(os.environ.get("TRUEPAIR_BENCH_PAIRS", "1000000"))
    path = os.environ.get("TRUEPAIR_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        audit = write_audit(Path(folder), pairs)
        began = time.perf_counter()
        address = serve(audit)
        opening = time.perf_counter() - began
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        browser.new_page().goto(f"{address}/health")  # the start of the browser is no part of what is measured
        rows = []
        for order in ("gain", "worst"):
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.add_init_script(f"sessionStorage.setItem('truepair.person', 'Ada {order}')")
            began = time.perf_counter()
            page.goto(f"{address}/#/review?order={order}")
            while not page.evaluate(_SHOWN):
                time.sleep(0.002)
            first = 1000 * (time.perf_counter() - began)
            page.wait_for_timeout(1000)
            times = sorted(page.evaluate(_JUDGE, [VERDICTS, PAUSE_MS]))
            p95 = times[int(0.95 * len(times))]
            rows.append(Row(pairs, order, opening, first, statistics.median(times), p95, times[-1]))
        browser.close()
    return rows


def write_audit(folder: Path, count: int) -> Path:
    """Pictures, a table of pairs, and what an audit of them leaves that a review reads."""
    import pyarrow
    from PIL import Image
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    (folder / "data" / "images").mkdir(parents=True)
    for number in range(PICTURES):
        small = rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(small).resize((640, 480), Image.Resampling.BICUBIC).save(folder / f"data/images/{number}.jpg")
    images = pyarrow.array([f"images/{number}.jpg" for number in range(PICTURES)])
    picture = images.take(pyarrow.array(rng.integers(0, PICTURES, count)))
    captions = pyarrow.array([f"what the picture shows, number {row}" for row in range(count)])
    parquet.write_table(pyarrow.table({"image": picture, "caption": captions}), folder / "data" / "table.parquet")

    from truepair.data.open import open as open_data

    ids = open_data(folder / "data", encoder="windows").ids(0, count)
    p = rng.beta(4, 0.7, count).astype(np.float32)
    table = {"pair_id": ids, "row": np.arange(count), "image": picture, "caption": captions, "p_match": p}
    (folder / "audit").mkdir()
    parquet.write_table(pyarrow.table({**table, "flagged": p < 0.5}), folder / "audit" / "pairs.parquet")
    told = {"options": {"source": str(folder / "data"), "encoder": "windows"}}
    (folder / "audit" / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    return folder / "audit"


def serve(audit: Path) -> str:
    """The address of a service that has read what a review needs."""
    import uvicorn

    from truepair.cli.serve import listening
    from truepair.serve.app import create_app
    from truepair.serve.opening import open_sources

    app: Any = create_app(open_sources([audit]))
    app.state.service.review(None).prepare()
    listener = listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'pairs':>10}  {'order':<6} {'opening':>9} {'first':>9}   next: {'p50':>7} {'p95':>10} {'most':>10}"]
    for row in rows:
        lines.append(
            f"{row.pairs:>10,}  {row.order:<6} {row.opening_s:>7.1f} s {row.first_ms:>6.0f} ms   "
            f"{row.next_p50_ms:>8.1f} ms {row.next_p95_ms:>7.1f} ms {row.next_max_ms:>7.1f} ms"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
