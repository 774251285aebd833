"""`PretrainedEngine`: both towers of a transformers model, or a linear layer on each frozen one; cosine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from truepair.encoders.hf.model import image_vectors, text_vectors
from truepair.engines.cosine_engine import CosineEngine, unit_vectors
from truepair.engines.features import Features
from truepair.engines.pretrained.low_rank import add_low_rank, is_low_rank
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.engines.pretrained.config import PretrainedConfig
    from truepair.engines.pretrained.preparation import Base, Inputs

VARIATION = 0.1
"""By how much of their length the vectors of further views and networks differ at first, about."""


class PretrainedEngine(CosineEngine):
    """Encodings are L2-normalised vectors (n, D), at first those of the model itself; similarity is their cosine.

    While it learns, the cosine of an image and a text is scaled so that the method's division by its τ comes to that by
    the model's own (`temperature = own`).

    Args:
        config: what is trained, and how.
        base: the model that training begins with.

    Attributes:
        regions, words: what follows the towers: a linear layer, the identity at first, where towers are frozen (and the
            model ends in a linear layer that it can be joined with); nothing else.
        towers: the model, where it is trained itself.

    Raises:
        InputError: the model has nothing of what is to be trained.
    """

    def __init__(self, config: PretrainedConfig, base: Base) -> None:
        super().__init__()
        self.config, self.base = config, base
        self.vector_width = base.shape.width
        self.regions: nn.Module = nn.Identity()
        self.words: nn.Module = nn.Identity()
        self.towers: nn.Module | None = None
        if config.tune == "heads":
            self._add_heads()
        else:
            self._add_towers()

    def _add_heads(self) -> None:
        shape = self.base.shape
        if shape.image_head is None and shape.text_head is None:
            raise InputError(
                f"{self.base.opened.folder}: neither tower ends in a linear layer, so there is no head to train; use "
                "--tune lora or full"
            )
        if shape.image_head is not None:
            self.regions = same(self.vector_width)
        if shape.text_head is not None:
            self.words = same(self.vector_width)

    def _add_towers(self) -> None:
        config, opened, meta = self.config, self.base.opened, torch.empty(0).device.type == "meta"
        towers = opened.blank() if meta or not self.base.weights else opened.load()
        heads = self._head_names()
        if config.tune == "lora":
            add_low_rank(towers, config, leave_out=heads)
        for name, parameter in towers.named_parameters():
            learned = config.tune == "full" or name.rpartition(".")[0] in heads or is_low_rank(name)
            parameter.requires_grad_(learned and "." in name)  # what has no module is temperature and bias
        if config.checkpointing and not meta:
            checkpoint(towers, opened.kind)
        self.towers = towers
        self.register_state_dict_post_hook(leave_out_frozen)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(do_not_miss_frozen)  # type: ignore[no-untyped-call]

    def _head_names(self) -> set[str]:
        return {name for name in (self.base.shape.image_head, self.base.shape.text_head) if name is not None}

    def train(self, mode: bool = True) -> PretrainedEngine:
        """Batch norms keep the statistics they were pretrained with: what a batch holds should change nothing."""
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self

    def new_region_encoder(self) -> nn.Module:
        """A linear layer whose vectors differ a little from those of the model."""
        return varied(same(self.vector_width))

    def vary(self) -> None:
        for layer in (self.regions, self.words):
            if isinstance(layer, nn.Linear):
                varied(layer)
        for name in sorted(self._head_names()) if self.towers is not None else ():  # a set has no order of its own
            varied(self.towers.get_submodule(name))  # type: ignore[union-attr]

    def rate_scales(self) -> dict[nn.Parameter, float]:
        if self.towers is None:
            return {}
        heads, rate = self._head_names(), self.config.relative_tower_rate
        return {
            parameter: 1.0 if name.rpartition(".")[0] in heads else rate
            for name, parameter in self.towers.named_parameters()
            if parameter.requires_grad
        }

    def use_temperature(self, temperature: float | None) -> None:
        own = self.config.temperature == "own" and temperature is not None
        scale = self.base.opened.scale_and_bias[0]
        self.learning_factor = scale * temperature if own and temperature is not None else 1.0
        self.own_scale = own

    def scores(self, images: Tensor, texts: Tensor) -> Tensor:
        cosines = super().scores(images, texts)
        return cosines * self.learning_factor if self.training else cosines

    def image_scores(self, images: Tensor) -> Tensor:
        return super().scores(images, images)

    def text_scores(self, texts: Tensor) -> Tensor:
        return super().scores(texts, texts)

    def image_features(self, images: Inputs, regions: nn.Module | None = None) -> Features:
        vectors = self._vectors(image_vectors, images)
        return Features(unit_vectors((regions or self.regions)(vectors)))

    def text_features(self, texts: Inputs) -> Features:
        return Features(unit_vectors(self.words(self._vectors(text_vectors, texts))))

    def _vectors(self, tower: Any, inputs: Inputs) -> Tensor:
        made = inputs.held["vectors"] if self.towers is None else tower(self.towers, inputs.held)
        return unit_vectors(made)


def same(width: int) -> nn.Linear:
    """A linear layer that changes nothing."""
    layer = nn.Linear(width, width, bias=False)
    nn.init.eye_(layer.weight)
    return layer


def varied(layer: nn.Module) -> nn.Module:
    """The same layer, its weights changed a little, each by as much as the others."""
    weight = layer.weight
    assert isinstance(weight, Tensor)
    with torch.no_grad():
        spread = torch.linalg.vector_norm(weight) / weight.numel() ** 0.5
        weight.add_(torch.randn_like(weight) * VARIATION * spread)
    return layer


def checkpoint(towers: nn.Module, kind: str) -> None:
    """Keep no activations in training, but compute them again."""
    enable: Any = getattr(towers, "activation_checkpointing_enable", None) or towers.gradient_checkpointing_enable
    try:
        enable({"use_reentrant": False})
    except (ValueError, AttributeError) as error:
        raise InputError(f"models of type {kind} have no gradient checkpointing; leave --checkpointing out") from error


def frozen_names(engine: nn.Module) -> set[str]:
    """The parameters and buffers that training leaves as they are, and the model folder has."""
    names = {name for name, parameter in engine.named_parameters() if not parameter.requires_grad}
    learned = any(parameter.requires_grad for parameter in engine.parameters())
    full = isinstance(engine, PretrainedEngine) and engine.config.tune == "full"
    return set() if full or not learned else names | {name for name, _ in engine.named_buffers()}


def leave_out_frozen(module: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    for name in frozen_names(module):
        state.pop(prefix + name, None)


def do_not_miss_frozen(module: nn.Module, keys: Any) -> None:
    frozen = frozen_names(module)

    def known(name: str) -> bool:
        parts = name.split(".")
        return any(".".join(parts[start:]) in frozen for start in range(len(parts)))

    keys.missing_keys[:] = [name for name in keys.missing_keys if not known(name)]
