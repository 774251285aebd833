"""Model folders of transformers as encoders: what they give, and what is refused."""

import json
import shutil
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from tests.encoders.tiny_models import TOWER, write_processor, write_tokenizer
from truepair.encoders import encoder_of
from truepair.encoders.hf.encoder import PretrainedEncoder
from truepair.encoders.hf.model import quiet
from truepair.encoders.hf.tokens import CaptionsCut
from truepair.errors import InputError


@pytest.fixture
def broken(models, tmp_path):
    """A copy of the tiny CLIP to break."""
    return shutil.copytree(models["clip"], tmp_path / "model")


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_vectors_are_those_of_transformers(models, kind):
    from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (30, 20, 3), dtype=np.uint8), rng.integers(0, 256, (16, 40, 3), dtype=np.uint8)]
    captions = ["a small red circle", "blue", "the square"]
    with quiet(), torch.inference_mode():
        model = AutoModel.from_pretrained(models[kind])
        processor = AutoImageProcessor.from_pretrained(models[kind], backend="pil")
        tokenizer = AutoTokenizer.from_pretrained(models[kind])
        images = model.get_image_features(**processor(images=pictures, return_tensors="pt")).pooler_output
        if kind == "clip":
            read = tokenizer(captions, padding=True, return_tensors="pt")
        else:  # as SigLIP was trained: filled up, without a mask
            read = {"input_ids": tokenizer(captions, padding="max_length", return_tensors="pt")["input_ids"]}
        texts = model.get_text_features(**read).pooler_output
    encoder = encoder_of(str(models[kind]))
    found = encoder.encode([encoder.prepare(picture) for picture in pictures])
    assert found.shape == (2, 1, encoder.width)
    assert np.allclose(found[:, 0], images, atol=1e-6)
    assert np.allclose(encoder.encode_texts(captions), texts, atol=1e-6)
    bias = getattr(model, "logit_bias", torch.zeros(1))
    assert encoder.scale_and_bias == pytest.approx((model.logit_scale.exp().item(), bias.item()))


def test_its_vector_does_not_depend_on_the_batch(models):
    encoder = encoder_of(str(models["clip"]))
    captions = ["red", "a large green triangle above the circle", ""]
    together = encoder.encode_texts(captions)
    assert np.allclose(together, np.concatenate([encoder.encode_texts([each]) for each in captions]), atol=1e-6)


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "CMYK", "1", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (3, 40)])
def test_pictures_of_odd_modes_and_sizes(models, tmp_path, mode, size):
    path = tmp_path / ("odd.tiff" if mode == "CMYK" else "odd.png")
    Image.new(mode, size).save(path)
    encoder = encoder_of(str(models["clip"]))
    assert encoder.prepare(path)["pixel_values"].shape == (3, 16, 16)
    assert np.isfinite(encoder.encode([encoder.prepare(path.read_bytes())])).all()


def test_long_captions_are_cut_counted_and_told(models):
    encoder = encoder_of(str(models["clip"]))
    long = "red " * 30
    with pytest.warns(CaptionsCut, match="2 of 3 captions are longer than the 16 tokens that clip reads"):
        found = encoder.encode_texts([long, "blue", long + "blue"])
    assert np.allclose(found[0], found[2])


def test_the_identity_changes_with_the_weights_and_not_with_the_place(models, broken):
    same = encoder_of(str(broken)).identity()
    assert same == encoder_of(str(models["clip"])).identity()
    data = bytearray((broken / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (broken / "model.safetensors").write_bytes(data)
    assert encoder_of(str(broken)).identity() != same


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_processors_are_those_of_pil(models, kind):
    encoder = encoder_of(str(models[kind]))
    encoder.encode([encoder.prepare(np.zeros((9, 9, 3), np.uint8))])
    assert type(encoder.opened.processor).__name__.endswith("ImageProcessorPil")
    assert "torchvision" not in sys.modules


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tokenizer.json", "holds no tokenizer"),
        ("preprocessor_config.json", "holds no image processor"),
        ("model.safetensors", "holds no weights"),
    ],
)
def test_missing_files_are_named(broken, name, said):
    (broken / name).unlink()
    with pytest.raises(InputError, match=said):
        encoder_of(str(broken))


def test_pickles_are_refused(broken):
    (broken / "model.safetensors").rename(broken / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"a pickle \(pytorch_model.bin\), which can run any program"):
        encoder_of(str(broken))


def test_weights_of_another_model_are_refused(broken, models):
    shutil.copyfile(models["siglip"] / "model.safetensors", broken / "model.safetensors")
    encoder = encoder_of(str(broken))
    with pytest.raises(InputError, match=r"its weights (lack \d+ tensors|cannot be read)"):
        _ = encoder.model


def test_damaged_weights_are_refused(broken):
    (broken / "model.safetensors").write_bytes(b"nothing")
    encoder = encoder_of(str(broken))
    with pytest.raises(InputError, match="its weights cannot be read"):
        _ = encoder.model


@pytest.mark.parametrize(
    ("words", "marks", "said"),
    [
        (" ".join(f"word{number}" for number in range(99)), {}, "it has 103 tokens, the text tower 24"),
        ("red", {"bos_token_id": 0, "eos_token_id": 1}, "its mark of an end is token 3, that of the text tower 1"),
    ],
)
def test_another_tokenizer_is_refused(broken, words, marks, said):
    write_tokenizer(broken, words)
    config = json.loads((broken / "config.json").read_text())
    config["text_config"] |= marks
    (broken / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=f"its tokenizer belongs to another model .{said}"):
        encoder_of(str(broken))


def test_models_of_one_side_are_refused(broken):
    from transformers import BertConfig, BertModel, ViTConfig, ViTModel

    write_processor(broken)
    for model, tower in (
        (BertModel(BertConfig(**TOWER, vocab_size=30)), "image"),
        (ViTModel(ViTConfig(**TOWER, image_size=16, patch_size=8)), "text"),
    ):
        (broken / "model.safetensors").unlink()
        with quiet():
            model.save_pretrained(broken)
        with pytest.raises(InputError, match=f"holds a (bert|vit) model, which has no {tower} tower"):
            encoder_of(str(broken))


def test_a_config_of_nothing_known_is_refused(broken, tmp_path):
    (broken / "config.json").write_text(json.dumps({"model_type": "unheard-of"}))
    with pytest.raises(InputError, match="its configuration cannot be read"):
        encoder_of(str(broken))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is a folder without a model that is understood"):
        encoder_of(str(tmp_path / "empty"))


def test_a_model_of_the_hub_without_a_network(monkeypatch):
    def unreachable(*_, **__):
        raise ConnectionError("no route to the hub\nsecond line")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(InputError, match=r"maker/model is no folder on this machine, .*\(no route to the hub\)"):
        encoder_of("maker/model")


def test_a_model_of_the_hub_is_opened_from_its_cache(models, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **_: str(models["clip"]))
    assert isinstance(encoder_of("maker/model"), PretrainedEncoder)
