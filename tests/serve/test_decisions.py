"""`/decisions`: kept once, taken back, in order, all or none; what is refused."""

import shutil
import sqlite3

import numpy as np
import pytest
from fastapi.testclient import TestClient

from tests.serve.conftest import HERE, write_audit
from truepair.decisions import DecisionStore
from truepair.serve.app import create_app
from truepair.serve.opening import open_sources


def judged(row, verdict="mismatch", person="Ada", **more):
    name = more.pop("id", f"{person}-{row}-{verdict}")
    return {"id": name, "pair_id": f"images/{row}.jpg", "verdict": verdict, "person": person, **more}


def sent(client, *decisions):
    return client.post("/decisions", json={"decisions": list(decisions)})


def rows(answer):
    assert answer.status_code == 200, answer.text
    return [coming["pair"]["row"] for coming in answer.json()["pairs"]]


@pytest.fixture
def folder(audit, tmp_path):
    return shutil.copytree(audit, tmp_path / "audit", ignore=shutil.ignore_patterns("decisions*"))


@pytest.fixture
def client(folder):
    return TestClient(create_app(open_sources([folder])), base_url=HERE)


def test_a_decision_is_on_the_disk_when_the_answer_comes_and_counts_once(client, folder):
    first = sent(client, judged(3, seconds=1.5, chosen_by="gain", probability_chosen=0.1, caption="a red card"))
    assert first.status_code == 200 and first.json() == {"numbers": [1], "latest": 1}
    assert sent(client, judged(3)).json() == {"numbers": [1], "latest": 1}  # the same id: sent again
    with DecisionStore.open(folder / "decisions.sqlite", read_only=True) as store:
        (row,) = store.history()
    assert (row.pair_id, row.verdict, row.person, row.caption) == ("images/3.jpg", "mismatch", "Ada", "a red card")
    assert (row.chosen_by, row.probability_chosen, row.seconds) == ("gain", 0.1, 1.5)
    (told,) = client.get("/decisions").json()["decisions"]
    assert told["number"] == 1 and told["pair"]["row"] == 3


def test_a_batch_is_kept_whole_or_not_at_all(client):
    assert sent(client, *(judged(row) for row in range(10))).json()["numbers"] == list(range(1, 11))
    unknown = sent(client, judged(11), judged("none"))
    assert unknown.status_code == 404 and unknown.json()["type"] == "no-such-pair"
    assert sent(client, judged(12, partner="images/none.jpg")).status_code == 404
    assert sent(client, judged(12), judged(12)).json()["type"] == "same-id"
    assert client.get("/decisions").json()["total"] == 10


def test_undo_goes_back_and_a_retry_does_not_go_further(client):
    sent(client, judged(1), judged(2), judged(3, person="Bo"))
    back = {"id": "u", "person": "Ada", "count": 1}
    for _ in range(2):
        assert [each["pair_id"] for each in client.post("/decisions/undo", json=back).json()["taken_back"]] == [
            "images/2.jpg"
        ]
    several = client.post("/decisions/undo", json={"id": "v", "person": "Ada", "count": 5}).json()["taken_back"]
    assert [each["pair_id"] for each in several] == ["images/1.jpg"]
    assert [each["person"] for each in client.get("/decisions").json()["decisions"]] == ["Bo"]
    history = client.get("/decisions/history").json()
    assert [each["undoes"] for each in history["decisions"]] == [None, None, None, 2, 1]
    late = client.get("/decisions/history", params={"after": 3, "pair_id": "images/1.jpg"}).json()["decisions"]
    assert [each["number"] for each in late] == [5]


def test_decisions_are_taken_back_by_their_ids_unless_they_were_changed_since(client):
    sent(client, *(judged(row, id=f"first-{row}") for row in (1, 2, 3)))
    sent(client, judged(2, "match", id="second-2"), judged(4, id="second-4"))
    back = {"id": "u", "person": "Ada", "decisions": ["first-1", "first-2", "first-3", "first-9"]}
    for _ in range(2):
        answer = client.post("/decisions/undo", json=back).json()
        assert [each["pair_id"] for each in answer["taken_back"]] == ["images/3.jpg", "images/1.jpg"]
        assert answer["not_taken_back"] == [
            {"id": "first-2", "pair_id": "images/2.jpg", "why": "changed"},
            {"id": "first-9", "pair_id": None, "why": "unknown"},
        ]
    standing = {each["pair_id"]: each["verdict"] for each in client.get("/decisions").json()["decisions"]}
    assert standing == {"images/2.jpg": "match", "images/4.jpg": "mismatch"}
    again = client.post("/decisions/undo", json={**back, "id": "v", "decisions": ["first-1"]}).json()
    assert again["not_taken_back"] == [{"id": "first-1", "pair_id": "images/1.jpg", "why": "taken back"}]


