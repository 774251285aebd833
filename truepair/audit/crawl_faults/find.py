"""All faults of a crawl that an audit can see, each with a sentence of what was found and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from truepair.audit.crawl_faults.alignment import Alignment
from truepair.audit.crawl_faults.one_colour import pictures_of_one_colour
from truepair.audit.crawl_faults.repeats import of_one_picture, unusually_large
from truepair.audit.crawl_faults.stretches import Stretch, find_stretches
from truepair.audit.duplicates.captions import plain
from truepair.audit.duplicates.images import image_classes, own_reader
from truepair.audit.result import DuplicateGroup, Fault, Rematch, Verdict
from truepair.audit.scoring.row_ranges import words_at
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.data.collection import Collection, PairsCollection
from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.phrases import are, counted, percent

ALL_LOOKED_AT = 20_000
"""Images that are all looked at for one colour, where a collection has features; of more, so many."""
LOOKED_AT = 2000
SHOWN = 40


def find_faults(
    collection: Collection,
    scored: ScoredPairs,
    verdict: Verdict,
    rematched: Rematch,
    duplicates: Sequence[DuplicateGroup],
    *,
    seed: int = 0,
) -> list[Fault]:
    """The faults of a collection, those of stretches first; see `FAULTS`.

    Args:
        rematched: proposals of better captions; they point to captions that stand far from their image.
    """
    if not len(scored.rows):
        return []
    return [
        *faults_of_stretches(collection, scored, verdict, rematched, seed=seed),
        *placeholder_pictures(collection, scored.rows, verdict.flagged, duplicates),
        *repeated_captions(collection, scored.rows, duplicates),
        *one_colour_pictures(collection, scored.rows, verdict.p_match),
    ]


def faults_of_stretches(
    collection: Collection, scored: ScoredPairs, verdict: Verdict, rematched: Rematch, *, seed: int
) -> list[Fault]:
    """Captions that are shifted or shuffled within a stretch, and stretches that are mismatched in another way."""
    matching = scored.given.indicators.get("matching")
    if matching is None:
        return []
    rows = scored.rows
    proposed = np.full(len(rows), -1, dtype=np.int64)
    known = rematched.caption_from >= 0
    proposed[np.searchsorted(rows, rematched.rows[known])] = np.searchsorted(rows, rematched.caption_from[known])
    alignment = Alignment(rows, scored.spaces, seed)
    stretches = find_stretches(verdict.p_match, matching, proposed, alignment)
    return [told(collection, rows, stretch, verdict.p_match) for stretch in stretches]


def told(collection: Collection, rows: IntArray, stretch: Stretch, p_match: Array) -> Fault:
    """A stretch in words."""
    places = slice(stretch.start, stretch.stop)
    size = stretch.stop - stretch.start
    where = f"{size:,} pairs in a row, {span(collection, int(rows[stretch.start]), int(rows[stretch.stop - 1]))}"
    if stretch.caption_from is None:
        inside, elsewhere = p_match[places].mean(), np.delete(p_match, np.arange(stretch.start, stretch.stop)).mean()
        sentence = (
            f"{where}, look mismatched as a whole: their mean p_match is {inside:.2f}, elsewhere {elsewhere:.2f}. No "
            "offset and no other order of their captions was found that would match them: look where this part comes "
            "from."
        )
        return Fault("mismatched-stretch", rows[places], sentence)
    gain = (
        f"{percent(stretch.better)} of these images fit their new caption better than the given one. "
        "The list of faults (faults.parquet, or caption_from) has the caption of each; the ends may be off by a few "
        "pairs"
    )
    caption_from = np.where(stretch.caption_from >= 0, rows[stretch.caption_from], -1)
    if stretch.offset is None:
        sentence = f"The captions of {where}, are shuffled among these pairs. In the best order {gain}."
        return Fault("shuffled-captions", rows[places], sentence, caption_from=caption_from)
    way = "further on" if stretch.offset > 0 else "before it"
    far = f"{counted(abs(stretch.offset), 'pair')} {way}"
    sentence = f"The captions of {where}, are shifted: that of each image stands {far}. Put back, {gain}."
    return Fault("shifted-captions", rows[places], sentence, offset=stretch.offset, caption_from=caption_from)


def span(collection: Collection, first: int, last: int) -> str:
    """From which pair to which one, and of which file where both stand in one."""
    ids = [collection.ids(row, row + 1)[0] for row in (first, last)]
    (file, start), (other, stop) = collection.place(first), collection.place(last)
    inside = f" of {file}" if file == other and file != collection.name else ""
    return f"from pair {ids[0]} (row {start:,}) to pair {ids[1]} (row {stop:,}){inside}"


def placeholder_pictures(
    collection: Collection, rows: IntArray, flagged: BoolArray, duplicates: Sequence[DuplicateGroup]
) -> list[Fault]:
    """Pictures under far more captions than is usual in the collection."""
    images = np.arange(len(rows))
    if isinstance(collection, PairsCollection):
        images = collection.pairs.image_index[rows]
    elif (held := image_classes(collection, rows, own_reader(collection, 0))) is not None:
        images = held[0]
    found = []
    for group in unusually_large(of_one_picture(images, duplicates, rows), len(rows)):
        captions = list(dict.fromkeys(words_at(collection.captions, rows[group])))
        different = len({plain(caption) for caption in captions})
        if captions != [""] and 2 * different < len(group):
            continue  # few captions, over and over: these are duplicates of pairs
        examples = ", ".join(f"'{shown(caption)}'" for caption in captions[:2] if caption)
        wrong = int(flagged[group].sum())
        sentence = (
            f"One picture, or pictures that are all but the same, stand under {len(group):,} captions"
            f'{f", such as {examples}" if examples else ""}: a placeholder like "image not available", or one '
            f"picture used again and again. {counted(wrong, 'pair')} of these {are(wrong)} flagged; leave all of them "
            "out unless the picture is what they say."
        )
        found.append(Fault("placeholder-picture", rows[group], sentence))
    return found


def repeated_captions(collection: Collection, rows: IntArray, duplicates: Sequence[DuplicateGroup]) -> list[Fault]:
    """Captions on far more pictures than is usual in the collection."""
    groups = [np.searchsorted(rows, group.rows) for group in duplicates if group.kind == "same-caption"]
    found = []
    for group in unusually_large(groups, len(rows)):
        first = int(rows[group[0]])
        caption = collection.captions(first, first + 1)[0]
        name = f"The caption '{shown(caption)}'" if caption else "One text"
        sentence = (
            f"{name} stands on {len(group):,} images. It says nothing of any single one: write captions of what they "
            "show, or leave these pairs out."
        )
        found.append(Fault("repeated-caption", rows[group], sentence))
    return found


def one_colour_pictures(collection: Collection, rows: IntArray, p_match: Array) -> list[Fault]:
    """Pictures of one colour, one fault for all. Where there are very many, those of the least probable pairs."""
    of_image, least = None, np.argsort(p_match, kind="stable")
    if isinstance(collection, PairsCollection):
        of_image = collection.pairs.image_index[rows]
        images, first = np.unique(of_image, return_index=True)
        some = first if len(images) <= ALL_LOOKED_AT else least[:ALL_LOOKED_AT]
    else:
        some = least[:LOOKED_AT]
    asked = np.sort(rows[some])
    colours = pictures_of_one_colour(collection, asked.tolist())
    if not colours:
        return []
    concerned = np.array(sorted(colours), dtype=np.int64)
    if of_image is not None:
        concerned = rows[np.isin(of_image, of_image[np.searchsorted(rows, concerned)])]
    pictures = {collection.image_names(row, row + 1)[0]: colour for row, colour in colours.items()}
    (red, green, blue), count = Counter(pictures.values()).most_common(1)[0]
    sentence = (
        f"{counted(len(pictures), 'picture')} of {counted(len(concerned), 'pair')} "
        f"{'holds' if len(pictures) == 1 else 'hold'} one colour and nothing else ({count:,} of them "
        f"#{red:02x}{green:02x}{blue:02x}): files that were cut off, or empty placeholders. Fetch them again, or leave "
        "these pairs out."
    )
    return [Fault("one-colour-picture", concerned, sentence)]


def shown(caption: str) -> str:
    flat = " ".join(caption.split())
    return flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…"
