"""The part of the API that changes something: only for operators' keys, with strict parsing."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from tests.web.small_operator import SmallDesk, SmallOperator, SmallWatch
from tests.web.small_search import Ask, Heard, made_key, served

from vedette.config import Rate, Serve
from vedette.errors import CommandPending, SiteError, UsageError
from vedette.model import Site
from vedette.web.api.parameters import ParameterError, parse_struct
from vedette.web.commands.commands import (
    AddAlert,
    AddRules,
    AddSite,
    FetchNow,
    PauseSite,
    RemoveAlert,
    RemoveRules,
    RemoveSite,
    RetryFailed,
    Rule,
    SetSite,
    Undo,
)
from vedette.web.commands.json_commands import _AD_COMMANDS, _COMMANDS
from vedette.web.console.ports.alerts import AlertLine, SentMessage
from vedette.web.console.routes import ConsoleServices

OPEN = Serve(rate=Rate(0, 1.0))
ADMIN, ADMIN_KEY = made_key("ops", "admin")
READER, READER_KEY = made_key("ann", "search", "private")
KEYS = (ADMIN_KEY, READER_KEY)


@pytest.fixture(scope="module")
def operator() -> SmallOperator:
    """The operator that receives the commands."""
    return SmallOperator()


@pytest.fixture(scope="module")
def ask(operator: SmallOperator) -> Iterator[Ask]:
    """Return an open server with a console."""
    with served(OPEN, lambda: KEYS, console=ConsoleServices(operator, SmallWatch(), SmallDesk())) as (ask, _):
        yield ask


def post(ask: Ask, order: object, key: str = ADMIN, **headers: str) -> Heard:
    """Send a command."""
    body = order if isinstance(order, bytes) else json.dumps(order).encode()
    sent = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {}), **headers}
    return ask("/api/v1/orders", sent, "POST", body)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (
            {"order": "add_site", "site": "example.org/docs/", "settings": {"scope": "prefix", "delay": "5s"}},
            AddSite(Site("https://example.org/docs/", scope="prefix", delay_s=5.0)),
        ),
        (
            {"order": "set_site", "site": "example.org", "settings": {"exclude": ["/drafts/*"]}},
            SetSite("https://example.org/", {"exclude": ("/drafts/*",)}, "exclude"),
        ),
        ({"order": "pause_site", "site": "example.org"}, PauseSite("https://example.org/", paused=True)),
        ({"order": "resume_site", "site": "example.org"}, PauseSite("https://example.org/", paused=False)),
        ({"order": "retry", "target": "https://example.org/"}, RetryFailed("https://example.org/")),
        (
            {"order": "remove_site", "site": "example.org", "with_pages": True},
            RemoveSite("https://example.org/", with_pages=True),
        ),
        (
            {"order": "add_rule", "kind": "block", "value": "spam.example"},
            AddRules((Rule("block", "", "spam.example"),)),
        ),
        (
            {"order": "remove_rule", "kind": "synonym", "query": "K8s", "value": "Kubernetes"},
            RemoveRules((Rule("synonym", "k8s", "kubernetes"),)),
        ),
        ({"order": "fetch", "urls": ["example.org/a", "https://example.org/a"]}, FetchNow(("https://example.org/a",))),
        ({"order": "undo", "action": 7.0}, Undo(7)),
    ],
)
def test_an_order_is_understood_and_carried_out(ask: Ask, operator: SmallOperator, sent: object, meant: object) -> None:
    """The operator gets the intended command with the key's name, and the response has its number."""
    received = post(ask, sent)
    assert operator.orders[-1] == meant
    assert operator.list_actions(1)[0].by == "the key ops"
    assert received.status == 200
    assert received.json["action"] == operator.list_actions(1)[0].id


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (b"{", None),
        ([], None),
        ({}, "order"),
        ({"order": "format_disk"}, "order"),
        ({"order": "pause_site"}, "site"),
        ({"order": "pause_site", "site": "exa mple"}, "site"),
        ({"order": "pause_site", "site": "example.org", "why": "fun"}, "why"),
        ({"order": "add_site", "site": "example.org", "settings": {"dealy": "1s"}}, "settings"),
        ({"order": "add_site", "site": "example.org", "settings": {"delay": "1"}}, "settings"),
        ({"order": "add_site", "site": "example.org", "settings": {"secrets": "hunter2"}}, "settings"),
        ({"order": "add_site", "site": "example.org", "settings": {"ignore_robots": True}}, "settings"),
        ({"order": "set_site", "site": "example.org", "settings": {}}, "settings"),
        ({"order": "remove_site", "site": "example.org", "with_pages": "yes"}, "with_pages"),
        ({"order": "add_rule", "kind": "boost", "value": "x"}, "kind"),
        ({"order": "add_rule", "kind": "pin", "value": "https://example.org/"}, "query"),
        ({"order": "add_rule", "kind": "block", "query": "q", "value": "example.org"}, "query"),
        ({"order": "add_rule", "kind": "conceal", "value": "javascript:alert(1)"}, "value"),
        ({"order": "fetch", "urls": []}, "urls"),
        ({"order": "fetch", "urls": ["ftp://example.org/"]}, "urls"),
        ({"order": "undo", "action": 0}, "action"),
        ({"order": "undo", "action": True}, "action"),
    ],
)
def test_errors_name_the_field_and_change_nothing(
    ask: Ask, operator: SmallOperator, sent: object, field: str | None
) -> None:
    """The error names the field, and never repeats a possible secret."""
    before = len(operator.orders)
    received = post(ask, sent)
    assert received.complaint == (400, "wrong_parameter", field)
    assert "hunter2" not in received.body.decode()
    assert len(operator.orders) == before


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer vk_guessed"}, 401),
        ({"authorization": f"Bearer {READER}"}, 403),
        ({"cookie": f"vedette_key={ADMIN}"}, 401),
        ({"cookie": f"vedette_console={ADMIN}"}, 401),
        ({"authorization": f"Basic {ADMIN}"}, 401),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/orders", "/api/v1/actions"])
