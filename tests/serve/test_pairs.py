"""`/pairs`, `/health` and `/metrics`: what is told of pairs, filters, orders, counts, pages."""

import numpy as np
import pytest

from tests.serve.conftest import SCRIPT, write_audit
from truepair.serve.metrics import Metrics


def ids(answer):
    return [pair["pair_id"] for pair in answer.json()["pairs"]]


def test_a_pair_is_told_with_all_that_the_audit_says(client):
    pair = client.get("/pairs", params={"limit": 1}).json()["pairs"][0]
    assert pair["pair_id"] == "images/0.jpg" and pair["row"] == 0 and pair["caption"].startswith("a red card")
    assert pair["verdict"] == "mismatch" and pair["label"] == "red" and pair["picture"] == "/pictures/audit/0"
    assert pair["p_match"] == pytest.approx(0.02) and pair["reason"] == "the caption fits others better"
    assert pair["proposed"] == [{"caption": "a better caption", "pair_id": "images/0.jpg", "fit": pytest.approx(0.9)}]


def test_one_pair_by_its_id(client):
    assert client.get("/pairs/images/7.jpg").json()["caption"].endswith("number 7")
    missing = client.get("/pairs/images/none.jpg")
    assert missing.status_code == 404 and missing.json()["type"] == "no-such-pair"


def test_pages_hold_every_pair_once(client):
    pages = [client.get("/pairs", params={"order": "-p_match", "offset": at, "limit": 7}) for at in range(0, 24, 7)]
    together = [name for page in pages for name in ids(page)]
    assert together == [f"images/{row}.jpg" for row in reversed(range(24))]
    assert {page.json()["total"] for page in pages} == {24}


def test_filters_are_combined_and_counts_say_what_another_choice_would_give(client):
    answer = client.get("/pairs", params={"label": ["red", "blue"], "verdict": "mismatch", "p_low": 0.1}).json()
    rows = [row for row in range(24) if row % 4 in (0, 2) and 0.1 <= np.linspace(0.02, 0.98, 24)[row] < 0.5]
    assert [pair["row"] for pair in answer["pairs"]] == rows and answer["total"] == len(rows)
    labels = {entry["value"]: entry["pairs"] for entry in answer["facets"]["label"]}
    assert labels["green"] == 2  # counted as if no label were asked for
    assert sum(entry["pairs"] for entry in answer["facets"]["verdict"]) == 11  # of both labels, p_low kept


def test_words_are_looked_for_as_words_and_never_as_a_pattern(client):
    assert ids(client.get("/pairs", params={"words": "RED CARD"})) == [f"images/{row}.jpg" for row in range(0, 24, 4)]
    assert ids(client.get("/pairs", params={"words": ".*"})) == []
    assert ids(client.get("/pairs", params={"words": "%"})) == []
    assert client.get("/pairs", params={"words": "<script>"}).json()["pairs"][0]["caption"] == SCRIPT


def test_what_these_pairs_do_not_have_is_refused_with_a_remedy(client):
    answer = client.get("/pairs", params={"division": "clean"})
    assert answer.status_code == 400 and "label, verdict" in answer.json()["detail"]
    answer = client.get("/pairs", params={"order": "caption"})
    assert answer.status_code == 400 and "row, p_match" in answer.json()["detail"]
    assert client.get("/pairs", params={"source": "other"}).json()["type"] == "no-such-source"
    assert client.get("/pairs", params={"limit": 100_000}).status_code == 422
    answer = client.get("/pairs", params={"verdict": "mismatched"})
    assert answer.status_code == 422 and "'match' or 'mismatch'" in answer.json()["detail"]


def test_health_names_what_is_served(client):
    health = client.get("/health").json()
    assert health["status"] == "ok"
    (source,) = health["sources"]
    assert source["name"] == "audit" and source["pairs"] == 24 and source["pictures"] is True
    assert source["facets"] == ["label", "verdict"] and source["orders"] == ["row", "p_match", "similarity"]


def test_metrics_count_requests_by_endpoint_and_not_by_address(client):
    client.get("/pairs/images/7.jpg")
    client.get("/nowhere/at/all")
    text = client.get("/metrics").text
    assert 'truepair_requests_total{endpoint="/pairs/{pair_id:path}",method="GET",status="200"}' in text
    assert 'endpoint="other",method="GET",status="404"' in text and "nowhere" not in text
    assert "truepair_resident_bytes" in text
    written = Metrics().text({"truepair_pairs": ("pairs", 1_234_567), "truepair_seconds": ("seconds", 0.1)})
    assert "truepair_pairs 1234567.0" in written and "truepair_seconds 0.1" in written  # no digit is lost


def test_an_audit_whose_data_are_gone_is_served_without_pictures(audit, pictures, tmp_path):
    from truepair.serve.opening import open_sources

    moved = write_audit(tmp_path / "audit", pictures, source=str(tmp_path / "gone"))
    (source,) = open_sources([moved])
    assert source.pairs is None and "--data" in source.notices[0] and "does not exist" in source.notices[0]
    assert source.told([0])[0]["picture"] is None and source.told([0])[0]["label"] is None
