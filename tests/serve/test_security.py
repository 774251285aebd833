"""Who is answered: names, origins, tokens, sizes; and what every answer carries."""

import os
import re

import pytest
from fastapi.testclient import TestClient

from tests.serve.conftest import HERE, write_audit, write_pictures
from truepair.errors import InputError
from truepair.serve.app import create_app
from truepair.serve.opening import Asked, open_sources
from truepair.serve.security import Access

TOKEN = "abcdefgh-12345678"


@pytest.mark.parametrize("host", ["evil.com", "127.0.0.1.evil.com", "localhost.evil.com:8000", "", "0.0.0.0", "[::2]"])
def test_foreign_names_are_not_answered(client, host):
    answer = client.get("/health", headers={"host": host})
    assert answer.status_code == 421 and answer.json()["type"] == "foreign-host" and "sources" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "LOCALHOST:9", "[::1]:8000"])
def test_names_of_this_machine_are(client, host):
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.com", "null", "http://127.0.0.1:9999", "http://127.0.0.1:8000.evil.com"]
)
def test_foreign_origins_are_refused(client, origin):
    answer = client.get("/health", headers={"origin": origin})
    assert answer.status_code == 403 and answer.json()["type"] == "foreign-origin"
    assert client.get("/health", headers={"origin": HERE}).status_code == 200


def test_requests_that_a_foreign_page_began_are_refused_but_links_to_the_page_are_not(client):
    foreign = {"sec-fetch-site": "cross-site"}
    assert client.get("/pictures/audit/0", headers={**foreign, "sec-fetch-mode": "no-cors"}).status_code == 403
    assert client.get("/pairs", headers={**foreign, "sec-fetch-mode": "navigate"}).status_code == 403
    assert client.get("/", headers={**foreign, "sec-fetch-mode": "navigate"}).status_code == 200


def test_no_other_origin_may_read_and_the_page_may_load_nothing_foreign(client):
    for address in ("/", "/health", "/pictures/audit/0", "/nowhere"):
        headers = client.get(address).headers
        assert not [name for name in headers if name.startswith("access-control")]
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert client.options("/pairs", headers={"origin": "http://evil.com"}).status_code == 403


def test_the_page_asks_for_all_its_modules_at_once(client):
    from truepair.serve.routes.page import FOLDER

    asked = set(re.findall(r'modulepreload" href="/page/([^"]+)"', client.get("/").text))
    assert asked == {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.js") if path.name != "main.js"}


def test_the_page_names_nothing_outside_itself(client):
    from truepair.serve.routes.page import files

    for name, (content, _) in files().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|(src|href)=\"//", text), name
        assert "innerHTML" not in text and "eval(" not in text and "style=" not in text, name


@pytest.mark.parametrize(
    "name",
    [
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/%2e%2e/errors.py",
        "js/../../app.py",
        "/etc/passwd",
        "%00",
        "js%5c..%5c..%5capp.py",
    ],
)
def test_nothing_but_the_page_is_read_for_a_request(client, name):
    answer = client.get(f"/page/{name}")
    assert answer.status_code == 404 and answer.json()["type"] in ("no-such-page",)


@pytest.mark.parametrize("name", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "-1", "24", "1e9", "0%00", "9" * 30])
def test_pictures_are_numbers_and_never_paths(client, name):
    assert client.get(f"/pictures/audit/{name}").status_code in (404, 422)
    assert client.get(f"/pictures/{name}/0").status_code == 404


def test_beyond_this_machine_a_token_is_needed_and_drawn_where_none_is_given():
    assert Access.of("127.0.0.1").token is None and Access.of("::1").token is None
    drawn = Access.of("0.0.0.0").token
    assert drawn is not None and len(drawn) >= 32 and drawn != Access.of("0.0.0.0").token
    assert Access.of("192.168.1.4").token is not None
    with pytest.raises(InputError, match="too short"):
        Access.of("0.0.0.0", "short")


def test_a_service_on_all_addresses_answers_to_addresses_and_not_to_names():
    everywhere = Access.of("0.0.0.0", also=("photos.example",))
    assert everywhere.answers_to("192.168.1.4:8000") and everywhere.answers_to("photos.example")
    assert not everywhere.answers_to("evil.com") and not Access.of("127.0.0.1").answers_to("192.168.1.4")


@pytest.fixture
def guarded(app):
    return TestClient(
        create_app(list(app.state.service.sources.values()), Access.of("127.0.0.1", TOKEN)), base_url=HERE
    )


