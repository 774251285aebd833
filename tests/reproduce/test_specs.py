"""Every cell of every table is a command that the program takes, and every record is of its cell."""

import json
import re
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from truepair.cli.main import build_parser
from truepair.cli.train import job_of
from truepair.encoders.descriptor import DESCRIPTOR_SIZE
from truepair.errors import InputError
from truepair.methods import METHODS
from truepair.reproduce.__main__ import build_parser as reproduce_parser
from truepair.reproduce.held_out import build_parser as held_out_parser
from truepair.reproduce.limits import build_parser as limits_parser
from truepair.reproduce.records import read_records
from truepair.reproduce.tables import read_specs

ROOT = Path(__file__).parents[2]
TABLES, SECTIONS = read_specs()
PARSER = build_parser()
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]


@cache
def job_shown(command):
    """The job of a `truepair train` command, or of the run that is told the truth, its data being anywhere."""
    if command.startswith("python -m truepair.reproduce.limits "):
        base = parsed(command).run
        command = next(cell.command for cell in TABLES[base.parent.name].cells if cell.name == base.name)
    options = parsed(command)
    options.data = "scenes"
    return job_of(options)


def parsed(command):
    """The arguments a shown command stands for; a parser that refuses it ends the process."""
    if command.startswith("python -m truepair.reproduce "):
        return reproduce_parser().parse_args(command.split()[3:])
    if command.startswith("python -m truepair.reproduce.limits "):
        return limits_parser().parse_args(command.split()[3:])
    if command.startswith("python -m truepair.reproduce.held_out "):
        return held_out_parser().parse_args(command.split()[3:])
    assert command.startswith("truepair ")
    return PARSER.parse_args(command.split()[1:])


@pytest.mark.parametrize("table", TABLES.values(), ids=[*TABLES])
def test_cells_have_their_own_names_and_commands_that_the_program_takes(table):
    assert len({cell.name for cell in table.cells}) == len({cell.command for cell in table.cells}) == len(table.cells)
    for cell in table.cells:
        if cell.command.startswith("truepair train"):
            job = job_shown(cell.command)
            rates = {job.data.noise, job.data.label_noise} - {None, 0.0}
            assert rates == ({cell.facts["noise"]} if cell.facts["noise"] else set())
            assert job.setup.training.seed == cell.facts["seed"]
        else:
            parsed(cell.command)


def test_each_of_the_five_can_be_run_as_printed_and_with_our_defaults_on_every_set():
    """Three seeds, and the rates of the papers; the engine of as printed may be another than the paper's."""
    pairs, labels = ("crcl", "gsc", "ugncl", "disncl"), ("uot-rcl",)
    sets = {"fashion_precomp": pairs + labels, "flickr8k": pairs, "wikipedia": labels, "emoji": pairs + labels}
    asked = [(data, method) for data, methods in {**sets, "scenes": pairs}.items() for method in methods]
    cells = [cell for table in TABLES.values() for cell in table.cells if cell.command.startswith("truepair train")]
    for data, method in asked:
        here = [cell for cell in cells if cell.facts["data"] == data and f" --method {method} " in f"{cell.command} "]
        for rate in (0.2, 0.4, 0.6):
            there = [cell for cell in here if cell.facts["noise"] == rate]
            for printed in (True, False):
                seeds = {cell.facts["seed"] for cell in there if ("--as-printed" in cell.command) == printed}
                assert seeds >= {0, 1, 2}, (data, method, rate, printed)


def shown_in(text):
    """The commands of a page, in code blocks and within sentences, but for a name alone (`truepair audit`)."""
    shown = re.findall(r"`((?:truepair|python -m truepair\.reproduce) [^`\n…]+)`", text)
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.S | re.M):
        if kind:
            continue
        lines = (line.split("#")[0].strip() for line in block.splitlines())
        shown += [line for line in lines if re.match(r"truepair \S|python -m truepair\.reproduce ", line)]
    return [command for command in shown if not re.fullmatch(r"truepair \w+", command)]


