"""`as_printed`: a method in every setting of its paper that can be expressed, and how the defaults differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from truepair.data.config import Augmentation
from truepair.engines import engine_config
from truepair.engines.config import EngineConfig, GlobalConfig
from truepair.errors import InputError
from truepair.methods import METHODS, build_method
from truepair.methods.base import Method
from truepair.methods.preset import Preset
from truepair.training.config import TrainingConfig
from truepair.training.setup import Setup

OTHER_DATA = "the default is for all data"


@dataclass(frozen=True)
class Departure:
    """An option whose default is not what the paper prints: "method.NAME", "training.NAME", …, both values, and why."""

    option: str
    printed: Any
    default: Any
    reason: str


@dataclass(frozen=True)
class AsPrinted:
    """A method and a setup for `fit`, as the paper prints them.

    Attributes:
        preset: the values, their source, and what the print does not say or no option expresses.
        departures: the defaults here that differ, each with its reason.

    Example:
        >>> printed = truepair.as_printed("gsc")
        >>> truepair.fit(pairs, method=printed.method, setup=printed.setup)
    """

    name: str
    model: EngineConfig
    preset: Preset

    @property
    def method(self) -> Method:
        return build_method(self.name, self.preset.method)

    @property
    def setup(self) -> Setup:
        training = TrainingConfig(**self.preset.training)
        return Setup(training=training, model=self.model, augmentation=self.preset.augmentation)

    @property
    def departures(self) -> tuple[Departure, ...]:
        given = {
            "method": (self.preset.method, METHODS[self.name].options()),
            "training": (self.preset.training, TrainingConfig()),
            "augmentation": (asdict(self.preset.augmentation), Augmentation()),
        }
        differing: list[tuple[str, Any, Any]] = [
            (f"{part}.{option}", value, getattr(defaults, option))
            for part, (printed, defaults) in given.items()
            for option, value in printed.items()
        ]
        differing.append(("model", self.model, GlobalConfig()))
        reasons = self.preset.reasons
        return tuple(
            Departure(option, value, default, reasons.get(option, OTHER_DATA))
            for option, value, default in differing
            if value != default
        )


def as_printed(
    method: str, model: str | None = None, data: str | None = None, *, any_engine: bool = False
) -> AsPrinted:
    """A method in its paper's every setting and equation that options express.

    Args:
        method: its name.
        model: one of the engines that the paper reports; None for the first of them.
        data: which data, of those for which the paper has settings of their own; None for its first ones.
        any_engine: take an engine that the paper does not report, with its defaults, rather than refuse it.

    Raises:
        InputError: there is no such method or engine, the method has no printed settings, or the paper reports no such
            engine or has no settings of its own for the data.
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    preset = METHODS[method].method.printed
    if preset is None:
        raise InputError(f"method {method} has no settings as printed")
    if data is not None:
        if data not in preset.for_data:
            known = ", ".join(preset.for_data) or "none"
            raise InputError(f"{preset.source}: settings of their own have {known}, not {data}; leave it out")
        change = preset.for_data[data]
        preset = replace(
            preset,
            method={**preset.method, **change.get("method", {})},
            training={**preset.training, **change.get("training", {})},
        )
    model = model or next(iter(preset.models))
    if model not in preset.models and not any_engine:
        raise InputError(
            f"{preset.source} reports {' and '.join(preset.models)}, not {model}; choose one of them, or add --ablation"
        )
    return AsPrinted(method, preset.models.get(model) or engine_config(model)(), preset)
