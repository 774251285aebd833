"""The bounds of options: every kind of bound, in words."""

from dataclasses import dataclass
from typing import Literal

import pytest

from truepair.errors import InputError
from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class Some(Options):
    rate: float = option(0.5, "a rate", above=0)
    share: float = option(0.5, "a share", **SHARE)
    dropout: float = option(0.5, "a dropout", least=0, below=1)
    floor: float = option(-1.0, "a floor", below=0)
    count: int | None = option(None, "a count", least=2)
    any: float = option(0.0, "any number")
    kind: Literal["a", "b"] = option("a", "a kind")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": 0.0}, "rate is 0.0; expected a value above 0"),
        ({"share": 1.1}, r"share is 1.1; expected a value in \[0, 1\]"),
        ({"share": -0.1}, r"share is -0.1; expected a value in \[0, 1\]"),
        ({"dropout": 1.0}, r"dropout is 1.0; expected a value in \[0, 1\)"),
        ({"floor": 0.0}, "floor is 0.0; expected a value below 0"),
        ({"count": 1}, "count is 1; expected at least 2"),
        ({"any": float("nan")}, "any is nan; expected a finite number"),
        ({"rate": float("inf")}, "rate is inf; expected a value above 0"),
        ({"kind": "c"}, "kind is 'c'; expected one of a, b"),
    ],
)
def test_values_out_of_bounds_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        Some(**options)


def test_bounds_themselves_and_no_value_are_taken():
    assert Some(share=0.0, dropout=0.0, count=2) == Some(share=0, dropout=0, count=2)
    assert Some(share=1.0).count is None
