"""Checkpoints of SGR, SAF and global networks as SGRAF and the papers built on its code publish them.

Such a file is a dict of `torch.save`. What it holds, by the code that writes it:

    SGRAF        model             [img_enc, txt_enc, sim_enc]                        epoch, best_rsum, opt, Eiters
    NCR          model_A, model_B  the same, two networks of one kind and size        epoch, best_rsum, opt
    DECL         model             the same; SGR and SAF in separate files            epoch, best_rsum, opt, step
    CRCL         model             the same, or a global model: [img_enc, txt_enc]    epoch, best_rsum, opt, step,
                                                                                      schedule, move_gt
    UGNCL        model             as SGRAF, with two linear maps in img_enc          epoch, best_rsum, opt
    GSC          model             the same and three values of each training pair    epoch, best_rsum, opt, step
    GSC+         model_A, model_B  two networks, each as in GSC                       epoch, best_rsum, opt, step

`img_enc`, `txt_enc` and `sim_enc` are state dicts, `opt` an argparse.Namespace. Values of the training pairs (GSC's
targets, CRCL's `move_gt`) are left unread. Files of a warm-up epoch lack `best_rsum`; those of PyTorch before 0.4.1
lack `num_batches_tracked`. Both are taken.

`sgraf.py` and `global_model.py` say which of their parameters is which of ours. UGNCL published the model and how it
is evaluated, but not the code that writes a file; its row is what the code of evaluation reads.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truepair.engines.released.global_model import GlobalLayout
from truepair.engines.released.layout import PARTS, Architecture, Layout, listed
from truepair.engines.released.sgraf import SGRAFLayout, UGNCLLayout
from truepair.engines.released.torch_file import SkippedArray, read_torch_file
from truepair.engines.retrieval_model import blank_engine
from truepair.errors import InputError

ENTRIES = {"model": "model", "model_A": "A", "model_B": "B"}
COUNTER = "num_batches_tracked"


@dataclass(frozen=True)
class ReleasedModel:
    """One network of a released checkpoint.

    Attributes:
        name: "A" or "B" of a file with two networks, otherwise "model".
        architecture: the engine, as the shapes of the tensors say.
        tensors: state dict of an engine of that architecture.
        source: what else the file says (epoch, best_rsum, opt, …), as values that JSON knows.
    """

    name: str
    architecture: Architecture
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
            "expected a checkpoint as SGRAF, NCR, DECL, GSC, CRCL or UGNCL save it"
        )
    options = content.get("opt")
    options = vars(options) if isinstance(options, argparse.Namespace) else options
    options = options if isinstance(options, Mapping) else {}
    # Of these no tensor shows that they change what a network computes.
    for name, side in (("no_imgnorm", "images"), ("no_txtnorm", "captions")):
        if options.get(name):
            raise InputError(
                f"{path}: trained with {name}, that is with vectors of {side} that are not normalised; the engines "
                "here always normalise them, so their similarities would be others"
            )
    small = str | int | float | argparse.Namespace | None  # says something about a checkpoint, and is not its content
    source = {key: plain(value) for key, value in content.items() if isinstance(key, str) and isinstance(value, small)}
    networks = []
    for entry in entries:
        architecture, tensors = read_network(f"{path}: {entry}", content[entry], options)
        networks.append(ReleasedModel(ENTRIES[entry], architecture, tensors, source))
    return networks


def read_network(place: str, value: Any, options: Mapping[str, Any]) -> tuple[Architecture, dict[str, Tensor]]:
    """One network, from its list of state dicts."""
    released = named_tensors(place, state_dicts(place, value))
    layout = layout_of(released)
    unknown = [name for name in released if layout.our_name(name) is None and layout.used(name)]
    if unknown:
        raise InputError(
            f"{place} holds {listed(unknown)}, which {layout.networks} do not have{layout.hint(unknown)}; only SGR and "
            "SAF networks, those of UGNCL among them, and CRCL's global model can be imported"
        )
    architecture = layout.measured(place, released, options)
    blank = blank_engine(architecture.config, architecture.sizes, architecture.needs)
    expected = {name: tensor.shape for name, tensor in blank.state_dict().items()}
    theirs = {ours: name for name in released if (ours := layout.our_name(name)) is not None}
    strange = [name for ours, name in theirs.items() if ours not in expected]
    if strange:
        raise InputError(
            f"{place} holds {listed(strange)}, which no {layout.network(architecture)} has{layout.hint(strange)}"
        )
    missing = [layout.their_name(ours) for ours in expected if ours not in theirs and not ours.endswith(COUNTER)]
    if missing:
        raise InputError(f"{place} lacks {listed(missing)}{layout.hint(missing)}")
    tensors = {}
    for ours, shape in expected.items():
        if ours not in theirs:  # a counter, which changes no similarity
            tensors[ours] = torch.zeros((), dtype=torch.int64)
            continue
        tensors[ours] = usable(place, theirs[ours], released[theirs[ours]])
        if tensors[ours].shape != shape:
            raise InputError(
                f"{place}: {theirs[ours]} has shape {tuple(tensors[ours].shape)}, expected {tuple(shape)} beside "
                f"{architecture.described()}; the file is damaged or of another architecture"
            )
    return architecture, tensors


def layout_of(released: dict[str, Tensor]) -> Layout:
    """Whose code wrote a network, as the names of its parameters say."""
    if not any(name.startswith("sim_enc.") for name in released):
        return GlobalLayout()
    return UGNCLLayout() if any(re.match(r"img_enc\.fc[12]\.", name) for name in released) else SGRAFLayout()


def state_dicts(place: str, value: Any) -> list[dict[str, Any]]:
    """[img_enc, txt_enc, sim_enc] of an entry, or [img_enc, txt_enc], once it is sure that it is such a list."""
    expected = f"expected a list of three state dicts ({', '.join(PARTS)}), or of the first two for a global model"
    if not isinstance(value, list | tuple):
        keys = f" with the keys {listed(map(str, value))}" if isinstance(value, Mapping) else ""
        raise InputError(f"{place} is a {type(value).__name__}{keys}; {expected}")
    is_dict = [isinstance(part, dict) for part in value]
    if is_dict == [True, True]:
        return list(value)
    if is_dict[:3] != [True, True, True] or any(is_dict[3:]):
        raise InputError(f"{place} is a list of {listed(type(part).__name__ for part in value)}; {expected}")
    if not value[2]:
        raise InputError(f"{place} holds a third state dict (sim_enc) that is empty; {expected}")
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
    for part, state in zip(PARTS, parts, strict=False):
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
    return found


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
