"""Search of one source: hits of its index as pairs of its table, among those that a choice of facets leaves."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truepair.data.pairs import BoolArray, IntArray
from truepair.errors import InputError, TruepairError
from truepair.search.embedder import Embedder
from truepair.search.index import Hits, Index, Query, Side
from truepair.serve.errors import Problem, not_found
from truepair.serve.kept_index import kept_index
from truepair.serve.table import Wanted

if TYPE_CHECKING:
    from truepair.serve.sources import Source

MOST_PIXELS = 40_000_000
"""Of a picture that is sent: it is decoded as a whole."""
CAPTIONS_SHOWN = 5
PATIENCE = 2.0
"""Seconds that a request waits for an index in the making: it holds one of few threads."""
_KEPT = 64


@dataclass(frozen=True)
class Asked:
    """One query: words, a picture, or the image or the caption of a pair. One of `text`, `picture` and `pair` is set.

    Attributes:
        side: of the pair, what is looked for the like of.
        find: what is looked for; None: images for words and captions, captions for images.
    """

    text: str | None = None
    picture: bytes | None = None
    pair: str | None = None
    side: Literal["image", "caption"] = "image"
    find: Side | None = None

    @property
    def finds(self) -> Side:
        """What is looked for."""
        if self.find is not None:
            return self.find
        of_image = self.picture is not None or (self.pair is not None and self.side == "image")
        return "captions" if of_image else "images"


@dataclass(frozen=True)
class Choice:
    """What a choice of facets leaves: rows of the table, which images and texts stand in them, and the counts."""

    rows: BoolArray
    images: BoolArray
    texts: BoolArray
    counts: dict[str, list[tuple[str, int]]]

    def of(self, find: Side) -> BoolArray:
        return self.images if find == "images" else self.texts


class Searcher:
    """The index of a source, built when first asked for.

    Args:
        source: with its data.
        make: gives the model that the index is made with.
    """

    def __init__(self, source: Source, make: Callable[[], Embedder]) -> None:
        assert source.pairs is not None
        self.source, self.pairs, self._make = source, source.pairs, make
        self._building, self._choosing = Lock(), Lock()
        self._index: Index | None = None
        self._failed: TruepairError | None = None
        self._choices: OrderedDict[Any, Choice] = OrderedDict()
        self.seconds, self.stopped = 0.0, False

    @property
    def state(self) -> str:
        """ready, failed, building or waiting."""
        if self._index is not None:
            return "ready"
        if self._failed is not None:
            return "failed"
        return "building" if self._building.locked() else "waiting"

    @property
    def index(self) -> Index:
        """The index; the first who asks builds it, others wait for a while. Raises Problem: it takes longer; or what
        building raised.
        """
        if self._index is None:
            if not self._building.acquire(timeout=PATIENCE):
                raise Problem(409, "index-building", f"the index of {self.source.name} is being built; ask again soon")
            try:
                self._build()
            finally:
                self._building.release()
        assert self._index is not None
        return self._index

    def stop(self) -> None:
        """End the building of the index, if it is under way; for the end of the service."""
        self.stopped = True

    def _go_on(self) -> None:
        if self.stopped:
            raise TruepairError(f"the service ends, and the index of {self.source.name} is not built")

    def _say(self, notice: str) -> None:
        print(f"{self.source.name}: {notice}", file=sys.stderr, flush=True)

    def _build(self) -> None:
        if self._failed is not None:
            raise self._failed.with_traceback(None)  # else it holds what every request had in hand
        if self._index is None:
            began = time.perf_counter()
            try:
                self._index = kept_index(self._make(), self.pairs, self._go_on, self._say)
            except TruepairError as error:
                self._failed = error
                raise
            self.seconds = time.perf_counter() - began

    @cached_property
    def _by_image(self) -> tuple[IntArray, IntArray]:
        """Rows of the table in the order of their images, and where those of each image begin."""
        numbers = self.source.image_numbers
        order = np.argsort(numbers, kind="stable").astype(np.int64)
        return order, np.searchsorted(numbers[order], np.arange(len(self.pairs.images) + 1))

    @cached_property
    def _fit(self) -> np.ndarray[Any, Any]:
        """(N,) p_match of every pair, 0 where it has none."""
        p = self.source.table.numbers("p_match")
        return np.zeros(len(self.source.table)) if p is None else np.nan_to_num(p)

    @cached_property
    def _by_text(self) -> IntArray:
        """(texts,) the first row of the table with each text, −1 where none has it."""
        found = np.full(len(self.pairs.texts), -1, dtype=np.int64)
        rows = np.flatnonzero(self.source.places >= 0)[::-1]
        found[self.pairs.text_index[self.source.places[rows]]] = rows
        return found

    def choice(self, wanted: Wanted) -> Choice:
        """What is left by a choice; the last few are kept. Raises InputError as `PairTable.mask`."""
        key = tuple(sorted((k, tuple(v)) for k, v in wanted.facets.items() if v)), *wanted.bounds
        with self._choosing:
            if key in self._choices:
                self._choices.move_to_end(key)
                return self._choices[key]
        mask, places = self.source.table.mask(wanted), self.source.places
        rows = np.flatnonzero(mask & (places >= 0))
        images = np.zeros(len(self.pairs.images), dtype=bool)
        texts = np.zeros(len(self.pairs.texts), dtype=bool)
        images[self.pairs.image_index[places[rows]]] = True
        texts[self.pairs.text_index[places[rows]]] = True
        made = Choice(mask, images, texts, self.source.table.counts(wanted))
        with self._choosing:
            self._choices[key] = made
            if len(self._choices) > _KEPT:
                self._choices.popitem(last=False)
        return made

    def search(self, asked: Asked, wanted: Wanted, offset: int, limit: int) -> dict[str, Any]:
        """What is found, as JSON has it.

        Raises:
            InputError: the query has nothing to look for, or this source cannot be asked so.
        """
        index, began = self.index, time.perf_counter()
        find, choice = asked.finds, self.choice(wanted)
        query, own = self._query(asked)
        allowed = choice.of(find)
        if own is not None and query.side == find:
            allowed = allowed.copy()
            allowed[own] = False
        total = int(allowed.sum())
        hits = Hits(np.empty(0, np.int64), np.empty(0, np.float32), 0)
        if offset < total:
            everything = None if total == len(allowed) else allowed
            hits = index.find(query, find, limit, offset=offset, allowed=everything)
        told = self._of_images(hits, choice, offset) if find == "images" else self._of_captions(hits, choice, offset)
        return {
            "source": self.source.name,
            "find": find,
            "total": total,
            "offset": offset,
            "seconds": round(time.perf_counter() - began, 6),
            "exact": index.side(find).exact,
            "hits": told,
            "facets": choice.counts,
            "notice": None,
        }

    def _query(self, asked: Asked) -> tuple[Query, int | None]:
        """The query, and the row of its own item where it is of the data."""
        if asked.text is not None:
            return self.index.by_words(asked.text), None
        if asked.picture is not None:
            check_picture(asked.picture)
            return self.index.by_picture(asked.picture), None
        assert asked.pair is not None
        try:
            place = int(self.source.places[self.source.table.row_of(asked.pair)])
        except KeyError:
            raise not_found("pair", asked.pair, f"{self.source.name} does not have it; see /pairs") from None
        if place < 0:
            raise Problem(
                404, "no-such-pair", f"the data of {self.source.name} do not have {asked.pair!r:.200} any more"
            )
        side: Side = "images" if asked.side == "image" else "captions"
        row = int((self.pairs.image_index if asked.side == "image" else self.pairs.text_index)[place])
        return self.index.by_row(row, side), row

    def _of_images(self, hits: Hits, choice: Choice, offset: int) -> list[dict[str, Any]]:
        order, begins = self._by_image
        groups = []
        for image in hits.rows.tolist():
            rows = order[begins[image] : begins[image + 1]]
            best = np.lexsort((rows, -self._fit[rows], ~choice.rows[rows]))[:CAPTIONS_SHOWN]
            groups.append(rows[best].tolist())
        pairs = self.source.told([rows[0] for rows in groups])
        said = iter(self.source.said([row for rows in groups for row in rows]))
        captions = [[next(said) for _ in rows] for rows in groups]
        found = zip(_hits(hits, offset), pairs, captions, strict=True)
        return [{**hit, "pair": pair, "captions": some} for hit, pair, some in found]

    def _of_captions(self, hits: Hits, choice: Choice, offset: int) -> list[dict[str, Any]]:
        rows = self._by_text[hits.rows].tolist()
        found = zip(_hits(hits, offset), self.source.told(rows), self.source.said(rows), strict=True)
        return [{**hit, "pair": pair, "captions": [own]} for hit, pair, own in found]


def _hits(hits: Hits, offset: int) -> list[dict[str, Any]]:
    return [
        {"rank": offset + place + 1, "score": float(score), "closely": place < hits.closely}
        for place, score in enumerate(hits.scores.tolist())
    ]


def check_picture(data: bytes) -> None:
    """Raises Problem: bytes are no picture that can be read, or claim too many pixels."""
    from PIL import Image

    if not data:
        raise Problem(400, "no-picture", "the picture that was sent is empty; send a JPEG, PNG or WebP file")
    try:
        with Image.open(BytesIO(data)) as image:
            pixels = image.width * image.height
    except Image.DecompressionBombError:
        pixels = MOST_PIXELS + 1
    except Exception as error:  # a broken file makes Pillow raise nearly anything
        found = "what was sent cannot be read as a picture"
        raise Problem(400, "no-picture", f"{found}; send a JPEG, PNG or WebP file") from error
    if pixels > MOST_PIXELS:
        raise Problem(
            413, "too-many-pixels", f"the picture claims over {MOST_PIXELS / 1e6:.0f} million pixels; scale it down"
        )


def embedder_of_run(source: Source) -> Embedder:
    """The model of a run."""
    from truepair.engines.model_embedder import ModelEmbedder
    from truepair.training.jobs import encoder_of_run

    assert source.run is not None
    assert source.pairs is not None
    model = source.run.model
    model.preparation.check(source.pairs)
    return ModelEmbedder(model, encoder_of_run(source.run.path))


def together(results: list[dict[str, Any] | InputError], names: list[str]) -> list[dict[str, Any]]:
    """What several sources found; one that could not be asked says so. Raises its error where none could."""
    errors = [result for result in results if isinstance(result, InputError)]
    if len(errors) == len(results):
        raise errors[0]
    nothing = {"total": 0, "offset": 0, "seconds": 0.0, "exact": True, "hits": [], "facets": {}}
    return [
        {"source": name, "find": "images", **nothing, "notice": str(result)}
        if isinstance(result, InputError)
        else result
        for name, result in zip(names, results, strict=True)
    ]