def test_decisions_are_taken_back_by_ids_or_by_count(client):
    sent(client, judged(1))
    both = client.post("/decisions/undo", json={"id": "u", "person": "Ada", "decisions": ["a"], "count": 1})
    assert both.status_code == 400 and "give either decisions or count" in both.json()["detail"]
    last = client.post("/decisions/undo", json={"id": "u", "person": "Ada"}).json()
    assert len(last["taken_back"]) == 1 and last["not_taken_back"] == []


def test_what_comes_next_leaves_out_what_is_decided_or_shown(client):
    worst = client.get("/decisions/next", params={"order": "worst", "limit": 3})
    assert rows(worst) == [0, 1, 2] and worst.json()["left"] == 24
    assert worst.json()["pairs"][0]["probability_chosen"] is None
    sent(client, judged(1), judged(4, person="Bo"))
    asked = {"order": "worst", "limit": 4, "person": "Ada"}
    assert rows(client.get("/decisions/next", params={**asked, "skip": [0, 3]})) == [2, 5, 6, 7]
    second = client.get("/decisions/next", params={**asked, "again": True})
    assert rows(second) == [0, 2, 3, 4] and second.json()["pairs"][3]["chosen_by"] == "second opinion"


def test_the_gain_is_drawn_with_a_probability_and_goes_on_after_every_decision(client):
    seen = []
    for _ in range(24):
        (coming,) = client.get("/decisions/next", params={"person": "Ada", "limit": 1}).json()["pairs"]
        assert 0 < coming["probability_chosen"] <= 1 and coming["chosen_by"] == "gain"
        row = coming["pair"]["row"]
        sent(client, judged(row, probability_chosen=coming["probability_chosen"], chosen_by="gain"))
        seen.append(row)
    assert sorted(seen) == list(range(24)) and seen != sorted(seen)
    last = client.get("/decisions/next").json()
    assert (last["source"], last["left"], last["pairs"]) == ("audit", 0, [])


def test_a_facet_is_a_part_of_the_pairs(client):
    blue = {"order": "facet", "label": "blue", "limit": 3}
    assert rows(client.get("/decisions/next", params=blue)) == [2, 6, 10]
    sent(client, judged(2), judged(3))
    assert client.get("/decisions/next", params=blue).json()["left"] == 5
    assert client.get("/decisions/next", params={"label": "blue"}).json()["type"] == "bad-input"


