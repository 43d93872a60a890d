"""The API matches its description, for valid and invalid requests."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route
from tests.api_cases import OPERATIONS, try_cases
from tests.tree_runs import PATIENCE_S, PROVE
from tests.web.push.test_routes import SmallPush
from tests.web.small_operator import SmallDesk, SmallOperator, SmallWatch
from tests.web.small_search import HeldLog, SmallSearch, made_key, recording_to, served

from vedette.config import Rate, Serve
from vedette.serve.slate import SearchRequest, Slate
from vedette.web.api.openapi import build_openapi
from vedette.web.api.parameters import MAX_TOTAL_RESULTS
from vedette.web.app import create_app
from vedette.web.auth.access import is_api_path
from vedette.web.auth.tokens import TOKEN_PATTERN
from vedette.web.console.routes import ConsoleServices
from vedette.web.public.visits import Visitor
from vedette.web.push.ports import PushReply
from vedette.web.rendering import Branding

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    positive_data_acceptance,
    negative_data_rejection,
]
RECORDING = recording_to(HeldLog())
ADMIN, ADMIN_KEY = made_key("ops", "admin")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of an open server."""
    parts = ConsoleServices(SmallOperator(), SmallWatch(), SmallDesk(), push=SmallPush(PushReply(202, "Taken.")))
    with served(Serve(rate=Rate(0, 1.0)), lambda: [ADMIN_KEY], recording=RECORDING, console=parts) as (_, port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def closed_address() -> Iterator[str]:
    """The address of a server that requires a key."""
    parts = ConsoleServices(SmallOperator(), SmallWatch(), SmallDesk(), push=SmallPush(PushReply(202, "Taken.")))
    keys = [made_key("ann")[1]]
    with served(Serve(access="token", rate=Rate(0, 1.0)), lambda: keys, console=parts) as (_, port):
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_answers_are_as_described(operation: str, address: str) -> None:
    """Valid requests are accepted, invalid ones rejected, and every response has the promised shape."""
    try_cases(operation, lambda case: _check_answer(case, address), max_examples=200 if PROVE else 12)


def _check_answer(case: Case[Any], address: str) -> None:
    """Check one response; a value in the shape of a slate is replaced with a real one."""
    query = case.query or {}
    if _number(query.get("n", 10)) * _number(query.get("page", 1)) > MAX_TOTAL_RESULTS or query.get("q") in {
        "boom",
        "panic",
    }:
        return  # the one rule that a schema cannot tell, and the queries that are faults
    if isinstance(case.body, dict) and _is_slate(case.body.get("slate")):
        case.body["slate"] = RECORDING.record_slate(Slate(SearchRequest("lag"), 0), Visitor(), "api", 1.0)
    checks = CHECKS
    if case.path in {"/api/v1/orders", "/api/v1/actions"}:
        case.headers.update({"Authorization": f"Bearer {ADMIN}"})
        # That a site, a rule and a URL can be meant is more than a schema can tell.
        checks = [check for check in CHECKS if check is not positive_data_acceptance]
    if case.path in {"/indexnow", "/push/{token}"}:
        # Their protocols are lenient: many errors are ignored.
        checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    case.call_and_validate(base_url=address, checks=checks, timeout=PATIENCE_S)


def _is_slate(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(TOKEN_PATTERN, value) is not None


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_refusals_are_as_described(operation: str, closed_address: str) -> None:
    """This is the same test for a server that requires a key."""
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    try_cases(
        operation,
        lambda case: case.call_and_validate(base_url=closed_address, checks=checks, timeout=PATIENCE_S),
        max_examples=40 if PROVE else 3,
    )


def test_all_that_is_served_to_programs_is_described() -> None:
    """Every path and method is described, except for the HTML reference, MCP, and signed reports of observers."""
    parts = ConsoleServices(SmallOperator(), SmallWatch(), SmallDesk(), push=SmallPush())
    routes = create_app(SmallSearch(), Serve(), Branding(), console=parts).routes
    asked = [(each.path, each.methods or ()) for each in routes if isinstance(each, Route)]
    undescribed = {"/mcp", "/api/docs", "/observe/v1/exchange"}
    programs = [each for each in asked if is_api_path(each[0]) and each[0] not in undescribed]
    served = {(path, method.lower()) for path, methods in programs for method in methods if method != "HEAD"}
    paths = build_openapi("vedette", "", "1")["paths"]
    report = {(path, method) for path, methods in paths.items() for method in methods}
    assert served == {each for each in report if each[0] != "/opensearch.xml"}
    assert len(served) > 10


def test_examples_are_as_described() -> None:
    """Each example, including ads, matches its schema, so every referenced schema exists."""
    described = json.loads(json.dumps(build_openapi("vedette", "", "1", with_ads=True)))
    contents = list(_contents(described["paths"]))
    for content in contents:
        schema = {**content["schema"], "components": described["components"]}
        jsonschema_rs.Draft202012Validator(schema).validate(content["example"])
    assert len(contents) > 20


def _contents(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "schema" in node and "example" in node and "in" not in node:
            yield node
        for each in node.values():
            yield from _contents(each)
