"""Experiments and policies are found by name; external ones are checked before they run."""

from pathlib import Path

import pytest
from tests.lab.lab_modules import EXPERIMENT, POLICIES, written

from vedette.errors import UsageError
from vedette.lab.core.experiment import METRICS
from vedette.lab.core.registry import check_policy, find_experiment, find_policy, list_experiments, load_policies


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a module of policies outside the package; each test has its own."""
    name = f"policies_{abs(hash(tmp_path))}"
    written(tmp_path, name, POLICIES)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("name", list_experiments())
def test_every_experiment_says_what_its_numbers_mean(name: str) -> None:
    """It has a question, worlds, policies and budgets, and each of its metrics is described."""
    found = find_experiment(name)
    assert found.name == name
    assert found.about
    assert found.worlds
    assert all(budget > 0 for budget in found.budgets)
    assert [metric for metric in found.metrics if metric not in METRICS and metric not in found.own] == []
    for policy in found.policies:
        check_policy(found, policy)


def test_policies_are_found_by_their_published_names() -> None:
    """A stage's policies are those in its folder, and ``default`` is the one used live."""
    assert {"nutch", "fixed"} <= set(load_policies("refresh"))
    assert find_policy("refresh", "default") is find_policy("refresh", "expected-gain")
    assert load_policies("facts") == {}


def test_a_misspelt_name_gets_the_nearest() -> None:
    """A typo gets a suggestion, and all known names."""
    with pytest.raises(UsageError, match=r"did you mean nutch\?.*fixed"):
        find_policy("refresh", "nutsch")
    with pytest.raises(UsageError, match="there is no experiment"):
        find_experiment("disocver")


def test_a_policy_from_elsewhere_that_keeps_the_rules_is_run(elsewhere: str) -> None:
    """It is created without arguments, and can be called like any of ours."""
    assert find_policy("refresh", f"{elsewhere}:Hourly").name == "hourly"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Short", "numbers for"),
        ("NotANumber", "nan"),
        ("Meddler", "changes the batch"),
        ("Moody", "decides differently"),
        ("Hoarder", "changes the state"),
        ("Breaks", "fails on a batch"),
        ("Silent", "reason"),
        ("Undecided", "exactly one of"),
        ("Nameless", "has no name"),
        ("Demanding", "without arguments"),
        ("Nobody", "there is no"),
    ],
)
def test_a_policy_from_elsewhere_that_breaks_a_rule_is_refused_with_words(elsewhere: str, name: str, text: str) -> None:
    """Each rule has its own error, so that authors know what to fix."""
    with pytest.raises(UsageError, match=text):
        find_policy("refresh", f"{elsewhere}:{name}")


def test_a_policy_of_another_stage_is_refused(elsewhere: str) -> None:
    """A policy for when to fetch again cannot decide what to fetch first."""
    with pytest.raises(UsageError, match="refresh"):
        find_policy("order", f"{elsewhere}:Hourly")


@pytest.mark.parametrize("place", ["no_such_module:Policy", "json:Nothing", ":", "a:", "..:x"])
def test_a_place_where_nothing_is_gets_words(place: str) -> None:
    """The error is one line without a traceback, in any notation."""
    with pytest.raises(UsageError, match=r"package\.module:Name"):
        find_experiment(place)


def test_an_experiment_from_elsewhere_is_run_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``module:OBJECT`` names one outside the package; an object that isn't an experiment is refused."""
    written(tmp_path, "tiny_elsewhere", EXPERIMENT)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_experiment("tiny_elsewhere:EXPERIMENT").name == "tiny"
    with pytest.raises(UsageError, match="is not an experiment"):
        find_experiment("tiny_elsewhere:Path")
