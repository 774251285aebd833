"""How the data of a run are opened again: as the run opened them; other pictures with its encoder."""

import csv

import numpy as np
import pytest
from PIL import Image

from truepair.cli.main import main
from truepair.data.config import Reading
from truepair.data.open import load
from truepair.reproduce.embedding_audits import embedded
from truepair.training.jobs import reading_of_run


def picture_folder(folder, count=24):
    folder.mkdir()
    rng = np.random.default_rng(0)
    with (folder / "captions.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "said", "split"])
        for k in range(count):
            Image.fromarray(rng.integers(256, size=(40, 40, 3), dtype=np.uint8)).save(folder / f"{k}.png")
            rows.writerow([f"{k}.png", f"a picture {k}", ("train", "train", "val", "test")[k % 4]])
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One trained on pictures seen by windows, which are not the default here."""
    root = tmp_path_factory.mktemp("reading")
    source, out = picture_folder(root / "pictures"), root / "run"
    command = ["train", str(source), "--method", "infonce", "--epochs", "1", "--width", "8", "--minimum-count", "1"]
    assert main([*command, "--encoder", "windows", "--caption", "said", "--out", str(out), "--quiet"]) == 0
    return source, out


def test_its_own_data_are_opened_as_it_opened_them(run, monkeypatch):
    source, out = run
    monkeypatch.setenv("TRUEPAIR_ENCODER", "efficientnet")  # whatever is installed, the default is another
    reading = reading_of_run(out, str(source))
    assert (reading.encoder, reading.caption) == ("windows", "said")
    found = embedded(out, str(source))
    assert found.images.shape == (12, 8) and found.image.tolist() == [*range(12)]


def test_other_pictures_are_seen_by_its_encoder_and_other_data_read_as_they_are(run, tmp_path, tiny):
    _, out = run
    assert reading_of_run(out, str(picture_folder(tmp_path / "others"))) == Reading(encoder="windows")
    assert reading_of_run(out, str(tiny)) == Reading()
    assert len(load(tiny, "test", reading=reading_of_run(out, str(tiny))))
