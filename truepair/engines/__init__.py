"""Encode each side once, compare any image with any text. `ENGINES` says where each engine lives; nothing else does."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.engines.config import EngineConfig

ENGINES = {
    "global": "truepair.engines.config:GlobalConfig",
    "sgr": "truepair.engines.config:SGRConfig",
    "saf": "truepair.engines.config:SAFConfig",
    "mlp": "truepair.engines.config:MLPConfig",
    "pretrained": "truepair.engines.pretrained.config:PretrainedConfig",
}
"""Name → `module:class` of its options (`EngineConfig`), which make the engine.

They are read for `--help`: their module must be importable without torch.
"""


def engine_config(name: str) -> type[EngineConfig]:
    """The options of the engine of that name, a frozen dataclass. Raises InputError: there is no such engine."""
    if name not in ENGINES:
        raise InputError(f"engine is {name!r}; expected one of {', '.join(ENGINES)}")
    module, kind = ENGINES[name].split(":")
    found: type[EngineConfig] = getattr(import_module(module), kind)
    return found


def engine_configs() -> dict[str, type[EngineConfig]]:
    """The options of every engine."""
    return {name: engine_config(name) for name in ENGINES}
