"""The page of the grand table: whole in one file, its own script alone, which sorts, filters and opens runs."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from html import unescape

import pytest

from truepair.pages.grand.page import GrandRun, grand_page, rank_chart


def run(method="CRCL", seed=0, rsum=300.0, **changes):
    facts = {
        "name": f"{method}-{seed}",
        "method": method,
        "data": "flickr8k",
        "engine": "global",
        "noise": "40 %",
        "seed": seed,
        "rsum": rsum,
        "dev": rsum + 1,
        "auroc": 0.9,
        "minutes": 3.0,
        "epochs": 18,
        "date": "2026-11-22",
        "version": "0.1.0",
        "command": f"truepair train flickr8k --method {method.lower()} --seed {seed}",
        "recalls": (10.0, 20.0, 30.0, 11.0, 21.0, 31.0),
        "curve": (100.0, 200.0, 301.0),
        "best": 3,
        "warm_up": False,
        "linear_algebra": "PyTorch's",
    }
    return GrandRun(**{**facts, **changes})


RUNS = [run(), run(seed=1, rsum=310.0, version="0.0.9"), run("</script><b>odd", rsum=50.0, auroc=None, curve=())]
RANKS = {"CRCL": 1.0, "</script><b>odd": 2.0}


def page():
    return grand_page(RUNS, total=9, ranks=RANKS, distance=1.5, blocks=4)


def test_the_page_is_whole_and_runs_no_script_but_its_own():
    html = page()
    assert not re.search(r'(src|href)="?https?:', html)
    own = re.search(r"<script>(.*?)</script>", html, flags=re.S)[1]
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert html.count("<script") == 2 and "<b>odd" not in html


def test_the_runs_are_in_it_and_the_missing_ones_are_counted():
    html = page()
    kept = json.loads(re.search(r'id="runs">(.*?)</script>', html, flags=re.S)[1])
    assert [each["rsum"] for each in kept] == [300.0, 310.0, 50.0] and kept[2]["method"] == "</script><b>odd"
    assert "3 of 9 runs are there, 6 are missing" in html
    assert "4 conditions" in html and "Mean ranks" in html
    assert "Mean ranks" not in grand_page(RUNS, total=3, ranks={}, distance=0.0, blocks=0)


def test_the_mark_of_the_warm_up_is_explained_where_it_stands():
    assert "‡: the best epoch" not in page()
    assert "‡: the best epoch" in grand_page([*RUNS, run(warm_up=True)], total=9, ranks=RANKS, distance=1.5, blocks=4)


def test_the_chart_places_ranks_and_the_critical_difference():
    svg = rank_chart(RANKS, 0.5)
    first, second = map(float, re.findall(r'<circle class="dot" cx="([\d.]+)"', svg))
    (x1, x2), _ = [tuple(map(float, found)) for found in re.findall(r'"distance" x1="([\d.]+)" x2="([\d.]+)"', svg)]
    assert x1 == first and x2 - x1 == pytest.approx((second - first) / 2)


def browser():
    return os.environ.get("TRUEPAIR_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(browser() is None, reason="no chromium; set TRUEPAIR_CHROMIUM to one")
def test_the_script_sorts_filters_and_opens_runs_in_a_browser(tmp_path):
    acts = """
    const said = [];
    const rows = () => [...document.querySelectorAll("#table tbody tr")].map((row) => row.textContent.slice(0, 120));
    const click = (text) => [...document.querySelectorAll("button")].find((b) => b.textContent.includes(text)).click();
    said.push(rows());
    click("seed"); said.push(rows());
    document.getElementById("by-method").value = "CRCL";
    document.getElementById("by-method").dispatchEvent(new Event("change")); said.push(rows());
    document.getElementById("means").click(); said.push(rows());
    click("▸ CRCL"); said.push([document.querySelectorAll(".detail code").length + " commands",
      document.querySelectorAll(".detail svg").length + " curves"]);
    said.push([...document.querySelectorAll("#table thead button")].map((button) => button.textContent));
    document.title = JSON.stringify(said);
    """
    other = run(seed=1, rsum=310.0, version="0.0.9", warm_up=True, linear_algebra="OpenBLAS")
    runs = [RUNS[0], other, RUNS[2]]
    html = grand_page(runs, total=9, ranks=RANKS, distance=1.5, blocks=4)
    html = re.sub(r"; script-src 'sha256-[^']+'", "; script-src 'unsafe-inline'", html)
    file = tmp_path / "page.html"
    file.write_text(html.replace("</body>", f"<script>{acts}</script></body>"), encoding="utf-8")
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=2000", "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = unescape(re.search(r"<title>(.*?)</title>", done.stdout, re.S)[1])
    by_sum, by_seed, filtered, means, opened, columns = json.loads(said)
    assert columns[-2:] == ["linear algebra", "version"]
    assert "OpenBLAS, PyTorch's" in means[0] and "0.0.9, 0.1.0" in means[0] and "cannot be compared" in html
    assert [row[2:6] for row in by_sum] == ["CRCL", "CRCL", "</sc"] and "310.0" in by_sum[0]
    assert "310.0‡" in by_sum[0] and "‡" not in by_sum[1] and "305.0‡" in means[0]
    assert "310.0" in by_seed[0] and len(filtered) == 2
    assert len(means) == 1 and "305.0" in means[0] and "2 seeds" in means[0]
    assert opened == ["2 commands", "2 curves"]
