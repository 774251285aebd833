"""The folder of a transformers model: what must lie in it, its digest, and where it comes from.

Weights are read from .safetensors files alone. A pickle can run any program when it is read, and is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from truepair.errors import InputError
from truepair.files import read_json_object

CONFIG = "config.json"
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
TOKENIZERS = (
    *("tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
SMALL = (
    *(CONFIG, *PROCESSORS, *TOKENIZERS),
    *("merges.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
)
"""The files beside the weights that determine what a model computes."""
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_BLOCK = 1 << 22


def is_model_folder(folder: Path) -> bool:
    """Whether a folder says of itself that it holds a transformers model."""
    try:
        return isinstance(json.loads((folder / CONFIG).read_text(encoding="utf-8")).get("model_type"), str)
    except (OSError, ValueError, AttributeError):
        return False


def model_type(folder: Path) -> str:
    """The kind of model, such as "clip".

    Raises:
        InputError: there is no config.json, or it does not say.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} holds no {CONFIG}; expected the folder of a transformers model")
    kind = read_json_object(folder / CONFIG, "the configuration of a transformers model").get("model_type")
    if not isinstance(kind, str):
        raise InputError(f"{folder / CONFIG} names no model_type; expected the folder of a transformers model")
    return kind


def check_files(folder: Path, *, weights: bool = True) -> None:
    """Refuse a folder in which something is missing.

    Args:
        weights: whether there must be some.

    Raises:
        InputError: names what is missing and where it comes from; or the weights are pickles.
    """
    model_type(folder)
    names = {path.name for path in folder.iterdir()}
    for what, wanted in (("tokenizer", TOKENIZERS), ("image processor", PROCESSORS)):
        if not names & set(wanted):
            raise InputError(
                f"{folder} holds no {what} ({', '.join(wanted[:2])}, …); copy that of its model there: it belongs to "
                "the weights"
            )
    if not weights or any(name.endswith(".safetensors") for name in names):
        return
    pickled = sorted(name for name in names if name.endswith(PICKLES))
    if pickled:
        raise InputError(
            f"{folder}: its weights are a pickle ({pickled[0]}), which can run any program when it is read, and is "
            "not. Take the model.safetensors of the same model, or write one where you trust the file "
            "(model.save_pretrained)"
        )
    raise InputError(f"{folder} holds no weights; expected model.safetensors beside its {CONFIG}")


def digest(folder: Path) -> str:
    """A hash of weights, configuration, tokenizer and image processor: of all that determines the features."""
    files = sorted(path for path in folder.iterdir() if path.name in SMALL or path.suffix == ".safetensors")
    return _digest(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files))


@lru_cache(maxsize=8)
def _digest(files: tuple[tuple[Path, int, int], ...]) -> str:
    found = hashlib.blake2b(digest_size=8)
    for path, size, _ in files:
        found.update(f"\0{path.name}\0{size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
    return found.hexdigest()


def is_hub_name(name: str) -> bool:
    """Whether it could be a model of the hub, such as openai/clip-vit-base-patch32."""
    return _HUB_NAME.fullmatch(name) is not None


def fetch(name: str) -> Path:
    """The folder of a model of the hub: from its cache on this machine, else downloaded.

    Raises:
        InputError: it is not in the cache, and the hub cannot be reached or has no such model.
    """
    wanted = ["*.json", "*.txt", "*.model", "*.safetensors"]
    library: Any = required("huggingface_hub")
    try:
        return Path(library.snapshot_download(name, allow_patterns=wanted, local_files_only=True))
    except (OSError, ValueError):
        pass
    try:
        return Path(library.snapshot_download(name, allow_patterns=wanted, etag_timeout=10))
    except Exception as error:  # whatever the network, the proxy or the hub come up with
        raise InputError(
            f"{name} is no folder on this machine, and the hub did not give a model of that name "
            f"({_first_line(error)}). Without a network, download it elsewhere (hf download {name} --local-dir FOLDER) "
            "and give the folder"
        ) from error


def required(module: str) -> Any:
    """A module of the extra, imported.

    Raises:
        InputError: the extra is not installed.
    """
    from importlib import import_module

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # else it warns when workers are forked
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"models of transformers need its library: pip install 'truepair[hf]' ({error})") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".:")[:200]
