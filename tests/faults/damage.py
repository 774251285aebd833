"""What befalls files and processes: flipped bits, kills at a named moment, two at once."""

import os
import signal
from pathlib import Path

from truepair.cli.main import main

OPTIONS = ["--method", "infonce", "--epochs", "2", "--batch-size", "16", "--width", "8", "--word-width", "4"]
OPTIONS += ["--minimum-count", "1", "--threads", "1", "--quiet"]


def train(data, out, *more) -> int:
    return main(["train", str(data), "--out", str(out), *OPTIONS, *more])


def killed(moment: str, name: str, arguments: list[str]) -> None:
    """A command, in a process of its own, killed just before or just after a file of that name is whole."""
    child = os.fork()
    if not child:
        _run_and_die(moment, name, arguments)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, "it was not killed"


def _run_and_die(moment: str, name: str, arguments: list[str]) -> None:
    replace = Path.replace

    def dying(self, target):
        if target.name == name and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        whole = replace(self, target)
        if target.name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole

    Path.replace = dying
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main(arguments)
    finally:
        os._exit(1)


def flip(path: Path, place: float = 0.7) -> None:
    """One bit of a file, at a share of its length."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 16
    path.write_bytes(data)


def temporary_files(folder: Path) -> list[str]:
    return [name for _, _, names in os.walk(folder) for name in names if name.endswith(".tmp")]
