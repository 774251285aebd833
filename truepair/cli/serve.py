"""`truepair serve`: search and look through runs and audits in the browser."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truepair.cli.shared import DATA_HELP, add_command, say, use_threads
from truepair.errors import InputError, TruepairError

if TYPE_CHECKING:
    from truepair.serve.service import Service

DESCRIPTION = """\
A service on this machine, and its page: type words and see pictures, drop a picture and see captions, go through
pairs by label, verdict or origin. Everything the page does can be asked for over HTTP (/openapi.json).

Several runs answer side by side. Audits are reviewed: what people decide of pairs is kept in decisions.sqlite in the
folder of the audit. Nothing else of runs, audits and data is changed."""

EPILOG = """\
examples:
  truepair serve runs/first
  truepair serve runs/first runs/second --split test
  truepair serve audits/first --data my_pictures
  truepair serve runs/first --host 0.0.0.0 --port 80 --token LONG-RANDOM-WORDS

Where other machines can reach it (--host), every request needs a token: one is drawn where none is given, and the
address that is printed has it. Put a proxy with TLS before it where the network is not yours."""


def add_serve(commands: Any) -> None:
    about = "search runs and review audits in the browser"
    parser = add_command(commands, "serve", run_serve, about, DESCRIPTION, EPILOG)
    parser.add_argument(
        "sources", nargs="+", type=Path, metavar="RUN_OR_AUDIT", help="folder of a finished run or audit"
    )
    parser.add_argument("--data", metavar="DATA", help=f"where the data lie, if not where they were: {DATA_HELP}")
    parser.add_argument("--split", metavar="NAME", help="split of a run's data [default: train]")
    parser.add_argument("--follow-links", action="store_true", help="show pictures that links lead to outside of DATA")
    network = parser.add_argument_group("network")
    network.add_argument(
        "--host", default="127.0.0.1", metavar="NAME", help="address to listen on [default: 127.0.0.1]"
    )
    network.add_argument("--port", type=int, default=8000, metavar="N", help="0 for any free one [default: 8000]")
    network.add_argument(
        "--token", metavar="WORD", help="what every request must bring [default: beyond 127.0.0.1, drawn]"
    )
    network.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name it is reached by; may be repeated",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads [default: all]")


def run_serve(options: argparse.Namespace) -> None:
    """Open everything, listen, and serve until Ctrl-C."""
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise InputError(
            f"{error.name} is not installed; pip install 'truepair[serve]' adds what serve needs"
        ) from None
    from truepair.serve.app import create_app
    from truepair.serve.opening import Asked, open_sources
    from truepair.serve.security import Access

    access = Access.of(options.host, options.token, tuple(options.allow_host))
    use_threads(options.threads)
    with listening(options.host, options.port) as listener:
        say("opening")
        sources = open_sources(options.sources, Asked(options.data, options.split, options.follow_links))
        app = create_app(sources, access)
        for source in sources:
            print(f"{source.name}: {source.kind} of {len(source.table):,} pairs")
            for notice in source.notices:
                print(f"  {notice}")
        print(address(options.host, listener.getsockname()[1], access.token), flush=True)
        warming = threading.Thread(target=warm, args=(app.state.service,), daemon=True)
        warming.start()
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, timeout_keep_alive=30)
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:  # a thread that computes while the interpreter ends would end it with a fault
            for source in sources:
                if source.searcher is not None:
                    source.searcher.stop()
            warming.join(60)


def warm(service: Service) -> None:
    """Read what reviews need, then build the indexes, one after the other, so that the first request finds them; who
    asks earlier waits.
    """
    for source in service.sources.values():
        try:
            if source.kind == "audit":
                service.review(source.name).prepare()
        except TruepairError as error:  # who reviews is told as well
            print(f"{source.name} cannot be reviewed: {error}", file=sys.stderr, flush=True)
    for source in service.sources.values():
        if source.searcher is not None:
            try:
                _ = source.searcher.index
            except TruepairError as error:  # who searches is told as well
                if source.searcher.stopped:
                    return
                print(f"{source.name} cannot be searched: {error}", file=sys.stderr, flush=True)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises InputError: the port is taken or not allowed, or the host is not here."""
    if not 0 <= port < 65536:
        raise InputError(f"--port is {port}; expected 0 to 65535")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"--host {host!r} is no address of this machine ({error}); use 127.0.0.1 or 0.0.0.0"
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {host} port {port} ({error.strerror}); another program may have it: choose another "
            "--port, or 0 for any free one"
        ) from error
    return listener


def address(host: str, port: int, token: str | None) -> str:
    """What to open in the browser."""
    name = "127.0.0.1" if host in ("0.0.0.0", "", "::") else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
