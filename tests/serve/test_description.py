"""Requests made from the service's own description: none is answered with a fault of the service."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from truepair.serve.app import create_app
from truepair.serve.opening import open_sources

KINDS = ["GET /health", "GET /metrics", "GET /search", "POST /search", "POST /search/picture"]
KINDS += ["GET /pairs", "GET /pairs/{pair_id}", "GET /pictures/{source}/{number}"]
KINDS += ["GET /decisions", "POST /decisions", "POST /decisions/undo"]
KINDS += [f"GET /decisions/{name}" for name in ("history", "next", "progress")]


@pytest.fixture(scope="module")
def operations(run, audit, tmp_path_factory):
    """Method and path → what schemathesis knows of it, of a service of its own: requests here decide about pairs."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is missing: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("described")
    copies = [Path(shutil.copytree(source, folder / source.name)) for source in (audit, run)]
    app = create_app(open_sources(copies))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"host": "127.0.0.1"})
    found = (result.ok() for result in schema.get_all_operations())
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


def test_every_endpoint_is_described(operations):
    assert set(KINDS) == set(operations)


@pytest.mark.parametrize("kind", KINDS)
def test_no_request_breaks_the_service(operations, kind):
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

    checks = [not_a_server_error, content_type_conformance, response_schema_conformance]

    @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operations[kind].as_strategy())
    def ask(case):
        case.headers["host"] = "127.0.0.1"
        case.call_and_validate(checks=checks)

    ask()
