"""Undo with several tabs of one person: each takes back what was judged in it, and says what was changed elsewhere."""

import pytest

from tests.serve.conftest import write_audit, write_pictures
from tests.serve.in_browser import page_of, running
from tests.serve.test_review_view import begin, full_disk, kept, row, shows, standing, wait_for


@pytest.fixture
def folder(tmp_path):
    return write_audit(tmp_path / "audit", write_pictures(tmp_path / "cards", count=30))


@pytest.fixture
def app(folder):
    from truepair.serve.app import create_app
    from truepair.serve.opening import open_sources

    return create_app(open_sources([folder]))


@pytest.fixture
def address(app):
    with running(app) as found:
        yield f"{found}/#/review?order=worst"


def another_tab(page, address):
    tab = page.context.new_page()
    tab.goto(address)
    tab.locator(".one").wait_for()
    return tab


def judge_in_grid(page, count, key):
    """The first pairs of the grid at once."""
    page.keyboard.press("g")
    page.locator(".cell").nth(23).wait_for()
    page.keyboard.press("Enter")
    for _ in range(count - 1):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+Enter")
    shows(page, ".selected", f"{count} selected")
    page.keyboard.press(key)
    wait_for(page, count)


def names(*rows):
    return {f"images/{place}.jpg" for place in rows}


def test_a_batch_is_taken_back_in_its_tab_after_decisions_in_another(browser, address, folder):
    with page_of(browser, address) as first:
        begin(first)
        judge_in_grid(first, 4, "x")
        second = another_tab(first, address)
        for done in range(5, 8):
            second.keyboard.press("a")
            wait_for(second, done)
        assert set(standing(folder)) == names(*range(7))
        first.bring_to_front()
        first.keyboard.press("Backspace")
        wait_for(first, 3)
        assert standing(folder) == dict.fromkeys(names(4, 5, 6), "match")
        shows(first, ".last", "Taken back: 4 decisions")
        first.keyboard.press("Backspace")
        shows(first, ".last", "Nothing that was judged in this tab is left to take back")
        second.bring_to_front()
        second.keyboard.press("Backspace")
        wait_for(second, 2)
        assert set(standing(folder)) == names(4, 5)


def test_what_was_changed_in_another_tab_is_said_and_stays(browser, address, folder):
    with page_of(browser, address) as first:
        begin(first)
        judge_in_grid(first, 3, "x")
        second = another_tab(first, address)
        second.keyboard.press("ArrowLeft")
        assert row(second) == 2
        second.keyboard.press("a")
        shows(second, ".last", "Match")
        while len(kept(folder)) < 4:
            second.wait_for_timeout(20)
        first.bring_to_front()
        first.keyboard.press("Backspace")
        wait_for(first, 1)
        shows(first, ".last", "Taken back: 2 decisions. 1 decision not taken back: decided anew elsewhere since")
        assert standing(folder) == {"images/2.jpg": "match"}


def test_a_tab_in_which_nothing_was_judged_takes_nothing_back(browser, address, folder):
    with page_of(browser, address) as first:
        begin(first)
        first.keyboard.press("x")
        wait_for(first, 1)
        second = another_tab(first, address)
        second.keyboard.press("Backspace")
        shows(second, ".last", "Nothing that was judged in this tab is left to take back")
        assert len(kept(folder)) == 1


def test_what_was_taken_back_unsent_is_not_sent_by_another_tab(browser, address, app, folder):
    with page_of(browser, address) as first:
        begin(first)
        first.keyboard.press("x")
        wait_for(first, 1)
        store = app.state.service.review(None)._store
        record, store.record_all = store.record_all, full_disk
        first.keyboard.press("a")
        first.get_by_text("1 decision waits in this browser").wait_for()
        second = another_tab(first, address)
        second.get_by_text("1 decision waits in this browser").wait_for()
        first.bring_to_front()
        first.keyboard.press("Backspace")
        shows(first, ".last", "Taken back")
        store.record_all = record
        second.locator(".trouble:empty").wait_for(state="attached", timeout=20_000)
        assert len(kept(folder)) == 1
        second.bring_to_front()
        second.keyboard.press("ArrowLeft")
        assert row(second) == 1
        shows(second, ".verdict-line", "Not decided by you")
        second.keyboard.press("x")
        wait_for(second, 2)
