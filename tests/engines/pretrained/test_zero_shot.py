"""`truepair evaluate FOLDER`: a pretrained model scored as it is."""

import json

import numpy as np
import pytest
import torch

from tests.reproduce.published.coco_layout import write_coco
from truepair.cli.main import main


@pytest.fixture
def coco(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    return write_coco(tmp_path / "coco")


def by_transformers(folder, coco):
    """Recall at 1, 5, 10 both ways of the first five captions of the test images, without anything of truepair."""
    from PIL import Image
    from transformers import AutoModel, AutoTokenizer
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    entries = [e for e in json.loads((coco / "dataset_coco.json").read_text())["images"] if e["split"] == "test"]
    pictures = [Image.open(coco / entry["filepath"] / entry["filename"]) for entry in entries]
    captions = [sentence["raw"] for entry in entries for sentence in entry["sentences"][:5]]
    model = AutoModel.from_pretrained(folder).eval()
    pixels = CLIPImageProcessorPil.from_pretrained(folder)(images=pictures, return_tensors="pt")
    tokens = AutoTokenizer.from_pretrained(folder)(captions, padding=True, return_tensors="pt")
    tokens.pop("token_type_ids", None)
    with torch.inference_mode():
        sides = model.get_image_features(**pixels), model.get_text_features(**tokens)
    images, texts = (getattr(side, "pooler_output", side).double().numpy() for side in sides)
    cosines = (images / np.linalg.norm(images, axis=1, keepdims=True)) @ (
        texts / np.linalg.norm(texts, axis=1, keepdims=True)
    ).T
    figures = {}
    for k in (1, 5, 10):
        hits = [any(t // 5 == i for t in np.argsort(-row)[:k]) for i, row in enumerate(cosines)]
        figures[f"i2t_r{k}"] = 100 * float(np.mean(hits))
        hits = [t // 5 in np.argsort(-row)[:k] for t, row in enumerate(cosines.T)]
        figures[f"t2i_r{k}"] = 100 * float(np.mean(hits))
    return figures


def test_figures_are_those_of_the_model_itself(models, coco, tmp_path, capsys):
    words = ["evaluate", str(models["clip"]), str(coco), "--caption", "first:5", "--json", str(tmp_path / "f.json")]
    assert main(words) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    expected = by_transformers(models["clip"], coco)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert found["rsum"] == pytest.approx(sum(expected.values())) and found["rsum"] > 0
    assert not [path for path in tmp_path.iterdir() if path.name not in ("f.json", "coco", "cache")]  # nothing trained
    kept = {path.name.rpartition("-clip-")[0].partition("-")[0] for path in (tmp_path / "cache").iterdir()}
    assert kept == {"captions", "features"}  # its own vectors of both, and no others


def test_a_model_that_is_no_clip_is_refused(coco, tmp_path, capsys):
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "bert"}')
    assert main(["evaluate", str(tmp_path / "bert"), str(coco)]) == 2
    assert f"{tmp_path / 'bert'} holds no tokenizer" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["evaluate", str(tmp_path / "empty"), str(coco)]) == 2
    assert "is not a run folder" in capsys.readouterr().err