@pytest.mark.parametrize("file", PAGES)
def test_every_command_that_the_documentation_shows_is_one(file):
    """Upper-case words stand for what a person puts there."""
    for command in shown_in((ROOT / file).read_text()):
        given = re.sub(r'"[^"]*"', "x", command)
        parsed(re.sub(r"seed S\b", "seed 0", re.sub(r"--method M\b", "--method crcl", given)))


def test_commands_are_found_in_pages():
    found = {file: len(shown_in((ROOT / file).read_text())) for file in PAGES}
    assert found["README.md"] > 20 and sum(count > 0 for count in found.values()) > 20
    assert shown_in(
        "`truepair audit` and `truepair audit x --out y`\n```\ntruepair  2.6 s\ntruepair train z # so\n```"
    ) == [
        "truepair audit x --out y",
        "truepair train z",
    ]


@pytest.mark.parametrize("table", TABLES.values(), ids=[*TABLES])
def test_records_are_of_todays_commands_and_settings(table):
    """A default that moves would change what a command means: then the record is of another run."""
    cells = {cell.name: cell for cell in table.cells}
    for record in read_records(ROOT / "results" / f"{table.name}.jsonl"):
        cell = cells[record["name"]]
        assert record["command"] == cell.command
        assert record["cell"].items() <= cell.facts.items()
        if "options" in record:
            job, options = job_shown(cell.command), record["options"]
            setup, method = job.setup, METHODS[job.method].options(**job.method_options)
            assert options["method"]["name"] == job.method
            for now, kept in (
                (method, options["method"]["options"]),
                (setup.model, options["model"]),
                (setup.augmentation, options.get("augmentation", {})),  # an engine may have none
                (setup.training, {**options["training"], "device": "auto"}),
            ):
                if now is None:
                    assert not kept
                    continue
                told = json.loads(json.dumps(asdict(now)))  # tuples are lists in a record
                assert told.items() >= {key: value for key, value in kept.items() if key in told}.items()


@pytest.mark.parametrize("table", ["noise", "noise-local", "labels"])
def test_records_are_of_todays_data(table, fashion, tmp_path, monkeypatch):
    """A source that is read in another way than it was would make its records those of other pairs. Pictures are read,
    and what is left out with them; their features, most of the work, are zeros, in a cache of their own.
    """
    from truepair.data.open import load_splits

    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path))
    empty = np.zeros((36, DESCRIPTOR_SIZE), dtype=np.float32)
    monkeypatch.setattr("truepair.encoders.windows.grid_descriptor", lambda pixels, grid: empty)

    records = {record["name"]: record for record in read_records(ROOT / "results" / f"{table}.jsonl")}
    for data in {cell.facts["data"] for cell in TABLES[table].cells}:
        cells = (cell for cell in TABLES[table].cells if cell.facts["data"] == data and cell.name in records)
        cell = next(cell for cell in cells if cell.facts.get("method") != "oracle")
        kept = records[cell.name]
        source = replace(job_shown(cell.command).data, source=str(fashion.parent / data))
        assert len(load_splits(source, seed=0).train) == kept["result"]["pairs"]


def test_what_sections_show_exists():
    for section in SECTIONS:
        assert set(section.tables) <= set(TABLES)
        for part in [*section.head, *section.parts]:
            assert {"figure", "kept", "recalls", "origin"} & set(part)


def test_bad_options_of_the_runner_are_sentences(capsys):
    from truepair.reproduce.runner import chosen_cells

    cells = TABLES["noise"].cells
    chosen = chosen_cells(cells, {"method": ["gsc"], "noise": [0.4], "seed": [0, 2]})
    assert [cell.facts["seed"] for cell in chosen] == [0, 2]
    shuffled = chosen_cells(TABLES["grand"].cells, {"kind": ["caption"], "noise": [0.4], "method": ["ncr"]})
    assert shuffled and all("kind" not in cell.facts for cell in shuffled)
    with pytest.raises(InputError, match="no run of this table has noise 0.3; there are 0.0, 0.2, 0.4"):
        chosen_cells(cells, {"noise": [0.3]})
    with pytest.raises(SystemExit):
        reproduce_parser().parse_args(["run", "nonsense"])
    assert "invalid choice" in capsys.readouterr().err