def test_nobody_else_may(ask: Ask, operator: SmallOperator, path: str, headers: dict[str, str], status: int) -> None:
    """Commands need the key: no key, another key, or a cookie sent by a browser is not enough."""
    before = len(operator.orders)
    method, body = ("POST", b'{"order": "undo", "action": 1}') if path.endswith("orders") else ("GET", b"")
    received = ask(path, {"content-type": "application/json", **headers}, method, body)
    assert received.status == status
    assert "www-authenticate" in received.headers or status != 401
    assert len(operator.orders) == before


def test_a_key_in_the_address_gives_no_orders(ask: Ask) -> None:
    """URLs end up in logs and histories."""
    received = ask(f"/api/v1/orders?key={ADMIN}", {"content-type": "application/json"}, "POST", b"{}")
    assert received.status == 401


def test_a_form_of_another_site_gives_no_orders(ask: Ask) -> None:
    """A form can't send JSON without a preflight, and no other origin is allowed."""
    order = {"order": "undo", "action": 1}
    assert post(ask, order, **{"content-type": "text/plain"}).status == 415
    assert post(ask, order, **{"content-type": "application/x-www-form-urlencoded"}).status == 415
    asked = ask(
        "/api/v1/orders", {"origin": "https://evil.example", "access-control-request-method": "POST"}, "OPTIONS"
    )
    assert "access-control-allow-origin" not in asked.headers


def test_refused_commands_have_the_operators_message(ask: Ask, operator: SmallOperator) -> None:
    """The error is the operator's message, and the log shows what was done."""
    operator.refusal = SiteError("https://example.org/ is not a site in this folder")
    received = post(ask, {"order": "pause_site", "site": "example.org"})
    operator.refusal = None
    assert received.complaint == (409, "cannot_be_done", None)
    assert "not a site in this folder" in received.json["error"]["message"]
    post(ask, {"order": "pause_site", "site": "example.org"})
    log = ask("/api/v1/actions?n=1", {"authorization": f"Bearer {ADMIN}"}).json["actions"]
    assert [line["by"] for line in log] == ["the key ops"]


def test_an_order_that_waits_can_be_sent_again(ask: Ask, operator: SmallOperator) -> None:
    """It has a specific code; with an Idempotency-Key it keeps its id, which no other key shares."""
    operator.order_ids.clear()
    operator.refusal = CommandPending("not carried out yet")
    try:
        for key in ("a", "a", "b"):
            answer = post(ask, {"order": "undo", "action": 1}, **{"idempotency-key": key})
            assert (answer.status, json.loads(answer.body)["error"]["code"]) == (503, "not_yet")
    finally:
        operator.refusal = None
    first, again, other = operator.order_ids
    assert first == again != other


