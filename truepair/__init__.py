"""truepair: train, evaluate and audit cross-modal retrieval on image–text pairs that are partly mismatched.

The whole public interface, loaded when first used so that `import truepair` is instant:

    pairs = truepair.load("my_data")                       # or "scenes", the built-in drawings
    noisy = truepair.inject_noise(pairs, 0.4, seed=0)      # mismatch 40 % on purpose
    run = truepair.fit(noisy, dev=truepair.load("my_data", "dev"), out="runs/first")
    figures = truepair.evaluate(run.model, truepair.load("my_data", "test"))
    hits = run.model.index(pairs).search("red shoes", k=10)
    found = truepair.audit(pairs, "audits/first")          # which pairs are mismatched, and how sure that is
    found = truepair.audit_embeddings(images, texts)       # the same of two arrays
    criterion = truepair.Criterion("crcl", pairs=len(data), epochs=10)    # a method as the loss of any other loop
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # `as`: handed on
    from truepair.audit.of_arrays import audit_embeddings as audit_embeddings
    from truepair.data.collection import Collection as Collection
    from truepair.data.describe import describe as describe
    from truepair.data.label_noise import inject_label_noise as inject_label_noise
    from truepair.data.noise import inject_noise as inject_noise
    from truepair.data.open import load as load
    from truepair.data.open import open as open
    from truepair.data.pairs import Images as Images
    from truepair.data.pairs import Pairs as Pairs
    from truepair.data.pairs import Texts as Texts
    from truepair.engines.ensemble_model import EnsembleModel as EnsembleModel
    from truepair.errors import DivergedError as DivergedError
    from truepair.errors import InputError as InputError
    from truepair.errors import RunFolderError as RunFolderError
    from truepair.errors import TrainingError as TrainingError
    from truepair.errors import TruepairError as TruepairError
    from truepair.evaluation import evaluate as evaluate
    from truepair.evaluation.two_stage import TwoStage as TwoStage
    from truepair.evaluation.two_stage import evaluate_two_stage as evaluate_two_stage
    from truepair.loops.criterion import Criterion as Criterion
    from truepair.methods import build_method as build_method
    from truepair.pages.audit.page import audit_with_page as audit
    from truepair.serve.client import Client as Client
    from truepair.training.as_printed import as_printed as as_printed
    from truepair.training.fit import Run as Run
    from truepair.training.fit import fit as fit
    from truepair.training.fit import open_run as open_run
    from truepair.training.importing import import_checkpoint as import_checkpoint
    from truepair.training.setup import Setup as Setup

_NAMES = {
    "audit.of_arrays": ("audit_embeddings",),
    "data.collection": ("Collection",),
    "data.describe": ("describe",),
    "data.label_noise": ("inject_label_noise",),
    "data.noise": ("inject_noise",),
    "data.open": ("load", "open"),
    "data.pairs": ("Images", "Pairs", "Texts"),
    "engines.ensemble_model": ("EnsembleModel",),
    "errors": ("DivergedError", "InputError", "RunFolderError", "TrainingError", "TruepairError"),
    "evaluation": ("evaluate",),
    "evaluation.two_stage": ("TwoStage", "evaluate_two_stage"),
    "loops.criterion": ("Criterion",),
    "methods": ("build_method",),
    "serve.client": ("Client",),
    "training.as_printed": ("as_printed",),
    "training.fit": ("Run", "fit", "open_run"),
    "training.importing": ("import_checkpoint",),
    "training.setup": ("Setup",),
}
_HOME = {name: f"truepair.{module}" for module, names in _NAMES.items() for name in names}
_ROOMS = (
    *("audit", "correspondence", "data", "decisions", "engines", "evaluation"),
    *("loops", "losses", "methods", "search", "training", "transport"),
)

__all__ = ["__version__", "audit", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _ROOMS:
        return import_module(f"truepair.{name}")
    raise AttributeError(f"module 'truepair' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_ROOMS})


class _Audit(ModuleType):
    """The package `truepair.audit`; called, it is the function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from truepair.pages.audit.page import audit_with_page

        return audit_with_page(*arguments, **options)


class _Facade(ModuleType):
    """Python binds `truepair.audit` to the package as soon as a part of it is imported; it stays callable."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "audit" and isinstance(value, ModuleType):
            value.__class__ = _Audit
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
