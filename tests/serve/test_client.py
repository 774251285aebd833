"""The client against the service itself, over a socket."""

import threading

import pytest
import uvicorn

import truepair
from truepair.serve.client import ServiceError


@pytest.fixture(scope="module")
def server(searched):
    from truepair.cli.serve import listening

    listener = listening("127.0.0.1", 0)
    config = uvicorn.Config(searched, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture
def asked(server):
    return truepair.Client(server)


def test_everything_that_the_service_offers(asked, pictures, search_client):
    assert asked.health()["status"] == "ok"
    found = asked.search("a green card", limit=3, label=["green", "red"])
    assert len(found["hits"]) == 3 and found["total"] == 12
    picture = pictures / "images" / "9.jpg"
    by_file, by_bytes = asked.search(picture=picture, find="images"), asked.search(picture=picture.read_bytes())
    assert by_file["hits"][0]["pair"]["row"] == 9 and by_bytes["find"] == "captions"
    assert asked.search(pair="images/9.jpg", find="images", limit=1)["total"] == 23
    assert [pair["row"] for pair in asked.pairs(order="-row", source="audit")] == list(range(23, -1, -1))
    assert asked.pair("images/3.jpg")["row"] == 3
    assert asked.picture("run", 3, 96).startswith((b"\xff\xd8", b"\x89PNG"))
    answers = asked.searches([{"text": "red"}, {"text": "blue"}], limit=2)
    assert [len(answer["results"][0]["hits"]) for answer in answers] == [2, 2]


def test_pairs_are_reviewed(asked):
    before = asked.progress()["decided"]
    coming = asked.review("worst", person="Ada", limit=2)
    decisions = [{"pair_id": each["pair"]["pair_id"], "verdict": "mismatch", "chosen_by": "worst"} for each in coming]
    assert asked.decide(decisions, person="Ada") == asked.decide(decisions, person="Ada")
    assert asked.progress()["decided"] == before + 2
    taken = [each["pair_id"] for each in asked.undo(person="Ada", count=2)]
    assert taken == [each["pair"]["pair_id"] for each in reversed(coming)] and asked.progress()["decided"] == before


def test_the_very_decisions_are_taken_back(asked):
    before = asked.progress()["decided"]
    mine, other = ({"pair_id": f"images/{row}.jpg", "verdict": "match"} for row in (20, 21))
    asked.decide([mine], person="Cy")
    asked.decide([other], person="Cy")
    assert [each["pair_id"] for each in asked.undo(person="Cy", decisions=[mine])] == ["images/20.jpg"]
    assert asked.undo(person="Cy", decisions=[mine]) == []
    with pytest.raises(truepair.InputError, match="has no id"):
        asked.undo(person="Cy", decisions=[{"pair_id": "images/21.jpg"}])
    asked.undo(person="Cy", decisions=[other])
    assert asked.progress()["decided"] == before


def test_refusals_are_errors_with_their_sentence(asked):
    with pytest.raises(ServiceError, match="there is no source 'none'") as caught:
        asked.search("red", source="none")
    assert caught.value.status == 404 and caught.value.kind == "no-such-source"
    with pytest.raises(truepair.InputError, match="give one of"):
        asked.search("red", picture=b"x")
    with pytest.raises(truepair.InputError, match="http://HOST:PORT"):
        truepair.Client("localhost:8000")


def test_nobody_there():
    from truepair.cli.serve import listening

    with listening("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with pytest.raises(ServiceError, match="is it running"):
        truepair.Client(f"http://127.0.0.1:{port}", timeout=5).health()


def test_the_token_is_taken_from_the_address():
    client = truepair.Client("http://10.0.0.1:80/?token=abc")
    assert client.token == "abc" and client.address == "http://10.0.0.1:80"
