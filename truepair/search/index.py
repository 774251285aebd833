"""`Index`: the images and captions of some pairs, found by words, by a picture, or by each other."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Literal

import numpy as np

from truepair.data.pairs import BoolArray, Images, IntArray, Pairs, Texts
from truepair.encoders.encoder import Picture
from truepair.errors import InputError
from truepair.phrases import counted
from truepair.progress import Progress
from truepair.search.embedder import Embedder
from truepair.search.saved import Saved, read_index, write_index
from truepair.search.vectors import Floats, Ranked, Vectors, vectors_of

Side = Literal["images", "captions"]
CLOSELY = 100
"""Hits that a model compares closely where its vectors only stand in for its similarity (local engines)."""
_AT_ONCE = 512
_KEPT_WORDS = 512


@dataclass(frozen=True)
class Hit:
    """An image or a caption that was found.

    Attributes:
        score: the similarity: a cosine in [−1, 1], of local engines σ(r) in [0, 1] where `closely`.
        row: of the image or the caption, in its side of the pairs.
        id: its name there.
        caption: its words; None of an image.
        closely: compared by the model itself, not by vectors that stand in for it.
    """

    score: float
    row: int
    id: str
    caption: str | None = None
    closely: bool = True


@dataclass(frozen=True)
class Hits:
    """The best rows for one query, from `offset` on; the first `closely` of all were compared by the model itself."""

    rows: IntArray
    scores: Floats
    closely: int


@dataclass(frozen=True)
class Query:
    """What is looked for: a vector, and the item it belongs to, which a model can compare closely."""

    vector: Floats
    side: Side
    items: Images | Texts
    row: int


class Index:
    """Vectors of both sides of some pairs. Safe to be asked by several threads at once.

    Args:
        embedder: what made the vectors.
        pairs: what was indexed; None of an index that was loaded without.
        images, captions: vectors of all images and all texts.
        image_ids, caption_ids, words: names of both, and the captions.
    """

    def __init__(
        self,
        embedder: Embedder,
        pairs: Pairs | None,
        images: Vectors,
        captions: Vectors,
        image_ids: Sequence[str],
        caption_ids: Sequence[str],
        words: Sequence[str],
    ) -> None:
        self.embedder, self.pairs, self.images, self.captions = embedder, pairs, images, captions
        self.image_ids, self.caption_ids, self.words = image_ids, caption_ids, words
        self._lock = Lock()
        self._known: OrderedDict[str, Floats] = OrderedDict()

    def __repr__(self) -> str:
        return f"Index({counted(len(self.image_ids), 'image')} and {counted(len(self.caption_ids), 'caption')})"

    def __len__(self) -> int:
        return len(self.images) + len(self.captions)

    def side(self, find: Side) -> Vectors:
        """The vectors of one side. Raises InputError: there is no such side."""
        if find not in ("images", "captions"):
            raise InputError(f"find is {find!r}; expected images or captions")
        return self.images if find == "images" else self.captions

    def search(
        self, query: str | Picture, k: int = 10, *, find: Side | None = None, offset: int = 0,
        allowed: BoolArray | None = None,
    ) -> list[Hit]:  # fmt: skip
        """The k best for words or a picture, best first, equal ones by row.

        Args:
            query: words; or a picture: a path, the bytes of a file, or pixels (H, W, 3) uint8.
            find: "images" or "captions"; by default the other side: images for words, captions for a picture.
            offset: how many hits to leave out first.
            allowed: which rows of that side may be found.

        Raises:
            InputError: no words, no picture, or the model cannot read it.
        """
        asked = self.by_words(query) if isinstance(query, str) else self.by_picture(query)
        side = find or ("images" if isinstance(query, str) else "captions")
        return self.told(self.find(asked, side, k, offset=offset, allowed=allowed), side)

    def like(self, row: int, side: Side, k: int = 10, *, find: Side | None = None, offset: int = 0) -> list[Hit]:
        """The k best for an image or a caption of the data, itself left out: its like where `find` is its own side.

        Raises:
            InputError: there is no such row.
        """
        find = find or side
        query, allowed = self.by_row(row, side), None
        if find == side:
            allowed = np.ones(len(self.side(side)), dtype=bool)
            allowed[row] = False
        return self.told(self.find(query, find, k, offset=offset, allowed=allowed), find)

    def told(self, hits: Hits, side: Side) -> list[Hit]:
        """Hits with their names."""
        ids = self.image_ids if side == "images" else self.caption_ids
        found = []
        for place, (row, score) in enumerate(zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)):
            words = self.words[row] if side == "captions" else None
            found.append(Hit(score, row, ids[row], words, place < hits.closely))
        return found

    def by_words(self, words: str) -> Query:
        """A query for words. Raises InputError: there are none, or the index reads none."""
        said = " ".join(words.split())
        if not said:
            raise InputError("the words to search for are empty; type some")
        items = Texts((said,), ("query",))
        with self._lock:
            if said in self._known:
                self._known.move_to_end(said)
            else:
                self._known[said] = self.embedder.texts(items, np.zeros(1, np.int64))
                if len(self._known) > _KEPT_WORDS:
                    self._known.popitem(last=False)
            return Query(self._known[said][0], "captions", items, 0)

    def by_picture(self, picture: Picture) -> Query:
        """A query for a picture. Raises InputError: it is none, or cannot be compared with those of the data."""
        like = self._need_pairs("a picture").images
        with self._lock:
            items = self.embedder.picture(picture, like)
            return Query(self.embedder.images(items, np.zeros(1, np.int64))[0], "images", items, 0)

    def by_row(self, row: int, side: Side) -> Query:
        """A query for an image or a caption of the data. Raises InputError: there is no such row."""
        vectors = self.side(side)
        if not 0 <= row < len(vectors):
            raise InputError(f"row {row} of {side}; there are {len(vectors)}, from 0")
        items: Images | Texts = Texts((), ())
        if self.pairs is not None:
            items = self.pairs.images if side == "images" else self.pairs.texts
        return Query(np.asarray(vectors.held[row], dtype=np.float32), side, items, row)

    def find(self, query: Query, find: Side, k: int, *, offset: int = 0, allowed: BoolArray | None = None) -> Hits:
        """The rows of the k best after `offset`, with their scores.

        Where vectors only stand in for the model's similarity, the first `CLOSELY` are put in the model's own order.
        """
        if k < 1 or offset < 0:
            raise InputError(f"k is {k} and offset {offset}; expected at least 1 and 0")
        close = not self.embedder.exact and query.side != find
        wanted = offset + k
        vectors = self.side(find)
        ranked = vectors.search(query.vector[None], max(wanted, CLOSELY) if close else wanted, allowed)[0]
        closely = len(ranked.rows)
        if close:
            closely = min(CLOSELY, closely)
            ranked = self._closely(query, ranked, closely)
        return Hits(ranked.rows[offset:wanted], ranked.scores[offset:wanted], min(max(0, closely - offset), k))

    def _closely(self, query: Query, ranked: Ranked, count: int) -> Ranked:
        pairs, first = self._need_pairs("a model that compares closely"), ranked.rows[:count]
        one = np.array([query.row])
        with self._lock:
            if query.side == "images":
                assert isinstance(query.items, Images)
                scores = self.embedder.similarities(query.items, one, pairs.texts, first)[0]
            else:
                assert isinstance(query.items, Texts)
                scores = self.embedder.similarities(pairs.images, first, query.items, one)[:, 0]
        order = np.lexsort((first, -scores))
        return Ranked(
            np.concatenate([first[order], ranked.rows[count:]]), np.concatenate([scores[order], ranked.scores[count:]])
        )

    def _need_pairs(self, what: str) -> Pairs:
        if self.pairs is None:
            raise InputError(f"this index was loaded without its pairs, which {what} needs; load it with pairs=")
        return self.pairs

    def save(self, folder: Path | str) -> Path:
        """Write the vectors and names into a new folder; `load_index` gives them back to the same model.

        Raises:
            InputError: the folder holds other things.
            TruepairError: it cannot be written to.
        """
        return write_index(
            Path(folder),
            Saved(
                self.embedder.digest(), self.images.held, self.captions.held,
                tuple(self.image_ids), tuple(self.caption_ids), tuple(self.words),
            ),
        )  # fmt: skip


def build_index(
    embedder: Embedder,
    pairs: Pairs,
    *,
    exact: bool | None = None,
    progress: bool | None = False,
    before_batch: Callable[[], None] = lambda: None,
) -> Index:
    """The index of all images and captions of some pairs.

    Args:
        exact: compare every vector, or (False) use the extra faiss; None: exact up to `EXACT_UP_TO` of a side.
        progress: draw a bar; None draws one on a terminal.
        before_batch: called before every batch; what it raises ends the building.

    Raises:
        InputError: the embedder does not read such pairs, or a vector is not finite.
    """
    if not len(pairs.images) or not len(pairs.texts):
        raise InputError(f"{pairs.name}: there is nothing to index")
    told = Progress(progress)
    sides: list[Floats] = []
    for what, count in (("images", len(pairs.images)), ("captions", len(pairs.texts))):
        held: Floats | None = None
        order = np.arange(count)
        if what == "captions":  # those of one length together: less padding
            order = np.argsort([len(words) for words in pairs.texts.captions], kind="stable")
        with told.count(f"indexing {what}", count, what) as moved:
            for start in range(0, count, _AT_ONCE):
                before_batch()
                rows = order[start : start + _AT_ONCE]
                some = embedder.images(pairs.images, rows) if what == "images" else embedder.texts(pairs.texts, rows)
                if held is None:
                    held = np.empty((count, some.shape[1]), dtype=np.float32)
                held[rows] = some
                moved(start + len(rows))
        assert held is not None
        if not np.isfinite(held).all():
            row = int(np.flatnonzero(~np.isfinite(held).all(axis=1))[0])
            raise InputError(f"{pairs.name}: the vector of {what} row {row} is not finite; remove it or train again")
        sides.append(held)
    return Index(
        embedder, pairs, vectors_of(sides[0], exact), vectors_of(sides[1], exact),
        pairs.images.ids, pairs.texts.ids, pairs.texts.captions,
    )  # fmt: skip


def load_index(
    folder: Path | str, embedder: Embedder, pairs: Pairs | None = None, *, exact: bool | None = None
) -> Index:
    """The index that `Index.save` wrote, memory-mapped.

    Args:
        embedder: the model it was made with.
        pairs: what was indexed; needed to search by pictures, and by models that compare closely.
        exact: as of `build_index`; the cells of faiss are not kept and made anew.

    Raises:
        InputError: no index, a damaged one, one of another model, or of other pairs.
    """
    saved = read_index(Path(folder))
    if saved.digest != embedder.digest():
        raise InputError(
            f"{folder} is the index of another model ({saved.digest}, this one is {embedder.digest()}); build it again "
            "with model.index(pairs), or take the model it was made with"
        )
    if pairs is not None and (pairs.images.ids != saved.image_ids or pairs.texts.captions != saved.words):
        raise InputError(f"{folder} is the index of other pairs than {pairs.name}; build it again")
    if pairs is None and not embedder.exact:
        raise InputError(f"{folder}: its model compares hits closely, for which it needs the pairs; give pairs=")
    return Index(
        embedder, pairs, vectors_of(saved.images, exact), vectors_of(saved.captions, exact),
        saved.image_ids, saved.caption_ids, saved.words,
    )  # fmt: skip
