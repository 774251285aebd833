"""`truepair train` on a folder of pictures of which some cannot be used."""

import subprocess
import sys
from pathlib import Path

from tests.data.formats.made_pictures import bomb, write_pictures


def test_a_picture_that_is_too_large_is_told_once_whatever_splits_are_drawn(tmp_path: Path) -> None:
    """By us, with its file: Pillow warns of pictures from 89 million pixels on, and names none."""
    write_pictures(tmp_path / "data", 30)
    (tmp_path / "data" / "large.png").write_bytes(bomb(10_100, 10_000))
    rows = [f"{name}.png,a thing called {name}" for name in ("large", *(f"p{k}" for k in range(30)))]
    (tmp_path / "data" / "table.csv").write_text("\n".join(["image,caption", *rows]) + "\n")
    options = ["--dev-share", "0.2", "--test-share", "0.2", "--encoder", "windows", "--method", "infonce", "--quiet"]
    small = ["--epochs", "1", "--batch-size", "8", "--width", "8", "--minimum-count", "1"]
    command = [sys.executable, "-m", "truepair", "train", "data", "--out", "run", *options, *small]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.count("1 entry cannot be used and was left out, the first is table.csv, row 0: large.png") == 1
    assert "it has 10100 x 10000 pixels, and at most 100,000,000 are decoded; scale it" in done.stderr
    assert len(done.stderr.splitlines()) == 1
