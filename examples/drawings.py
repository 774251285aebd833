"""What the examples share: drawings with captions of which some are exchanged, and a tiny CLIP with random weights.

Nothing is downloaded. For data and a model of your own, take these two functions out: any data set that knows the place
of each of its pairs will do, and any model that gives features of images and of texts.
"""

from pathlib import Path

import numpy as np
import torch

import truepair

SIDE, LONGEST = 32, 24


def mismatched_drawings(count: int, noise: float) -> tuple[np.ndarray, list[str], np.ndarray]:
    """(N, 32, 32, 3) uint8 drawings, one caption each, and which of them were mismatched on purpose."""
    pairs = truepair.load(f"scenes:{count}")
    pairs = pairs.take(np.unique(pairs.image_index, return_index=True)[1])  # the first caption of each drawing
    pairs = truepair.inject_noise(pairs, noise, seed=0)
    captions = [pairs.texts.captions[row] for row in pairs.text_index]
    assert pairs.mismatched is not None
    return pairs.images.pixels(pairs.image_index, SIDE), captions, pairs.mismatched


def write_tiny_clip(folder: Path, captions: list[str]) -> Path:
    """The folder of a CLIP of two small towers, with a tokenizer of the words of the captions."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerFast
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    words = sorted(
        {word for caption in captions for word in caption.lower().replace(",", " ").replace(".", " ").split()}
    )
    marks = ["<pad>", "<unk>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.WordLevel({word: k for k, word in enumerate([*marks, *words])}, unk_token="<unk>"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    ends = [("<s>", 2), ("</s>", 3)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LONGEST, **names).save_pretrained(folder)
    CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}).save_pretrained(
        folder
    )
    tower = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    config = CLIPConfig(
        text_config={**tower, **ids, "vocab_size": len(words) + 4, "max_position_embeddings": LONGEST},
        vision_config={**tower, "image_size": SIDE, "patch_size": 8, "initializer_factor": 4.0},
        projection_dim=32,
        logit_scale_init_value=3.0,  # exp(3): 20, the 1/τ of CRCL
    )
    torch.manual_seed(0)
    CLIPModel(config).save_pretrained(folder)
    return folder


class Prepared(torch.utils.data.Dataset):
    """Pairs as a CLIP reads them, each with its place as `labels`."""

    def __init__(self, folder: Path, pixels: np.ndarray, captions: list[str]) -> None:
        from transformers import AutoImageProcessor, AutoTokenizer

        texts = AutoTokenizer.from_pretrained(folder)(
            captions, padding="max_length", truncation=True, max_length=LONGEST, return_tensors="pt"
        )
        images = AutoImageProcessor.from_pretrained(folder, backend="pil")(list(pixels), return_tensors="pt")
        self.columns = {**{name: texts[name] for name in ("input_ids", "attention_mask")}, **images}

    def __len__(self) -> int:
        return len(self.columns["input_ids"])

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        return {**{name: values[place] for name, values in self.columns.items()}, "labels": torch.tensor(place)}


def found(belief: torch.Tensor, mismatched: np.ndarray) -> float:
    """AUROC: how often a matched pair is believed more than a mismatched one."""
    right, wrong = belief.numpy()[~mismatched], belief.numpy()[mismatched]
    return float((right[:, None] > wrong).mean() + (right[:, None] == wrong).mean() / 2)
