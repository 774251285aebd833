"""Draws of torch within a block are seeded, and nothing else is."""

import torch

from truepair.seeding import torch_seeded


def test_the_numbers_are_those_of_the_seed_and_afterwards_all_is_as_before():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    drawn = []
    for purpose, position in (("dropout", 1), ("dropout", 1), ("dropout", 2), ("init", 1)):
        with torch_seeded(5, purpose, position):
            drawn.append(tuple(torch.rand(4).tolist()))
    assert drawn[0] == drawn[1] and len(set(drawn)) == 3
    assert torch.equal(torch.rand(3), expected)


def test_generators_of_other_devices_are_left_alone(monkeypatch):
    """`torch.manual_seed` would seed those of all devices anew, and nobody would set them back."""
    seeded = []
    for device in (torch.cuda, torch.mps, torch.xpu):
        for name in ("manual_seed", "manual_seed_all"):
            monkeypatch.setattr(device, name, seeded.append, raising=False)
    with torch_seeded(5, "dropout"):
        torch.rand(1)
    assert not seeded
