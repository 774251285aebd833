"""`/search`: what the index finds, as pairs; choices, pages, batches, pictures, several sources."""

import io

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import truepair
from tests.serve.conftest import HERE, write_audit
from truepair.serve.app import create_app
from truepair.serve.opening import Asked, open_sources


def only(answer):
    assert answer.status_code == 200, answer.text
    (result,) = answer.json()["results"]
    return result


def rows(result):
    return [hit["pair"]["row"] for hit in result["hits"]]


def png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def index(run, pictures):
    from truepair.training.fit import open_run

    return open_run(run).model.index(truepair.load(pictures, encoder="windows"))


def test_words_find_the_images_that_the_index_finds(search_client, index):
    result = only(search_client.get("/search", params={"text": "a green card", "limit": 24}))
    hits = index.search("a green card", k=24)
    assert rows(result) == [hit.row for hit in hits]  # an image a row
    assert [hit["score"] for hit in result["hits"]] == pytest.approx([hit.score for hit in hits])
    assert [hit["rank"] for hit in result["hits"]] == list(range(1, 25)) and result["total"] == 24 and result["exact"]
    assert result["hits"][0]["pair"]["label"] == "green"


def test_pages_are_parts_of_one_order(search_client):
    pages = [search_client.get("/search", params={"text": "red", "limit": 5, "offset": at}) for at in range(0, 30, 5)]
    whole = only(search_client.get("/search", params={"text": "red", "limit": 200}))
    assert [row for page in pages for row in rows(only(page))] == rows(whole)
    assert [hit["rank"] for hit in only(pages[4])["hits"]] == [21, 22, 23, 24] and only(pages[5])["hits"] == []


def test_a_choice_of_facets_leaves_the_order_of_what_is_left(search_client):
    whole = rows(only(search_client.get("/search", params={"text": "red", "limit": 200})))
    answer = only(search_client.get("/search", params={"text": "red", "label": ["red", "blue"], "limit": 200}))
    assert rows(answer) == [row for row in whole if row % 4 in (0, 2)] and answer["total"] == 12
    assert {entry["value"]: entry["pairs"] for entry in answer["facets"]["label"]}["green"] == 6
    refused = search_client.get("/search", params={"text": "red", "duplicate": "same-image"})
    assert refused.status_code == 400 and "no duplicate" in refused.json()["detail"]


def test_the_like_of_a_pair(search_client, index):
    images = only(search_client.get("/search", params={"pair": "images/6.jpg", "find": "images", "limit": 30}))
    assert rows(images) == [hit.row for hit in index.like(6, "images", 30)] and images["total"] == 23
    captions = only(search_client.get("/search", params={"pair": "images/6.jpg", "limit": 30}))
    assert captions["find"] == "captions" and captions["total"] == 24
    near = only(search_client.get("/search", params={"pair": "images/6.jpg", "side": "caption", "find": "captions"}))
    assert 6 not in rows(near) and near["total"] == 23
    assert search_client.get("/search", params={"pair": "nothing"}).json()["type"] == "no-such-pair"


def test_a_picture_finds_its_caption_and_itself(search_client, pictures):
    data = (pictures / "images" / "9.jpg").read_bytes()
    sent = {"picture": ("mine.jpg", data, "image/jpeg")}
    own = only(search_client.get("/search", params={"pair": "images/9.jpg", "limit": 24}))
    found = only(search_client.post("/search/picture", files=sent, params={"limit": 24}))
    scores = [hit["score"] for hit in own["hits"]]
    assert [hit["score"] for hit in found["hits"]] == pytest.approx(scores, abs=2e-3)
    similar = only(search_client.post("/search/picture", files=sent, params={"find": "images"}))
    assert rows(similar)[0] == 9


def test_a_batch_answers_as_single_queries_do(search_client):
    queries = [{"text": "red"}, {"pair": "images/3.jpg", "side": "caption"}, {"text": "blue", "find": "captions"}]
    answers = search_client.post("/search", json={"queries": queries, "limit": 7, "label": ["red", "grey"]}).json()[
        "answers"
    ]
    for query, answer in zip(queries, answers, strict=True):
        single = only(search_client.get("/search", params={**query, "limit": 7, "label": ["red", "grey"]}))
        assert {**answer["results"][0], "seconds": 0} == {**single, "seconds": 0}


def test_several_sources_answer_side_by_side_and_one_that_cannot_says_so(search_client):
    answer = search_client.get("/search", params={"text": "red", "source": ["run", "audit"]}).json()["results"]
    assert [result["source"] for result in answer] == ["run", "audit"] and answer[0]["notice"] is None
    assert "audit cannot be searched" in answer[1]["notice"] and answer[1]["hits"] == []


