"""The command line at the end of a pipe that nobody reads."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_a_closed_pipe_is_no_traceback(form, tiny):
    """What is printed is short: it breaks when it is flushed, at the end."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "truepair", "describe", str(tiny), *form]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == ""
