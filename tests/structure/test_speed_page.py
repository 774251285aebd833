"""The tables of docs/speed.md are those of results/bench.json: one that is measured anew puts all of them there."""

import json
from pathlib import Path

from benchmarks.__main__ import BENCHMARKS, section

ROOT = Path(__file__).parents[2]


def test_every_table_of_the_speed_page_is_the_one_that_was_kept():
    kept = json.loads((ROOT / "results" / "bench.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- bench: begin -->")[2].partition("<!-- bench: end -->")[0].strip()
    assert shown == "\n\n".join(section(kept[name]) for name in BENCHMARKS if name in kept)
