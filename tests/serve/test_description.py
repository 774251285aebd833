"""Requests made from the service's own description: none is answered with a fault of the service."""

import pytest
from hypothesis import HealthCheck, given, settings

KINDS = ["GET /health", "GET /metrics", "GET /search", "POST /search", "POST /search/picture"]
KINDS += ["GET /pairs", "GET /pairs/{pair_id}", "GET /pictures/{source}/{number}"]


@pytest.fixture(scope="module")
def operations(searched):
    """Method and path → what schemathesis knows of it."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is missing: pip install -e '.[dev]'")
    schema = schemathesis.openapi.from_asgi("/openapi.json", searched, headers={"host": "127.0.0.1"})
    found = (result.ok() for result in schema.get_all_operations())
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


def test_every_endpoint_is_described(operations):
    assert set(KINDS) <= set(operations)


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
