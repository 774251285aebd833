"""The pages of the methods: equations have functions, tables named exist, and changes are paired by seed."""

import argparse
import re
from dataclasses import fields
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

import truepair
from truepair.cli.options import add_options, given_options
from truepair.methods import METHODS
from truepair.reproduce.figures.figure import read_figures
from truepair.reproduce.render.method_pages import changed, linked, method_pages, row_of
from truepair.reproduce.report import PRINTED as PRINTED_TABLES
from truepair.reproduce.tables import Filled, read_specs

ROOT = Path(__file__).parents[2]
PRINTED = [name for name in METHODS if METHODS[name].method.printed is not None]
FIVE = ["crcl", "gsc", "ugncl", "disncl", "uot-rcl"]
TABLE = read_specs()[0]["departures"]
EQUATIONS = {  # those of each paper that define what is computed
    "crcl": {3, 6, *range(8, 13)},  # 7 is a bound of the risk: proved, not computed
    "gsc": {*range(3, 11)},
    "ugncl": {*range(2, 19)},
    "disncl": {*range(1, 13)},
    "uot-rcl": {*range(1, 21)},
}
SHOWN = {  # tables and figures of results, but for those of other people's methods and of pictures
    "crcl": ["Table 4", "Fig. 1", "Fig. 3", "Fig. 4"],
    "gsc": ["Table 5", "Table 6", "Fig. 2", "Fig. 4", "Fig. 5"],
    "ugncl": ["Table 4", "Fig. 3"],
    "disncl": ["Table I", "Table V", "Fig. 4", "Fig. 5", "Fig. 6"],
    "uot-rcl": ["Table IV", "Fig. 3", "Fig. 4", "Fig. 5", "Fig. 6", "Fig. 7", "Fig. 8"],
}


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


@pytest.mark.parametrize("name", PRINTED)
def test_links_of_equations_lead_to_the_line_of_the_function(name):
    for place in truepair.as_printed(name).preset.equations.values():
        path, line = re.search(r"\(\.\./\.\./(.*)#L(\d+)\)", linked(place)).groups()
        function = place.rpartition(":")[2].rpartition(".")[2]
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1 :]
        said = next(each for each in lines if not each.strip().startswith("@"))
        assert re.match(rf"\s*(def|class) {function}\b", said), place


@pytest.mark.parametrize("name", FIVE)
def test_the_page_of_each_of_the_five_has_all_equations_tables_and_figures_of_its_paper(name):
    preset = truepair.as_printed(name).preset
    found = set()
    for what in preset.equations:
        for first, last in re.findall(
            r"(\d+)(?:–(\d+))?", "" if what.startswith(("Fig", "Alg")) else what.split(":")[0]
        ):
            found |= {*range(int(first), int(last or first) + 1)}
    assert EQUATIONS[name] <= found
    assert [what for what in SHOWN[name] if what not in preset.rows] == []


@pytest.mark.parametrize("name", FIVE)
def test_every_departure_of_an_option_of_the_five_has_its_row(name):
    rows = {cell.facts["method"] for cell in TABLE.cells}
    options = [each.option for each in truepair.as_printed(name).departures if each.option.startswith("method.")]
    assert {row_of(name, option) for option in options} <= rows


@pytest.mark.parametrize("name", FIVE)
def test_a_row_changes_the_option_to_the_printed_value(name):
    """The command of the row, read as train reads it, gives the printed value."""
    for each in truepair.as_printed(name).departures:
        if each.option.startswith("method."):
            row = row_of(name, each.option)
            command = next(cell.command for cell in TABLE.cells if cell.facts["method"] == row)
            parser = argparse.ArgumentParser()
            add_options(parser, name, METHODS[name].options, prefix=f"{name}-")
            arguments, _ = parser.parse_known_args(command.split())
            given = given_options(arguments, METHODS[name].options, prefix=f"{name}-")
            assert given[each.option.partition(".")[2]] == each.printed


def test_every_option_of_a_method_that_the_documentation_names_is_one():
    known = {
        f"--{name}-{option.name}".replace("_", "-") for name in METHODS for option in fields(METHODS[name].options)
    }
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for word in re.findall(rf"(?<![\w-])--(?:no-)?((?:{'|'.join(METHODS)})-[a-z0-9-]*[a-z0-9])", page.read_text()):
            assert f"--{word}" in known, f"{page.name} names --{word}"


def record(method, seed, rsum):
    found = {"cell": {"method": method, "seed": seed}, "result": {"test": {"rsum": rsum}}}
    return {**found, "command": f"truepair train x --method {method} --seed {seed}"}


