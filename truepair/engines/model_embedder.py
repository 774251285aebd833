"""A trained model as what an index is made with."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from truepair.data.pairs import Images, IntArray, Texts
from truepair.encoders import encoder_of
from truepair.encoders.encoder import Encoder, Picture
from truepair.errors import InputError
from truepair.search.embedder import Embedder, described, encoder_by_identity
from truepair.search.vectors import Floats

if TYPE_CHECKING:
    from truepair.engines.retrieval_model import RetrievalModel


class ModelEmbedder(Embedder):
    """A model of one engine.

    Args:
        model: the model; it is put into evaluation mode.
        encoder: the name of what describes pictures from outside; None: the built-in one that described the data.
    """

    def __init__(self, model: RetrievalModel, encoder: str | None = None) -> None:
        self.model, self._encoder = model, encoder
        self._describer: tuple[str | None, Encoder] | None = None
        self.exact = model.engine.exact_vectors
        model.engine.eval()

    @cached_property
    def _digest(self) -> str:
        found = hashlib.blake2b(repr((self.model.config, self.model.needs)).encode(), digest_size=8)
        for name, values in sorted(self.model.engine.state_dict().items()):
            found.update(name.encode() + np.ascontiguousarray(values.cpu().float().numpy()).tobytes())
        return f"{self.model.config.name}-{found.hexdigest()}"

    def digest(self) -> str:
        return self._digest

    @torch.inference_mode()
    def images(self, images: Images, rows: IntArray) -> Floats:
        encoded = self.model.engine.encode_images(self.model.preparation.images(images, rows).to(self.model.device))
        return np.asarray(self.model.engine.image_vectors(encoded).float().cpu().numpy())

    @torch.inference_mode()
    def texts(self, texts: Texts, rows: IntArray) -> Floats:
        encoded = self.model.engine.encode_texts(self.model.preparation.texts(texts, rows).to(self.model.device))
        return np.asarray(self.model.engine.text_vectors(encoded).float().cpu().numpy())

    @torch.inference_mode()
    def similarities(self, images: Images, image_rows: IntArray, texts: Texts, text_rows: IntArray) -> Floats:
        engine, preparation = self.model.engine, self.model.preparation
        left = engine.encode_images(preparation.images(images, image_rows).to(self.model.device))
        right = engine.encode_texts(preparation.texts(texts, text_rows).to(self.model.device))
        return np.asarray(engine.similarity(left, right).float().cpu().numpy())

    def picture(self, picture: Picture, like: Images) -> Images:
        read = self.model.preparation.picture(picture)
        return described(picture, self._describes(like)) if read is None else read

    def _describes(self, like: Images) -> Encoder:
        if self._describer is None or self._describer[0] != like.encoder:
            named = self._encoder
            made = encoder_by_identity(like.encoder, like) if named is None else encoder_of(named)
            if like.encoder not in (None, made.identity()):
                raise InputError(
                    f"the pictures of the data were described by {like.encoder}, and {named} is now {made.identity()}; "
                    "install the version that described them"
                )
            self._describer = like.encoder, made
        return self._describer[1]
