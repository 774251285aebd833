"""The review view in a browser: keys, undo, editing, proposals, the grid, several tabs and people, a disk that is full;
nothing for axe-core to complain of.
"""

import json
import re
import shutil
import time

import pytest

from tests.serve.conftest import SCRIPT, write_audit, write_pictures
from tests.serve.in_browser import page_of, running, violations
from truepair.decisions import DecisionStore
from truepair.serve.errors import Problem

COUNT = 40


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory):
    """An audit of forty cards; the first eight pairs are of four pictures, so that captions can be proposed."""
    data = write_pictures(tmp_path_factory.mktemp("review") / "cards", count=COUNT)
    lines = [json.loads(line) for line in (data / "table.jsonl").read_text().splitlines()]
    for row in range(4):
        lines[row]["image"] = lines[row + 36]["image"]
    table = "".join(json.dumps({**line, "id": f"p{row}"}) + "\n" for row, line in enumerate(lines))
    (data / "table.jsonl").write_text(table)
    return write_audit(data.parent / "audit", data)


@pytest.fixture
def folder(reviewed, tmp_path):
    return shutil.copytree(reviewed, tmp_path / "audit")


@pytest.fixture
def app(folder):
    from truepair.serve.app import create_app
    from truepair.serve.opening import open_sources

    return create_app(open_sources([folder]))


@pytest.fixture
def address(app):
    with running(app) as found:
        yield f"{found}/#/review?order=worst"


def begin(page, name="Ada"):
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    page.locator(".one, .grid .cell").first.wait_for()


def kept(folder):
    with DecisionStore.open(folder / "decisions.sqlite", read_only=True) as store:
        return store.history()


def standing(folder, person=None):
    with DecisionStore.open(folder / "decisions.sqlite", read_only=True) as store:
        return {name: decision.verdict for name, decision in store.current(person).items()}


def shows(page, selector, text):
    """Waits until the element has the text in it."""
    from playwright.sync_api import expect

    expect(page.locator(selector).first).to_contain_text(text, timeout=20_000)


def wait_for(page, count):
    """Until the page says that so many pairs are decided."""
    shows(page, "dd.decided", re.compile(f"^{count} of"))


def row(page):
    """The row of the pair that is shown, by its caption."""
    text = page.locator(".caption-shown").inner_text()
    return 5 if text == SCRIPT else int(text.rpartition("number ")[2])


def reaches(page, place, seconds=20.0):
    """Waits until the pair of a row is shown; a slow machine takes a moment to go on."""
    until = time.monotonic() + seconds
    while row(page) != place:
        assert time.monotonic() < until, f"row {row(page)} is shown, not {place}"
        page.wait_for_timeout(10)
    return True


def name(row):
    """The id of a pair."""
    return f"images/{row + 36}.jpg" if row < 4 else f"images/{row}.jpg" + (f"#{row}" if row >= 36 else "")


def test_thirty_pairs_by_keys_then_undo_edit_proposal_and_reload(browser, address, folder):
    with page_of(browser, address) as page:
        begin(page)
        assert reaches(page, 0) and "false" not in page.locator(".one").inner_text()
        page.locator(".frame img").evaluate("image => image.decode()")
        keys = ["x", "a", "Space"] * 10
        for place, key in enumerate(keys):
            assert reaches(page, place)  # it goes on by itself; the script of row 5 is words
            page.keyboard.press(key)
        wait_for(page, 30)
        assert page.title() == "Review · truepair"
        verdicts = {"x": "mismatch", "a": "match", "Space": "unsure"}
        assert standing(folder) == {name(place): verdicts[key] for place, key in enumerate(keys)}
        assert all(decision.person == "Ada" and decision.chosen_by == "worst" for decision in kept(folder))
        assert all(0 < decision.seconds < 60 for decision in kept(folder))

        page.keyboard.press("Backspace")
        wait_for(page, 29)
        shows(page, ".caption-shown", "number 29")
        assert name(29) not in standing(folder)
        page.keyboard.press("e")
        page.get_by_label("The caption that is right").fill("a card that was drawn anew")
        page.keyboard.press("Enter")
        wait_for(page, 30)
        assert kept(folder)[-1].caption == "a card that was drawn anew" and kept(folder)[-1].verdict == "mismatch"

        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")  # looks back, and judges nothing
        assert reaches(page, 28) and "Ada: match" in page.locator(".verdict-line").inner_text()
        page.keyboard.press("n")
        assert reaches(page, 30) and len(kept(folder)) == 32

        page.reload()
        page.locator(".one").wait_for()
        assert reaches(page, 30)
        page.keyboard.press("ArrowLeft")
        assert "caption written anew" in page.locator(".verdict-line").inner_text()
        page.keyboard.press("Backspace")
        wait_for(page, 29)
        shows(page, ".caption-shown", "number 29")


