"""The files of an audit: what stands in them, what hostile input cannot do, and what happens when writing fails."""

import json
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest
from pyarrow import parquet

from tests.pages.audit.made_result import HOSTILE, made_collection, made_result
from truepair.audit.result import AuditResult, Fault, Share
from truepair.audit.tables import pair_table, summary_text, write_audit
from truepair.audit.tables.summary import statement, swaps_of
from truepair.audit.tables.text import columns_of
from truepair.errors import InputError, TruepairError
from truepair.pages.audit.page import render_page

FILES = {"report.html", "pairs.parquet", "summary.json", "problems.parquet", "duplicates.parquet", "faults.parquet"}


class Tags(HTMLParser):
    """The tags, attributes and text of a page; complains where tags do not close in order."""

    VOID = frozenset({"meta", "img", "br", "line", "rect", "circle", "path", "polyline"})

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.attributes, self.words = [], [], [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data.replace("\xa0", " ")


def written(tmp_path, *, worst=60, **options) -> tuple[AuditResult, dict]:
    result = made_result(**options)
    paths = write_audit(result, tmp_path, page=partial(render_page, worst=worst))
    assert {path.name for path in paths} == FILES == {path.name for path in tmp_path.iterdir()}
    return result, {path.name: path for path in paths}


def naive_rows(result):
    """What pairs.parquet must say, pair by pair."""
    collection, found = result.collection, result.rematch
    groups = sorted(enumerate(result.duplicates), key=lambda entry: entry[0])
    rows = []
    for position, row in enumerate(result.rows.tolist()):

        def named(where, read):
            return read(where, where + 1)[0].replace("\ud800", "?")

        seat = {int(p): s for s, p in enumerate(found.rows)}.get(row)
        caption = -1 if seat is None else int(found.caption_from[seat])
        image = -1 if seat is None else int(found.image_from[seat])
        swap = -1 if seat is None else int(found.swap_with[seat])
        inside = [(number, group) for number, group in groups if row in group.rows]
        first = int(inside[0][1].rows[0]) if inside else row
        rows.append(
            {
                "pair_id": f"p{row}",
                "row": row,
                "image": f"dir/image {row}.png",
                "caption": named(row, collection.captions),
                "p_match": result.verdict.p_match[position],
                "flagged": bool(result.verdict.flagged[position]),
                "reason": result.reasons[position],
                "similarity": result.similarity[position],
                **{f"indicator_{name}": values[position] for name, values in result.indicators.items()},
                "proposed_caption": None if caption < 0 else named(caption, collection.captions),
                "proposed_caption_pair": None if caption < 0 else named(caption, collection.ids),
                "proposed_caption_fit": None if caption < 0 else found.caption_fit[seat],
                "proposed_image": None if image < 0 else named(image, collection.image_names),
                "proposed_image_pair": None if image < 0 else named(image, collection.ids),
                "proposed_image_fit": None if image < 0 else found.image_fit[seat],
                "swap_with": None if swap < 0 else named(swap, collection.ids),
                "duplicate_kind": " ".join(group.kind for _, group in inside) or None,
                "duplicate_group": inside[0][0] if inside else None,
                "duplicate_of": None if first == row else named(first, collection.ids),
                **({} if result.mismatched is None else {"mismatched": bool(result.mismatched[position])}),
            }
        )
    return rows


@pytest.mark.parametrize("options", [{}, {"truth": False}, {"clean": True}])
@pytest.mark.parametrize("group", [7, 50_000])
def test_pairs_row_by_row(tmp_path, monkeypatch, options, group):
    monkeypatch.setattr(pair_table, "ROWS", group)
    result, files = written(tmp_path, **options)
    file = parquet.ParquetFile(files["pairs.parquet"])
    assert file.read().to_pylist() == naive_rows(result)
    assert file.metadata.num_row_groups == -(-len(result) // group)
    for field in file.schema_arrow:
        assert field.metadata[b"description"]


def test_the_summary_is_plain_json(tmp_path):
    _, files = written(tmp_path)
    facts = json.loads(files["summary.json"].read_text(), parse_constant=lambda name: pytest.fail(name))
    assert (facts["noise_rate"], facts["noise_rate_low"], facts["noise_rate_high"]) == (0.38, 0.36, 0.4)
    assert (facts["pairs"], facts["flagged"], facts["two_groups"], facts["swaps"]) == (38, 9, True, 1)
    assert facts["verdict"] == {"weights": [1.0, None], "x": None}
    assert facts["scores"]["calibration_error"] is None
    assert facts["problems"] == {
        "missing-picture": {"entries": 2, "used": 0},
        "long-caption": {"entries": 1, "used": 1},
    }
    assert facts["duplicates"] == {
        "same-image": {"groups": 1, "pairs": 3, "capped": False},
        "near-image": {"groups": 2, "pairs": 4, "capped": False},
    }
    assert facts["proposals"] == {"suspicious": 4, "captions": 3, "images": 3}
    assert facts["options"] == {"seed": 0, "paths": ["a", "b"]}


def test_a_summary_says_where_only_the_largest_duplicates_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr("truepair.audit.tables.summary.MOST_GROUPS", 2)
    result, files = written(tmp_path)
    found = json.loads(files["summary.json"].read_text())["duplicates"]
    assert [found[kind]["capped"] for kind in ("same-image", "near-image")] == [False, True]
    assert "same-image 1 group, near-image at least 2 groups" in summary_text(result)
    assert "at least 2 groups" in " ".join(files["report.html"].read_text().split())


def test_problems_and_duplicates(tmp_path):
    _, files = written(tmp_path)
    problems = parquet.read_table(files["problems.parquet"]).to_pylist()
    assert [(p["entry"], p["row"], p["used"]) for p in problems] == [
        ("x.png", 3, False),
        ("p1", 1, True),
        ("y.png", -1, False),
    ]
    duplicates = parquet.read_table(files["duplicates.parquet"]).to_pylist()
    assert [(d["group"], d["kind"], d["pair_id"]) for d in duplicates[:4]] == [
        (0, "same-image", "p9"), (0, "same-image", "p12"), (0, "same-image", "p22"), (1, "near-image", "p10"),
    ]  # fmt: skip
    assert duplicates[0]["caption"] == "caption 9"
    clean = tmp_path / "clean"
    clean.mkdir()
    _, files = written(clean, clean=True)
    assert parquet.read_table(files["problems.parquet"]).num_rows == 0


@pytest.mark.parametrize("pictures", [True, False])
def test_the_page_holds_what_it_must_and_nothing_runs(tmp_path, pictures):
    _, files = written(tmp_path, worst=6, collection=made_collection(pictures=pictures))
    page = files["report.html"].read_text()
    tags = Tags(page)
    assert "script" not in tags.seen and "b>up" not in page.replace("&lt;b&gt;up", "")
    assert page.count(HOSTILE) == 0 and "49" not in [word.strip() for word in tags.words.split("“")]
    assert not [value for name, value in tags.attributes if name.startswith("on")]
    assert not [v for n, v in tags.attributes if n in ("src", "href") and not v.startswith(("data:image/", "#"))]
    assert "\x1b" not in page and "\u202e" not in page
    assert ("img" in tags.seen) == pictures
    assert all(dict(tags.attributes).get("alt") is not None for tag in tags.seen if tag == "img")
    for text in ("About 38 % (36–40 %) of 38 pairs look mismatched; 9 are flagged.", "Captions that were exchanged",
                 "Borderline pairs", "missing-picture", "near-image", "Calibration: how well p_match holds",
                 "dir/image 9.png" if not pictures else "caption 9"):  # fmt: skip
        assert text in tags.words, text
    assert len(page) < 400_000  # the caption of 25,000 letters is cut


def test_a_clean_audit_says_so(tmp_path):
    result, files = written(tmp_path, clean=True, truth=False)
    page = Tags(files["report.html"].read_text()).words
    assert "No sign of noise in 38 pairs: no group." in page and "No pair is flagged" in page
    assert "In truth" not in page and "Captions that were exchanged" not in page and "There were none." in page
    assert "none of them is flagged" in summary_text(result)


def test_pictures_stop_at_their_budget_and_lost_files_do_no_harm(tmp_path, monkeypatch):
    from truepair.pages.audit import cards

    monkeypatch.setattr(cards, "BUDGET", 20_000)
    collection = made_collection()
    whole = collection.picture
    vanished = []

    def picture(row):
        if row == 0:
            vanished.append(row)
            raise InputError("gone")
        return whole(row)

    collection.picture = picture
    _, files = written(tmp_path, collection=collection)
    page = files["report.html"].read_text()
    embedded = sum(len(part.split('"', 1)[0]) for part in page.split('src="')[1:])
    assert vanished and 10_000 < embedded <= 20_000 and "Some pictures were left out" in page


def test_summary_text_is_aligned_and_cannot_steer_the_terminal():
    text = summary_text(made_result())
    assert all(sign == "\n" or sign.isprintable() for sign in text)
    lines, *found, table = text.split("\n\n")
    assert [line.split(":")[0] for line in found] == ["Found", "Found"]
    assert 6 <= len(lines.splitlines()) <= 12
    assert {len(line[:12].rstrip()) <= 10 and line[10:12] == "  " for line in lines.splitlines()} == {True}
    head, first = table.splitlines()[1:3]
    assert head.index("caption") == first.index("<script>") and first.split()[0] == "1"
    assert len(table.splitlines()) == 12
    assert max(map(columns_of, table.splitlines())) <= 140
    assert columns_of("他e\u0301") == 3


def test_of_many_faults_of_a_kind_the_first_few_are_shown():
    """And the page folds the others: twenty captions that stand on many images would push all else out of sight."""
    several = [Fault("repeated-caption", np.arange(9 - number), f"shop name {number}") for number in range(5)]
    other = Fault("one-colour-picture", np.arange(2), "white pictures")
    text = summary_text(replace(made_result(), faults=(*several[:4], other, several[4])))
    assert [part for part in text.split("\n\n") if part.startswith("Found")] == [
        *(f"Found: shop name {number}" for number in range(3)),
        "Found: 2 more of this kind (repeated-caption), of 11 pairs together; report.html and faults.parquet have "
        "them.",
        "Found: white pictures",
    ]
    page = render_page(replace(made_result(), faults=(*several[:4], other, several[4])))
    before, folded = page.split("<details><summary>2 more: repeated-caption, 11 pairs</summary>")
    folded, after = folded.split("</details>", 1)
    assert [sum(f"shop name {number}" in part for number in range(5)) for part in (before, folded)] == [3, 2]
    assert "white pictures" in after and "shop name 3" in folded and "shop name 4" in folded


def test_the_answer_in_one_sentence():
    assert statement(made_result()) == "About 38 % (36–40 %) of 38 pairs look mismatched; 9 are flagged."
    assert statement(made_result(clean=True)) == "No sign of noise in 38 pairs: no group."
    assert swaps_of(made_result()).tolist() == [[0, 1]]


def test_a_source_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    monkeypatch.setattr(pair_table, "ROWS", 10)
    result, _ = written(tmp_path)
    before = (tmp_path / "pairs.parquet").read_bytes()

    def captions(start, stop):
        if stop > 30:
            raise InputError("shard 3 vanished")
        return [""] * (stop - start)

    result.collection.captions = captions
    with pytest.raises(InputError, match="shard 3 vanished"):
        write_audit(result, tmp_path, page=render_page)
    assert (tmp_path / "pairs.parquet").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == FILES
    with pytest.raises(TruepairError, match="could not be written"):
        write_audit(made_result(), tmp_path / "nowhere")


def test_without_a_page_there_is_none(tmp_path):
    assert tmp_path / "pairs.parquet" in write_audit(made_result(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES - {"report.html"}


def test_progress_names_each_file(tmp_path):
    told = []
    write_audit(made_result(), tmp_path, page=render_page, progress=told.append)
    assert set(told) == FILES


def test_few_pairs_and_one_pair(tmp_path):
    for size in (1, 3):
        collection = made_collection(12)
        whole = made_result(collection=collection)
        part = AuditResult(**{**vars(whole), **shortened(whole, size)})
        write_audit(part, tmp_path)
        assert parquet.read_table(tmp_path / "pairs.parquet").num_rows == size
        assert summary_text(part)


def shortened(result, size):
    from tests.pages.audit.made_result import NO_REMATCH
    from truepair.audit.result import Verdict

    verdict = result.verdict
    return {
        "rows": np.arange(size),
        "similarity": np.zeros(size, np.float32),
        "indicators": {"matching": np.zeros(size, np.float32)},
        "verdict": Verdict(np.zeros(size, np.float32), np.ones(size, bool), 1.0, 1.0, 1.0, verdict.two_groups),
        "reasons": ["x"] * size,
        "rematch": NO_REMATCH,
        "duplicates": [],
        "faults": [],
        "mismatched": np.ones(size, bool),
    }


def test_a_wide_terminal_shows_more_of_the_reasons(monkeypatch):
    reason = "its image and its caption resemble different pairs (structure 0.26); " * 3
    result = replace(made_result(), reasons=[reason] * 38)
    widths = {}
    for columns in (80, 129, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        widths[columns] = max(len(line) for line in summary_text(result).splitlines()[-5:])
    assert widths[80] == widths[129] <= 129 < widths[200] <= 200


def test_shares_of_random_and_near_mismatches_are_told_apart():
    result = made_result()
    assert "near mismatches" not in render_page(result)
    verdict = replace(result.verdict, random=Share(0.3, 0.28, 0.33), near=Share(0.08, 0.0, 0.21))
    page = render_page(replace(result, verdict=verdict)).replace("\xa0", " ")
    assert "Random mismatches <b>30 %</b> (28–33 %); near mismatches <b>8.0 %</b> (0.0–21.0 %)." in page
    assert "<dt>random and near mismatches</dt>" in page
