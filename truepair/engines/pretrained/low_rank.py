"""LoRA: low-rank changes of the linear layers of frozen towers, by the library peft.

Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (ICLR 2022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.engines.pretrained.config import PretrainedConfig


def add_low_rank(towers: nn.Module, config: PretrainedConfig, *, leave_out: set[str]) -> None:
    """Give every linear layer of the towers a change of low rank, zero at first, and freeze all that was there before.

    Args:
        leave_out: names of layers that get none; whether they are trained is for the caller to say, afterwards.

    Raises:
        InputError: peft is not installed, or there is no such layer.
    """
    peft = required_peft()
    layers = [
        name for name, module in towers.named_modules() if type(module) is nn.Linear and name not in leave_out
    ]  # not what is made of one: attention that uses its weights itself would not see the change
    if not layers:
        raise InputError("--tune lora changes linear layers, and the towers of this model have none; use --tune full")
    options = peft.LoraConfig(
        r=config.lora_rank, lora_alpha=config.lora_rank, lora_dropout=config.lora_dropout, target_modules=layers
    )
    peft.inject_adapter_in_model(options, towers)


def is_low_rank(name: str) -> bool:
    """Whether that is the name of a parameter of a change."""
    return ".lora_" in name


def merge_low_rank(towers: nn.Module) -> None:
    """Add the changes to the layers, and take them off: the model is an ordinary one again."""
    from importlib import import_module

    kind: Any = import_module("peft.tuners.lora").LoraLayer
    for name, module in list(towers.named_modules()):
        if isinstance(module, kind):
            module.merge()
            towers.set_submodule(name, module.get_base_layer())


def required_peft() -> Any:
    from importlib import import_module

    try:
        return import_module("peft")
    except ImportError as error:
        raise InputError(f"--tune lora needs the library peft: pip install 'truepair[lora]' ({error})") from error
