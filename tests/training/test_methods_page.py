"""docs/methods.md is what the presets and the methods say. Remake with `python -m tests.training.test_methods_page`."""

import re
from dataclasses import asdict, fields
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
import torch

import truepair
from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.memory import GivenClasses
from truepair.methods import METHODS, build_method
from truepair.reproduce.figures.figure import read_figures
from truepair.reproduce.tables import read_specs

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"
HEAD = """\
# Methods as printed

Every setting and equation of a paper that options express is one value: `truepair.as_printed("gsc")`, or `--as-printed`
on the command line. Below: each default here that is another, and why; what the print does not say, so that the
default stands; and what it says and no option expresses yet. "As printed" is true but for the last. Of each paper also:
which function computes which equation, and how the rows of its tables and its figures are run (names of tables
and figures are those of `python -m truepair.reproduce`; `docs/results.md` has the results that are there).

This page is made from the presets beside the methods (`tests/training/test_methods_page.py`); a test says whether it is
current.
"""


def page():
    return "\n".join([HEAD, *(section(name) for name in METHODS)])


PRINTED = [name for name in METHODS if METHODS[name].method.printed is not None]


def section(name):
    if name not in PRINTED:
        own = "Our own; nothing is printed of it but [its page](truepair-method.md)."
        return "\n".join([f"## `{name}`", "", own, "", f"Kept of every pair: {', '.join(kept(name))}.", ""])
    printed = truepair.as_printed(name)
    lines = [
        f"## `{name}`",
        "",
        f"Source: {printed.preset.source}.",
        f"Engines: {', '.join(printed.preset.models)}.",
        "",
    ]
    lines += ["| option | as printed | default | why the default is another |", "|---|---|---|---|"]
    for each in printed.departures:
        option = "--model" if each.option == "model" else f"`{each.option}`"
        lines.append(f"| {option} | {shown(each.printed)} | {shown(each.default)} | {each.reason} |")
    for title, entries in (
        ("Equation → function", equations(printed.preset)),
        ("Tables and figures", rows(printed.preset)),
    ):
        lines += ["", f"{title}:", "", *entries] if entries else []
    other = [
        f"`--printed-for {data}`: "
        + ", ".join(f"{option} {shown(value)}" for part in change.values() for option, value in part.items())
        for data, change in printed.preset.for_data.items()
    ]
    lines += ["", "For other data:", "", *(f"- {entry}" for entry in other)] if other else []
    for title, entries in (("Not said", printed.preset.silent), ("Not expressed", printed.preset.not_expressed)):
        lines += ["", f"{title}:", "", *(f"- {entry}" for entry in entries)] if entries else []
    return "\n".join([*lines, "", f"Kept of every pair: {', '.join(kept(name))}.", ""])


def equations(preset):
    return [f"- {printed}: `truepair.{place.replace(':', '.')}`" for printed, place in preset.equations.items()]


def rows(preset):
    return [f"- {row}: {how}" for row, how in preset.rows.items()]


def shown(value):
    if hasattr(value, "gives_vectors"):
        return f"{value.name}: " + ", ".join(f"{key} {item}" for key, item in asdict(value).items())
    return "from other settings" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def kept(name):
    method, memory = build_method(name), CorrespondenceMemory(2, GivenClasses(torch.tensor([0, 1]), 2))
    method.prepare(memory)
    for field in memory.tensors():
        known = method.fields.get(field)
        yield f"`memory_{field}` ({known.name})" if known else f"`memory_{field}`"


@pytest.mark.parametrize("name", PRINTED)
def test_every_equation_has_its_function_and_every_table_named_exists(name):
    preset = truepair.as_printed(name).preset
    for place in preset.equations.values():
        module, _, function = place.partition(":")
        assert callable(attrgetter(function)(import_module(f"truepair.{module}")))
    known = {option.name for option in fields(METHODS[name].options)}
    for how in preset.rows.values():
        for word in re.findall(r"`([^`]+)`", how):
            option = re.match(rf"--{name}-([\w-]+)", word)
            if option:
                assert option[1].replace("-", "_") in known
            elif re.fullmatch(r"[a-z]+-[0-9a-z-]+", word):
                assert word in {*read_specs()[0], *read_figures()}


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
