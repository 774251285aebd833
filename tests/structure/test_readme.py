"""The Python of the README runs as it stands, block after block."""

import csv
import re
from pathlib import Path

import numpy as np
from PIL import Image

README = Path(__file__).parents[2] / "README.md"


def blocks(*, having):
    return [block for block in re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S) if having in block]


def write_pictures(folder, pairs=60):
    draw = np.random.default_rng(0)
    folder.mkdir()
    rows = [("image", "caption")]
    for number in range(pairs):
        colour = draw.integers(0, 256, 3, dtype=np.uint8)
        Image.fromarray(np.tile(colour, (48, 48, 1))).save(folder / f"{number}.png")
        rows.append(
            (f"{number}.png", f"number {number} of colour {colour[0] // 64} {colour[1] // 64} {colour[2] // 64}")
        )
    with (folder / "captions.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def test_the_python_of_the_readme_runs_on_a_folder_of_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUEPAIR_ENCODER", "windows")
    write_pictures(tmp_path / "my_data")
    (training,) = blocks(having="truepair.fit(")
    (searching,) = blocks(having="index.search(")
    (auditing,) = blocks(having="audit_embeddings(")
    kept = {}
    exec(training.replace("runs/noisy", "runs/first"), kept)
    assert "rsum" in capsys.readouterr().out
    without_service = searching[searching.index("run, pairs =") :]
    exec(without_service, kept)
    assert len(capsys.readouterr().out.splitlines()) == 10 and (tmp_path / "index").is_dir()
    vectors = np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)
    exec(auditing, {"images": vectors, "texts": vectors})
    assert capsys.readouterr().out
