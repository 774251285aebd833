"""Encodings of many items without padding: what is packed comes back, whatever the order and the lengths."""

import pytest
import torch

from truepair.engines.region_word.fragments import Fragments, pack_fragments, padded_fragments, select_fragments

LENGTHS = ([3, 1], [5, 2, 5], [1])


def batches():
    draw = torch.Generator().manual_seed(0)
    for lengths in LENGTHS:
        longest = max(lengths)
        vectors = torch.randn(len(lengths), longest, 4, generator=draw)
        exists = torch.arange(longest) < torch.tensor(lengths)[:, None]
        whole = torch.randn(len(lengths), 4, generator=draw)
        yield Fragments(vectors.masked_fill(~exists[..., None], 0.0), torch.tensor(lengths), whole)


@pytest.mark.parametrize("rows", [slice(None), slice(1, 3), torch.tensor([5]), torch.tensor([4, 0, 4, 1])])
def test_packed_items_come_back_padded_to_the_longest_that_was_asked_for(rows):
    parts = list(batches())
    packed = pack_fragments(parts)
    assert packed.vectors.shape == (17, 4) and len(packed) == 6  # 17 fragments, none of padding
    found = select_fragments(packed, rows)
    items = [(part, item) for part in parts for item in range(len(part))]
    wanted = [items[i] for i in torch.arange(6)[rows].tolist()]
    assert found.vectors.shape[1] == max(int(part.lengths[item]) for part, item in wanted)
    for row, (part, item) in enumerate(wanted):
        length = int(part.lengths[item])
        assert int(found.lengths[row]) == length
        assert torch.equal(found.vectors[row, :length], part.vectors[item, :length])
        assert not found.vectors[row, length:].any()
        assert torch.equal(found.whole[row], part.whole[item])


def test_selecting_from_a_batch_and_from_the_packed_is_the_same():
    part = list(batches())[1]
    rows = torch.tensor([1, 1])
    one, other = select_fragments(part, rows), select_fragments(pack_fragments([part]), rows)
    assert torch.equal(one.vectors, other.vectors) and one.vectors.shape == (2, 2, 4)
    assert torch.equal(padded_fragments(pack_fragments([part])).vectors, part.vectors)
    assert padded_fragments(part) is part


def test_no_items_at_all():
    none = select_fragments(pack_fragments(list(batches())), slice(0, 0))
    assert none.vectors.shape == (0, 1, 4) and len(none) == 0
