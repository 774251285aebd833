"""The page in a headless Chromium: a service on a socket, a browser, and what axe-core has to say."""

import os
import shutil
import threading
from contextlib import contextmanager

import pytest

SIZES = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


def chromium() -> str:
    """The path of a Chromium, or a skip that says how to name one."""
    found = os.environ.get("TRUEPAIR_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium found; install it, or set TRUEPAIR_CHROMIUM to its path")
    return found


@contextmanager
def browsing():
    """A browser, or a skip where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install -e '.[dev]'")
    path = chromium()
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@contextmanager
def running(app):
    """The service of an app on a free port of this machine, by its address."""
    import uvicorn

    from truepair.cli.serve import listening

    listener = listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


@contextmanager
def page_of(browser, address, *, size="wide", scheme="light"):
    """A page in a context of its own. What a page must never do fails the test: script errors, foreign requests."""
    context = browser.new_context(viewport=SIZES[size], color_scheme=scheme, reduced_motion="reduce")
    page, wrong = context.new_page(), []
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: wrong.append(f"script error: {error}"))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    own = (address.partition("/#")[0] + "/", "blob:")
    page.on("request", lambda request: request.url.startswith(own) or wrong.append(request.url))
    page.goto(address)
    yield page
    context.close()
    assert wrong == []


def violations(page) -> list[str]:
    """What axe-core finds wrong with the page as it stands, light and dark, with the elements concerned."""
    base = pytest.importorskip("axe_playwright_python.base", reason="axe-core is missing: pip install -e '.[dev]'")
    if not page.evaluate("!!window.axe"):
        page.evaluate(base.AXE_SCRIPT + "; 0")
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found += page.evaluate("axe.run(document).then((results) => results.violations)")
    return [f"{entry['id']}: {[node['html'][:200] for node in entry['nodes'][:3]]}" for entry in found]
