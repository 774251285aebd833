"""Image–text models of transformers as encoders: one vector an image, one a caption, as the model gives them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truepair.device import resolve_device
from truepair.encoders.encoder import Encoder, Family, Floats, ImageTextEncoder, Picture
from truepair.encoders.hf.folder import fetch, is_hub_name, is_model_folder
from truepair.encoders.hf.model import Opened, collated, image_vectors, opened, text_vectors

if TYPE_CHECKING:
    from torch import nn

TEXTS_AT_ONCE = 128
_LOADING = threading.Lock()  # of the process: an encoder can be sent to another one


class PretrainedEncoder(ImageTextEncoder):
    """Both towers, frozen. Weights are read when the first item is encoded.

    Args:
        found: the folder.
        width: D, where it is known.

    Attributes:
        opened: the folder with tokenizer and image processor.
    """

    regions = 1

    def __init__(self, found: Opened, width: int | None = None) -> None:
        self.opened = found
        self.name, self.width = str(found.folder), found.shape.width if width is None else width

    def identity(self) -> str:
        return self.opened.identity

    @property
    def model(self) -> nn.Module:
        with _LOADING:  # several threads encode at once, and one of them loads
            return self._loaded

    @cached_property
    def _loaded(self) -> nn.Module:
        return self.opened.load().to(resolve_device("auto"))

    @property
    def scale_and_bias(self) -> tuple[float, float]:
        """1/τ and bias that the model was trained with: its logit of a pair is cosine / τ + bias."""
        return self.opened.scale_and_bias

    def prepare(self, picture: Picture) -> dict[str, Any]:
        return self.opened.prepare(picture)

    def encode(self, prepared: Sequence[dict[str, Any]]) -> Floats:
        return self._encoded(image_vectors, collated(prepared))[:, None, :]

    def encode_texts(self, captions: Sequence[str], moved: Callable[[int], None] = lambda done: None) -> Floats:
        rows = self.opened.tokens.encode(captions)
        found = np.empty((len(rows), self.width), dtype=np.float32)
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))  # those of one length together: less padding
        for start in range(0, len(order), TEXTS_AT_ONCE):
            some = order[start : start + TEXTS_AT_ONCE]
            found[some] = self._encoded(text_vectors, self.opened.tokens.padded([rows[row] for row in some]))
            moved(start + len(some))
        return found

    def _encoded(self, vectors: Any, inputs: dict[str, Any]) -> Floats:
        import torch

        device = next(self.model.parameters()).device
        moved = {name: held.to(device) for name, held in inputs.items()}
        with torch.inference_mode():
            made: Floats = vectors(self.model, moved).float().cpu().numpy()
        return made


class Transformers(Family):
    """Model folders of the transformers library."""

    understood = "a transformers model (config.json, model.safetensors, tokenizer and image processor)"

    def recognises(self, folder: Path) -> bool:
        return is_model_folder(folder)

    def open(self, folder: Path) -> Encoder:
        return PretrainedEncoder(opened(folder))

    def fetch(self, name: str) -> Path | None:
        return fetch(name) if is_hub_name(name) else None
