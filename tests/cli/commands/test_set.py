"""``vedette set``: settings that take precedence over the file, on a folder without a running process."""

import json
from pathlib import Path

import pytest

from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.cli.main import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty data folder."""
    made = tmp_path / "data"
    with lock_folder(made):
        open_state(made, "here", 0.0).close(clean=True)
    return made


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return exit code and output."""
    code = main(["set", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_setting_is_changed_listed_and_reset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It applies until it is reset; without a name, all settings are listed."""
    data = ("--data", str(folder))
    code, out, _ = run(capsys, "refresh.policy", "nutch", *data)
    assert (code, out.startswith("Set refresh.policy to nutch")) == (0, True)
    report = json.loads(run(capsys, "--json", *data)[1])
    assert (report["settings"]["refresh.policy"], report["chosen"]) == ("nutch", ["refresh.policy"])
    assert "set here" in run(capsys, *data)[1]
    assert run(capsys, "refresh.policy", "--as-configured", *data)[0] == 0
    assert json.loads(run(capsys, "--json", *data)[1])["chosen"] == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("refresh.policy", "none"), "expected one of"),
        (("crawl.budget", "lots"), "number of requests"),
        (("store.data", "x"), "without a restart"),
        (("serve.learn", "perhaps"), "true or false"),
        (("crawl.budget",), "missing value"),
        (("crawl.budget", "1/s", "--as-configured"), "missing value"),
        (("crawl.budget", "--as-configured"), "nothing to change"),
    ],
)
def test_invalid_settings_are_refused_with_a_reason(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    """The exit code is that of wrong usage, and nothing has changed."""
    code, _, error = run(capsys, *words, "--data", str(folder))
    assert code == 2
    assert why in error
    assert json.loads(run(capsys, "--json", "--data", str(folder))[1])["chosen"] == []
