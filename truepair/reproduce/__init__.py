"""The tables of the documentation, made again: `python -m truepair.reproduce list`, `run TABLE`, `report [TABLE]`.

A table is data: `specs/` says which runs it holds, `results/TABLE.jsonl` keeps a line of each, `render/` shows them.
The tables that the papers print are in `published/` (`truepair reproduce`).
"""
