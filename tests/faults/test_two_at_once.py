"""One process at a time in a folder; the second is told who is there, and a dead owner is in nobody's way."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.faults.damage import OPTIONS, train
from tests.processes import truepair_command
from truepair.cli.main import main
from truepair.errors import RunFolderError
from truepair.files import lock, locked

HOLDING = """
import sys, time
from pathlib import Path
from truepair.files import locked
with locked(Path(sys.argv[1]), Path(sys.argv[2])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def held():
    """Starts a process that holds a lock."""
    started = []

    def hold(folder, path):
        process = subprocess.Popen([sys.executable, "-c", HOLDING, folder, path], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"held\n"
        started.append(process)
        return process

    yield hold
    for process in started:
        process.kill()
        process.wait()


def test_the_second_run_is_refused_and_deletes_nothing(tiny, tmp_path, refused, held):
    out = tmp_path / "run"
    process = held(out, out / "state" / "lock")
    (out / "state" / ".checkpoint.safetensors.0123456789ab.tmp").write_bytes(b"in the making")
    told = refused("train", tiny, "--out", out, *OPTIONS)
    assert f"{out} is in use by process {process.pid} on " in told and " since 20" in told
    assert (out / "state" / ".checkpoint.safetensors.0123456789ab.tmp").exists()
    assert not (out / "metrics.jsonl").exists()


def test_resuming_a_live_run_is_refused_and_the_live_run_ends_well(tiny, trained, tmp_path, refused):
    out = tmp_path / "run"
    with truepair_command(tmp_path / "said", "train", tiny, "--out", out, *OPTIONS, "--epochs", "15") as live:
        deadline = time.monotonic() + 60
        while not (out / "metrics.jsonl").exists():
            assert live.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        assert f"in use by process {live.pid}" in refused("train", "--resume", out)
        assert live.poll() is None, "the run was over before it was to be disturbed; make it longer"
        assert live.wait(60) == 0, live.err
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 15
    assert not (out / "state" / "lock").exists()


def test_the_second_audit_is_refused(tiny, tmp_path, refused, held):
    out = tmp_path / "audit"
    process = held(out, out / "work" / "lock")
    assert f"in use by process {process.pid}" in refused("audit", tiny, "--out", out, "--epochs", "1")


def test_a_dead_owner_is_in_nobodys_way(tiny, tmp_path, held):
    out = tmp_path / "run"
    process = held(out, out / "state" / "lock")
    process.kill()
    process.wait()
    assert (out / "state" / "lock").exists()
    assert train(tiny, out) == 0
    assert not (out / "state" / "lock").exists()


def test_within_one_process_too(tmp_path):
    with locked(tmp_path, tmp_path / "lock"):
        with (
            pytest.raises(RunFolderError, match=f"in use by process {os.getpid()}"),
            locked(tmp_path, tmp_path / "lock"),
        ):
            pass
        assert (tmp_path / "lock").exists()
    with locked(tmp_path, tmp_path / "lock"):
        pass


def test_who_waits_comes_next(tmp_path):
    order, inside = [], threading.Event()

    def second():
        inside.wait()
        with locked(tmp_path, tmp_path / "lock", waits=True):
            order.append("second")

    waiting = threading.Thread(target=second)
    waiting.start()
    with locked(tmp_path, tmp_path / "lock", waits=True):
        inside.set()
        waiting.join(2 * lock.BETWEEN_TRIES)
        order.append("first")
    waiting.join(20)
    assert order == ["first", "second"] and not (tmp_path / "lock").exists()


def test_a_forked_process_does_not_hold_it_on(tmp_path):
    """Those that prepare batches outlive a killed owner by some seconds."""
    owner = os.fork()
    if not owner:
        with locked(tmp_path, tmp_path / "lock"):
            helper = os.fork()
            if not helper:
                time.sleep(30)
                os._exit(0)
            (tmp_path / "helper").write_text(str(helper))
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(owner, 0)
    try:
        assert (tmp_path / "lock").exists()
        with locked(tmp_path, tmp_path / "lock"):
            pass
    finally:
        os.kill(int((tmp_path / "helper").read_text()), signal.SIGKILL)


def note(**changes):
    import socket

    return {"pid": os.getpid(), "host": socket.gethostname(), "since": "2026-01-01", **changes}


@pytest.mark.parametrize(
    ("left", "free"),
    [(note(), True), (note(pid=2**22 + 1), True), (note(pid=1), False), (note(host="elsewhere"), False), ([], True)],
)
def test_where_a_disk_knows_no_locks_the_note_decides(tmp_path, monkeypatch, left, free):
    """A note of this very process that holds nothing is one of an earlier process of the same number."""
    monkeypatch.setattr(lock, "_flock", lambda descriptor: None)
    path = tmp_path / "lock"
    path.write_text(json.dumps(left))
    if free:
        with locked(tmp_path, path), pytest.raises(RunFolderError, match="in use"), locked(tmp_path, path):
            pass
    else:
        with pytest.raises(RunFolderError, match=f"if that one has ended, remove {path}"), locked(tmp_path, path):
            pass
        assert path.exists()


def test_nobody_waits_for_another_machine_of_which_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_flock", lambda descriptor: None)
    path = tmp_path / "lock"
    path.write_text(json.dumps({"pid": os.getpid(), "host": "elsewhere", "since": "2026-01-01"}))
    refusal = pytest.raises(RunFolderError, match=f"on elsewhere .* if that one has ended, remove {path}")
    with refusal, locked(tmp_path, path, waits=True):
        pass


def test_a_folder_that_may_not_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    refusal = pytest.raises(RunFolderError, match="cannot be written to: File exists")
    with refusal, locked(tmp_path, tmp_path / "file" / "lock"):
        pass


def test_a_file_is_no_folder(tiny, tmp_path, refused):
    (tmp_path / "file").write_text("mine")
    for command in (["train", tiny], ["audit", tiny]):
        assert f"{tmp_path / 'file'} is a file; expected a folder" in refused(*command, "--out", tmp_path / "file")
    assert main(["train", "--resume", str(tmp_path / "file")]) == 2
    assert (tmp_path / "file").read_text() == "mine"