def test_nothing_is_told_without_the_token(guarded):
    for address in ("/", "/health", "/pairs", "/pictures/audit/0", "/metrics", "/openapi.json", "/page/js/main.js"):
        answer = guarded.get(address)
        assert answer.status_code == 401 and answer.json()["type"] == "no-token"
    for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper()):
        assert guarded.get("/health", headers={"authorization": f"Bearer {wrong}"}).status_code == 401
        assert guarded.get("/health", params={"token": TOKEN}).status_code == 401  # in the address of the page alone
    assert guarded.get("/health", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_address_with_the_token_leaves_it_in_a_cookie_and_not_in_the_address(guarded):
    answer = guarded.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    assert "HttpOnly" in answer.headers["set-cookie"] and "SameSite=Strict" in answer.headers["set-cookie"]
    assert guarded.get("/health").status_code == 200


def test_services_beside_each_other_leave_each_others_cookies_alone(app, guarded):
    """A browser keeps cookies by host, whatever the port."""
    sources, other = list(app.state.service.sources.values()), TOKEN[::-1]
    beside = TestClient(create_app(sources, Access.of("127.0.0.1", other)), base_url=HERE, cookies=guarded.cookies)
    for client, token in ((guarded, TOKEN), (beside, other)):
        client.get("/", params={"token": token}, follow_redirects=False)
    beside.cookies.update(guarded.cookies)
    guarded.cookies.update(beside.cookies)
    assert guarded.get("/health").status_code == beside.get("/health").status_code == 200


def test_links_that_leave_the_data_are_not_followed(tmp_path):
    data = write_pictures(tmp_path / "cards", count=8)
    secret = tmp_path / "secret.jpg"
    (data / "images" / "3.jpg").rename(secret)
    (data / "images" / "3.jpg").symlink_to(secret)
    (data / "images" / "4.jpg").unlink()
    (data / "images" / "4.jpg").symlink_to(data / "images" / "0.jpg")
    audit = write_audit(tmp_path / "audit", data)
    app = TestClient(create_app(open_sources([audit])), base_url=HERE)
    refused = app.get("/pictures/audit/3")
    assert refused.status_code == 403 and refused.json()["type"] == "outside-data"
    assert str(tmp_path) not in refused.text
    assert app.get("/pictures/audit/4").status_code == 200  # a link within the data
    followed = TestClient(create_app(open_sources([audit], Asked(follow_links=True))), base_url=HERE)
    assert followed.get("/pictures/audit/3").status_code == 200


def test_absolute_paths_and_paths_that_lead_outside_are_no_pairs_at_all(tmp_path):
    import json

    data = write_pictures(tmp_path / "cards", count=8)
    write_pictures(tmp_path / "other", count=1)
    table = data / "table.jsonl"
    inside = table.read_text()
    audit = write_audit(tmp_path / "audit", data)
    for path in (str(tmp_path / "other" / "images" / "0.jpg"), "../other/images/0.jpg", "/etc/passwd"):
        table.write_text(inside + json.dumps({"image": path, "caption": "not of this folder", "kind": "red"}) + "\n")
        (source,) = open_sources([audit])
        assert source.pairs is not None and len(source.pairs) == 8 and len(source.pairs.images) == 8


def test_a_picture_that_is_gone_or_broken_is_told(tmp_path):
    data = write_pictures(tmp_path / "cards", count=8)
    app = TestClient(create_app(open_sources([write_audit(tmp_path / "audit", data)])), base_url=HERE)
    (data / "images" / "2.jpg").unlink()
    (data / "images" / "3.jpg").write_bytes(b"no picture")
    for number in (2, 3):
        answer = app.get(f"/pictures/audit/{number}")
        assert answer.status_code == 404 and answer.json()["type"] == "picture-gone"
        assert os.sep + "cards" not in answer.json()["detail"]
    assert app.get("/pictures/audit/1").status_code == 200


def test_large_bodies_are_refused_before_they_are_read(app):
    limited = create_app(list(app.state.service.sources.values()), Access(most_bytes=1000))
    client = TestClient(limited, base_url=HERE)
    assert client.request("GET", "/health", content=b"x" * 1001).status_code == 413
    assert client.request("GET", "/health", headers={"content-length": "x"}).status_code == 400


def test_a_body_that_does_not_say_its_length_is_cut_off(app):
    limited = create_app(list(app.state.service.sources.values()), Access(most_bytes=1000))
    client = TestClient(limited, base_url=HERE)
    kind = {"content-type": "application/json"}
    long = client.post("/search", content=iter([b"[" * 400] * 3), headers=kind)
    assert long.status_code == 413 and long.json()["type"] == "too-large"
    assert client.post("/search", content=iter([b"[" * 400] * 2), headers=kind).status_code == 422
