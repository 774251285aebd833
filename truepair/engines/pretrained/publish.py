"""A trained model as an ordinary folder of transformers: weights, tokenizer, image processor, and a model card."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from truepair.encoders.hf.folder import SMALL
from truepair.encoders.hf.model import quiet
from truepair.encoders.hf.tokens import Tokens
from truepair.engines.pretrained.card import model_card
from truepair.engines.pretrained.engine import PretrainedEngine
from truepair.engines.pretrained.low_rank import merge_low_rank

if TYPE_CHECKING:
    from truepair.engines.pretrained.config import PretrainedConfig
    from truepair.engines.retrieval_model import RetrievalModel

PUBLISHED = "pretrained"
"""The folder in that of a run; of two networks (GSC) the second is in `pretrained-b`."""
TOWERS = ("text", "image")
MODULE = "sentence_transformers.base.modules.transformer.Transformer"
"""What sentence-transformers writes for its part that is a model of transformers."""


def publish(config: PretrainedConfig, model: RetrievalModel, folder: Path, facts: dict[str, Any]) -> None:
    """Write a folder for each network, whole or not at all."""
    engines = [part for part in model.engine.modules() if isinstance(part, PretrainedEngine)]
    for number, engine in enumerate(engines):
        into = folder / (PUBLISHED if number == 0 else f"{PUBLISHED}-b")
        part = into.with_name(f"{into.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        with quiet():
            plain(engine).save_pretrained(part)  # type: ignore[operator]
        source = engine.base.opened.folder
        for name in SMALL:
            if (source / name).is_file() and not (part / name).exists():
                shutil.copyfile(source / name, part / name)
        write_filling(engine.base.opened.tokens, part)
        card = model_card(config, engine, facts, more_than_vectors=more_than(model, len(engines)))
        (part / "README.md").write_text(card, encoding="utf-8")
        shutil.rmtree(into, ignore_errors=True)
        part.rename(into)


def write_filling(tokens: Tokens, folder: Path) -> None:
    """Tell sentence-transformers (6.2) to fill captions up to the full length, where the model was trained so."""
    if not tokens.filled:
        return
    towers = {kind: {"method": f"get_{kind}_features", "method_output_name": "pooler_output"} for kind in TOWERS}
    filling = {"padding": "max_length", "max_length": tokens.longest, "return_attention_mask": False}
    described = {
        "transformer_task": "feature-extraction",
        "modality_config": towers,
        "module_output_name": "sentence_embedding",
        "processing_kwargs": {"text": filling},
    }
    modules = [{"idx": 0, "name": "0", "path": "", "type": MODULE}]
    for name, content in (("modules.json", modules), ("sentence_bert_config.json", described)):
        (folder / name).write_text(json.dumps(content, indent=2), encoding="utf-8")


def plain(engine: PretrainedEngine) -> nn.Module:
    """The network as an ordinary model of transformers: what was trained is part of its own layers."""
    if engine.towers is None:
        towers = engine.base.opened.load()
        shape = engine.base.shape
        for name, layer in ((shape.image_head, engine.regions), (shape.text_head, engine.words)):
            if name is not None and isinstance(layer, nn.Linear):
                join(towers.get_submodule(name), layer.weight.detach().cpu())
        return towers
    towers = copy.deepcopy(engine.towers).cpu()
    if engine.config.tune == "lora":
        merge_low_rank(towers)
    return towers


def join(last: nn.Module, after: Tensor) -> None:
    """Let a linear layer give what another one, without bias, would make of its output."""
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.copy_((after.double() @ last.weight.double()).float())
        if last.bias is not None:
            last.bias.copy_((after.double() @ last.bias.double()).float())


def more_than(model: RetrievalModel, networks: int) -> str:
    """What the run compares beside the vectors of this folder, in words; empty for nothing."""
    needs = model.needs
    if needs.subspace_width:
        return "The run itself compares what DisNCL's invariant heads make of these vectors (its model.safetensors)."
    if needs.views > 1:
        return f"The run itself compares {needs.views} views of an image (its model.safetensors); this is the first."
    if networks > 1:
        return "The run itself takes the mean of two networks, in pretrained/ and pretrained-b/."
    return ""
