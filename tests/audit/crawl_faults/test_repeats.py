"""Placeholder pictures, one caption over and over, pictures of one colour; as the audit of files tells them."""

import json
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from tests.audit.small_audits import QUICK, rows_of, run_cli, summary_of, write_picture_folder
from truepair.audit.crawl_faults.one_colour import one_colour
from truepair.audit.crawl_faults.repeats import of_one_picture, unusually_large
from truepair.audit.result import DuplicateGroup

COUNT = 150


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A folder of pictures in which all this went wrong, and its audit."""
    folder = tmp_path_factory.mktemp("crawl")
    table = write_picture_folder(folder, COUNT)
    names = [name for name, _ in table]
    captions = [f"{caption} {number}" for number, (_, caption) in enumerate(table)]
    blank = np.full((60, 80, 3), 230, np.uint8)
    blank[20:40, 10:70] = 40
    for number in range(25):  # the same picture under 25 captions, in files of its own that were saved differently
        Image.fromarray(blank).save(folder / names[number], format="JPEG", quality=80 + number % 3)
    for number, caption in enumerate(["Click to  enlarge", "click to enlarge"] * 15, start=50):
        captions[number] = caption
    for number, colour in ((100, (255, 255, 255)), (101, (255, 255, 254)), (102, (0, 0, 0))):
        Image.new("RGB", (60, 60), colour).save(folder / names[number])
    lines = [json.dumps({"image": name, "caption": text}) for name, text in zip(names, captions, strict=True)]
    (folder / "captions.jsonl").write_text("\n".join(lines))
    out = tmp_path_factory.mktemp("audits") / "crawl"
    assert run_cli(folder, out, *QUICK) == 0
    return out


def test_the_faults_are_in_the_summary_and_the_table(crawled):
    faults = {fault["kind"]: fault for fault in summary_of(crawled)["faults"]}
    assert set(faults) == {"placeholder-picture", "repeated-caption", "one-colour-picture"}
    rows = rows_of(crawled, "faults.parquet")
    of = {kind: [row["pair_id"] for row in rows if row["kind"] == kind] for kind in faults}
    assert of["placeholder-picture"] == [f"p{k}.png" for k in range(25)]
    assert of["repeated-caption"] == [f"p{k}.png" for k in range(50, 80)]
    assert of["one-colour-picture"] == ["p100.png", "p101.png", "p102.png"]
    assert {row["repaired_caption"] for row in rows} == {None}
    assert [(fault["pairs"], fault["first_pair"]) for fault in faults.values()] == [
        (25, "p0.png"),
        (30, "p50.png"),
        (3, "p100.png"),
    ]


def test_the_sentences_say_what_was_found(crawled):
    said = {fault["kind"]: fault["sentence"] for fault in summary_of(crawled)["faults"]}
    assert (
        "One picture, or pictures that are all but the same, stand under 25 captions, such as"
        in said["placeholder-picture"]
    )
    assert said["repeated-caption"].startswith("The caption 'Click to enlarge' stands on 30 images.")
    assert said["one-colour-picture"].startswith(
        "3 pictures of 3 pairs hold one colour and nothing else (1 of them #ffffff)"
    ) or said["one-colour-picture"].startswith("3 pictures of 3 pairs hold one colour and nothing else (2 of them")


def test_the_page_shows_them(crawled):
    page = (crawled / "report.html").read_text()
    assert page.count("What went wrong with many pairs at once") == 1
    assert "one-colour-picture: 3 pairs" in page and "#faults" in page


def test_a_sound_folder_has_none(tmp_path, capsys):
    folder = tmp_path / "sound"
    table = write_picture_folder(folder, 60)
    lines = [json.dumps({"image": name, "caption": f"{text} {k}"}) for k, (name, text) in enumerate(table)]
    (folder / "captions.jsonl").write_text("\n".join(lines))
    assert run_cli(folder, tmp_path / "out", *QUICK) == 0
    assert summary_of(tmp_path / "out")["faults"] == [] == rows_of(tmp_path / "out", "faults.parquet")
    assert "Found:" not in capsys.readouterr().out
    assert "What went wrong" not in (tmp_path / "out" / "report.html").read_text()


def groups(*sizes):
    ends = np.cumsum([0, *sizes])
    return [np.arange(a, b) for a, b in pairwise(ends)]


@pytest.mark.parametrize(
    ("sizes", "pairs", "found"),
    [
        ([25], 100, [25]),
        ([19], 100, []),
        ([60] + [5] * 50, 310, [60]),  # five captions an image are usual
        ([45] + [5] * 50, 295, []),
        ([100] * 10, 1000, []),  # names of classes
        ([400, 30, 21], 5000, [400, 30, 21]),
        ([600], 1000, [600]),  # most of a collection
        ([600, 25], 1000, [600, 25]),
        ([300, 60, 40], 400, []),
        ([100], 100, [100]),
    ],
)
def test_only_what_is_unusual_counts(sizes, pairs, found):
    assert [len(group) for group in unusually_large(groups(*sizes), pairs)] == found


def test_pictures_are_one_by_index_and_by_duplicates():
    images = np.array([0, 0, 1, 2, 3, 4, 5])
    rows = np.array([10, 11, 12, 13, 14, 15, 17])
    duplicates = [
        DuplicateGroup("near-image", np.array([11, 13])),
        DuplicateGroup("same-image", np.array([13, 17])),
        DuplicateGroup("same-caption", np.array([12, 14])),
    ]
    found = [group.tolist() for group in of_one_picture(images, duplicates, rows)]
    assert found == [[0, 1, 3, 6]]


def test_one_colour_knows_what_jpeg_does_to_it():
    pixels = np.full((8, 9, 3), (10, 200, 90), np.uint8)
    assert one_colour(pixels) == (10, 200, 90)
    pixels[0, 0, 1] += 8
    assert one_colour(pixels) == (10, 204, 90)
    pixels[1, 1, 1] += 9
    assert one_colour(pixels) is None
