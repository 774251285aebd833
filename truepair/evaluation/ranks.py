"""Where the right item stands among all candidates, counted rather than sorted.

The rank of a query is the number of wrong items at least as similar as its right one: 0 is best, and ties count
against the model, so that a model whose similarities are all equal ranks last everywhere instead of first.
Counting reads the matrix once, in row blocks that stay in the processor's cache, and keeps no second matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from truepair.errors import InputError, NaNError

UNDESCRIBED = -1
"""Image rank of an image that no text belongs to."""

BUFFER_BYTES = 4 * 2**20
"""Default size of the comparison buffer: it stays in cache; a quarter or four times of it took 1.4 times as long."""

EXACT_IN_FLOAT32 = 2**24
"""Float32 counts without rounding up to here."""


def ranks(similarity: Tensor, image_of_text: Tensor, *, buffer_bytes: int = BUFFER_BYTES) -> tuple[Tensor, Tensor]:
    """Image ranks (images,) and text ranks (texts,), both int64, 0 = best.

    Image → text: the wrong texts at least as similar to the image as the best of its own texts; its own other texts
    never count. Text → image: the wrong images at least as similar to the text as its own image. An image without
    any text has no rank to speak of and gets `UNDESCRIBED` (-1), so that entry i always belongs to image i.

    Args:
        similarity: (images, texts), any float dtype; infinite values are fine.
        image_of_text: (texts,) int64, the image each text belongs to.
        buffer_bytes: extra memory for the comparisons; one row is always taken.

    Raises:
        InputError: a shape, dtype or index does not fit, or a similarity is NaN.

    See Also:
        ranks_from_blocks: the same ranks when the matrix is too large to hold.
    """
    right = _RightPairs(image_of_text)
    _check_block(similarity, 0, right.count)
    right.check_images(len(similarity))
    parts = _parts([similarity], right.count, buffer_bytes)
    own = similarity.detach()[tuple(index.to(similarity.device) for index in (right.images, right.texts))]
    return _count(parts, own, right, buffer_bytes)


def ranks_from_blocks(
    blocks: Callable[[], Iterable[Tensor]], image_of_text: Tensor, *, buffer_bytes: int = BUFFER_BYTES
) -> tuple[Tensor, Tensor]:
    """The ranks that `ranks` gives, bit for bit, without ever holding the whole similarity matrix.

    A text cannot be ranked before the similarity of its own image is known, and that image may stand in the last
    block. The blocks are therefore asked for twice: once for the own similarities, once to count. Where a block
    costs much more than the memory it takes (local similarity engines), keep the matrix and call `ranks`.

    Args:
        blocks: called twice; each time gives the rows of the similarity matrix from the first image to the last, as
            tensors (any number of images, texts) of one dtype.
        image_of_text: (texts,) int64, the image each text belongs to.
        buffer_bytes: extra memory for the comparisons; one row is always taken.

    Raises:
        InputError: as `ranks`, and when the two passes do not agree (an exhausted iterator, dropout left on).

    Example:
        >>> images, texts = torch.eye(4), torch.eye(4)
        >>> ranks_from_blocks(lambda: (rows @ texts.T for rows in images.split(2)), torch.arange(4))
        (tensor([0, 0, 0, 0]), tensor([0, 0, 0, 0]))
    """
    right = _RightPairs(image_of_text)
    own, images = _own_similarity(_parts(blocks(), right.count, buffer_bytes), right)
    image_ranks, text_ranks = _count(_parts(blocks(), right.count, buffer_bytes), own, right, buffer_bytes)
    if len(image_ranks) != images:
        raise InputError(
            f"the blocks hold {images} images the first time and {len(image_ranks)} the second; `blocks` is called "
            "twice and must start anew each time: pass a function that makes a new iterator, not one iterator"
        )
    return image_ranks, text_ranks


class _RightPairs:
    """The right (image, text) pairs in the order of their images, so that the ones in a row block are a slice."""

    def __init__(self, image_of_text: Tensor) -> None:
        if image_of_text.dtype != torch.int64 or image_of_text.ndim != 1 or not len(image_of_text):
            raise InputError(
                f"image_of_text is {image_of_text.dtype} of shape {tuple(image_of_text.shape)}; expected int64 of "
                "shape (texts,) with at least one text"
            )
        self.images, self.texts = image_of_text.cpu().sort(stable=True)
        self.count = len(image_of_text)
        if self.images[0] < 0:
            raise InputError(
                f"image_of_text[{int(self.texts[0])}] is {int(self.images[0])}; every text needs an image, counted "
                "from 0: leave texts without one out of the similarity"
            )

    def check_images(self, images: int) -> None:
        if self.images[-1] >= images:
            raise InputError(
                f"image_of_text[{int(self.texts[-1])}] is {int(self.images[-1])}, counted from 0, but the similarity "
                f"has {images} images (rows); check that rows are images, columns texts, and that no image is missing"
            )

    def inside(self, start: int, part: Tensor) -> tuple[Tensor, Tensor]:
        """(rows, columns) within `part` of the right pairs, where row 0 of `part` is image `start`."""
        first, last = torch.searchsorted(self.images, torch.tensor([start, start + len(part)])).tolist()
        return (self.images[first:last] - start).to(part.device), self.texts[first:last].to(part.device)


def _parts(blocks: Iterable[Tensor], texts: int, buffer_bytes: int) -> Iterator[tuple[int, Tensor]]:
    """(first image, rows) of each piece of the blocks that fits the buffer, checked for shape, dtype and NaN."""
    start, dtype = 0, None
    for block in blocks:
        _check_block(block, start, texts)
        dtype = dtype or block.dtype
        if block.dtype != dtype:
            raise InputError(
                f"similarity is {block.dtype} from image {start} on and {dtype} before; expected one dtype"
            )
        for part in torch.split(block.detach(), _rows_at_once(texts, buffer_bytes)):
            if len(part):
                # amax hands NaN on, and unlike isnan it needs no second array: a quarter of the time.
                if part.amax().isnan():
                    row, column = part.isnan().nonzero()[0].tolist()
                    raise not_a_number(start + row, column, "image, text")
                yield start, part
                start += len(part)


def _check_block(block: Tensor, start: int, texts: int) -> None:
    if block.ndim != 2 or block.shape[1] != texts or not block.is_floating_point():
        raise InputError(
            f"similarity is {block.dtype} of shape {tuple(block.shape)} from image {start} on, and image_of_text has "
            f"{texts} texts; expected floats of shape (images, {texts}): one row per image, one column per text"
        )


def not_a_number(row: int, column: int, what: str) -> NaNError:
    """The error of a similarity; `what` its row and column are, such as `image, text`."""
    return NaNError(
        f"similarity[{row}, {column}] ({what}) is NaN; NaN cannot be ranked: look for features that are not finite, a "
        "zero vector divided by its length, or a model that has diverged"
    )


@torch.no_grad()
def _own_similarity(parts: Iterator[tuple[int, Tensor]], right: _RightPairs) -> tuple[Tensor, int]:
    """(texts,) the similarity of each text and its own image; and the number of images seen."""
    images = 0
    found = []
    for start, part in parts:
        found.append(part[right.inside(start, part)])
        images = start + len(part)
    right.check_images(images)
    return torch.cat(found), images


@torch.no_grad()
def _count(
    parts: Iterator[tuple[int, Tensor]], own_by_image: Tensor, right: _RightPairs, buffer_bytes: int
) -> tuple[Tensor, Tensor]:
    """The ranks; `own_by_image` is the similarity of the right pairs, in the order of `right`."""
    own = torch.empty_like(own_by_image)
    own[right.texts.to(own.device)] = own_by_image
    buffer = own.new_empty((_rows_at_once(right.count, buffer_bytes), right.count), dtype=_counter(right.count))
    text_ranks = torch.zeros(right.count, dtype=torch.int64, device=own.device)
    image_ranks = [text_ranks[:0]]
    for start, part in parts:
        rows, texts = right.inside(start, part)
        here = part[rows, texts]
        _check_same(here, own[texts])
        best = part.new_full((len(part),), -torch.inf).scatter_reduce_(0, rows, here, "amax")
        # The right pairs were counted too; they leave by position, which is safe even where two passes round apart.
        own_at_best = torch.zeros(len(part), dtype=torch.int64, device=own.device)
        own_at_best.index_add_(0, rows, (here >= best[rows]).long())
        described = torch.bincount(rows, minlength=len(part)) > 0
        counted = _at_least(part, best[:, None], buffer).sum(1).long() - own_at_best
        image_ranks.append(torch.where(described, counted, UNDESCRIBED))
        text_ranks += _at_least(part, own, buffer).sum(0).long()
        text_ranks[texts] -= (here >= own[texts]).long()
    return torch.cat(image_ranks), text_ranks


def _at_least(part: Tensor, reference: Tensor, buffer: Tensor) -> Tensor:
    """(rows, texts) 1 where `part` >= `reference`, else 0; as floats, which sum several times faster than booleans."""
    return torch.ge(part, reference, out=buffer[: len(part)])


def _check_same(second: Tensor, first: Tensor) -> None:
    tolerance = torch.finfo(first.dtype).eps ** 0.5  # rounding may differ with the load of the machine; dropout is more
    if not torch.allclose(second.double(), first.double(), rtol=tolerance, atol=tolerance):
        raise InputError(
            "the blocks give other similarities the second time they are asked for; put the model in evaluation mode "
            "(`model.eval()`) so that both passes compute the same"
        )


def _rows_at_once(texts: int, buffer_bytes: int) -> int:
    return min(max(1, buffer_bytes // (texts * _counter(texts).itemsize)), EXACT_IN_FLOAT32)


def _counter(texts: int) -> torch.dtype:
    return torch.float32 if texts <= EXACT_IN_FLOAT32 else torch.float64
