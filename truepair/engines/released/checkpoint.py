"""Checkpoints of SGR and SAF networks as SGRAF and the papers built on its code publish them.

Such a file is a dict of `torch.save`. What it holds, by the code that writes it:

    SGRAF        model             [img_enc, txt_enc, sim_enc]                        epoch, best_rsum, opt, Eiters
    NCR          model_A, model_B  the same, two networks of one kind and size        epoch, best_rsum, opt
    DECL         model             the same; SGR and SAF in separate files            epoch, best_rsum, opt, step
    CRCL         model             the same; with --module_name VSEinfty [img_enc, txt_enc], which is refused
                                   epoch, best_rsum, opt, step, schedule, move_gt
    GSC          model             the same and three values of each training pair    epoch, best_rsum, opt, step
    GSC+         model_A, model_B  two networks, each as in GSC                       epoch, best_rsum, opt, step

`img_enc`, `txt_enc` and `sim_enc` are state dicts, `opt` an argparse.Namespace. Values of the training pairs (GSC's
targets, CRCL's `move_gt`) are left unread. Files of a warm-up epoch lack `best_rsum`; those of PyTorch before 0.4.1
lack `num_batches_tracked`. Both are taken.

`names.py` says which of their parameters is which of ours.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from truepair.engines.config import SAFConfig, SGRConfig
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.released.names import PARTS, hint, our_name, reasoning_steps, their_name
from truepair.engines.released.torch_file import SkippedArray, read_torch_file
from truepair.engines.retrieval_model import build_engine
from truepair.errors import InputError

ENTRIES = {"model": "model", "model_A": "A", "model_B": "B"}
COUNTER = "num_batches_tracked"


@dataclass(frozen=True)
class ReleasedModel:
    """One network of a released checkpoint.

    Attributes:
        name: "A" or "B" of a file with two networks, otherwise "model".
        kind: "sgr" or "saf".
        config: widths and reasoning steps, as the shapes of the tensors say.
        sizes: feature width, regions and vocabulary size, likewise.
        tensors: state dict of a `LocalEngine` of that configuration and these sizes.
        source: what else the file says (epoch, best_rsum, opt, …), as values that JSON knows.
    """

    name: str
    kind: Literal["sgr", "saf"]
    config: SGRConfig | SAFConfig
    sizes: InputSizes
    tensors: dict[str, Tensor]
    source: dict[str, Any]


def read_released(path: Path | str) -> list[ReleasedModel]:
    """The networks of a released checkpoint: one, or A and B. Nothing in the file is executed.

    Raises:
        InputError: not such a file, or a network this package has no engine for; the message says what was found.
    """
    path = Path(path)
    content = read_torch_file(path)
    if not isinstance(content, dict):
        raise InputError(
            f"{path} holds a {type(content).__name__}; expected a dict with `model`, or model_A and model_B"
        )
    entries = ["model"] if "model" in content else [entry for entry in ("model_A", "model_B") if entry in content]
    if not entries:
        raise InputError(
            f"{path}: neither `model` nor model_A and model_B among its entries ({listed(map(str, content))}); "
            "expected a checkpoint as SGRAF, NCR, DECL, GSC or CRCL save it"
        )
    options = content.get("opt")
    options = vars(options) if isinstance(options, argparse.Namespace) else options
    # Of these no tensor shows that they change what a network computes.
    for name, side in (("no_imgnorm", "regions"), ("no_txtnorm", "words")):
        if isinstance(options, Mapping) and options.get(name):
            raise InputError(
                f"{path}: trained with {name}, that is with {side} that are not normalised; the engine here always "
                "normalises them, so its similarities would be others"
            )
    small = (
        str | int | float | argparse.Namespace | None
    )  # what says something about a checkpoint, and is not its content
    source = {key: plain(value) for key, value in content.items() if isinstance(key, str) and isinstance(value, small)}
    return [read_network(f"{path}: {entry}", ENTRIES[entry], content[entry], source) for entry in entries]


def read_network(place: str, name: str, value: Any, source: dict[str, Any]) -> ReleasedModel:
    """One network, from its list of state dicts."""
    released = named_tensors(place, state_dicts(place, value))
    kind, config, sizes = measured(place, released)
    with torch.device("meta"):
        expected = {name: tensor.shape for name, tensor in build_engine(config, sizes).state_dict().items()}
    theirs = {our_name(name): name for name in released}
    strange = [name for ours, name in theirs.items() if ours not in expected]
    if strange:
        raise InputError(
            f"{place} holds {listed(strange)}, which no {kind.upper()} network of SGRAF has{hint(strange)}"
        )
    missing = [their_name(ours) for ours in expected if ours not in theirs and not ours.endswith(COUNTER)]
    if missing:
        raise InputError(f"{place} lacks {listed(missing)}{hint(missing)}")
    tensors = {}
    for ours, shape in expected.items():
        if ours not in theirs:  # a counter, which changes no similarity
            tensors[ours] = torch.zeros((), dtype=torch.int64)
            continue
        tensors[ours] = usable(place, theirs[ours], released[theirs[ours]])
        if tensors[ours].shape != shape:
            raise InputError(
                f"{place}: {theirs[ours]} has shape {tuple(tensors[ours].shape)}, expected {tuple(shape)} beside "
                f"{described(config, sizes)}; the file is damaged or of another architecture"
            )
    return ReleasedModel(name, kind, config, sizes, tensors, source)


def state_dicts(place: str, value: Any) -> list[dict[str, Any]]:
    """[img_enc, txt_enc, sim_enc] of an entry, once it is sure that it is such a list."""
    expected = f"expected a list of three state dicts ({', '.join(PARTS)})"
    if not isinstance(value, list | tuple):
        keys = f" with the keys {listed(map(str, value))}" if isinstance(value, Mapping) else ""
        raise InputError(f"{place} is a {type(value).__name__}{keys}; {expected}")
    is_dict = [isinstance(part, dict) for part in value]
    if is_dict == [True, True]:
        raise InputError(
            f"{place} is a list of two state dicts, as CRCL saves its global model (VSE∞); only SGR and SAF networks "
            f"can be imported: {expected}"
        )
    if is_dict[:3] != [True, True, True] or any(is_dict[3:]):
        raise InputError(f"{place} is a list of {listed(type(part).__name__ for part in value)}; {expected}")
    odd = [
        type(part).__name__
        for part in value[3:]
        if not (isinstance(part, SkippedArray) or (isinstance(part, Tensor) and part.ndim == 1))
    ]
    if odd:
        raise InputError(
            f"{place}: after the three state dicts comes {listed(odd)}; expected vectors, as GSC adds them"
        )
    return list(value[:3])


def named_tensors(place: str, parts: list[dict[str, Any]]) -> dict[str, Tensor]:
    """All parameters and buffers by their name in SGRAF's code, such as "img_enc.fc.weight"."""
    found: dict[str, Tensor] = {}
    for part, state in zip(PARTS, parts, strict=True):
        for key, value in state.items():
            # DataParallel calls what it wraps "module", at any depth.
            name = ".".join([part, *(piece for piece in str(key).split(".") if piece != "module")])
            if not isinstance(value, Tensor):
                raise InputError(f"{place}: {name} is a {type(value).__name__}; expected a tensor")
            whole = value.layout == torch.strided and value.device.type == "cpu" and not value.is_quantized
            if not whole or value.numel() * value.element_size() > value.untyped_storage().nbytes():
                raise InputError(f"{place}: {name} is no plain tensor with all its values in the file")
            if name in found:
                raise InputError(f"{place} holds {name} twice, with and without `module`")
            found[name] = value.detach()
    unknown = [name for name in found if our_name(name) is None]
    if unknown:
        raise InputError(
            f"{place} holds {listed(unknown)}, which SGRAF's networks do not have{hint(unknown)}; only SGR and SAF "
            "networks can be imported"
        )
    return found


