"""The figures of the papers, drawn from runs: `python -m truepair.reproduce figure NAME`.

A figure is a `[figures.NAME]` of `figures.toml`: which paper's, how it is drawn (a function of `from_records` or
`from_runs`), and from which records or runs.
"""
