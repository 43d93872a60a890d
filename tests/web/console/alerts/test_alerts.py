"""The console's Watches page: watches are added, removed and tested with forms; messages and errors are shown."""

from tests.web.small_operator import Console, SmallDesk, SmallOperator, SmallWatch, signed_in
from tests.web.small_search import NOW_S, SmallSearch

from vedette.adapters.alerts.alert_store import Delivery
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.config import Rate, Serve
from vedette.errors import UsageError
from vedette.web.app import create_app
from vedette.web.commands.commands import AddAlert, RemoveAlert
from vedette.web.console.ports.alerts import AlertLine, SentMessage
from vedette.web.console.routes import ConsoleServices
from vedette.web.rendering import Branding

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"
HARBOUR = AlertRow("harbour", "ab12", "news.example.org", "harbour OR port", "https://hooks.example.org/n", "", NOW_S)


class SmallWatches:
    """Alerts in memory; hosts that start with "10." are private."""

    def __init__(self, *watches: AlertRow, messages: tuple[SentMessage, ...] = ()) -> None:
        self.kept = [AlertLine(watch, 3, "whsec_00ff") for watch in watches]
        self.sent = list(messages)
        self.tested: list[str] = []

    def list_alerts(self) -> list[AlertLine]:
        """Return all alerts."""
        return self.kept

    def list_messages(self, most: int) -> list[SentMessage]:
        """Return the latest."""
        return self.sent[:most]

    def check_webhook(self, webhook: str) -> str:
        """Reject private hosts."""
        return "10.0.0.1 is a private address, which is not allowed" if "//10." in webhook else ""

    def send_test(self, name: str) -> SentMessage:
        """Record the test."""
        if name not in [kept.watch.name for kept in self.kept]:
            raise UsageError(f'there is no watch "{name}"')
        self.tested.append(name)
        return SentMessage(name, Delivery("t", "ab12", 0, 0, NOW_S, None, 1, 204, "", NOW_S))


def console_with(watches: SmallWatches) -> Console:
    """Return a console with these alerts and a signed-in operator."""
    console = Console()
    console.operator = SmallOperator()
    parts = ConsoleServices(console.operator, SmallWatch(), SmallDesk(), lambda: console.wall_s, alerts=watches)
    console.app = create_app(SmallSearch(), Serve(rate=Rate(0, 1.0)), Branding(), clock=lambda: 0.0, console=parts)
    console.client = console.another()
    assert console.sign_in().status_code == 303
    return console


def test_a_watch_is_made_by_a_form() -> None:
    """The command is as intended, and can be undone."""
    console = console_with(SmallWatches())
    assert "No watches yet" in console.client.get("/console/watches").text
    form = {"name": "Harbour", "place": "https://News.example.org/", "query": " harbour ", "webhook": "", "reader": ""}
    answer = console.post("/console/watches/add", **form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/watches?done=1")
    (order,) = console.operator.orders
    assert isinstance(order, AddAlert)
    assert order.watch[2:4] == ("news.example.org", "harbour")
    assert "Undo" in console.client.get("/console/watches?done=1").text


def test_errors_are_next_to_their_fields() -> None:
    """All errors are shown at once, the input stays, and no command is sent."""
    console = console_with(SmallWatches())
    wrong = {"name": "no spaces", "place": "", "query": "()", "webhook": "ftp://x/", "reader": ""}
    answer = console.post("/console/watches/add", **wrong)
    assert answer.status_code == 422
    for field in ("name", "query", "webhook"):
        assert f'id="{field}-wrong"' in answer.text
    assert 'value="no spaces"' in answer.text
    for form, field in (
        ({"name": "a"}, "place"),
        ({"name": "a", "place": "*", "reader": "ann"}, "reader"),
        ({"name": "a", "place": "*", "webhook": "http://10.0.0.1/"}, "webhook"),
        ({"name": "a", "place": "*", "webhook": "https://user:word@hooks.example.org/"}, "webhook"),
        ({"name": "a" * 3000, "place": "*"}, "name"),
        ({"name": "a", "place": "x" * 3000}, "place"),
    ):
        answer = console.post("/console/watches/add", **form)
        assert (answer.status_code, f'id="{field}-wrong"' in answer.text) == (422, True)
    assert console.operator.orders == []


def test_a_refused_command_is_reported() -> None:
    """The message is the operator's."""
    console = console_with(SmallWatches())
    console.operator.refusal = UsageError("there is such a watch already")
    answer = console.post("/console/watches/add", name="a", place="*")
    assert answer.status_code == 422
    assert "There is such a watch already." in answer.text


def test_a_watch_is_removed_and_tested() -> None:
    """Testing a missing watch is refused."""
    watches = SmallWatches(HARBOUR)
    console = console_with(watches)
    assert console.post("/console/watches/test", name="harbour").headers["location"] == "/console/watches#messages"
    assert watches.tested == ["harbour"]
    assert console.post("/console/watches/test", name="nobody").status_code == 422
    console.post("/console/watches/remove", name="harbour")
    assert console.operator.orders == [RemoveAlert("harbour")]


def test_messages_and_their_troubles_are_seen() -> None:
    """It shows what is waiting, what failed and why; hostile text is escaped. The CSV file has the same."""
    base = Delivery("ab12-7", "ab12", 7, 7, NOW_S, None, 10, 500, f"{HOSTILE}; given up after 10 tries", NOW_S)
    messages = (
        SentMessage("harbour", base),
        SentMessage("harbour", base._replace(id="ab12-8", next_s=NOW_S + 60, tries=2, error="too slow")),
        SentMessage("", base._replace(id="ab12-9", error="", tries=1, status=204)),
    )
    console = console_with(SmallWatches(HARBOUR._replace(query=HOSTILE), messages=messages))
    shown = console.client.get("/console/watches").text
    assert "<script>alert" not in shown
    for words in ("given up after 10 tries", "retrying", "delivered", "<strong>1</strong> undelivered message"):
        assert words in shown
    assert "whsec_00ff" in shown
    assert "ab12-8" in console.client.get("/console/watches?csv=sent").text
    assert "harbour" in console.client.get("/console/watches?csv=1").text


def test_others_have_no_access() -> None:
    """Neither the page nor its forms are accessible."""
    console = signed_in()
    stranger = console.another("192.0.2.9")
    assert stranger.get("/console/watches").status_code == 303
    assert stranger.post("/console/watches/add", data={"name": "a"}).status_code in {303, 403}
