"""The table of encoders, and the windows behind the interface: numbers as before, runs of another encoder refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import truepair
from truepair import encoders
from truepair.cli.main import main
from truepair.data.config import DataConfig
from truepair.data.open import read_config, with_encoder
from truepair.encoders import encoder_of
from truepair.encoders.descriptor import grid_descriptor
from truepair.encoders.encoder import Encoder, Family
from truepair.encoders.windows import Windows
from truepair.errors import InputError


class Mean(Encoder):
    """The mean colour: one vector of width 3."""

    name, regions, width = "mean", 1, 3

    def identity(self):
        return "mean-1"

    def prepare(self, picture):
        return np.asarray(Image.open(picture if not isinstance(picture, bytes) else encoders_bytes(picture)))

    def encode(self, prepared):
        return np.stack([pixels.reshape(-1, 3).mean(0, keepdims=True) / 255 for pixels in prepared]).astype("f4")


def encoders_bytes(data):
    from io import BytesIO

    return BytesIO(data)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(encoders.ENCODERS, "mean", Mean)
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path):
    """Twelve pictures with two captions each, by splits."""
    rng, lines = np.random.default_rng(0), []
    (tmp_path / "photos").mkdir()
    for number in range(24):
        pixels = rng.integers(0, 256, (20 + number, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
        split = ("train", "dev", "test")[max(0, number - 15) // 3 if number < 22 else 2]
        captions = [f"picture number {number}", f"a {number} of {number % 5}"]
        lines.append({"image": f"{number}.png", "caption": captions, "split": split})
    (tmp_path / "photos" / "table.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path / "photos"


def test_windows_are_the_descriptor(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    windows = encoder_of("windows")
    kinds = (tmp_path / "p.png", (tmp_path / "p.png").read_bytes(), pixels)
    encoded = windows.encode([windows.prepare(picture) for picture in kinds])
    assert encoded.shape == (3, windows.regions, windows.width) and encoded.dtype == np.float32
    assert all(np.array_equal(found, grid_descriptor(pixels)) for found in encoded)
    with pytest.raises(InputError, match=r"\(H, W, 3\) uint8"):
        windows.prepare(pixels[..., 0])


def test_an_unknown_name_and_a_folder_without_a_model(tmp_path):
    with pytest.raises(InputError, match="'clop' is none, nor a folder; expected one of both, efficientnet, windows"):
        encoder_of("clop")
    with pytest.raises(InputError, match="a folder without a model"):
        encoder_of(str(tmp_path))


def test_a_family_is_asked_for_its_folders(tmp_path, monkeypatch):
    class Kind(Family):
        understood = "a colour (colour.txt)"

        def recognises(self, folder):
            return (folder / "colour.txt").exists()

        def open(self, folder):
            return Mean()

    monkeypatch.setattr(encoders, "FAMILIES", (Kind,))
    with pytest.raises(InputError, match=r"the folder of a colour \(colour.txt\)"):
        encoder_of(str(tmp_path))
    (tmp_path / "colour.txt").touch()
    assert isinstance(encoder_of(str(tmp_path)), Mean)


def test_every_encoder_has_its_own_cache(folder, cache):
    first = truepair.load(folder, "train", encoder="windows")
    other = truepair.load(folder, "train", encoder="mean")
    assert first.images.features.shape[1:] == (36, 56) and other.images.features.shape[1:] == (1, 3)
    assert (first.images.encoder, other.images.encoder) == (Windows().identity(), "mean-1")
    again = truepair.load(folder, "train", encoder="windows")
    assert np.array_equal(again.images.features, first.images.features)
    assert len(list(cache.glob("*.json"))) == 2
    assert np.allclose(other.images.features[3, 0], other.images.picture(3).reshape(-1, 3).mean(0) / 255, atol=1e-3)


def test_only_pictures_are_described_by_an_encoder(tiny):
    with pytest.raises(InputError, match="there is no option encoder"):
        truepair.load(tiny, encoder="windows")


def test_a_run_names_its_encoder_and_refuses_features_of_another(folder, tmp_path, capsys):
    run = tmp_path / "run"
    options = ["--method", "infonce", "--epochs", "1", "--width", "8", "--quiet"]
    assert main(["train", str(folder), "--encoder", "mean", "--out", str(run), *options]) == 0
    assert json.loads((run / "config.json").read_text())["data"]["encoder"] == "mean"
    capsys.readouterr()
    other = tmp_path / "other"
    other.symlink_to(folder)
    for data in (folder, other, folder / "table.jsonl"):  # the run's encoder unless another one is asked for
        assert main(["evaluate", str(run), str(data)]) == 0
        assert main(["evaluate", str(run), str(data), "--encoder", "windows"]) == 2
        assert "encoder windows-3, this model was trained on those of mean-1" in capsys.readouterr().err


def test_runs_of_earlier_versions_saw_windows(folder, monkeypatch):
    monkeypatch.setattr("truepair.data.open.default_encoder", lambda: "mean")
    config = DataConfig(str(folder))
    assert with_encoder(config).encoder == "mean"
    assert with_encoder(config).saved()["encoder"] == "mean"
    saved = config.saved()
    assert "encoder" not in saved and read_config(saved).encoder == "windows"
    assert read_config(with_encoder(config).saved()).encoder == "mean"
    assert with_encoder(DataConfig("scenes:20")).encoder is None
    assert read_config(replace(config, source=str(folder / "gone")).saved()).encoder is None


def test_a_model_folder_is_kept_as_an_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "clip").mkdir()
    monkeypatch.chdir(tmp_path)
    assert DataConfig("scenes", encoder="clip").resolved().encoder == str(tmp_path / "clip")
    assert DataConfig("scenes", encoder="windows").resolved().encoder == "windows"
