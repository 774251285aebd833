"""Tensors in tuples, lists and dataclasses: encodings of an engine, whatever it makes of items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from torch import Tensor


def tensors_of(tree: Any) -> list[Tensor]:
    """All tensors, in a fixed order."""
    return [tree] if isinstance(tree, Tensor) else [tensor for part in children(tree) for tensor in tensors_of(part)]


def floats_of(tree: Any) -> list[Tensor]:
    """All tensors of floats, in a fixed order."""
    return [tensor for tensor in tensors_of(tree) if tensor.is_floating_point()]


def with_floats(tree: Any, tensors: Iterator[Tensor]) -> Any:
    """The same tree with other tensors of floats, in the order of `floats_of`."""
    if isinstance(tree, Tensor):
        return next(tensors) if tree.is_floating_point() else tree
    parts = [with_floats(part, tensors) for part in children(tree)]
    if isinstance(tree, tuple | list):
        return type(tree)(parts)
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **dict(zip((field.name for field in fields(tree)), parts, strict=True)))
    return tree


def children(tree: Any) -> list[Any]:
    if isinstance(tree, tuple | list):
        return list(tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        return [getattr(tree, field.name) for field in fields(tree)]
    return []
