"""The command line at the end of a pipe that nobody reads."""

import os
import subprocess
import sys

import pytest

WORDS = {
    "table": "truepair describe {tiny}",
    "json": "truepair describe {tiny} --json",
    "reproduce": "truepair.reproduce list",
}


@pytest.mark.parametrize("words", WORDS.values(), ids=[*WORDS])
def test_a_closed_pipe_is_no_traceback(words, tiny):
    """What is printed is short: it breaks when it is flushed, at the end."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", *(word.format(tiny=tiny) for word in words.split())]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 141
    assert done.stderr == ""
