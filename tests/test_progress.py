"""What people who wait are told, with and without a terminal."""

from itertools import pairwise

import pytest

from truepair import progress
from truepair.progress import Progress, TimeLeft, duration


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes ten seconds at every look."""
    now = iter(range(0, 100_000, 10))
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))


def test_without_a_terminal_there_are_lines_with_the_time_left(clock):
    told = []
    with Progress(None, told.append).count("scoring", 400, "pairs") as moved:
        for done in (0, 100, 200, 400):
            moved(done)
    assert [line.split(",")[0] for line in told] == ["scoring: 25 % of 400 pairs", "scoring: 50 % of 400 pairs"]
    assert all(line.endswith(" left") for line in told)


def test_lines_about_work_of_hours_become_rarer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    said = []
    with Progress(None, lambda _: said.append(now[0])).count("scoring", 10_000, "pairs") as moved:
        for done in range(1, 10_000):
            now[0] += 1
            moved(done)
    assert said[:4] == [5, 10, 15, 20] and len(said) < 100
    assert all(later - before >= later / 10 for before, later in pairwise(said))


def test_steps_are_told_and_timed_and_quiet_says_nothing(clock, capsys):
    for shown, expected in ((None, "score\n"), (False, "")):
        told = Progress(shown)
        with told.step("score"):
            pass
        with told.count("scoring", 10, "pairs") as moved:
            moved(5)
        assert capsys.readouterr().err.splitlines()[:1] == expected.splitlines()
        assert told.seconds["score"] > 0


def test_time_left_counts_from_what_was_there(clock):
    left = TimeLeft(100)
    assert left.left(40) == "time left unknown"
    assert left.left(70) == "about 10 s left"
    assert [duration(seconds) for seconds in (12.4, 99, 180, 4800)] == ["12 s", "99 s", "3 min", "1 h 20 min"]