def test_differences_are_paired_by_seed():
    (each,) = (one for one in truepair.as_printed("ugncl").departures if one.option == "method.tolerance")
    rows = {
        "ugncl": [record("ugncl", 0, 200.0), record("ugncl", 1, 300.0), record("ugncl", 2, 400.0)],
        "ugncl-tolerance": [record("ugncl-tolerance", 1, 290.0), record("ugncl-tolerance", 2, 386.0)],
    }
    assert changed("ugncl", each, rows, "result.test.rsum") == "−12.0 ± 2.8"
    assert changed("ugncl", each, {**rows, "ugncl-tolerance": []}, "result.test.rsum") == "–"
    assert changed("ugncl", each, {**rows, "ugncl": rows["ugncl"][:2]}, "result.test.rsum") == "−10.0 (one seed)"


def test_what_else_a_row_changes_is_named():
    def options(**training):
        return {"options": {"method": {"options": {"tolerance": 1}}, "training": training, "augmentation": {}}}

    (each,) = (one for one in truepair.as_printed("ugncl").departures if one.option == "training.optimizer")
    run, base = record("ugncl-optimizer", 0, 290.0), record("ugncl", 0, 300.0)
    run |= options(optimizer="adam", weight_decay=0.0, seed=1)
    base |= options(optimizer="adamw", weight_decay=0.1, seed=0)
    rows = {"ugncl": [base], "ugncl-optimizer": [run]}
    assert changed("ugncl", each, rows, "result.test.rsum") == "−10.0 (one seed), with `training.weight_decay`"
    base["options"]["training"]["weight_decay"] = 0.0
    assert changed("ugncl", each, rows, "result.test.rsum") == "−10.0 (one seed)"


def test_a_setting_that_diverges_says_so_and_is_no_difference():
    (each,) = (one for one in truepair.as_printed("ugncl").departures if one.option == "method.tolerance")
    gone = [{**record("ugncl-tolerance", seed, 0.0), "diverged": {"epoch": 3 + seed}} for seed in (0, 1)]
    whole = [record("ugncl", 0, 200.0)]
    assert changed("ugncl", each, {"ugncl": whole, "ugncl-tolerance": gone}, "result.test.rsum") == (
        "diverges in epoch 3 or 4"
    )
    some = {
        "ugncl": [*whole, record("ugncl", 2, 300.0)],
        "ugncl-tolerance": [*gone, record("ugncl-tolerance", 2, 290.0)],
    }
    assert changed("ugncl", each, some, "result.test.rsum") == ("−10.0 (one seed); 2 of 3 runs diverge in epoch 3 or 4")
    rows = {"ugncl": [*whole, gone[1]], "ugncl-tolerance": [record("ugncl-tolerance", 0, 190.0), record("x", 1, 9.0)]}
    assert changed("ugncl", each, rows, "result.test.rsum") == "−10.0 (one seed)"


@pytest.mark.parametrize("name", FIVE)
def test_the_page_shows_what_all_printed_settings_change_together(name):
    map_of = {"map": 0.3} if name == "uot-rcl" else {}
    rate = 0.8 if map_of else 0.4
    base = [{**record(name, seed, 300.0), "result": {"test": {"rsum": 300.0} | map_of}} for seed in (0, 1)]
    for one in base:
        one["cell"]["noise"] = rate
        if map_of:
            del one["result"]["test"]["rsum"]
    whole = [record(f"{name}-as-printed", 0, 290.0), record(f"{name}-as-printed", 1, 250.0)]
    for one, noise in zip(whole, (rate, 0.6), strict=True):
        one["cell"]["noise"] = noise
        one["result"]["test"] |= {"map": 0.29} if map_of else {}
    page = method_pages(Filled(TABLE, base), whole)[f"methods/{name}.md"]
    change = "−0.010 (one seed)" if map_of else "−10.0 (one seed)"
    assert re.search(rf"\| all of these[^|]* \| \| \| \| {re.escape(change)} \|\n", page)
    runs = [cell for table in PRINTED_TABLES for cell in read_specs()[0][table].cells]
    assert f"{name}-as-printed" in {cell.facts["method"] for cell in runs if cell.facts["noise"] == rate}


def test_every_method_has_its_page_and_its_line():
    pages = method_pages(Filled(TABLE, []))
    assert set(pages) == {"methods.md", *(f"methods/{name}.md" for name in METHODS)}
    for name in METHODS:
        assert f"(methods/{name}.md)" in pages["methods.md"]
