"""The command line: arguments → one call below. Heavy imports happen inside the commands, so `--help` is instant."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from truepair import __version__
from truepair.cli.analyse import add_analyse
from truepair.cli.audit import add_audit
from truepair.cli.decisions import add_decisions
from truepair.cli.demo import add_demo
from truepair.cli.describe import add_describe
from truepair.cli.evaluate import add_evaluate
from truepair.cli.features import add_features
from truepair.cli.import_checkpoint import add_import
from truepair.cli.labels import add_labels
from truepair.cli.noise import add_noise
from truepair.cli.options import errors_name_options, flags_of
from truepair.cli.report import add_report
from truepair.cli.reproduce import add_reproduce
from truepair.cli.serve import add_serve
from truepair.cli.train import add_train
from truepair.data.config import DataConfig
from truepair.errors import TruepairError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 done, 2 an error the user can correct, 3 training diverged, 130 interrupted,
    141 nobody reads what is printed any more.
    """
    given = sys.argv[1:] if arguments is None else arguments
    warnings.formatwarning = lambda message, *_, **__: f"truepair: {message}\n"
    options = build_parser(given).parse_args(given)
    warnings.formatwarning = one_line
    warnings.filterwarnings("ignore", message="Image size .* exceeds limit")  # of Pillow: ours is told with the file
    try:
        with errors_name_options(flags_of(DataConfig)):  # of the data, which most commands read
            command: int | None = options.command(options)
        sys.stdout.flush()
        return command or 0
    except BrokenPipeError:  # `truepair … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return 141
    except TruepairError as error:
        print(f"truepair: error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:  # of a name that nothing else has looked at, such as one of 5,000 characters
        name = str(error.filename or "a file")
        shown = name if len(name) < 300 else f"{name[:80]} … ({len(name):,} characters)"
        print(f"truepair: error: {shown}: {error.strerror or error}; check the path", file=sys.stderr)
        return 2
    except MemoryError as error:
        what = f" ({error})" if str(error) else ""
        print(f"truepair: error: the memory does not suffice{what}; take fewer or smaller data", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ntruepair: interrupted", file=sys.stderr)
        return 130


def one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning without the place in the code that gave it."""
    return f"truepair: warning: {message}\n"


class Parser(argparse.ArgumentParser):
    """Takes options by their whole names: `--split` is not short for `--split-seed`. So do the parsers of commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})


def build_parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of every command; the help of `train` shows what belongs to the method and engine in `arguments`."""
    parser = Parser(prog="truepair", description="Retrieval from partly mismatched image–text pairs.")
    parser.add_argument("--version", action="version", version=f"truepair {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (add_demo, add_audit, add_decisions):
        add(commands)
    add_train(commands, arguments)
    for add in (add_features, add_evaluate, add_report, add_analyse, add_labels, add_noise, add_describe, add_import):
        add(commands)
    add_serve(commands)
    add_reproduce(commands)
    return parser
