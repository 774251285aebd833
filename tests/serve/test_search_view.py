"""The search view in a browser: words, a dropped picture, choices, pages, keys; nothing for axe-core to complain of."""

import base64

import pytest

from tests.serve.conftest import SCRIPT
from tests.serve.in_browser import page_of, violations

DROP = """([element, name, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const held = new DataTransfer();
  held.items.add(new File([bytes], name, { type: "image/jpeg" }));
  for (const kind of ["dragover", "drop"]) {
    element.dispatchEvent(new DragEvent(kind, { dataTransfer: held, bubbles: true, cancelable: true }));
  }
}"""


def names(page):
    return [image.get_attribute("alt") for image in page.locator("ol .pic").all()]


def found_by(client, **params):
    (result,) = client.get("/search", params=params).json()["results"]
    return [hit["pair"]["image"] for hit in result["hits"]]


def test_words_are_looked_for_while_they_are_typed(browser, searched_address, search_client):
    with page_of(browser, searched_address) as page:
        page.get_by_text("Type words to see images").wait_for()
        page.get_by_label("Words to look for").press_sequentially("a green card", delay=10)
        page.locator(".hit-image").first.wait_for()
        page.wait_for_function("location.hash.includes('a+green+card')")
        page.get_by_text("24 images").wait_for()
        assert names(page) == found_by(search_client, text="a green card")
        page.locator(".hit-image img").first.evaluate("image => image.decode()")  # it is shown
        page.reload()
        page.locator(".hit-image").first.wait_for()
        assert page.get_by_label("Words to look for").input_value() == "a green card"


def test_a_dropped_picture_finds_captions_and_a_picked_one_similar_images(browser, searched_address, pictures):
    path = pictures / "images" / "9.jpg"
    with page_of(browser, searched_address) as page:
        page.get_by_text("Drop a picture here").wait_for()
        data = base64.b64encode(path.read_bytes()).decode()
        page.evaluate(f"({DROP})([document.querySelector('.view-search'), 'mine.jpg', '{data}'])")
        page.locator(".hit-caption").first.wait_for()
        assert "Like your picture mine.jpg" in page.locator(".chip").inner_text()
        page.get_by_label("Look for", exact=True).select_option("images")
        page.locator(".hit-image").first.wait_for()
        assert names(page)[0] == "images/9.jpg"
        page.get_by_role("button", name="Clear").click()
        page.get_by_text("Drop a picture here").wait_for()
        page.set_input_files("#picture-file", path)
        page.locator(".hit-caption").first.wait_for()


def test_what_is_no_picture_says_so(browser, searched_address, pictures):
    with page_of(browser, searched_address) as page:
        page.set_input_files("#picture-file", pictures / "table.jsonl")
        page.get_by_role("alert").get_by_text("cannot be read as a picture").wait_for()


def test_choices_pages_and_the_like_of_a_hit(browser, searched_address, search_client):
    with page_of(browser, f"{searched_address}/#/search?text=red") as page:
        page.locator(".hit-image").first.wait_for()
        page.get_by_label("green").check()
        page.get_by_text("6 images").wait_for()
        assert names(page) == found_by(search_client, text="red", label="green")
        page.get_by_role("button", name="Similar").first.click()
        page.get_by_text("5 images").wait_for()
        assert page.locator(".chip").inner_text().startswith("Like the image of")
        page.go_back()
        page.get_by_text("6 images").wait_for()
        page.get_by_label("green").uncheck()
        page.get_by_label("Look for", exact=True).select_option("captions")
        page.get_by_text("24 captions").wait_for()
        assert page.get_by_role("button", name="Next").is_disabled()


def test_scripts_in_captions_are_words(browser, searched_address):
    with page_of(browser, f"{searched_address}/#/search?text=red&find=captions") as page:
        page.get_by_text("24 captions").wait_for()
        assert page.get_by_text(SCRIPT).count() == 1
        assert page.title() == "Search · truepair" and page.locator("ol script, ol img[src='x']").count() == 0


def test_everything_is_reached_by_keys(browser, searched_address):
    with page_of(browser, f"{searched_address}/#/search?text=red") as page:
        page.locator(".hit-image").first.wait_for()
        seen = []
        for _ in range(16):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("(document.activeElement.getAttribute('aria-label') || document.activeElement.id"
                                      " || document.activeElement.textContent).slice(0, 20)"))  # fmt: skip
        text = " ".join(seen)
        assert "To the content" in seen[0] and "words" in seen and "find" in seen and "picture-file" in seen
        assert "Similar" in text
        page.keyboard.press("Enter")


@pytest.mark.parametrize("size", ["wide", "phone"])
def test_axe_core_finds_no_fault_and_nothing_is_wider_than_the_screen(browser, searched_address, pictures, size):
    with page_of(browser, searched_address, size=size) as page:
        page.get_by_text("Type words to see images").wait_for()
        page.get_by_label("Words to look for").fill("a green card")
        page.locator(".hit-image").first.wait_for()
        assert violations(page) == []
        page.set_input_files("#picture-file", pictures / "images" / "2.jpg")
        page.locator(".hit-caption").first.wait_for()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
