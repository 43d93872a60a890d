"""Estimates for another order, compared with trying it: from a log to rows of the experiment."""

import math
from pathlib import Path

import numpy as np
import pytest

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell
from vedette.lab.experiments.off_policy import EXPERIMENT
from vedette.lab.worlds.catalog import get_label
from vedette.policy import rng_for

PLACES = 10


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return searches of six queries, whose fifth result everyone likes and few see."""
    rng, lines = rng_for(1, "test/off-policy-run"), []
    for search in range(1500):
        query = int(rng.integers(6))
        results = [f"{query}{place}" for place in range(PLACES)]
        lines.append("\t".join([f"s{search}", "0", "Q", f"q{query}", "", *results]))
        clicked = rng.random(PLACES) < np.where(np.arange(PLACES) == 4, 0.9, 0.15) / (1 + np.arange(PLACES))
        lines += ["\t".join([f"s{search}", "9", "C", results[place]]) for place in np.flatnonzero(clicked)]
    path = tmp_path_factory.mktemp("clicks") / "small.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def row(log: Path, policy: str, searches: float, model: str = "dbn") -> dict[str, float]:
    """Return the result of one cell."""
    return dict(EXPERIMENT.run(Cell("off-policy", f"clicks:{log}+{model}", policy, searches, 3))[0])


@pytest.mark.parametrize("policy", EXPERIMENT.policies)
@pytest.mark.parametrize("model", ["dbn", "position", "cascade"])
def test_with_enough_searches_the_truth_is_near(log: Path, policy: str, model: str) -> None:
    """This is true for any visitors; the model of the doubly robust estimator need not match theirs."""
    found = row(log, policy, 30_000, model)
    assert found["enough"] == 1.0
    assert found["error"] < 0.05
    assert found["effective"] < 30_000


@pytest.mark.parametrize("policy", EXPERIMENT.policies)
def test_with_few_searches_nothing_is_claimed(log: Path, policy: str) -> None:
    """In this case, there is no number that could be mistaken for an estimate."""
    found = row(log, policy, 100)
    assert found["enough"] == 0.0
    assert math.isnan(found["estimate"])
    assert math.isnan(found["held"])


def test_worlds_are_known_by_file_and_model(log: Path) -> None:
    """Rows contain the visitor model, but not the path of the file."""
    assert get_label(f"clicks:{log}") == "clicks:small.tsv+dbn"
    assert get_label(f"clicks:{log}+position") == "clicks:small.tsv+position"


@pytest.mark.parametrize("name", ["{log}+dnb", "nowhere.tsv", "{log}.gz"])
def test_wrong_names_are_told(log: Path, name: str) -> None:
    """The error is one line that says what to write."""
    with pytest.raises(UsageError, match="clicks:"):
        get_label("clicks:" + name.format(log=log))


def test_an_unknown_estimate_is_told(log: Path) -> None:
    """The error lists the known ones."""
    with pytest.raises(UsageError, match="ips, snips, dr"):
        row(log, "guess", 300)
