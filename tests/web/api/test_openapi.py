"""The API does what its description says: called with everything it allows, and with what it does not."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
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
description = schemathesis.openapi.from_dict(build_openapi("vedette", "", "1"))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where an open server listens."""
    parts = ConsoleServices(SmallOperator(), SmallWatch(), SmallDesk(), push=SmallPush(PushReply(202, "Taken.")))
    with served(Serve(rate=Rate(0, 1.0)), lambda: [ADMIN_KEY], recording=RECORDING, console=parts) as (_, port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def closed_address() -> Iterator[str]:
    """Where one listens that wants a key."""
    parts = ConsoleServices(SmallOperator(), SmallWatch(), SmallDesk(), push=SmallPush(PushReply(202, "Taken.")))
    keys = [made_key("ann")[1]]
    with served(Serve(access="token", rate=Rate(0, 1.0)), lambda: keys, console=parts) as (_, port):
        yield f"http://127.0.0.1:{port}"


@description.parametrize()
@settings(max_examples=25, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
def test_answers_are_as_described(case: Case[Any], address: str) -> None:
    """What the description allows is taken, what it forbids is refused, and every answer has the shape it promises.

    What has the shape of a slate is made a real one.
    """
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
    case.call_and_validate(base_url=address, checks=checks)


def _is_slate(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(TOKEN_PATTERN, value) is not None


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else 1


@description.parametrize()
@settings(max_examples=5, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
def test_refusals_are_as_described(case: Case[Any], closed_address: str) -> None:
    """The same of a server that wants a key."""
    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    case.call_and_validate(base_url=closed_address, checks=checks)


def test_all_that_is_served_to_programs_is_described() -> None:
    """Each address with each method; but for the page for people, and for the protocol of language models."""
    parts = ConsoleServices(SmallOperator(), SmallWatch(), SmallDesk(), push=SmallPush())
    routes = create_app(SmallSearch(), Serve(), Branding(), console=parts).routes
    asked = [(each.path, each.methods or ()) for each in routes if isinstance(each, Route)]
    programs = [each for each in asked if is_api_path(each[0]) and each[0] not in {"/mcp", "/api/docs"}]
    served = {(path, method.lower()) for path, methods in programs for method in methods if method != "HEAD"}
    paths = build_openapi("vedette", "", "1")["paths"]
    told = {(path, method) for path, methods in paths.items() for method in methods}
    assert served == {each for each in told if each[0] != "/opensearch.xml"}
    assert len(served) > 10


def test_examples_are_as_described() -> None:
    """Each example, including ads, matches its schema; so every schema that is named exists."""
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
