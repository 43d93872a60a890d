"""Plan of a lab run: check experiments, worlds, policies, budgets and seeds, and list the resulting cells."""

import math
import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import product
from typing import NamedTuple

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Experiment, Span
from vedette.lab.core.registry import check_policy, find_experiment
from vedette.lab.worlds.catalog import WorldMissing, list_worlds, register_world

MAX_SEEDS = 100_000
_NUMBER = re.compile(r"\d{1,12}")


class RunRequest(NamedTuple):
    """A lab run as requested on the command line; empty fields are left to the experiment."""

    experiments: Sequence[str]
    worlds: Sequence[str]
    policies: Sequence[str] = ()
    budgets: Sequence[float] = ()
    seeds: int = 10
    span: Span = Span()
    charge: str = ""


class RunPlan(NamedTuple):
    """Plan of a lab run: its cells in order, its command, and the worlds that were skipped."""

    cells: tuple[Cell, ...]
    command: str
    skipped: tuple[str, ...]

    @property
    def worlds(self) -> list[str]:
        """Return the labels of the worlds that the run plan needs, each once."""
        return list(dict.fromkeys(cell.world for cell in self.cells))

    @property
    def experiments(self) -> list[str]:
        """Return the experiments of the run plan, each once."""
        return list(dict.fromkeys(cell.experiment for cell in self.cells))

    @property
    def policies(self) -> list[str]:
        """Return the policies of the run plan, each once."""
        return list(dict.fromkeys(cell.policy for cell in self.cells))


def build_plan(wanted: RunRequest) -> RunPlan:
    """Build the plan of a lab run, worlds outermost since a process keeps its world; reject unknown names."""
    found = [(name, find_experiment(name)) for name in wanted.experiments]
    if not wanted.worlds:
        wanted = wanted._replace(worlds=_default_worlds(found))
    if wanted.charge == "live":
        wanted = wanted._replace(worlds=[_charge_live(name) for name in wanted.worlds])
    _check_request(wanted)
    labels, skipped = _resolve_worlds(wanted.worlds, found)
    cells = [
        cell
        for label in labels
        for name, experiment in found
        if label.partition(":")[0] in experiment.worlds
        for cell in _iter_cells(name, experiment, label, wanted)
    ]
    return RunPlan(tuple(cells), _format_command(wanted, labels), tuple(skipped))


def _iter_cells(name: str, experiment: Experiment, label: str, wanted: RunRequest) -> Iterator[Cell]:
    policies = tuple(wanted.policies) or _default_policies(experiment, label)
    for policy in policies:
        check_policy(experiment, policy)
    budgets = tuple(wanted.budgets) or experiment.budgets
    for budget, policy, seed in product(budgets, policies, range(1, wanted.seeds + 1)):
        yield Cell(name, label, policy, float(budget), seed, wanted.span)


def _default_policies(experiment: Experiment, label: str) -> tuple[str, ...]:
    """Return the policies that a plan runs by default in a world: synthetic pages have no texts."""
    left_out = experiment.of_texts if label.startswith("made:") else ()
    return tuple(name for name in experiment.policies if name not in left_out)


def _default_worlds(found: Sequence[tuple[str, Experiment]]) -> tuple[str, ...]:
    """Return the worlds that a plan runs by default: those that its experiments name."""
    return tuple(dict.fromkeys(name for _, experiment in found for name in getattr(experiment, "usual_worlds", ())))


def _charge_live(world: str) -> str:
    """Return a market that is charged like on a server; other worlds have no charges."""
    return f"{world}+live" if world.startswith("market:") else world


def _check_request(wanted: RunRequest) -> None:
    if not wanted.experiments:
        raise UsageError("missing experiment; for a list, run vedette lab list")
    if not wanted.worlds:
        raise UsageError(f"missing --world; available: {', '.join(list_worlds())}")
    if wrong := [budget for budget in wanted.budgets if not (0 < budget < math.inf)]:
        raise UsageError(f"invalid budget {wrong[0]:g}: use comma-separated numbers above 0, such as 10,50,200")
    if not 1 <= wanted.seeds <= MAX_SEEDS:
        raise UsageError(f"--seeds {wanted.seeds}: expected a number from 1 to {MAX_SEEDS}")


def _resolve_worlds(names: Sequence[str], found: Sequence[tuple[str, Experiment]]) -> tuple[list[str], list[str]]:
    """Resolve world names to the labels of existing worlds, with a message for each missing one."""
    labels: list[str] = []
    skipped: list[str] = []
    for name in names:
        try:
            label = register_world(name)
        except WorldMissing as missing:
            skipped.append(str(missing))
            continue
        _check_kind(label, found)
        labels.append(label)
    if not labels:
        raise WorldMissing(skipped[0])
    return list(dict.fromkeys(labels)), skipped


def _check_kind(label: str, found: Sequence[tuple[str, Experiment]]) -> None:
    kinds = list(dict.fromkeys(kind for _, experiment in found for kind in experiment.worlds))
    if label.partition(":")[0] not in kinds:
        names = " and ".join(name for name, _ in found)
        raise UsageError(f"{names} cannot run on {label}: choose a world of kind {', '.join(kinds)}")


def parse_span(begin: str, end: str) -> Span:
    """Parse the time span of a lab run from the command line: two days or two numbers, the end excluded.

    >>> parse_span("2023-01-01", "2023-02-01")
    Span(begin='2023-01-01', end='2023-02-01')
    """
    orders = [_parse_end(text) for text in (begin, end) if text]
    numbers = [bool(_NUMBER.fullmatch(text)) for text in (begin, end) if text]
    if any(numbers) and not all(numbers):
        raise UsageError(f"--from {begin} --to {end}: use either two dates or two numbers")
    if len(orders) == 2 and not orders[0] < orders[1]:
        raise UsageError(f"--from {begin} --to {end}: the range is empty; --to must be later than --from")
    return Span(begin, end)


def _parse_end(text: str) -> int:
    if _NUMBER.fullmatch(text):
        return int(text)
    try:
        return date.fromisoformat(text).toordinal()
    except ValueError as error:
        raise UsageError(f'"{text}" is not a day or a number; use, for example, 2023-01-31 or 100') from error


def _format_command(wanted: RunRequest, labels: Sequence[str]) -> str:
    """Format the command that repeats a lab run, with labels for paths and without missing worlds."""
    words = ["vedette lab run", ",".join(wanted.experiments), "--world", ",".join(labels)]
    words += ["--budget", ",".join(f"{budget:g}" for budget in wanted.budgets)] if wanted.budgets else []
    words += ["--policies", ",".join(wanted.policies)] if wanted.policies else []
    words += ["--seeds", str(wanted.seeds)]
    words += ["--from", wanted.span.begin] if wanted.span.begin else []
    words += ["--to", wanted.span.end] if wanted.span.end else []
    return " ".join(words)
