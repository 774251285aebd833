"""`Pairs`: the one data model. Everything else in the package sees data through it and knows no file format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from truepair.data.shown import shown_images, shown_pairs, shown_texts
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.encoders.encoder import Encoder

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class PictureFiles(Protocol):
    """Pictures that lie on the disk and are decoded when asked for; see `PlacedPictures`."""

    def __len__(self) -> int: ...

    def read(self, row: int) -> Array | None:
        """(H, W, 3) uint8, longer side at most 192; None where the picture cannot be read any more."""
        ...

    def resized(self, row: int, size: int) -> Array:
        """(size, size, 3) uint8, decoded at the resolution that takes; raises InputError where it cannot be read."""
        ...

    def prepared(self, row: int, encoder: Encoder) -> Any:
        """What the encoder takes of it; raises InputError where it cannot be read."""
        ...

    def take(self, rows: IntArray) -> PictureFiles: ...


@dataclass(frozen=True, repr=False)
class Images:
    """The image side: region features, and optionally the pixels.

    Attributes:
        features: (n, R, D) or (n, D), float16 or float32, often memory-mapped; row i describes image i.
        ids: one name per image.
        pictures: (n, H, W, 3) uint8 where the source has all pixels in memory, else None.
        files: where the pixels lie otherwise; None where the source has none.
        copies: how many times in a row the files of the source hold each image; see `repeats.py`.
        encoder: the identity of what made the features of pictures (`Encoder.identity`); None where nobody knows.
    """

    features: Array
    ids: tuple[str, ...]
    pictures: Array | None = None
    files: PictureFiles | None = None
    copies: int = 1
    encoder: str | None = None

    def __repr__(self) -> str:
        return shown_images(self)

    def __len__(self) -> int:
        return int(self.features.shape[0])

    @property
    def feature_width(self) -> int:
        return int(self.features.shape[-1])

    @property
    def regions(self) -> int:
        """Regions an image has at most; one vector an image counts as one region."""
        return int(self.features.shape[1]) if self.features.ndim == 3 else 1

    @property
    def have_pixels(self) -> bool:
        return self.pictures is not None or self.files is not None

    def picture(self, row: int) -> Array | None:
        """(H, W, 3) uint8 pixels of an image to show to people; None where there are none."""
        if self.pictures is not None:
            return np.asarray(self.pictures[row])
        return None if self.files is None else self.files.read(row)

    def pixels(self, rows: IntArray, size: int) -> Array:
        """(len(rows), size, size, 3) uint8: some images in RGB, resized to squares; decoded now, and not kept.

        Raises:
            InputError: the source has no pixels, or a picture cannot be read any more.
        """
        from truepair.encoders.decode import resized

        if not self.have_pixels:
            remedy = "take a source of pictures, or an engine that reads features"
            raise InputError(f"these images have features and no pixels; {remedy}")
        found = np.empty((len(rows), size, size, 3), dtype=np.uint8)
        for place, row in enumerate(rows.tolist()):
            if self.pictures is not None:
                found[place] = resized(self.pictures[row], size)
            elif self.files is not None:
                found[place] = self.files.resized(row, size)
        return found

    def prepared(self, row: int, encoder: Encoder) -> Any:
        """What the encoder takes of an image, whose pixels are read and decoded now.

        Raises:
            InputError: as `pixels`.
        """
        if self.pictures is not None:
            return encoder.prepare(self.pictures[row])
        if self.files is None:
            remedy = "take a source of pictures, or an engine that reads features"
            raise InputError(f"these images have features and no pixels; {remedy}")
        return self.files.prepared(row, encoder)

    def take(self, rows: IntArray) -> Images:
        """Some images only, renumbered; what stays of their features is copied into memory."""
        return replace(
            self,
            features=self.features[rows],
            ids=tuple(self.ids[row] for row in rows.tolist()),
            pictures=_rows_of(self.pictures, rows),
            files=None if self.files is None else self.files.take(rows),
        )


@dataclass(frozen=True, repr=False)
class Texts:
    """The text side: captions as people wrote them, and one name per caption.

    Attributes:
        captions, ids: one of each per text; where the source has no words, the captions are names.
        features: (n, D), float16 or float32, where the source describes texts by vectors, else None.
    """

    captions: tuple[str, ...]
    ids: tuple[str, ...]
    features: Array | None = None

    def __repr__(self) -> str:
        return shown_texts(self)

    def __len__(self) -> int:
        return len(self.captions)

    @property
    def feature_width(self) -> int:
        """Width of the vectors; 0 where texts are words."""
        return 0 if self.features is None else int(self.features.shape[1])

    def take(self, rows: IntArray) -> Texts:
        """Some texts only, renumbered; what stays of their features is copied into memory."""
        return Texts(
            tuple(self.captions[row] for row in rows.tolist()),
            tuple(self.ids[row] for row in rows.tolist()),
            _rows_of(self.features, rows),
        )


@dataclass(frozen=True, repr=False)
class Pairs:
    """Images, texts, and a table that says which belong together. Row p of the table is pair p.

    One caption an image or five, repeated images, images nobody describes: all are just index columns.

    Attributes:
        images, texts: the two sides.
        image_index: (N,) int64, the image of pair p as given, right or wrong.
        text_index: (N,) int64, the text of pair p.
        labels: (N,) int64 class of pair p as given, right or wrong, or None.
        class_names: name of each class; empty without labels.
        true_labels: (N,) int64, the class pair p really has, or None when nobody knows; kept aside like `true_image`.
        true_image: (N,) int64, the image that text really belongs to, or None when nobody knows. It is kept aside for
            scoring: training works on `without_truth()`.
        name: where the pairs come from, for messages and reports ("fashion_precomp/train").
        source_rows: (N,) int64, the place of pair p in its source from 0 (row of a table or an array, sample of the
            shards, caption of a split); p where none are given. They stay with the pairs whatever is left out.
        pair_ids: what people know each pair by, unique; None for the source rows. See `ids`.
        trusted: (N,) bool, the pairs that are known to match because somebody looked at them; None where nobody did.
            Given, as labels are: a method may see it (`Method.least_trusted`).
        scores: (N,) float32, how well each pair matches by somebody else's model, in its own units; None where there
            are none. Given, too (`Method.reads_scores`).
    """

    images: Images
    texts: Texts
    image_index: IntArray
    text_index: IntArray
    labels: IntArray | None = None
    class_names: tuple[str, ...] = ()
    true_image: IntArray | None = None
    name: str = "pairs"
    true_labels: IntArray | None = None
    source_rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    pair_ids: Sequence[str] | None = None
    trusted: BoolArray | None = None
    scores: npt.NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        if self.images.features.ndim not in (2, 3):
            raise InputError(
                f"{self.name}: image features have shape {self.images.features.shape}; expected (images, regions, "
                "width) or (images, width)"
            )
        count = len(self.image_index)
        for what, size, expected in (
            ("image ids", len(self.images.ids), len(self.images)),
            ("text ids", len(self.texts.ids), len(self.texts)),
            ("source rows", len(self.source_rows) or count, count),
            ("pair ids", count if self.pair_ids is None else len(self.pair_ids), count),
            ("marks of known pairs", count if self.trusted is None else len(self.trusted), count),
            ("scores", count if self.scores is None else len(self.scores), count),
        ):
            if size != expected:
                raise InputError(f"{self.name}: {size} {what} for {expected} entries; there must be one for each")
        for column, index, below in (
            ("image_index", self.image_index, len(self.images)),
            ("text_index", self.text_index, len(self.texts)),
            ("true_image", self.true_image, len(self.images)),
            ("labels", self.labels, len(self.class_names)),
            ("true_labels", self.true_labels, len(self.class_names)),
        ):
            if index is not None:
                _check_index(f"{self.name}: {column}", index, count, below)
        if self.texts.features is not None and self.texts.features.shape[:1] != (len(self.texts),):
            raise InputError(
                f"{self.name}: text features have shape {self.texts.features.shape} for {len(self.texts)} texts; "
                "expected (texts, width)"
            )
        if self.true_labels is not None and self.labels is None:
            raise InputError(f"{self.name}: true labels without given labels; give both")
        if not len(self.source_rows):
            object.__setattr__(self, "source_rows", np.arange(count, dtype=np.int64))

    def __repr__(self) -> str:
        return shown_pairs(self)

    def __len__(self) -> int:
        return len(self.image_index)

    def ids(self, start: int = 0, stop: int | None = None) -> list[str]:
        """What people know the pairs [start, stop) by: the names their source gives them, else their source rows."""
        if self.pair_ids is not None:
            return list(self.pair_ids[start:stop])
        return [str(row) for row in self.source_rows[start:stop].tolist()]

    @property
    def mismatched(self) -> BoolArray | None:
        """(N,) True where the given image is not the true one; None when the truth is unknown."""
        return None if self.true_image is None else np.asarray(self.image_index != self.true_image)

    @property
    def mismatch_rate(self) -> float | None:
        """Realised share of mismatched pairs in [0, 1]; None when the truth is unknown."""
        mismatched = self.mismatched
        return None if mismatched is None else float(mismatched.mean())

    @property
    def wrong_labels(self) -> BoolArray | None:
        """(N,) True where the given label is not the true one; None when the truth is unknown."""
        return None if self.true_labels is None else np.asarray(self.labels != self.true_labels)

    @property
    def label_noise_rate(self) -> float | None:
        """Realised share of wrong labels in [0, 1]; None when the truth is unknown."""
        wrong = self.wrong_labels
        return None if wrong is None else float(wrong.mean())

    @property
    def image_of_text(self) -> IntArray:
        """(texts,) the one image of each text, as retrieval evaluation needs it.

        Raises:
            InputError: a text stands in no pair or in several.
        """
        uses = np.bincount(self.text_index, minlength=len(self.texts))
        if (uses != 1).any():
            odd = int(np.flatnonzero(uses != 1)[0])
            raise InputError(
                f"{self.name}: text {odd} ({self.texts.captions[odd]!r}) stands in {uses[odd]} pairs; evaluation needs "
                "exactly one image per text"
            )
        image = np.empty(len(self.texts), dtype=np.int64)
        image[self.text_index] = self.image_index
        return image

    def without_truth(self) -> Pairs:
        """The same pairs as a method may see them: the true images and labels are gone."""
        return replace(self, true_image=None, true_labels=None)

    def take(self, rows: IntArray) -> Pairs:
        """The given pairs only, renumbered from 0 but of the same ids; both sides stay as they are, uncopied."""
        return replace(
            self,
            image_index=self.image_index[rows],
            text_index=self.text_index[rows],
            labels=_rows_of(self.labels, rows),
            true_image=_rows_of(self.true_image, rows),
            true_labels=_rows_of(self.true_labels, rows),
            source_rows=self.source_rows[rows],
            pair_ids=None if self.pair_ids is None else [self.pair_ids[row] for row in rows.tolist()],
            trusted=_rows_of(self.trusted, rows),
            scores=_rows_of(self.scores, rows),
        )

    def captions(self) -> tuple[str, ...]:
        """The caption of each pair; one that stands in several pairs comes as often."""
        return tuple(self.texts.captions[text] for text in self.text_index.tolist())

    def with_captions(self, captions: Mapping[int, str]) -> Pairs:
        """Other captions of some pairs: row of the pair → caption. The text of a pair alone is replaced; where several
        pairs have it, the pair gets one of its own. Where the truth is known, such a pair is matched from now on. An
        InputError where texts are vectors, which no words can replace.
        """
        if not captions:
            return self
        if self.texts.features is not None:
            raise InputError(f"{self.name}: its texts are vectors, which no corrected caption can replace")
        used = np.bincount(self.text_index, minlength=len(self.texts))
        words, names, index = list(self.texts.captions), list(self.texts.ids), self.text_index.copy()
        for row, caption in captions.items():
            text = int(index[row])
            if used[text] == 1:
                words[text] = caption
            else:
                index[row] = len(words)
                words.append(caption)
                names.append(names[text])
        truth, rows = self.true_image, np.array(list(captions), dtype=np.int64)
        if truth is not None:
            truth = truth.copy()
            truth[rows] = self.image_index[rows]
        return replace(self, texts=Texts(tuple(words), tuple(names)), text_index=index, true_image=truth)

    def first_images(self, count: int) -> Pairs:
        """The first `count` images with the pairs and texts that belong to them, renumbered."""
        count = min(count, len(self.images))
        inside = np.flatnonzero(self.image_index < count)
        if self.true_image is not None:
            inside = inside[self.true_image[inside] < count]
        texts, text_index = np.unique(self.text_index[inside], return_inverse=True)
        images = self.images
        if count < len(images):  # slices, so that what is memory-mapped stays so
            files = None if images.files is None else images.files.take(np.arange(count))
            pictures = _rows_of(images.pictures, slice(count))
            images = Images(images.features[:count], images.ids[:count], pictures, files, images.copies, images.encoder)
        return replace(
            self.take(inside), images=images, texts=self.texts.take(texts), text_index=text_index.astype(np.int64)
        )

    def compact(self) -> Pairs:
        """The same pairs without the images and texts that stand in none of them."""
        used = self.image_index if self.true_image is None else np.append(self.image_index, self.true_image)
        images = np.unique(used)
        texts, text_index = np.unique(self.text_index, return_inverse=True)
        return replace(
            self,
            images=self.images.take(images),
            texts=self.texts.take(texts),
            image_index=np.searchsorted(images, self.image_index).astype(np.int64),
            text_index=text_index.astype(np.int64),
            true_image=None if self.true_image is None else np.searchsorted(images, self.true_image).astype(np.int64),
        )

    def matched_only(self) -> Pairs:
        """The truly matched pairs: the reference ("oracle") no method can have. The captions of the others are known as
        well: a vocabulary of theirs too (`Vocabulary.build(pairs.captions())`) is the one of the methods it is beside.

        Raises:
            InputError: the truth is unknown, or no pair is matched.
        """
        mismatched = self.mismatched
        if mismatched is None:
            raise InputError(
                f"{self.name}: which pairs match is unknown here; it is known after noise (--noise), or with an index "
                "file (--noise-index)"
            )
        if mismatched.all():
            raise InputError(f"{self.name}: all {len(self)} pairs are mismatched, none is left to train on")
        return self.take(np.flatnonzero(~mismatched))


def _rows_of(column: Array | None, rows: Any) -> Any:
    return None if column is None else column[rows]


def _check_index(what: str, index: IntArray, count: int, below: int) -> None:
    """Refuse an index column that is not int64 of rank 1, of this length, within [0, below)."""
    if index.dtype != np.int64 or index.ndim != 1:
        raise InputError(f"{what} is {index.dtype} of shape {index.shape}; expected int64 of rank 1")
    if len(index) != count:
        raise InputError(f"{what} has {len(index)} entries for {count} pairs; there must be one for each")
    outside = np.flatnonzero((index < 0) | (index >= below))
    if len(outside):
        row = int(outside[0])
        raise InputError(f"{what}[{row}] is {index[row]}, outside 0 … {below - 1}")