def test_a_proposed_caption_is_taken_by_its_number(browser, address, folder):
    with page_of(browser, address) as page:
        begin(page)
        proposed = page.locator(".proposals button").all_inner_texts()
        assert "a better caption" in proposed[0] and "number 36" in proposed[1]
        page.keyboard.press("2")
        wait_for(page, 1)
        (decision,) = kept(folder)
        assert (decision.pair_id, decision.verdict, decision.partner) == (name(0), "mismatch", name(36))
        page.keyboard.press("5")  # there is none
        assert reaches(page, 1)


def test_many_at_once_in_the_grid(browser, address, folder):
    with page_of(browser, address) as page:
        begin(page)
        page.keyboard.press("g")
        page.locator(".cell").nth(23).wait_for()
        for key in ("Enter", "ArrowRight", "ArrowRight", "Shift+Enter"):
            page.keyboard.press(key)
        shows(page, ".selected", "3 selected")
        page.keyboard.press("x")
        wait_for(page, 3)
        assert standing(folder) == {name(place): "mismatch" for place in range(3)}
        page.locator(".cell").nth(5).click()
        page.get_by_role("button", name="Unsure").click()
        wait_for(page, 4)
        page.keyboard.press("s")
        shows(page, ".selected", "20 selected")
        page.keyboard.press("a")
        wait_for(page, 24)
        page.locator(".cell", has_text="number 24").wait_for()  # the next screen, by itself
        page.keyboard.press("Backspace")  # all that were judged at once
        wait_for(page, 4)
        assert standing(folder)[name(5)] == "unsure" and len(standing(folder)) == 4


def test_two_tabs_and_two_people_see_each_other(browser, address, folder):
    with page_of(browser, address) as ada, page_of(browser, address) as bo:
        begin(ada, "Ada")
        second = ada.context.new_page()
        second.goto(address)
        second.locator(".one").wait_for()  # the name is known in this browser
        begin(bo, "Bo")
        ada.keyboard.press("x")
        for page in (second, bo):
            wait_for(page, 1)
            shows(page, ".words-of-pair", "Ada: mismatch")
        bo.keyboard.press("a")  # a second opinion on the pair that is shown
        shows(ada, ".progress", "Bo 1")
        assert standing(folder) == {name(0): "unsure"} and standing(folder, "Bo") == {name(0): "match"}
        assert row(bo) == row(ada) == 1
        bo.keyboard.press("x")
        wait_for(ada, 2)
        ada.keyboard.press("n")  # what Bo decided meanwhile is left out
        assert row(ada) == 2


def test_a_full_disk_keeps_decisions_in_the_browser_and_sends_them_again(browser, address, app, folder):
    with page_of(browser, address) as page:
        begin(page)
        page.keyboard.press("x")
        wait_for(page, 1)
        store = app.state.service.review(None)._store
        record, store.record_all = store.record_all, full_disk
        page.keyboard.press("a")
        page.keyboard.press("a")
        page.get_by_text("2 decisions wait in this browser").wait_for()
        assert "the disk is full" in page.locator(".trouble").inner_text()
        page.reload()
        page.locator(".one").wait_for()
        page.get_by_text("2 decisions wait in this browser").wait_for()
        assert len(kept(folder)) == 1 and row(page) == 3
        store.record_all = record
        wait_for(page, 3)
        assert page.locator(".trouble").inner_text() == ""
        assert [decision.pair_id for decision in kept(folder)] == [name(place) for place in range(3)]


def two_wait_offline(page):
    page.context.set_offline(True)
    page.keyboard.press("a")
    page.keyboard.press("a")
    page.get_by_text("2 decisions wait in this browser").wait_for()


def test_a_lost_network_loses_no_decision(browser, address, folder):
    with page_of(browser, address) as page:
        begin(page)
        page.keyboard.press("x")
        wait_for(page, 1)
        two_wait_offline(page)
        assert len(kept(folder)) == 1
        page.context.set_offline(False)
        wait_for(page, 3)
        assert [decision.pair_id for decision in kept(folder)] == [name(place) for place in range(3)]


