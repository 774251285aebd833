"""The bounds of options: every kind of bound, in words."""

from dataclasses import dataclass
from typing import Literal

import pytest

from truepair.errors import InputError
from truepair.option import SHARE, Options, idle_beside, option


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


@dataclass(frozen=True)
class WithTerms(Options):
    kind: Literal["a", "b", "none"] = option("a", "which term")
    term_weight: float = option(1.0, "its weight", least=0, idle={"kind": ("none",)})
    curve: float = option(2.0, "its curve", idle={"kind": ("b", "none"), "term_weight": (0,)})
    drawn: int = option(1, "what both read", idle_together={"kind": ("b", "none"), "term_weight": (0,)})


def test_options_without_effect_are_named_with_what_takes_it_from_them():
    def idle(**given):
        return [*idle_beside(WithTerms(**given), given)]

    assert idle(term_weight=0.5, curve=3.0) == []
    assert idle(kind="b", term_weight=0.5, curve=3.0) == [("curve", "kind")]
    assert idle(kind="none", term_weight=0.5) == [("term_weight", "kind")]
    assert idle(kind="none", term_weight=0.0) == []  # both leave the term out
    assert idle(term_weight=0.0, curve=3.0) == [("curve", "term_weight")]
    assert idle(kind="b", term_weight=0.0, drawn=2)[-1] == ("drawn", "kind")
    assert idle(kind="b", drawn=2) == idle(term_weight=0.0, drawn=2) == []  # only both together
    assert [*idle_beside(WithTerms(kind="none"), ())] == []  # of those that are not asked about, nothing is said
