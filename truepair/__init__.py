"""truepair: train, evaluate and audit cross-modal retrieval on image–text pairs that are partly mismatched.

The whole public interface, loaded when first used so that `import truepair` is instant:

    pairs = truepair.load("my_data")                       # or "scenes", the built-in drawings
    noisy = truepair.inject_noise(pairs, 0.4, seed=0)      # mismatch 40 % on purpose
    run = truepair.fit(noisy, method="crcl", dev=truepair.load("my_data", "dev"), out="runs/first")
    figures = truepair.evaluate(run.model, truepair.load("my_data", "test"))
    found = truepair.audit(pairs, "audits/first")          # which pairs are mismatched, and how sure that is
    found = truepair.audit_embeddings(images, texts)       # the same of two arrays
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from truepair.audit.of_arrays import audit_embeddings
    from truepair.data.collection import Collection
    from truepair.data.describe import describe
    from truepair.data.label_noise import inject_label_noise
    from truepair.data.noise import inject_noise
    from truepair.data.open import load, open
    from truepair.data.pairs import Images, Pairs, Texts
    from truepair.engines.ensemble_model import EnsembleModel
    from truepair.errors import InputError, RunFolderError, TrainingError, TruepairError
    from truepair.evaluation import evaluate
    from truepair.evaluation.two_stage import TwoStage, evaluate_two_stage
    from truepair.methods import build_method
    from truepair.pages.audit.audited import audit_with_page as audit
    from truepair.training.as_printed import as_printed
    from truepair.training.fit import Run, fit, open_run
    from truepair.training.importing import import_checkpoint
    from truepair.training.setup import Setup

_HOME = {
    "audit_embeddings": "truepair.audit.of_arrays",
    "describe": "truepair.data.describe",
    "inject_label_noise": "truepair.data.label_noise",
    "inject_noise": "truepair.data.noise",
    "Images": "truepair.data.pairs",
    "Pairs": "truepair.data.pairs",
    "Texts": "truepair.data.pairs",
    "Collection": "truepair.data.collection",
    "load": "truepair.data.open",
    "open": "truepair.data.open",
    "InputError": "truepair.errors",
    "RunFolderError": "truepair.errors",
    "TrainingError": "truepair.errors",
    "TruepairError": "truepair.errors",
    "evaluate": "truepair.evaluation",
    "TwoStage": "truepair.evaluation.two_stage",
    "evaluate_two_stage": "truepair.evaluation.two_stage",
    "build_method": "truepair.methods",
    "EnsembleModel": "truepair.engines.ensemble_model",
    "as_printed": "truepair.training.as_printed",
    "Run": "truepair.training.fit",
    "fit": "truepair.training.fit",
    "open_run": "truepair.training.fit",
    "import_checkpoint": "truepair.training.importing",
    "Setup": "truepair.training.setup",
}
_ROOMS = ("audit", "correspondence", "data", "engines", "evaluation", "losses", "methods", "training", "transport")

__all__ = [
    "Collection",
    "EnsembleModel",
    "Images",
    "InputError",
    "Pairs",
    "Run",
    "RunFolderError",
    "Setup",
    "Texts",
    "TrainingError",
    "TruepairError",
    "TwoStage",
    "__version__",
    "as_printed",
    "audit",
    "audit_embeddings",
    "build_method",
    "describe",
    "evaluate",
    "evaluate_two_stage",
    "fit",
    "import_checkpoint",
    "inject_label_noise",
    "inject_noise",
    "load",
    "open",
    "open_run",
]


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
        from truepair.pages.audit.audited import audit_with_page

        return audit_with_page(*arguments, **options)


class _Facade(ModuleType):
    """Python binds `truepair.audit` to the package as soon as a part of it is imported; it stays callable."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "audit" and isinstance(value, ModuleType):
            value.__class__ = _Audit
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
