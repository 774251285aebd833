"""One file a paper. `CONFIGS` lists the methods with their options; `build_method` makes one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from truepair.errors import InputError
from truepair.methods.configs import CRCLConfig, DisNCLConfig, GSCConfig, InfoNCEConfig, TripletConfig, UGNCLConfig
from truepair.methods.label_configs import CEConfig, ELRCMRConfig, MRLConfig, UOTRCLConfig

if TYPE_CHECKING:
    from truepair.methods.base import Method

CONFIGS: dict[str, type[Any]] = {
    "triplet": TripletConfig,
    "infonce": InfoNCEConfig,
    "crcl": CRCLConfig,
    "gsc": GSCConfig,
    "ugncl": UGNCLConfig,
    "disncl": DisNCLConfig,
    "ce": CEConfig,
    "mrl": MRLConfig,
    "elr-cmr": ELRCMRConfig,
    "uot-rcl": UOTRCLConfig,
}

_HOME = {
    "triplet": ("truepair.methods.triplet", "Triplet"),
    "infonce": ("truepair.methods.infonce", "InfoNCE"),
    "crcl": ("truepair.methods.crcl", "CRCL"),
    "gsc": ("truepair.methods.gsc", "GSC"),
    "ugncl": ("truepair.methods.ugncl", "UGNCL"),
    "disncl": ("truepair.methods.disncl", "DisNCL"),
    "ce": ("truepair.methods.ce", "CrossEntropy"),
    "mrl": ("truepair.methods.mrl", "MRL"),
    "elr-cmr": ("truepair.methods.elr_cmr", "ELRCMR"),
    "uot-rcl": ("truepair.methods.uot_rcl", "UOTRCL"),
}


def learns_from_labels(name: str) -> bool:
    """Whether the method of that name needs the classes of the pairs, and is scored by mAP."""
    return bool(getattr(CONFIGS.get(name), "learns_from_labels", False))


def build_method(name: str, options: dict[str, Any] | None = None) -> Method:
    """The method of that name with its own options.

    Raises:
        InputError: an unknown name, an option the method does not have, or a value out of range.
    """
    if name not in CONFIGS:
        raise InputError(f"method is {name!r}; expected one of {', '.join(CONFIGS)}")
    known = CONFIGS[name].__dataclass_fields__
    for option in options or {}:
        if option not in known:
            raise InputError(f"method {name} has no option {option!r}; it has {', '.join(known)}")
    module, kind = _HOME[name]
    method: Method = getattr(import_module(module), kind)(CONFIGS[name](**(options or {})))
    return method
