"""Puts tables and pictures into the documentation, or says where it differs from the records."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truepair.errors import InputError
from truepair.files import write_bytes_atomically, write_text_atomically
from truepair.reproduce.figures.figure import redraw
from truepair.reproduce.published.page import check_of_print
from truepair.reproduce.records import finished_and_diverged, text_of
from truepair.reproduce.render.ablation import ablation
from truepair.reproduce.render.ablation_beside_print import ablation_beside_print
from truepair.reproduce.render.against import against
from truepair.reproduce.render.analysis import analyses
from truepair.reproduce.render.audit import audits, audits_by_method, embedding_audits, retraining
from truepair.reproduce.render.beside_print import beside_print
from truepair.reproduce.render.by_noise import by_noise
from truepair.reproduce.render.grand import grand, page_of
from truepair.reproduce.render.held_out import held_out
from truepair.reproduce.render.markdown import WARM_UP, of_versions, of_warm_up
from truepair.reproduce.render.method_pages import method_pages
from truepair.reproduce.render.reviews import reviews
from truepair.reproduce.render.values import divisions, values
from truepair.reproduce.tables import Filled, read_specs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RENDER: dict[str, Callable[..., str]] = {
    render.__name__: render
    for render in (
        values,
        divisions,
        ablation,
        ablation_beside_print,
        against,
        by_noise,
        analyses,
        held_out,
        audits,
        audits_by_method,
        embedding_audits,
        retraining,
        reviews,
        grand,
        beside_print,
    )
}
METHODS = "departures"
"""The table that the pages of the methods show."""
PRINTED = ("as-printed-global", "labels-as-printed")
"""Tables of runs as printed as a whole, which they show beside it."""
PRINT = "print"
"""The name of the page that shows the figures of the papers, beside the names of tables."""


def report(root: Path, names: Sequence[str], *, check: bool = False) -> list[str]:
    """Render what shows the tables named, figures of their records too, where these are drawn; a sentence for each file
    that was, or with `check` would be, changed.
    """
    changes: list[str] = []
    tables, sections = read_specs()
    for section in sections:
        read = {each for name in section.tables for each in (name, *tables[name].reuses)}
        if read & set(names):
            if section.awaits_runs and not tables[section.tables[0]].records(root / "results"):
                text = f"No run yet: `python -m truepair.reproduce run {section.tables[0]}`."
                changes += put_text(root / section.file, section.marker, text, check=check)
                continue
            filled = [fill(root, name) for name in section.tables]
            text = RENDER[section.render](section, *filled)
            records = [record for shown in filled for record in (*shown.records, *shown.diverged)]
            notes = of_warm_up(records) if WARM_UP in text else "", of_versions(records)
            text = "\n\n".join(filter(None, (text, *notes)))
            changes += put_text(root / section.file, section.marker, text, check=check)
            if "page" in section.options:
                changes += put_page(root / section.options["page"], page_of(filled[0]), check=check)
            if "picture" in section.options:
                path = (root / section.file).with_name(section.options["picture"])
                changes += put_picture(path, section.render, filled[0], check=check)
    if {METHODS, *PRINTED} & {*names}:
        whole = [record for name in PRINTED for record in tables[name].records(root / "results")]
        for name, page in method_pages(fill(root, METHODS), whole).items():
            changes += put_page(root / "docs" / name, page, check=check)
    changes += redraw(root / "docs" / "figures", root / "results", names, check=check)
    if PRINT in names:
        changes += put_text(root / "docs" / "print.md", "check of print", check_of_print(), check=check)
    return changes


def fill(root: Path, name: str) -> Filled:
    """A table with its records; an InputError where there are none, or one is of no cell of the table."""
    path, table = root / "results" / f"{name}.jsonl", read_specs()[0][name]
    records = table.records(root / "results")
    if not records:
        raise InputError(f"{path} holds no records; run python -m truepair.reproduce run {name} first")
    others = {record["name"] for record in records} - {cell.name for cell in table.cells}
    if others:
        raise InputError(f"{path} holds {min(others)}, which is no run of the table; delete its line, or add a grid")
    return Filled(table, *finished_and_diverged(records))


def put_text(path: Path, marker: str, text: str, *, check: bool = False) -> list[str]:
    """Replace what stands between `<!-- MARKER: begin -->` and `<!-- MARKER: end -->`; a sentence if it differs. An
    InputError where the file lacks the markers.
    """
    content = path.read_text(encoding="utf-8") if path.exists() else ""
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    if content.count(begin) != 1 or content.count(end) != 1 or content.index(begin) > content.index(end):
        raise InputError(f"{path} lacks the lines {begin} and {end}, once each and in this order; put them back")
    before, rest = content.split(begin)
    there, after = rest.split(end)
    wanted = f"\n\n{text}\n\n"
    if there == wanted:
        return []
    if not check:
        write_text_atomically(path, f"{before}{begin}{wanted}{end}{after}")
    return [f"{path}, {marker}: " + next((x for x in there.splitlines() if x not in wanted.splitlines()), "lines lack")]


def put_page(path: Path, page: str, *, check: bool = False) -> list[str]:
    """Write a page; a sentence if it differs."""
    if path.exists() and path.read_text(encoding="utf-8") == page:
        return []
    if not check:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, page)
    return [f"{path}: it shows other records"]


def put_picture(path: Path, kind: str, shown: Filled, *, check: bool = False) -> list[str]:
    """Draw the picture of a kind of section with a digest of their records; one that carries it already stays."""
    digest = f"records {hashlib.sha256(text_of(shown.records).encode()).hexdigest()}"
    if path.exists() and digest.encode() in path.read_bytes():
        return []
    if not check:
        from truepair.reproduce.render.audit_picture import estimate_picture
        from truepair.reproduce.render.review_picture import review_picture

        draw: dict[str, Callable[[Filled], Figure]] = {"audits": estimate_picture, "reviews": review_picture}
        png = io.BytesIO()
        draw[kind](shown).savefig(png, format="png", metadata={"Software": None, "Description": digest})
        write_bytes_atomically(path, png.getvalue())
    return [f"{path}: it shows other records"]