def test_what_is_refused_is_told_and_is_not_there_to_take_back(browser, address, app, folder):
    review = app.state.service.review(None)
    record = review.record

    def refuse_many(decisions, requests):
        if len(decisions) > 1:
            raise Problem(422, "bad-request", "these cannot be kept")
        return record(decisions, requests)

    review.record = refuse_many
    with page_of(browser, address) as page:
        begin(page)
        for place in range(3):
            assert reaches(page, place)
            page.keyboard.press("x")
        wait_for(page, 3)
        page.keyboard.press("g")
        page.locator(".cell").first.wait_for()
        page.keyboard.press("s")
        page.keyboard.press("a")
        page.get_by_text("24 decisions were refused and are not kept. these cannot be kept").wait_for()
        page.keyboard.press("a")
        wait_for(page, 4)
        page.keyboard.press("Backspace")
        wait_for(page, 3)
        page.keyboard.press("Backspace")  # one of the first three, not 24
        wait_for(page, 2)
        assert page.locator(".refusal").inner_text().startswith("24 decisions were refused")
        page.get_by_role("button", name="Hide").click()
        assert page.locator(".refusal").inner_text() == "" and page.locator(".trouble").inner_text() == ""
        assert [standing(folder)[name(place)] for place in range(2)] == ["mismatch"] * 2


def test_decisions_wait_for_their_own_audit_and_reach_no_other_of_its_name(browser, address, app, folder, tmp_path):
    from truepair.serve.opening import open_sources

    data = write_pictures(tmp_path / "other" / "cards", count=COUNT)
    (data / "table.jsonl").write_text((data / "table.jsonl").read_text().replace("card", "parcel"))
    service, other = app.state.service, write_audit(tmp_path / "other" / "audit", data)
    first, second = service.sources, {source.name: source for source in open_sources([other])}
    assert list(first) == list(second)
    with page_of(browser, address) as page:
        begin(page)
        page.keyboard.press("x")
        wait_for(page, 1)
        two_wait_offline(page)
        service.sources, service._reviews = second, {}  # as after a stop and a start with another folder
        page.context.set_offline(False)
        page.get_by_text("about another audit than the one that is served as audit now").wait_for()
        assert not (other / "decisions.sqlite").exists()
        page.reload()
        shows(page, ".caption-shown", "parcel")
        page.get_by_text("2 decisions about other audits wait in this browser (audit)").wait_for()
        page.keyboard.press("x")
        wait_for(page, 1)
        assert list(standing(other)) == ["images/0.jpg"] and len(kept(folder)) == 1
        service.sources, service._reviews = first, {}
        page.get_by_text("Another audit is served as audit now").wait_for()
        page.get_by_role("button", name="Reload the page").click()
        wait_for(page, 3)
        assert [decision.pair_id for decision in kept(folder)] == [name(place) for place in range(3)]
        assert "other audits" not in page.locator(".refusal").inner_text() and len(kept(other)) == 1


def full_disk(*_):
    from truepair.errors import InputError

    raise InputError("the database could not be written: the disk is full. Free space and decide again")


def test_touch_at_phone_width_and_by_facet(browser, address):
    with page_of(browser, address, size="phone") as page:
        begin(page)
        page.get_by_role("button", name="Mismatch").click()
        wait_for(page, 1)
        page.get_by_role("button", name="Undo").click()
        wait_for(page, 0)
        page.get_by_label("Order").select_option("facet")
        page.get_by_label("blue").check()
        shows(page, ".caption-shown", "blue")
        page.get_by_label("Order").select_option("gain")
        page.locator(".facets-of-review").wait_for(state="hidden")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", ["wide", "phone"])
def test_axe_core_finds_no_fault(browser, address, size):
    with page_of(browser, address, size=size) as page:
        page.get_by_label("Your name").wait_for()
        assert violations(page) == []
        begin(page)
        if size == "phone":
            page.get_by_text("More", exact=True).click()
        page.get_by_label("Show what the audit says").check()
        page.get_by_label("Order").select_option("facet")
        page.locator(".facets-of-review fieldset").first.wait_for()
        page.keyboard.press("Escape")
        page.locator(".one").click(position={"x": 2, "y": 2})
        for key in "xaa":
            page.keyboard.press(key)
        wait_for(page, 3)
        assert violations(page) == []
        page.keyboard.press("e")
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        page.get_by_role("dialog").wait_for()
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.locator(".cell").first.wait_for()
        page.keyboard.press("Enter")
        page.keyboard.press("a")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_every_control_is_reached_by_the_tabulator(browser, address):
    with page_of(browser, address) as page:
        begin(page)
        seen = set()
        for _ in range(24):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("(document.activeElement.getAttribute('aria-label')"
                                   " || document.activeElement.labels?.[0]?.textContent"
                                   " || document.activeElement.textContent).trim().slice(0, 12).trim()"))  # fmt: skip
        for name in ("OrderExpecte", "LookOne by o", "Show what th", "Also what ot", "Ada reviews:", "Help: keys"):
            assert name in seen, (name, seen)
        assert {"✓ Match A", "✗ Mismatch X", "? Unsure Spa", "↶ Undo ⌫", "Edit caption", "Next undecid"} <= seen
