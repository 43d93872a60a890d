"""Alerts and new pages as people type them, on a folder without a running process."""

import json
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from tests.data_folders import NOW_S, write_sample

from vedette.adapters.alerts.alert_store import AlertItem, AlertStore, MatchedItem, NewPage
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.cli.main import main

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command on a folder that has a crawl; return exit code and output."""
    folder = tmp_path / "data"
    write_sample(folder)
    config = tmp_path / "vedette.toml"
    config.write_text('[serve]\nwebhook_networks = ["127.0.0.1"]\n')

    def typed(*words: str) -> tuple[int, str]:
        text = StringIO()
        with redirect_stdout(text), redirect_stderr(text):
            code = main([*words, "--data", str(folder), "--config", str(config)])
        return code, text.getvalue()

    return typed


def watches(folder: Path) -> list[AlertRow]:
    """Return the alerts in the state."""
    with read_state(folder) as db:
        return CrawlStore(db).list_alerts()


def add_new_pages(folder: Path, *titles: str) -> None:
    """Add pages that are new."""
    with closing(AlertStore(folder)) as book:
        for number, title in enumerate(titles, 1):
            url = f"https://www.example.org/{number}"
            item = AlertItem(0, number, url, title, "", NOW_S, "feed", "", None, NOW_S + 2)
            book.add_new_pages([NewPage(number, number, NOW_S, "feed", "", NOW_S)], (), (), NOW_S)
            book.publish([MatchedItem(number, item)], (), NOW_S)


def test_a_watch_is_added_listed_and_removed(run: Run) -> None:
    """Its secret is shown; duplicate and unknown names are refused with what to do."""
    code, text = run("watch", "add", "all", "--site", "*", "--webhook", "http://127.0.0.1:9/hook")
    assert code == 0
    assert "whsec_" in text
    assert "/new.atom?watch=all" in text
    assert run("watch", "add", "all", "--site", "*")[0] == 2
    code, text = run("watch", "list", "--json")
    (row,) = [row for row in json.loads(text)["watches"] if row["name"] == "all"]
    assert (row["site"], row["webhook"], row["items"]) == ("*", "http://127.0.0.1:9/hook", 0)
    assert "nothing sent yet" in run("watch", "list")[1]
    code, text = run("watch", "remove", "al")
    assert (code, 'did you mean "all"?' in text) == (2, True)
    assert run("watch", "remove", "all")[0] == 0


def test_a_test_message_reports_its_outcome(run: Run) -> None:
    """If nothing is listening there, the exit code says so, and so does the list afterwards."""
    run("watch", "add", "all", "--site", "*", "--webhook", "http://127.0.0.1:9/hook")
    code, text = run("watch", "test", "all")
    assert (code, "no connection" in text) == (1, True)
    assert "no connection" in run("watch", "list")[1]
    run("watch", "add", "feed", "--query", "harbour")
    assert run("watch", "test", "feed")[0] == 2


def test_an_undelivered_message_is_shown_with_the_number_that_wait(run: Run, tmp_path: Path) -> None:
    """It shows attempts, the error, and how many wait; the last message, which was not tried, shows nothing."""
    run("watch", "add", "all", "--site", "*", "--webhook", "http://127.0.0.1:9/hook")
    with closing(AlertStore(tmp_path / "data")) as book:
        (mark,) = [row.alert_id for row in watches(tmp_path / "data") if row.name == "all"]
        for number in (1, 2, 3):
            item = AlertItem(0, number, f"https://www.example.org/{number}", "x", "", NOW_S, "feed", "", None, NOW_S)
            book.add_new_pages([NewPage(number, number, NOW_S, "feed", "", NOW_S)], (), (), NOW_S)
            book.publish([MatchedItem(number, item, (mark,), (mark,))], (), NOW_S)
        (first,) = book.list_due(NOW_S + 1, [], 5)
        book.record_attempt(first.id, 503, "status 503", NOW_S + 1, NOW_S + 31)
    text = run("watch", "list")[1]
    assert "tried 1 time: status 503" in text
    assert "2 messages queued behind it" in text
    (row,) = [row for row in json.loads(run("watch", "list", "--json")[1])["watches"] if row["name"] == "all"]
    assert row["last_message"] == {"error": "status 503", "tries": 1, "behind": 2}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("watch",), "choose add, list, remove or test"),
        (("watch", "add", "x"), "specify what to watch"),
        (("watch", "add", "a b", "--site", "*"), "a watch name can have"),
        (("watch", "add", "x", "--site", "*", "--webhook", "http://10.0.0.1/"), "serve.webhook_networks"),
        (("watch", "add", "x", "--site", "*", "--webhook", "http://a.invalid/"), "name does not exist"),
        (("watch", "add", "x", "--site", "*", "--reader", "ann"), "only a webhook"),
        (("new", "--since", "x"), "expected the number"),
        (("new", "--watch", "nobody"), 'no watch "nobody"'),
        (("new", "-n", "0"), "from 1 to"),
    ],
)
def test_invalid_alerts_are_refused_in_one_line(run: Run, words: tuple[str, ...], why: str) -> None:
    """The error says what to write instead."""
    if words == ("watch",):
        text = StringIO()
        with redirect_stderr(text):
            assert main(words) == 2
        assert why in text.getvalue()
        return
    code, said_ = run(*words)
    assert (code, why in said_, len(said_.splitlines())) == (2, True, 1)


def test_new_pages_are_shown_once(run: Run, tmp_path: Path) -> None:
    """Without a cursor, the latest are shown; with one, those after it; a terminal only gets text."""
    assert "No new pages yet" in run("new")[1]
    add_new_pages(tmp_path / "data", "First", "Second \x1b[31m")
    code, text = run("new")
    assert code == 0
    assert "First" in text
    assert "\x1b" not in text
    answer = json.loads(run("new", "--json", "--since", "1")[1])
    assert [item["title"] for item in answer["items"]] == ["Second \x1b[31m"]
    assert json.loads(run("new", "--json", "--since", answer["cursor"])[1])["items"] == []
