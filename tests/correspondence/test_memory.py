"""The memory is keyed by pair id: order, repetition and gaps in what is written do not matter."""

import pytest
import torch

from truepair.correspondence import CorrespondenceMemory
from truepair.errors import InputError


def memory(count=6):
    made = CorrespondenceMemory(count)
    made.register("label", 1.0)
    return made


def test_values_are_written_and_read_by_id():
    kept = memory()
    kept.write("label", torch.tensor([4, 0]), torch.tensor([0.25, 0.75]))
    assert kept.read("label").tolist() == [0.75, 1, 1, 1, 0.25, 1]
    assert kept.read("label", torch.tensor([4, 4, 1])).tolist() == [0.25, 0.25, 1.0]


def test_a_sampler_that_repeats_ids_corrupts_nothing():
    kept = memory()
    kept.write("label", torch.tensor([2, 3, 2]), torch.tensor([0.5, 0.1, 0.5]))
    assert kept.read("label").tolist() == pytest.approx([1, 1, 0.5, 0.1, 1, 1])


def test_what_is_read_is_a_copy():
    kept = memory()
    kept.read("label").zero_()
    kept.tensors()["label"].zero_()
    assert kept.read("label").tolist() == [1.0] * 6


def test_registering_again_keeps_the_values():
    kept = memory()
    kept.write("label", None, torch.zeros(6))
    kept.register("label", 1.0)
    assert kept.read("label").tolist() == [0.0] * 6


@pytest.mark.parametrize(
    ("ids", "values", "message"),
    [
        ([0, 6], [0.0, 0.0], "outside 0 … 5"),
        ([-1], [0.0], "outside 0 … 5"),
        ([0, 1], [0.0], "values for"),
        ([3], [float("nan")], "pair 3"),
        ([3], [float("inf")], "pair 3"),
    ],
)
def test_wrong_writes_are_refused_and_change_nothing(ids, values, message):
    kept = memory()
    with pytest.raises(InputError, match=message):
        kept.write("label", torch.tensor(ids), torch.tensor(values))
    assert kept.read("label").tolist() == [1.0] * 6


def test_restoring_gives_back_what_was_saved():
    kept, other = memory(), memory()
    kept.write("label", torch.tensor([5]), torch.tensor([0.5]))
    other.restore(kept.tensors())
    assert other.read("label").tolist() == kept.read("label").tolist()
    for damaged in ({}, {"label": torch.ones(5)}):
        with pytest.raises(InputError, match="label"):
            other.restore(damaged)


def test_fields_may_hold_a_row_a_pair():
    kept = memory(3)
    kept.register("classes", torch.eye(3))
    kept.write("classes", torch.tensor([2, 0]), torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]))
    assert kept.read("classes").tolist() == [[0, 0.25, 0.75], [0, 1, 0], [0.5, 0.5, 0]]
    for wrong in (torch.zeros(2), torch.zeros(2, 2), torch.zeros(3, 3)):
        with pytest.raises(InputError, match="values for"):
            kept.write("classes", torch.tensor([0, 1]), wrong)
    with pytest.raises(InputError, match="value of pair 2 is nan"):
        kept.write("classes", torch.tensor([0, 2]), torch.tensor([[0.0] * 3, [0.0, float("nan"), 0.0]]))
    again = memory(3)
    again.register("classes", 0.0 * torch.eye(3))
    again.restore(kept.tensors())
    assert again.read("classes").tolist() == kept.read("classes").tolist()


def test_what_is_given_at_the_start_is_copied():
    first = torch.eye(2)
    kept = memory(2)
    kept.register("classes", first)
    kept.write("classes", None, torch.zeros(2, 2))
    assert first.tolist() == [[1, 0], [0, 1]]


def test_what_is_forgotten_was_never_noted():
    kept = memory(2)
    kept.note("share", torch.tensor(0.5))
    kept.forget("share")
    kept.forget("share")
    assert not kept.has_noted("share") and kept.notes() == {}


def test_notes_are_kept_with_the_fields():
    kept = memory(2)
    noted = torch.ones(5, 3)
    kept.note("confident", noted)
    noted.zero_()
    again = memory(2)
    again.restore(kept.tensors(), kept.notes())
    assert again.noted("confident").tolist() == [[1.0] * 3] * 5
    again.restore(kept.tensors())
    with pytest.raises(KeyError):
        again.noted("confident")