def test_an_audit_without_vectors_says_what_to_do(search_client):
    answer = search_client.get("/search", params={"text": "red", "source": "audit"})
    assert answer.status_code == 409 and answer.json()["type"] == "no-vectors"
    assert "Serve a run of the data beside it" in answer.json()["detail"]
    state = {source["name"]: source for source in search_client.get("/health").json()["sources"]}
    assert state["audit"]["search"] is None and state["run"]["words"] is True


def test_an_audit_by_a_run_is_searched_by_that_run(run, pictures, tmp_path, search_client):
    audit = write_audit(tmp_path / "by-run", pictures, run=str(run))
    client = TestClient(create_app(open_sources([audit])), base_url=HERE)
    params = {"text": "a blue card", "limit": 24}
    result = only(client.get("/search", params=params))
    assert rows(result) == rows(only(search_client.get("/search", params=params)))
    assert result["hits"][0]["pair"]["proposed"] is not None and result["hits"][0]["pair"]["p_match"] is not None


def test_an_audit_of_embeddings_is_searched_by_its_own_items(tmp_path):
    import json

    import pyarrow
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((10, 6)).astype(np.float32)
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "images.npy", vectors)
    np.save(tmp_path / "data" / "texts.npy", vectors[::-1].copy())
    ids = truepair.open(tmp_path / "data").ids(0, 10)
    columns = {"pair_id": ids, "row": np.arange(10), "image": ids, "caption": [""] * 10}
    columns |= {"p_match": np.linspace(0, 1, 10, dtype=np.float32), "flagged": np.arange(10) < 5}
    (tmp_path / "audit").mkdir()
    parquet.write_table(pyarrow.table(columns), tmp_path / "audit" / "pairs.parquet")
    (tmp_path / "audit" / "summary.json").write_text(json.dumps({"options": {"source": str(tmp_path / "data")}}))
    client = TestClient(create_app(open_sources([tmp_path / "audit"])), base_url=HERE)
    assert rows(only(client.get("/search", params={"pair": ids[2], "limit": 1}))) == [
        7
    ]  # the caption of its own vector
    answer = client.get("/search", params={"text": "words"})
    assert answer.status_code == 400 and "without the model that made them" in answer.json()["detail"]
    assert client.get("/health").json()["sources"][0]["words"] is False


@pytest.mark.parametrize("odd", [{"source": "run"}, {"verdict": ["mismatched"]}, {"queries": [{"words": "a"}]}])
def test_several_queries_with_a_misspelt_name_or_value_are_refused(search_client, odd):
    """None of it is left out silently: the answer would be to another question."""
    answer = search_client.post("/search", json={"queries": [{"text": "a"}], **odd})
    assert answer.status_code == 422 and next(iter(odd)) in answer.json()["detail"]


@pytest.mark.parametrize(
    ("params", "status"),
    [
        *[({}, 400), ({"text": "a", "pair": "b"}, 400), ({"text": "  "}, 400), ({"text": "a" * 3000}, 422)],
        *[
            ({"text": "a", "find": "both"}, 422),
            ({"text": "a", "limit": 0}, 422),
            ({"text": "a", "offset": 10**30}, 422),
        ],
        *[({"text": "a", "offset": 10**9}, 200), ({"text": "🦄 ünknown wörds"}, 200), ({"text": "\x00\x07"}, 200)],
    ],
)
def test_odd_queries(search_client, params, status):
    assert search_client.get("/search", params=params).status_code == status


@pytest.mark.parametrize(
    "text", ["' OR 1=1 --", '"; DROP TABLE pairs; --', "%' UNION SELECT * FROM decisions --", "red*"]
)
@pytest.mark.parametrize("name", ["text", "pair", "source", "label", "words", "side", "find", "order", "verdict"])
def test_sql_is_words_in_every_parameter(search_client, name, text):
    for address in ("/search", "/pairs"):
        answer = search_client.get(address, params={"text": "red", name: text} if name != "pair" else {"pair": text})
        assert answer.status_code < 500
        assert answer.status_code != 200 or "results" in answer.json() or answer.json()["total"] in (0, 24)
    assert search_client.get("/pairs").json()["total"] == 24