def test_a_server_without_a_console_accepts_no_commands() -> None:
    """A server without a console says so."""
    with served(OPEN, lambda: KEYS) as (ask, _):
        assert post(ask, {"order": "undo", "action": 1}).complaint[:2] == (503, "no_crawler")


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = ("site", "settings", "paused", "with_pages", "kind", "query", "value", "urls", "host", "action")
orders = st.sampled_from(["add_site", "set_site", "pause_site", "remove_site", "add_rule", "fetch", "dismiss", "undo"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(orders, st.dictionaries(st.sampled_from(fields), anything, max_size=4))
def test_any_request_gets_a_valid_response(ask: Ask, order: str, report: dict[str, Any]) -> None:
    """Every request is executed or rejected with a message, without a server error."""
    assert post(ask, {**report, "order": order}).status in {200, 400, 409}


GOOD: dict[str, object] = {
    **dict.fromkeys(("site", "value", "host"), "example.org"),
    **dict.fromkeys(("query", "name", "place", "campaign", "advertiser", "title", "text", "key"), "x"),
    **dict.fromkeys(("webhook", "starts", "ends"), ""),
    **dict.fromkeys(("paused", "with_pages"), True),
    **dict.fromkeys(("budget", "bid"), "0.40"),
    **dict.fromkeys(("action", "ad"), 1),
    "kind": "block",
    "settings": {"delay": "5s"},
    **dict.fromkeys(("url", "target"), "https://example.org/"),
    "urls": ["https://example.org/"],
    "phrases": [{"way": "broad", "phrase": "red shoes"}],
    "negatives": ["free"],
}


@pytest.mark.parametrize("kind", [kind for table in (_COMMANDS, _AD_COMMANDS) for kind, _ in table.values()])
@pytest.mark.parametrize("wrong", [None, 1.5, [None], b"x"])
def test_invalid_values_are_reported_by_type(kind: type[Struct], wrong: object) -> None:
    """The error says what is valid, according to the type of the field."""
    good = {name: GOOD[name] for name in kind.__struct_fields__}
    assert parse_struct(kind, good) == kind(**good) or "phrases" in good
    for name in good:
        with pytest.raises(ParameterError) as refused:
            parse_struct(kind, {**good, name: wrong})
        assert refused.value.parameter == name
        assert refused.value.message.startswith(f"{name} must be ")


class PickyDesk:
    """An alert service without alerts that refuses webhooks to this machine."""

    def list_alerts(self) -> list[AlertLine]:
        """Return none."""
        return []

    def list_messages(self, _most: int) -> list[SentMessage]:
        """Return none."""
        return []

    def check_webhook(self, webhook: str) -> str:
        """Check the host."""
        return "127.0.0.1 is a private address" if "127.0.0.1" in webhook else ""

    def send_test(self, name: str) -> SentMessage:
        """Fail, because there is none to send to."""
        raise UsageError(name)


def test_a_watch_is_ordered_and_its_webhook_must_be_allowed() -> None:
    """What console and command line refuse is refused here, too, and a key can't name a reader of private pages."""
    operator = SmallOperator()
    parts = ConsoleServices(operator, SmallWatch(), SmallDesk(), alerts=PickyDesk())
    with served(OPEN, lambda: KEYS, console=parts) as (ask, _):
        watch = {"order": "add_watch", "name": "all", "place": "*"}
        assert post(ask, {**watch, "webhook": "https://example.org/hook"}).status == 200
        assert post(ask, {**watch, "webhook": "http://127.0.0.1/hook"}).status == 409
        assert post(ask, {**watch, "reader": "ann"}).status == 400
        assert post(ask, {"order": "add_watch", "name": "x"}).status == 400
        assert post(ask, {"order": "remove_watch", "name": "all"}).status == 200
    added, removed = operator.orders
    assert isinstance(added, AddAlert)
    assert (added.watch.name, added.watch.place, added.watch.webhook) == ("all", "*", "https://example.org/hook")
    assert removed == RemoveAlert("all")
