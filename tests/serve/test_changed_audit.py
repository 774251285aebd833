"""An audit that is made anew, removed or moved while it is served: nothing is acknowledged that is not kept with it."""

import shutil

import pytest
from fastapi.testclient import TestClient

from tests.serve.conftest import HERE, write_audit, write_pictures
from tests.serve.test_decisions import judged, sent
from truepair.decisions import DecisionStore
from truepair.serve.app import create_app
from truepair.serve.opening import open_sources


@pytest.fixture
def folder(audit, tmp_path):
    return shutil.copytree(audit, tmp_path / "audit", ignore=shutil.ignore_patterns("decisions*"))


@pytest.fixture
def client(folder):
    found = TestClient(create_app(open_sources([folder])), base_url=HERE)
    found.app.state.service.review(None).prepare()  # as the service starts
    return found


def refuses(client):
    """Every answer about decisions says that the audit has changed."""
    asked = [client.get(f"/decisions{end}") for end in ("", "/next", "/progress", "/history")]
    undo = client.post("/decisions/undo", json={"id": "u", "person": "Ada"})
    answers = [*asked, undo, sent(client, judged(2)), sent(client, judged("none"))]
    return all(each.status_code == 409 and each.json()["type"] == "audit-changed" for each in answers)


def test_another_audit_in_its_place(client, folder, tmp_path):
    assert sent(client, judged(1)).status_code == 200
    shutil.rmtree(folder)
    assert refuses(client)
    other = write_pictures(tmp_path / "other", count=24)
    (other / "table.jsonl").write_text((other / "table.jsonl").read_text().replace("card", "parcel"))
    write_audit(folder, other)  # as many pairs with the same ids, but other captions
    assert refuses(client) and refuses(client)
    assert not (folder / "decisions.sqlite").exists()
    again = TestClient(create_app(open_sources([folder])), base_url=HERE)
    assert sent(again, judged(2)).json() == {"numbers": [1], "latest": 1}


def test_another_audit_before_the_first_question(folder, tmp_path):
    client = TestClient(create_app(open_sources([folder])), base_url=HERE)
    shutil.rmtree(folder)
    other = write_pictures(tmp_path / "other", count=24, seed=1)
    (other / "table.jsonl").write_text((other / "table.jsonl").read_text().replace("card", "parcel"))
    write_audit(folder, other)
    assert refuses(client)


def test_the_same_pairs_audited_anew_go_on(client, folder, pictures, tmp_path):
    assert sent(client, judged(1)).status_code == 200
    before = client.get("/decisions/next").json()
    shutil.copyfile(write_audit(tmp_path / "again", pictures) / "pairs.parquet", folder / "pairs.parquet.new")
    (folder / "pairs.parquet.new").replace(folder / "pairs.parquet")
    assert client.get("/decisions/next").json() == before
    assert sent(client, judged(2)).json() == {"numbers": [2], "latest": 2}


def test_decisions_that_were_removed_or_replaced(client, folder, tmp_path):
    sent(client, judged(1))
    aside = tmp_path / "aside.sqlite"
    (folder / "decisions.sqlite").rename(aside)
    assert refuses(client)
    shutil.copyfile(aside, folder / "decisions.sqlite")
    assert refuses(client)
    again = TestClient(create_app(open_sources([folder])), base_url=HERE)
    assert sent(again, judged(2)).json()["numbers"] == [2]


def test_what_is_removed_while_it_is_written_is_not_acknowledged(client, folder):
    sent(client, judged(1))
    store = client.app.state.service.review(None)._store
    record = store.record_all

    def record_then_lose(*given):
        numbers = record(*given)
        shutil.rmtree(folder)
        return numbers

    store.record_all = record_then_lose
    assert sent(client, judged(2)).json()["type"] == "audit-changed"


def test_decisions_about_another_audit_of_the_same_name_are_refused(client, folder):
    coming = client.get("/decisions/next").json()
    assert coming["audit"] == client.get("/health").json()["sources"][0]["audit"]
    assert coming["audit"] == client.get("/decisions/progress").json()["audit"]
    for audit, status in ((coming["audit"], 200), (None, 200), ("0" * 32, 409)):
        answer = client.post("/decisions", json={"audit": audit, "decisions": [judged(1, id=f"to {audit}")]})
        assert answer.status_code == status
        assert status == 200 or answer.json()["type"] == "other-audit"
    undo = {"id": "u", "person": "Ada", "audit": "0" * 32}
    assert client.post("/decisions/undo", json=undo).json()["type"] == "other-audit"
    with DecisionStore.open(folder / "decisions.sqlite", read_only=True) as store:
        assert len(store.history()) == 2


def test_an_audit_that_keeps_its_place_is_asked_nothing(client, folder):
    for row in range(3):
        assert sent(client, judged(row)).status_code == 200
    with DecisionStore.open(folder / "decisions.sqlite", read_only=True) as store:
        assert len(store.history()) == 3
