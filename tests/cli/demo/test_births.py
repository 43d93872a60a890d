"""``vedette demo --births``: its errors and its report."""

import json
from math import inf

import pytest

from vedette.cli.demo.births import BirthsReport, StrategyResult, format_text, to_dict
from vedette.cli.main import main
from vedette.errors import UsageError
from vedette.lab.judge.alert_delays import AlertDelays


def run() -> BirthsReport:
    """Return one strategy that reported nearly everything, and one that reported little."""
    quick = AlertDelays(100, 98, 300.0, 600.0, 1200.0, 540.0, 660.0)
    poor = AlertDelays(100, 20, inf, inf, inf, 7200.0, inf)
    ways = [StrategyResult("default", quick, quick, 500), StrategyResult("sitemaps", poor, quick, 480)]
    return BirthsReport("vedette demo --births", "made:births:1:calm", 1, 200.0, 500, 400, ways)


def test_the_table_has_minutes_or_never() -> None:
    """There is a row for each strategy; infinity is a word there, and null in JSON."""
    text = format_text(run())
    (row,) = [line.split() for line in text.splitlines() if line.startswith("default")]
    assert row[-1] == "500"
    assert "98 of 100" in text
    assert "9 to 11" in text
    assert "never" in text
    answer = json.loads(json.dumps(to_dict(run()), allow_nan=False))
    assert answer["ways"]["sitemaps"]["told"]["median_s"] is None
    assert answer["ways"]["default"]["told"]["share"] == pytest.approx(0.98)


@pytest.mark.parametrize("more", [["--report"], ["--for", "1min"], ["--world", "made:tiny"]])
def test_options_that_births_excludes_are_refused(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No option is silently ignored."""
    assert main(["demo", "--births", *more]) == UsageError.exit_code
    assert f"{more[0]} does not work with" in capsys.readouterr().err