def test_proposals_are_the_captions_that_fit_the_picture(tmp_path):
    import json

    from tests.serve.conftest import write_pictures

    data = write_pictures(tmp_path / "cards", count=4)
    lines = [json.loads(line) for line in (data / "table.jsonl").read_text().splitlines()]
    lines = [{**lines[0], "caption": f"caption {n}", "id": f"p{n}"} for n in range(8)]
    (data / "table.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    client = TestClient(create_app(open_sources([write_audit(tmp_path / "audit", data)])), base_url=HERE)
    (first, *_) = client.get("/decisions/next", params={"order": "worst"}).json()["pairs"]
    captions = [proposal["caption"] for proposal in first["pair"]["proposed"]]
    assert captions == ["a better caption", "caption 7", "caption 6", "caption 5", "caption 4"]


def test_progress_tells_people_agreement_and_the_estimate(client):
    nothing = client.get("/decisions/progress").json()
    assert nothing["decided"] == 0 and nothing["estimate"]["note"].startswith("Nothing is decided yet")
    assert nothing["estimate"]["share"] == pytest.approx(1 - np.linspace(0.02, 0.98, 24).mean(), abs=1e-6)
    for coming in client.get("/decisions/next", params={"limit": 24}).json()["pairs"]:
        row = coming["pair"]["row"]
        verdict = "mismatch" if row < 9 else "match"
        sent(client, judged(row, verdict, chosen_by="gain", probability_chosen=coming["probability_chosen"]))
    sent(client, judged(20, "unsure", "Bo"))
    state = client.get("/decisions/progress").json()
    assert state["people"] == [{"person": "Ada", "decided": 24}, {"person": "Bo", "decided": 1}]
    assert state["agreement"] == {"pairs": 23, "agreed": 20, "missed": 0, "mistaken": 3}
    estimate = state["estimate"]
    assert estimate["low"] <= 9 / 24 <= estimate["high"] and estimate["high"] - estimate["low"] < 0.2
    assert (estimate["mismatched"], estimate["unsure"]) == (9, 1)


def test_two_services_see_each_other(client, folder):
    other = TestClient(create_app(open_sources([folder])), base_url=HERE)
    sent(client, judged(5, "match"))
    other.app.state.service.review(None).prepare()  # as the service starts
    assert other.get("/decisions").json()["total"] == 1
    sent(other, judged(5, "mismatch", "Bo"))
    assert client.get("/decisions").json()["decisions"][0]["verdict"] == "unsure"
    assert client.get("/decisions", params={"person": "Ada"}).json()["decisions"][0]["verdict"] == "match"


def test_looking_writes_nothing(client, folder):
    for address in ("/decisions", "/decisions/next", "/decisions/progress", "/decisions/history"):
        assert client.get(address).status_code == 200
    assert not (folder / "decisions.sqlite").exists()


def test_a_full_disk_is_a_sentence_and_the_same_request_goes_through_later(client, folder):
    sent(client, judged(1))
    store = client.app.state.service.review(None)._store
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    huge = judged(2, caption="c" * 90_000)
    answer = sent(client, huge)
    assert answer.status_code == 507 and answer.json()["type"] == "not-kept"
    assert "the disk is full" in answer.json()["detail"] and str(folder) not in answer.text
    assert client.get("/decisions").json()["total"] == 1
    store._connection.execute("PRAGMA max_page_count = 100000")
    assert sent(client, huge).json()["numbers"] == [2]


def test_a_database_of_another_program_or_audit_is_refused_and_left(client, folder, tmp_path):
    path = folder / "decisions.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    before = path.read_bytes()
    for answer in (client.get("/decisions"), sent(client, judged(1))):
        assert answer.status_code == 507 and "another program" in answer.json()["detail"]
    assert path.read_bytes() == before


def test_a_run_is_not_reviewed(search_client, client):
    answer = search_client.get("/decisions", params={"source": "run"})
    assert answer.status_code == 409 and answer.json()["type"] == "no-audit"
    assert search_client.get("/decisions").status_code == 200  # the first audit
    assert client.get("/decisions", params={"source": "none"}).json()["type"] == "no-such-source"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"verdict": "maybe"}, 422),
        ({"captoin": "a dog"}, 422),
        ({"person": ""}, 422),
        ({"person": "  "}, 400),
        ({"person": "a\0b"}, 400),
        ({"caption": "   "}, 400),
        ({"caption": "c" * 100_001}, 422),
        ({"probability_chosen": 0}, 422),
        ({"probability_chosen": 1.5}, 422),
        ({"seconds": -1}, 422),
        ({"seconds": "NaN"}, 422),
        ({"id": ""}, 422),
        ({"pair_id": "../../etc/passwd"}, 404),
    ],
)
def test_values_that_cannot_be_kept(client, change, status):
    assert sent(client, {**judged(1), **change}).status_code == status
    assert client.get("/decisions").json()["total"] == 0


def test_too_many_at_once_half_letters_and_foreign_pages(client):
    assert sent(client, *(judged(1, id=f"i{n}") for n in range(1001))).status_code == 422
    odd = b'{"decisions": [{"id": "a", "pair_id": "images/1.jpg", "verdict": "match", "person": "\\ud800"}]}'
    assert client.post("/decisions", content=odd, headers={"content-type": "application/json"}).status_code in (
        400,
        422,
    )
    body = {"decisions": [judged(1)]}
    for path in ("/decisions", "/decisions/undo"):
        refused = client.post(path, json=body, headers={"origin": "http://evil.example"})
        assert refused.status_code == 403 and refused.json()["type"] == "foreign-origin"
        assert client.post(path, json=body, headers={"host": "evil.example"}).status_code == 421
    assert client.get("/decisions").json()["total"] == 0


@pytest.mark.parametrize("text", ["' OR 1=1 --", '"; DROP TABLE decisions; --', "%' UNION SELECT * FROM decisions --"])
def test_sql_is_words_in_every_parameter(client, text):
    sent(client, judged(1))
    names = {
        "/decisions": ("source", "person", "limit", "offset"),
        "/decisions/history": ("source", "pair_id", "after"),
        "/decisions/next": ("source", "person", "order", "skip", "label", "words", "again"),
        "/decisions/progress": ("source",),
    }
    for address, parameters in names.items():
        for name in parameters:
            assert client.get(address, params={name: text}).status_code < 500
    for name in ("id", "pair_id", "verdict", "person", "chosen_by", "caption", "partner"):
        assert sent(client, {**judged(2, id=f"sql {name}"), name: text}).status_code < 500
        assert client.post("/decisions/undo", json={"id": f"u{name}", "person": "x", name: text}).status_code < 500
    kept = client.get("/decisions/history").json()["decisions"]
    assert [each["person"] for each in kept] == ["Ada", "Ada", text, text, "Ada", "Ada"]
    assert kept[0]["pair_id"] == "images/1.jpg" and kept[0]["verdict"] == "mismatch"
