"""What linear models find of mismatched pairs before our method trains on them: its first labels, looked at alone.

`python -m truepair.reproduce.held_out DATA --noise RATE --seed SEED` shows our method all pairs as a training does
before its first epoch, ends there, and prints a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from truepair.reproduce.cells import Cell, Context, Places, Record
from truepair.reproduce.processes import truepair

MODULE = "truepair.reproduce.held_out"


def held_out_cells(
    at: Context,
    *,
    part: str,
    data: str,
    rates: Sequence[float],
    settings: str = "",
    seeds: Sequence[int] = (0, 1, 2),
) -> Iterator[Cell]:
    """Noise rates × seeds of one source, or of the part of it that the settings take."""
    for seed in seeds:
        for rate in rates:
            facts: dict[str, Any] = {"data": data, "part": part, "noise": rate, "seed": seed}
            words = ["--noise", str(rate), "--seed", str(seed), *settings.split()]
            command = " ".join([f"python -m {MODULE}", data, *words])
            name = f"{part}-noise{round(100 * rate)}-seed{seed}".replace(" ", "-").replace(",", "")
            yield Cell(name, facts, command, partial(measure_held_out, data, words))


def measure_held_out(data: str, words: list[str], places: Places) -> Record:
    printed = truepair(places.source(data), *words, module=MODULE)
    return {"threads": 1, "held_out": json.loads(printed.splitlines()[-1])}


def build_parser() -> argparse.ArgumentParser:
    """Options of `truepair train` that say which pairs there are."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("data", help="as of truepair train")
    parser.add_argument("--noise", type=float, required=True, help="share of pairs to mismatch on purpose, in [0, 1]")
    parser.add_argument("--seed", type=int, default=0, help="of these, and of the order of the pairs [0]")
    parser.add_argument("--train-pairs", type=int, help="the first N pairs only [all]")
    parser.add_argument("--encoder", help="what pictures are described by, as of truepair train")
    return parser


def main(arguments: Sequence[str]) -> None:
    from truepair.data.config import DataConfig
    from truepair.reproduce.linear_models import look

    options = build_parser().parse_args(arguments)
    data = DataConfig(options.data, noise=options.noise, train_pairs=options.train_pairs, encoder=options.encoder)
    print(json.dumps(look(data, options.seed)))


if __name__ == "__main__":
    main(sys.argv[1:])
