"""Pictures as the page gets them: sizes, types, the budget of what is kept."""

import io

import numpy as np
import pytest
from PIL import Image

from truepair.data.pairs import Images
from truepair.serve.pictures import WIDTHS, Cache, Pictures, Shown


@pytest.mark.parametrize("width", WIDTHS)
def test_a_picture_is_scaled_down_and_never_up(client, width):
    answer = client.get("/pictures/audit/1", params={"width": width})
    with Image.open(io.BytesIO(answer.content)) as image:
        assert image.size == ((96, 72) if width == 96 else (120, 90))
        assert answer.headers["content-type"] == f"image/{image.format.lower()}"
        assert np.asarray(image.convert("RGB"))[40, 60, 1] > 100  # green


def test_a_picture_that_the_browser_has_is_not_sent_again(client):
    tag = client.get("/pictures/audit/1").headers["etag"]
    again = client.get("/pictures/audit/1", headers={"if-none-match": tag})
    assert again.status_code == 304 and not again.content
    assert client.get("/pictures/audit/2", headers={"if-none-match": tag}).status_code == 200


def test_other_widths_are_refused(client):
    assert client.get("/pictures/audit/1", params={"width": 97}).json()["type"] == "no-such-width"


def test_the_oldest_pictures_leave_where_the_budget_is_spent():
    class Counted(Pictures):
        made = 0

        def shown(self, number, width):
            self.made += 1
            return Shown(bytes(10), "image/png")

    pictures = Counted(Images(np.zeros((9, 1, 2), np.float16), tuple("abcdefghi")), None)
    cache = Cache(budget=35)
    for number in (0, 1, 2, 0, 3, 0, 1):
        cache.shown("a", pictures, number, 96)
        assert cache.bytes <= 35
    assert pictures.made == 5 and cache.hits == 2 and cache.misses == 5