def test_half_letters_are_answered(search_client):
    for body in (
        b'{"queries": [{"text": "\\ud800"}]}',
        b'{"queries": [{"pair": "\\udfff"}]}',
        b'{"queries": "\\ud800"}',
    ):
        answer = search_client.post("/search", content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (200, 404, 422)


@pytest.mark.parametrize(
    "data",
    [b"", b"no picture", b"\xff\xd8\xff\xe0broken", b"%!PS-Adobe-3.0\nshowpage", b"GIF89a" + b"\0" * 50, b"<svg/>"],
    ids=["empty", "text", "jpeg", "postscript", "gif", "svg"],
)
def test_what_is_no_picture_is_refused(search_client, data):
    answer = search_client.post("/search/picture", files={"picture": ("x.jpg", data, "image/jpeg")})
    assert answer.status_code == 400 and answer.json()["type"] in ("no-picture", "bad-input")


def test_a_bomb_is_not_decoded(search_client):
    bomb = png(np.zeros((10, 10, 3), np.uint8))
    size = (60_000).to_bytes(4, "big") * 2
    claimed = bomb[:16] + size + bomb[24:29]
    import zlib

    claimed += zlib.crc32(claimed[12:29]).to_bytes(4, "big") + bomb[33:]
    answer = search_client.post("/search/picture", files={"picture": ("x.png", claimed, "image/png")})
    assert answer.status_code == 413 and answer.json()["type"] == "too-many-pixels"
    huge = search_client.post("/search/picture", files={"picture": ("x.png", b"\0" * (17 << 20), "image/png")})
    assert huge.status_code == 413 and huge.json()["type"] == "too-large"


def test_a_picture_in_odd_modes_is_read(search_client):
    for mode, kind in (("L", "PNG"), ("RGBA", "PNG"), ("CMYK", "JPEG"), ("P", "GIF"), ("I;16", "PNG")):
        buffer = io.BytesIO()
        Image.new(mode, (40, 30)).save(buffer, kind)
        answer = search_client.post("/search/picture", files={"picture": ("x", buffer.getvalue(), "image/png")})
        assert answer.status_code == 200, (mode, answer.text)


def test_a_run_whose_data_have_moved_says_so_and_is_served_from_where_they_are(run, pictures, tmp_path):
    import json
    import shutil

    moved = tmp_path / "run"
    shutil.copytree(run, moved)
    config = json.loads((moved / "config.json").read_text())
    config["data"]["source"] = str(tmp_path / "gone")
    (moved / "config.json").write_text(json.dumps(config))
    with pytest.raises(truepair.InputError, match=r"which is not there any more; .* --data"):
        open_sources([moved])
    (source,) = open_sources([moved], Asked(data=str(pictures)))
    assert "verdict" in source.table.facets and len(source.table) == 24  # the pairs it was trained on


def test_folders_that_are_neither_run_nor_audit_are_refused(tmp_path, run):
    with pytest.raises(truepair.RunFolderError, match="does not exist"):
        open_sources([tmp_path / "none"])
    with pytest.raises(truepair.RunFolderError, match="neither a run nor an audit"):
        open_sources([tmp_path])
    with pytest.raises(truepair.InputError, match="given twice"):
        open_sources([run, run])


def test_an_index_in_the_making_keeps_nobody_waiting_for_long(run, monkeypatch):
    monkeypatch.setattr("truepair.serve.search.PATIENCE", 0.05)
    (source,) = open_sources([run])
    client = TestClient(create_app([source]), base_url=HERE)
    with source.searcher._building:
        answer = client.get("/search", params={"text": "red"})
        assert answer.status_code == 409 and answer.json()["type"] == "index-building"
        assert client.get("/health").json()["sources"][0]["search"] == "building"
    assert only(client.get("/search", params={"text": "red"}))["total"] == 24
    assert client.get("/health").json()["sources"][0]["search"] == "ready"


def test_a_service_that_ends_leaves_an_index_in_the_making(run):
    (source,) = open_sources([run])
    source.searcher.stop()
    with pytest.raises(truepair.TruepairError, match="the service ends"):
        _ = source.searcher.index
    assert source.searcher.state == "failed"


def test_an_index_that_failed_holds_nothing_of_the_requests(run, monkeypatch):
    """What was raised is raised again, and would gather the frames of everybody who asked."""

    def failing(*_args):
        raise truepair.TruepairError("no room")

    monkeypatch.setattr("truepair.serve.search.kept_index", failing)
    (source,) = open_sources([run])
    depths = []
    for _ in range(4):
        with pytest.raises(truepair.TruepairError, match="no room") as raised:
            _ = source.searcher.index
        depths.append(len(raised.traceback))
    assert depths[1] == depths[3] and source.searcher.state == "failed"
