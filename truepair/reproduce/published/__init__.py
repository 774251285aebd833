"""Tables that the papers print: as data, checked, and run again (`truepair reproduce`).

`printed` reads the figures as they were printed, `checks` says which of them cannot be right or contradict each other,
`page` shows that in `docs/print.md`.
"""
