"""Small things of the review view that cost a decision where they go wrong: who reviews, words of an input method,
where the keys go, and what Backspace takes back.
"""

import pytest

from tests.serve.conftest import write_audit, write_pictures
from tests.serve.in_browser import page_of, running
from tests.serve.test_review_view import begin, kept, shows, standing, wait_for


@pytest.fixture
def folder(tmp_path):
    return write_audit(tmp_path / "audit", write_pictures(tmp_path / "cards", count=30))


@pytest.fixture
def address(folder):
    from truepair.serve.app import create_app
    from truepair.serve.opening import open_sources

    with running(create_app(open_sources([folder]))) as found:
        yield f"{found}/#/review?order=worst"


def test_who_reviews_is_asked_once(browser, address):
    with page_of(browser, address) as page:
        form = page.locator(".name-form")
        form.wait_for()
        page.get_by_label("Your name").fill("Ad")
        page.get_by_role("link", name="Search").click()
        page.get_by_role("link", name="Review").click()
        page.get_by_label("Order").select_option("gain")
        assert form.count() == 1 and page.get_by_label("Your name").input_value() == "Ad"
        begin(page, "Ada")
        assert form.count() == 0
        page.get_by_role("button", name="Ada reviews").click()
        form.wait_for()
        begin(page, "Bo")
        assert form.count() == 0


def test_enter_that_ends_a_word_of_an_input_method_saves_nothing(browser, address, folder):
    with page_of(browser, address) as page:
        begin(page)
        page.keyboard.press("e")
        area = page.get_by_label("The caption that is right")
        area.fill("かい")
        composing = "{bubbles: true, cancelable: true, isComposing: true}"
        for target, key in (("document.querySelector('.editor textarea')", "Enter"), ("document.body", "x")):
            page.evaluate(f"{target}.dispatchEvent(new KeyboardEvent('keydown', {{...{composing}, key: '{key}'}}))")
        assert area.input_value() == "かい"
        page.keyboard.press("Enter")
        wait_for(page, 1)
        assert [decision.caption for decision in kept(folder)] == ["かい"]


def test_after_an_order_is_chosen_keys_are_about_the_pair(browser, address, folder):
    with page_of(browser, address) as page:
        begin(page)
        page.get_by_label("Order").focus()
        page.keyboard.press("ArrowUp")  # from worst to gain
        page.locator(".one:focus").wait_for()
        page.keyboard.press("x")
        wait_for(page, 1)
        page.get_by_role("combobox", name="Look").focus()
        page.keyboard.press("ArrowDown")
        page.locator(".cell:focus").wait_for()
        page.keyboard.press("a")
        wait_for(page, 2)
        assert [decision.chosen_by for decision in kept(folder)] == ["gain", "gain"]


def test_a_batch_is_taken_back_at_once_after_another_view_and_a_reload(browser, address, folder):
    with page_of(browser, address) as page:
        begin(page)
        page.keyboard.press("x")
        wait_for(page, 1)
        for key in ("g", "s"):
            page.keyboard.press(key)
            page.locator(".cell").nth(23).wait_for()
        shows(page, ".selected", "24 selected")
        page.keyboard.press("a")
        wait_for(page, 25)
        page.keyboard.press("g")
        page.locator(".one").wait_for()
        page.reload()
        page.locator(".one").wait_for()
        page.keyboard.press("Backspace")
        wait_for(page, 1)
        shows(page, ".last", "24 decisions")
        page.keyboard.press("Backspace")
        wait_for(page, 0)
        assert standing(folder) == {}
