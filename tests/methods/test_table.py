"""`METHODS`: every method is found through it, and its options cost no torch."""

import subprocess
import sys

import pytest

from truepair.methods import METHODS, build_method


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_called_as_in_the_table(name):
    method = build_method(name)
    assert (method.name, type(method)) == (name, METHODS[name].method)
    assert type(method.config) is METHODS[name].options


def test_options_are_read_without_torch():
    code = (
        "import sys; from truepair.methods import METHODS\n"
        "for place in METHODS.values(): place.options\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
