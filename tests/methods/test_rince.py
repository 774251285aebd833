"""RINCE as a method: its loss with the options it was given; the loss itself is tested in tests/losses."""

import pytest
import torch

from tests.methods.given import GivenForward, GivenNetwork, check_order_does_not_matter
from tests.methods.test_baselines import SIMILARITY, prepared
from tests.methods.test_baselines import GivenForward as Given
from truepair.errors import InputError
from truepair.losses import robust_info_nce
from truepair.methods import build_method
from truepair.methods.base import EpochPosition


@pytest.mark.parametrize("largest", [None, 7.0])
def test_the_method_is_its_loss(largest):
    method, memory, stages = prepared("rince", {"temperature": 0.2, "exponent": 0.4, "density": 0.3})
    given = Given()
    given.largest = largest  # of a model that scales its cosines itself
    found = method.batch_loss(given, EpochPosition(0, 1, stages), memory).per_pair
    expected = robust_info_nce(SIMILARITY, temperature=0.2, exponent=0.4, density=0.3, largest=largest or 1.0)
    assert torch.equal(found, expected)
    assert method.belief(memory)[[2, 4]].tolist() == [1.0, 1.0] and float(method.belief(memory)[6]) < 1


def test_defaults_are_those_that_were_decided_and_as_printed_those_of_the_scripts():
    config, printed = build_method("rince").config, build_method("rince").printed.method
    assert (config.temperature, config.exponent, config.density) == (0.07, 0.1, 0.01)
    assert printed == {"temperature": 0.07, "exponent": 0.01, "density": 0.01}


def test_order_does_not_matter():
    made = torch.rand(9, 9, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    given = GivenForward([GivenNetwork(made)], torch.randperm(9, generator=torch.Generator().manual_seed(4)))
    method = build_method("rince")
    check_order_does_not_matter(method, given, EpochPosition(0, 1, method.stages(3, None)), {})


@pytest.mark.parametrize("bad", [{"exponent": 0.0}, {"exponent": 1.1}, {"density": 0.0}, {"temperature": 0.0}])
def test_values_out_of_range_are_refused(bad):
    with pytest.raises(InputError):
        build_method("rince", bad)
