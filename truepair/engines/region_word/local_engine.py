"""The local similarity engines of SGRAF: SGR (similarity graph reasoning) and SAF (similarity attention filtration).

Both compare every word with the regions it attends to and the two wholes with each other, then reason (SGR) or filter
(SAF) on these similarity vectors and end in one free logit r.

`truepair/engines/released/sgraf.py` has the modules of the released SGRAF code beside those here.

Decided, where the released codes differ from the equations or from each other:

- The wholes are computed once a side, in the encode step. GSC's code runs the visual self-attention again for the
  intra-modal part, with other dropout masks and a second update of its batch norm.
- The batch norm of SAF sees one column at a time in training, as a loop over captions does, in `scores`,
  `image_scores` and `text_scores` alike. Its running statistics follow `scores` alone: GSC's intra-modal columns come
  last in a step, and would leave nothing of the image–text statistics that retrieval needs.
- No 1e-6 is added anywhere: norms have a gradient of zero at zero instead.

Shape letters: m images, R regions, n texts, W words, D width, S similarity width, P pairs, N nodes of a pair.
Source: "Similarity Reasoning and Filtration for Image-Text Matching" (SGRAF, AAAI 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from truepair.data.batch import ImageBatch, TextBatch
from truepair.engines.features import Features
from truepair.engines.input_vectors import region_vectors, word_vectors
from truepair.engines.pooling import element_mask
from truepair.engines.region_word.alignment import Alignment, ByPosition, WithAttention
from truepair.engines.region_word.filtration import AttentionFiltration
from truepair.engines.region_word.fragments import (
    AnyFragments,
    Fragments,
    PackedFragments,
    pack_fragments,
    padded_fragments,
    select_fragments,
)
from truepair.engines.region_word.layout import Layout, PairGroup, PairNodes, layout_for, pair_groups
from truepair.engines.region_word.local_encoders import DroppingWordEncoder, LinearRegionEncoder
from truepair.engines.region_word.reasoning import GraphReasoning
from truepair.engines.region_word.self_attention import ImageSelfAttention, SelfAttention, xavier_linear
from truepair.engines.similarity import SingleViewEngine
from truepair.engines.similarity_head import SimilarityHead
from truepair.engines.unit import blocks
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.engines.config import SAFConfig, SGRConfig

__all__ = ["Fragments", "LocalEngine"]

MOST_WORDS = 512
"""Words compared at a time on a CPU: finding out which word belongs to which caption grows with their square."""


class LocalEngine(SingleViewEngine[AnyFragments]):
    """Encodings are `Fragments`; a score r is a free logit, its similarity σ(r), its ranking value tanh(r).

    Args:
        feature_width: F of the region features.
        regions: region positions of the visual batch norm: the most regions an image can have.
        vocabulary_size: number of word ids.
        config: SGR or SAF, and the sizes.
        compared_width: of the vectors that are compared, where they are not the encoders' own (`DisentangledEngine`).
    """

    costly = True

    def __init__(
        self,
        feature_width: int,
        regions: int,
        vocabulary_size: int,
        config: SGRConfig | SAFConfig,
        *,
        compared_width: int | None = None,
    ) -> None:
        super().__init__()
        width, similarity_width = config.width, config.similarity_width
        compared = compared_width or width
        self.most_regions, self.vocabulary_size = regions, vocabulary_size
        self.memory_bytes: int | None = None  # of one buffer of working memory; None: as it suits the device
        self.kept_bytes = 1 << 30  # what reasoning may keep for the backward pass; beyond that it is computed again
        self.region_sizes = (feature_width, width)
        self.regions = self.new_region_encoder()
        self.words = DroppingWordEncoder(vocabulary_size, width, config.word_width, config.dropout)
        self.image_attention = ImageSelfAttention(compared, regions, config.dropout)
        self.text_attention = SelfAttention(compared, config.dropout)
        self.align = Alignment(compared, similarity_width)
        self.head: GraphReasoning | AttentionFiltration = config.head()
        self.score: nn.Linear | SimilarityHead = xavier_linear(similarity_width, 1)

    def use_head(self, width: int) -> None:
        self.score = SimilarityHead(self.score.in_features, width)

    @property
    def similarity_head(self) -> SimilarityHead:
        assert isinstance(self.score, SimilarityHead)
        return self.score

    def new_region_encoder(self) -> LinearRegionEncoder:
        return LinearRegionEncoder(*self.region_sizes)

    def image_features(self, images: ImageBatch, regions: nn.Module | None = None) -> Features:
        """Raises InputError: an image has more regions than the engine knows positions."""
        longest = int(images.lengths.max())
        if longest > self.most_regions:
            raise InputError(
                f"image {int(images.lengths.argmax())} of the batch has {longest} regions, this model knows "
                f"{self.most_regions} positions; keep at most {self.most_regions} regions an image, or train a model "
                f"for {longest}"
            )
        if longest < images.features.shape[1]:
            images = ImageBatch(images.features[:, :longest], images.lengths)
        return Features((regions or self.regions)(images), images.lengths)

    def input_vectors(self, images: ImageBatch, texts: TextBatch) -> tuple[list[Tensor], list[Tensor]]:
        return region_vectors(images), word_vectors(texts, self.vocabulary_size)

    def text_features(self, texts: TextBatch) -> Features:
        return Features(self.words(texts), texts.lengths)

    def represent_images(self, features: Features) -> Fragments:
        return represented(features, self.image_attention)

    def represent_texts(self, features: Features) -> Fragments:
        return represented(features, self.text_attention)

    def vectors(self, encoded: AnyFragments) -> Tensor:
        fragments = padded_fragments(encoded)
        return Features(fragments.vectors, fragments.lengths).pooled()

    def scores(
        self,
        images: AnyFragments,
        texts: AnyFragments,
        lay_out: Callable[[Tensor, int, torch.device], Layout] = layout_for,
    ) -> Tensor:
        images = padded_fragments(images)
        with torch.autocast(images.vectors.device.type, enabled=False):
            nodes = len(images) * int((texts.lengths + 1).sum())
            return self.assemble(self.pairs(images, texts, lay_out), nodes, (len(images), len(texts)))

    def image_scores(self, images: AnyFragments) -> Tensor:
        """The same network on two images: regions compared position by position, as far as both have them.

        No attention; symmetric, except for SAF in training, whose batch norm belongs to the column.
        """
        images = padded_fragments(images)
        with torch.autocast(images.vectors.device.type, enabled=False), self.resting():
            nodes = (len(images) + 1) * int((images.lengths + 1).sum()) // 2
            shape = len(images), len(images)
            return self.assemble(self.pairs_of_images(images), nodes, shape, mirrored=True)

    def text_scores(self, texts: AnyFragments) -> Tensor:
        """[a, b]: text a in the role of the image, its words in that of the regions; text b is the caption."""
        with self.resting():
            return self.scores(texts, texts)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Within the block SAF's running statistics stay: retrieval normalises images with texts, not either alone."""
        self.head.moving = False
        try:
            yield
        finally:
            self.head.moving = True

    def assemble(
        self, chunks: Iterator[PairNodes], nodes: int, shape: tuple[int, int], *, mirrored: bool = False
    ) -> Tensor:
        """The matrix of raw scores from the nodes of its pairs, some `nodes` altogether."""
        rows, columns, scores = [], [], []
        keep = self.head.kept(nodes) * self.score.weight.element_size() <= self.kept_bytes
        for of_rows, of_columns, vectors in self.head.vectors(chunks, shape[1], mirrored=mirrored, keep=keep):
            rows.append(of_rows)
            columns.append(of_columns)
            scores.append(self.score(vectors).squeeze(1))
        raw = torch.cat(scores)
        return raw.new_zeros(shape).index_put((torch.cat(rows), torch.cat(columns)), raw)

    def pairs(
        self, images: Fragments, texts: AnyFragments, lay_out: Callable[[Tensor, int, torch.device], Layout]
    ) -> Iterator[PairNodes]:
        """The nodes of every image with every caption: some captions after the other, some images after the other."""
        device, longest = images.vectors.device, images.vectors.shape[1]
        ragged = bool((images.lengths < longest).any())
        present = element_mask(images.lengths, longest, device) if ragged else None
        for captions in self.caption_parts(texts):
            part = select_fragments(texts, captions)
            layout = lay_out(part.lengths, part.vectors.shape[1], device)
            words = part.vectors.flatten(0, 1)[layout.places.to(device)]
            whole_texts = part.whole[layout.order.to(device)]
            membership = layout.membership(words)
            at_once = min(len(images), max(1, self.budget(device) // (words.numel() * words.element_size())))
            # One for all images, forward and backward: a CPU pays for every fresh page.
            buffers = words.new_empty(2, at_once, *words.shape)
            node_bytes = (len(words) + len(whole_texts)) * self.score.in_features * words.element_size()
            chunks = blocks(len(images), node_bytes, self.budget(device))
            sizes = [rows.stop - rows.start for rows in chunks]
            # `split`, because the gradient of a slice fills the whole tensor with zeros.
            regions, wholes = torch.split(images.vectors, sizes), torch.split(images.whole, sizes)
            for rows, count, *of_images in zip(chunks, sizes, regions, wholes, strict=True):
                here = None if present is None else present[rows]
                nodes: Tensor = WithAttention.apply(  # type: ignore[no-untyped-call]
                    *of_images, words, whole_texts, *self.align.parameters(), here, layout.groups, membership, buffers
                )
                cells_of = torch.split(layout.order, [group.count for group in layout.groups])
                columns = torch.cat([captions[cells.repeat(count)] for cells in cells_of])
                numbers = torch.arange(rows.start, rows.stop)
                of_rows = torch.cat([numbers.repeat_interleave(len(cells)) for cells in cells_of])
                yield PairNodes(nodes, pair_groups(layout.groups, count), of_rows.to(device), columns.to(device))

    def caption_parts(self, texts: AnyFragments) -> list[Tensor]:
        """Captions by length, in parts whose words fit the budget, at least one caption each."""
        device, order = texts.vectors.device, texts.lengths.argsort(stable=True)
        words = self.budget(device) // (texts.vectors.shape[-1] * texts.vectors.element_size())
        if device.type == "cpu":
            words = min(words, MOST_WORDS)
        part = (texts.lengths[order].cumsum(0) - 1) // max(1, words)
        return list(torch.split(order, torch.unique_consecutive(part, return_counts=True)[1].tolist()))

    def pairs_of_images(self, images: Fragments) -> Iterator[PairNodes]:
        """The nodes of the pairs i ≤ j of images."""
        device = images.vectors.device
        # From many regions to few: of two images, the later one says how many positions both have.
        order = images.lengths.argsort(descending=True, stable=True)
        ordered = select_fragments(images, order)
        lengths, counts = torch.unique_consecutive(ordered.lengths, return_counts=True)
        start = 0
        for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
            group = slice(start, start + count)
            for upper, rows in ((False, slice(0, start)), (True, group)):
                if rows.stop == rows.start:
                    continue
                first = ordered.vectors[rows, :length], ordered.whole[rows]
                second = ordered.vectors[group, :length], ordered.whole[group]
                node_bytes = count * (1 + length) * self.score.in_features * first[0].element_size()
                chunks = blocks(len(first[0]), node_bytes, self.budget(device))
                every = ByPosition.apply(  # type: ignore[no-untyped-call]
                    *first, *second, *self.align.parameters(), chunks, upper, self.budget(device)
                )
                cells = torch.ones(len(first[0]), count).triu() if upper else torch.ones(len(first[0]), count)
                for chunk, nodes in zip(chunks, every, strict=True):
                    of_rows, of_columns = cells[chunk].nonzero(as_tuple=True)
                    of_rows, of_columns = order[rows][chunk][of_rows], order[group][of_columns]
                    groups = [PairGroup(len(of_rows), 1 + length, None)]
                    yield PairNodes(nodes, groups, of_rows.to(device), of_columns.to(device))
            start += count

    def budget(self, device: torch.device) -> int:
        """Bytes of one buffer of working memory: small enough for a CPU's caches, large for an accelerator."""
        return self.memory_bytes or (4 << 20 if device.type == "cpu" else 256 << 20)

    def as_similarity(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(scores)

    def as_ranking(self, scores: Tensor) -> Tensor:
        return torch.tanh(scores)

    def concatenate(self, parts: list[AnyFragments]) -> PackedFragments:
        return pack_fragments([padded_fragments(part) for part in parts])

    def select(self, encoded: AnyFragments, rows: slice | Tensor) -> Fragments:
        return select_fragments(encoded, rows)

    def cell_bytes(self, images: AnyFragments, texts: AnyFragments) -> int:
        # The row itself, in the copies that it is put together from: `scores` bounds its own working memory.
        return 4 * len(texts) * texts.vectors.element_size()


def represented(features: Features, attention: SelfAttention) -> Fragments:
    """The fragments and, by self-attention, the whole."""
    assert features.lengths is not None
    return Fragments(features.vectors, features.lengths, attention(features.vectors, features.lengths))
