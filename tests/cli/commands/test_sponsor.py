"""Campaigns, ads and reports as people type them, on a folder without a running process."""

import csv
import io
import json
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.data_folders import write_sample
from tests.runtime.ads.ads_folder import sponsor

from vedette.cli.main import main
from vedette.web.public.visits import Visitor

Run = Callable[..., tuple[int, str]]
AD = ("--title", "Red shoes", "--text", "=1+1", "--bid", "0.40", "--broad", "red shoes", "--not", "free")
PUBLIC = ("--url", "https://93.184.216.34/shoes")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command on a folder that has a crawl; return exit code and output."""
    write_sample(tmp_path / "data")

    def typed(*words: str) -> tuple[int, str]:
        message = io.StringIO()
        with redirect_stdout(message), redirect_stderr(message):
            code = main([*words, "--data", str(tmp_path / "data")])
        return code, message.getvalue()

    return typed


def test_from_an_advertiser_to_a_report(run: Run, tmp_path: Path) -> None:
    """An ad is submitted, approved, shown, clicked and reported; after an edit it waits for approval again."""
    for words in (
        ("advertiser", "bob"),
        ("campaign", "fall", "--advertiser", "bob", "--budget", "5"),
        ("add", "fall", *AD, *PUBLIC),
    ):
        assert run("sponsor", *words)[0] == 0
    assert "waits to be approved" in run("sponsor", "list")[1]
    assert run("sponsor", "approve", "2")[0] == 0
    clock = [time.time()]
    here = sponsor(tmp_path / "data", lambda: clock[0])
    (shown,) = here.choose_ads("cheap red shoes", Visitor("198.51.100.7", "Browser"))
    clock[0] += 5
    assert here.charge_click(shown.impression, Visitor("198.51.100.7", "Browser")).refusal == ""
    answer = json.loads(run("sponsor", "list", "--json")[1])
    (ad,) = [each for each in answer["ads"] if each["ad"] == 2]
    assert (ad["bid"], ad["phrases"], ad["negatives"]) == ("0.40", [{"way": "broad", "phrase": "red shoes"}], ["free"])
    assert run("sponsor", "add", "fall", "--edit", "2", *AD, *PUBLIC)[0] == 0
    assert "2  Red shoes  bid 0.40  waits to be approved" in run("sponsor", "list")[1]
    assert "fall: 1 shown, 1 clicked (100.0%" in run("sponsor", "report", "--advertiser", "bob")[1]
    assert run("sponsor", "pause", "fall")[0] == 0
    assert run("sponsor", "campaign", "fall", "--advertiser", "bob", "--budget", "6")[0] == 0
    assert "of 6.00 spent today, paused" in run("sponsor", "list")[1]
    assert run("sponsor", "resume", "fall")[0] == 0
    assert run("sponsor", "revoke", "2")[0] == 0


def test_a_report_as_csv(run: Run, tmp_path: Path) -> None:
    """It has a row per day, ad and phrase without formulas; other advertisers see none of it."""
    run("sponsor", "advertiser", "bob")
    run("sponsor", "campaign", "fall", "--advertiser", "bob", "--budget", "5")
    run("sponsor", "add", "fall", "--title", "=HYPERLINK(1)", *AD[2:], *PUBLIC)
    run("sponsor", "approve", "2")
    assert sponsor(tmp_path / "data", time.time).choose_ads("red shoes", Visitor("198.51.100.7", "Browser"))
    (row,) = csv.DictReader(io.StringIO(run("sponsor", "report", "--csv")[1]))
    assert (row["Campaign"], row["Impressions"], row["Spend"]) == ("fall", "1", "0.00")
    assert not row["Title"].startswith("=")
    assert list(csv.DictReader(io.StringIO(run("sponsor", "report", "--csv", "--advertiser", "ann")[1]))) == []
    assert "1 shown" in run("sponsor", "report")[1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "choose advertiser"),
        (("campaign", "x", "--advertiser", "nobody", "--budget", "5"), "no advertiser"),
        (("campaign", "x", "--advertiser", "ann", "--budget", "much"), "a budget must be between"),
        (("add", "spring", *AD, "--url", "http://127.0.0.1/"), "private address"),
        (("add", "spring", *AD, "--url", "https://a.invalid/"), "name does not exist"),
        (("add", "spring", "--title", "<b>", *AD[2:], *PUBLIC), "plain text"),
        (("add", "spring", *AD[:6], *PUBLIC), "at least one phrase"),
        (("approve", "99"), "no ad 99"),
        (("approve", "1"), "is already approved"),
        (("pause", "sprin"), 'did you mean "spring"?'),
        (("advertiser", "bob", "--key", "nobody"), "no key"),
    ],
)
def test_errors_are_reported_in_one_line(run: Run, words: tuple[str, ...], why: str) -> None:
    """The error is one line, with exit code 2."""
    code, message = _typed(run, words)
    assert (code, why in message) == (2, True), message


def _typed(run: Run, words: tuple[str, ...]) -> tuple[int, str]:
    if words:
        return run("sponsor", *words)
    message = io.StringIO()
    with redirect_stderr(message):
        return main(["sponsor"]), message.getvalue()


def test_why_an_ad_is_not_shown(run: Run) -> None:
    """This includes a phrase with its own bid, and the reasons why an ad is not shown, as text and as JSON."""
    run("sponsor", "advertiser", "bob")
    run("sponsor", "campaign", "fall", "--advertiser", "bob", "--budget", "5")
    assert run("sponsor", "add", "fall", *AD, "--exact", "blue hats=0.04", *PUBLIC)[0] == 0
    assert "Not shown. It is not running: waits to be approved." in run("sponsor", "why", "2", "red shoes")[1]
    run("sponsor", "approve", "2")
    assert "exact blue hats = 0.04" in run("sponsor", "list")[1]
    assert "Shown. It is shown in position 1" in run("sponsor", "why", "2", "red shoes")[1]
    assert "contains the negative phrase" in run("sponsor", "why", "2", "free red shoes")[1]
    answer = json.loads(run("sponsor", "why", "2", "blue hats", "--json")[1])
    assert (answer["shown"], "0.04 is below 0.05" in answer["reason"]) == (False, True)
    code, message = run("sponsor", "why", "9", "red shoes")
    assert (code, "there is no ad 9" in message) == (2, True)


def test_a_budget_over_all_campaigns_stays_where_it_is_not_named(run: Run) -> None:
    """Changing the key keeps the budget; an empty budget removes it."""
    assert run("sponsor", "advertiser", "bob", "--budget", "0.01")[0] == 0
    run("keys", "create", "bobs")
    assert run("sponsor", "advertiser", "bob", "--key", "bobs")[0] == 0
    run("sponsor", "campaign", "fall", "--advertiser", "bob", "--budget", "5")
    run("sponsor", "add", "fall", *AD, *PUBLIC)
    run("sponsor", "approve", "2")
    assert "advertiser's budget for today across all campaigns is spent" in run("sponsor", "why", "2", "red shoes")[1]
    assert run("sponsor", "advertiser", "bob", "--budget", "")[0] == 0
    assert "It is shown in position 1" in run("sponsor", "why", "2", "red shoes")[1]