def measured(
    place: str, released: dict[str, Tensor]
) -> tuple[Literal["sgr", "saf"], SGRConfig | SAFConfig, InputSizes]:
    """Kind and sizes of a network, as the shapes of a few of its tensors say; the others must fit them."""
    shapes = []
    for name, dimensions in [
        ("img_enc.fc.weight", 2),
        ("txt_enc.embed.weight", 2),
        ("sim_enc.v_global_w.embedding_local.1.weight", 1),
        ("sim_enc.sim_tranloc_w.weight", 2),
    ]:
        if name not in released:
            raise InputError(f"{place} lacks {name}; expected an SGR or SAF network of SGRAF")
        if released[name].ndim != dimensions or 0 in released[name].shape:
            raise InputError(f"{place}: {name} has shape {tuple(released[name].shape)}; expected {dimensions} sizes")
        shapes.append(released[name].shape)
    (width, feature_width), (words, word_width), (regions,), (similarity_width, _) = shapes
    steps = reasoning_steps(list(released))
    filters = any(name.startswith("sim_enc.SAF_module.") for name in released)
    if (steps > 0) == filters:
        found = "both SGR_module and SAF_module" if filters else "neither SGR_module nor SAF_module"
        raise InputError(f"{place}: sim_enc holds {found}; expected one of them")
    sizes = InputSizes(feature_width, regions, words)
    if steps:
        return "sgr", SGRConfig(width, word_width, similarity_width, reasoning_steps=steps), sizes
    return "saf", SAFConfig(width, word_width, similarity_width), sizes


def usable(place: str, name: str, tensor: Tensor) -> Tensor:
    """The tensor in the type the engine has, float32 but for counters; values of which NaN would come are refused."""
    if name.endswith(COUNTER):
        return tensor.to(torch.int64)
    if not tensor.is_floating_point():
        raise InputError(f"{place}: {name} is {tensor.dtype}; expected floating point numbers")
    tensor = tensor.to(torch.float32).contiguous()
    wrong = ~torch.isfinite(tensor)
    if name.endswith("running_var"):
        wrong |= tensor < 0
    if bool(wrong.any()):
        raise InputError(
            f"{place}: {int(wrong.sum())} of the {tensor.numel()} values of {name} are NaN, infinite or a negative "
            "variance; no similarity could be trusted. Use a checkpoint of an earlier epoch"
        )
    return tensor


def described(config: SGRConfig | SAFConfig, sizes: InputSizes) -> str:
    """The sizes of a network in words."""
    steps = f", {config.reasoning_steps} reasoning steps" if isinstance(config, SGRConfig) else ""
    return (
        f"feature width {sizes.feature_width}, {sizes.regions} regions, {sizes.vocabulary_size} words of width "
        f"{config.word_width}, embedding width {config.width}, similarity width {config.similarity_width}{steps}"
    )


def plain(value: Any, depth: int = 4) -> Any:
    """The value as JSON knows it; what has no such form becomes the name of its type in angle brackets."""
    if isinstance(value, argparse.Namespace):
        value = vars(value)
    if isinstance(value, Mapping) and depth:
        return {plain(str(key)): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [plain(item, depth - 1) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | None) else f"<{type(value).__name__}>"


def listed(names: Any) -> str:
    """The first few of some names, and how many there are."""
    names = list(names)
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
