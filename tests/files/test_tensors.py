"""Tensors in files with a digest."""

import pytest
import torch

from truepair.errors import InputError
from truepair.files.tensors import read_tensors, tensor_bytes


def test_tensors_that_share_memory_are_read_back_as_they_were(tmp_path):
    weight = torch.arange(6.0)
    tensors = {
        "tied": weight,
        "again": weight,
        "part": weight[2:4],
        "turned": weight.view(2, 3).T,
        "scale": torch.tensor(2.5),
        "none": torch.zeros(0),
        "nor": torch.zeros(0, 3),
    }
    tensors["same scale"] = tensors["scale"]
    (tmp_path / "t.safetensors").write_bytes(tensor_bytes(tensors, {"run": "a"}))
    found, described = read_tensors(tmp_path / "t.safetensors", "tensors")
    assert described == {"run": "a"} and found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_a_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "t.safetensors"
    written = bytearray(tensor_bytes({"weight": torch.arange(6.0)}))
    written[-1] ^= 1
    path.write_bytes(written)
    with pytest.raises(InputError, match="its digest differs"):
        read_tensors(path, "tensors; write them again")
