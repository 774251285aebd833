"""A picture and a recording of the page: words are searched for, then pairs are reviewed by keys.

truepair serve RUN AUDIT --port 8000, then: python examples/record_page.py http://127.0.0.1:8000 AUDIT docs

writes review.png and review.webp (some 20 seconds). The audit is one of a trial (`truepair audit --noise`):
its table knows which pairs are mismatched, and the reviewer judges by it, under the name Ada; give a copy. Needs
playwright, and Chromium at TRUEPAIR_CHROMIUM or on the path.
"""

from __future__ import annotations

import os
import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from pyarrow import parquet

import truepair

SIZE = {"width": 1180, "height": 760}
SHOWN = (944, 608)


class Recording:
    """Frames of a page, each with how long it stays."""

    def __init__(self, page: Page) -> None:
        self.page, self.frames, self.stays = page, [], []

    def take(self, milliseconds: int) -> None:
        """The page as it is now."""
        image = Image.open(BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(image.resize(SHOWN, Image.Resampling.LANCZOS))
        self.stays.append(milliseconds)

    def press(self, key: str, milliseconds: int) -> None:
        self.page.keyboard.press(key)
        self.page.wait_for_timeout(350)
        self.take(milliseconds)

    def write(self, path: Path) -> None:
        first, *rest = self.frames
        first.save(path, save_all=True, append_images=rest, duration=self.stays, loop=0, quality=55, method=4)
        print(f"{path}: {len(self.frames)} frames, {sum(self.stays) / 1000:.1f} s, {path.stat().st_size / 1e6:.2f} MB")


def search(page: Page, recording: Recording) -> None:
    """Words, a few letters at a time."""
    page.get_by_label("Words to look for").wait_for()
    recording.take(600)
    for words in ("two dogs", " playing", " in the snow"):
        page.get_by_label("Words to look for").press_sequentially(words)
        page.locator(".hit-image").first.wait_for(timeout=120_000)
        page.wait_for_timeout(1500)
        recording.take(900)
    recording.take(900)


def truth_of(audit: Path) -> dict[tuple[str, str], bool]:
    """(image, caption) → whether the pair is mismatched in truth."""
    table = parquet.read_table(audit / "pairs.parquet", columns=["image", "caption", "mismatched"]).to_pylist()
    return {(row["image"], row["caption"]): row["mismatched"] for row in table}


def colleague(address: str, truth: dict[tuple[str, str], bool], count: int = 150) -> None:
    """Decisions of somebody else, made before."""
    client = truepair.Client(address)
    source = next(source["name"] for source in client.health()["sources"] if source["kind"] == "audit")
    while count > 0:
        coming = client.review(person="Bo", source=source, limit=min(count, 50))
        decisions = [
            {
                "pair_id": each["pair"]["pair_id"],
                "verdict": "mismatch" if truth[each["pair"]["image"], each["pair"]["caption"]] else "match",
                "chosen_by": each["chosen_by"],
                "probability_chosen": each["probability_chosen"],
            }
            for each in coming
        ]
        client.decide(decisions, person="Bo", source=source)
        count -= len(decisions)


def review(page: Page, recording: Recording, folder: Path, truth: dict[tuple[str, str], bool]) -> None:
    """One by one, with a proposal and a correction, then as a grid."""
    page.get_by_role("link", name="Review").click()
    page.get_by_label("Your name").fill("Ada")
    page.keyboard.press("Enter")
    page.locator(".one img").wait_for()
    page.wait_for_timeout(1200)
    recording.take(900)
    mistakes = 0
    for _ in range(16):
        image, caption = page.locator(".frame img").get_attribute("alt"), page.locator(".caption-shown").inner_text()
        mistakes += truth[image, caption]
        proposed = page.locator(".proposals button > span").all_inner_texts()
        if truth[image, caption] and mistakes == 1:
            page.screenshot(path=folder / "review.png")
            recording.take(700)
            recording.press("1", 700)
        elif truth[image, caption] and mistakes == 2:
            recording.press("e", 700)
            page.get_by_label("The caption that is right").fill(proposed[0])
            recording.take(900)
            recording.press("Enter", 700)
        else:
            recording.press("x" if truth[image, caption] else "a", 420)
    recording.press("Backspace", 700)
    recording.press("g", 200)
    page.locator(".cell img").nth(5).evaluate("image => image.decode()")
    page.wait_for_timeout(1500)
    recording.take(900)
    for cell in page.locator(".cell").all():
        if truth.get((cell.get_attribute("data-image"), cell.locator("q").inner_text())):
            cell.click()
            recording.take(350)
    recording.press("x", 800)
    recording.press("s", 700)
    recording.press("a", 300)
    page.wait_for_timeout(1500)
    recording.take(1500)


def main() -> None:
    address, audit, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    truth = truth_of(audit)
    colleague(address, truth)
    path = os.environ.get("TRUEPAIR_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE, color_scheme="light").new_page()
        page.goto(address)
        recording = Recording(page)
        search(page, recording)
        review(page, recording, folder, truth)
        recording.write(folder / "review.webp")
        browser.close()


if __name__ == "__main__":
    main()
