"""A folder of pictures, an audit of it as the service reads one, and the service of both."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed: pip install 'truepair[serve]'")

from fastapi.testclient import TestClient

HERE = "http://127.0.0.1:8000"
COLOURS = {"red": (200, 30, 30), "green": (30, 160, 40), "blue": (30, 40, 200), "grey": (120, 120, 120)}
SCRIPT = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def write_pictures(folder: Path, *, count: int = 24, seed: int = 0) -> Path:
    """Pictures of one colour with a stripe, and a table with a caption, a class and an id of each."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "images").mkdir()
    lines = []
    for number in range(count):
        name = list(COLOURS)[number % len(COLOURS)]
        pixels = np.full((90, 120, 3), COLOURS[name], dtype=np.uint8) + rng.integers(
            0, 20, (90, 120, 3), dtype=np.uint8
        )
        pixels[:, number % 100 : number % 100 + 8] = 255
        Image.fromarray(pixels).save(folder / "images" / f"{number}.jpg")
        caption = SCRIPT if number == 5 else f"a {name} card with a white stripe, number {number}"
        lines.append({"image": f"images/{number}.jpg", "caption": caption, "kind": name})
    (folder / "table.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def write_audit(folder: Path, data: Path, **options) -> Path:
    """What an audit leaves that the service reads: its table and its options."""
    import pyarrow
    from pyarrow import parquet

    from truepair.data.open import open as open_data

    collection = open_data(data, encoder="windows")
    count = len(collection)
    p = np.linspace(0.02, 0.98, count).astype(np.float32)
    folder.mkdir(parents=True)
    columns = {
        "pair_id": collection.ids(0, count),
        "row": np.arange(count),
        "image": collection.image_names(0, count),
        "caption": collection.captions(0, count),
        "p_match": p,
        "flagged": p < 0.5,
        "reason": ["the caption fits others better" if value < 0.5 else "" for value in p],
        "similarity": p - 0.5,
        "proposed_caption": [None if value >= 0.2 else "a better caption" for value in p],
        "proposed_caption_pair": [None if value >= 0.2 else collection.ids(0, 1)[0] for value in p],
        "proposed_caption_fit": pyarrow.array([None if value >= 0.2 else 0.9 for value in p], pyarrow.float32()),
    }
    parquet.write_table(pyarrow.table(columns), folder / "pairs.parquet")
    told = {"options": {"source": str(data), "encoder": "windows", "label": "kind", **options}}
    (folder / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def pictures(tmp_path_factory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("serve") / "cards")


@pytest.fixture(scope="session")
def audit(pictures) -> Path:
    return write_audit(pictures.parent / "audit", pictures)


@pytest.fixture(scope="session")
def app(audit):
    from truepair.serve.app import create_app
    from truepair.serve.opening import open_sources

    return create_app(open_sources([audit]))


@pytest.fixture(scope="session")
def client(app):
    return TestClient(app, base_url=HERE)


@pytest.fixture(scope="session")
def run(pictures) -> Path:
    """A run that learned the colours of the cards a little."""
    from truepair.data.config import DataConfig
    from truepair.engines.config import GlobalConfig
    from truepair.training.config import TrainingConfig
    from truepair.training.jobs import Job, train_job
    from truepair.training.setup import Setup

    setup = Setup(TrainingConfig(epochs=12, batch_size=12, minimum_count=1), GlobalConfig(width=16, word_width=8))
    data = DataConfig(str(pictures), encoder="windows", label="kind")
    train_job(Job(data, "infonce", setup=setup), pictures.parent / "run", progress=False)
    return pictures.parent / "run"


@pytest.fixture(scope="session")
def searched(run, audit):
    """The service of the run and, beside it, of an audit without vectors."""
    from truepair.serve.app import create_app
    from truepair.serve.opening import open_sources

    return create_app(open_sources([run, audit]))


@pytest.fixture(scope="session")
def search_client(searched):
    return TestClient(searched, base_url=HERE)


@pytest.fixture(scope="session")
def browser():
    from tests.serve.in_browser import browsing

    with browsing() as found:
        yield found


@pytest.fixture(scope="session")
def searched_address(searched):
    from tests.serve.in_browser import running

    with running(searched) as address:
        yield address
