"""Registry of the lab's experiments and policies by name, and of plug-ins (``package.module:Name``).

``default`` is the policy that runs live. A plug-in policy has to pass the conformance checks before it runs.
"""

import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from types import ModuleType
from typing import Any, cast

from vedette.errors import UsageError
from vedette.lab import baselines
from vedette.lab import experiments as folder
from vedette.lab.core.conformance import STAGES, find_shapes, find_violation
from vedette.lab.core.experiment import METRICS, Experiment, Metric
from vedette.suggest import did_you_mean

DEFAULT = "default"
BOUND_PREFIX = "bound-"
# The package of a stage, if its name differs.
CAPABILITIES: Mapping[str, str] = {"order": "frontier", "ads": "serve.ads"}
# The policies that run live today, by stage.
LIVE_POLICIES: Mapping[str, str] = {"order": "breadth", "refresh": "expected-gain", "discover": "accrual"}
_EXPERIMENT_ATTRIBUTES = (
    *("name", "about", "worlds", "metrics", "own", "policies", "of_texts", "figures", "budgets"),
    "run",
)


@cache
def list_experiments() -> Mapping[str, Experiment]:
    """List the experiments of the lab by name: each module of the folder that has an ``EXPERIMENT``."""
    names = sorted(found.name for found in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."))
    modules = [importlib.import_module(name) for name in names]
    found = [cast("Experiment", module.EXPERIMENT) for module in modules if hasattr(module, "EXPERIMENT")]
    return {each.name: each for each in found}


def find_experiment(name: str) -> Experiment:
    """Find an experiment of the lab by its name, or a plug-in by ``package.module:Name``."""
    if not is_plugin(name):
        if name not in list_experiments():
            raise UsageError(f'there is no experiment "{name}"; {suggest_name(name, list_experiments())}')
        return list_experiments()[name]
    found = _import_object(name)
    if missing := [each for each in _EXPERIMENT_ATTRIBUTES if not hasattr(found, each)]:
        raise UsageError(f"{name} is not an experiment: it has no {missing[0]}; see vedette.lab.core.experiment")
    return cast("Experiment", found)


@cache
def load_policies(stage: str) -> Mapping[str, Any]:
    """Load the policies of a stage by name: those that may run live, and published baselines that only the lab runs."""
    modules = [module for name in policy_packages(stage) for module in _modules(name)]
    modules.sort(key=lambda module: module.__name__.rpartition(".")[2])
    kinds = [kind for module in modules for kind in vars(module).values() if _is_policy(kind, module.__name__)]
    return {policy.name: policy for policy in (kind() for kind in kinds)}


def policy_packages(stage: str) -> tuple[str, ...]:
    """Return the packages that hold the policies of a stage, those that run live first."""
    capability = CAPABILITIES.get(stage, stage)
    return f"vedette.{capability}.policies", f"{baselines.__name__}.{stage}"


def _modules(name: str) -> list[ModuleType]:
    try:
        package = importlib.import_module(name)
    except ModuleNotFoundError:
        return []
    return [importlib.import_module(each.name) for each in pkgutil.iter_modules(package.__path__, f"{name}.")]


def _is_policy(kind: object, module: str) -> bool:
    return inspect.isclass(kind) and kind.__module__ == module and bool(find_shapes(kind))


def find_policy(stage: str, name: str) -> Any:  # noqa: ANN401 - each stage has its own shape
    """Find a policy of a stage by its name, by ``default``, or a plug-in by ``package.module:Name``."""
    if is_plugin(name):
        policy = _load_policy(name)
        if (meant := STAGES[find_shapes(policy)[0]]) != stage:
            raise UsageError(f"{name} is a policy for the {meant} stage, but a policy for {stage} is needed here")
        return policy
    wanted = LIVE_POLICIES.get(stage, name) if name == DEFAULT else name
    policies = load_policies(stage)
    if wanted not in policies:
        raise UsageError(f'there is no {stage} policy "{name}"; {suggest_name(name, policies)}')
    return policies[wanted]


def check_policy(experiment: Experiment, name: str) -> None:
    """Raise an error for a policy that an experiment cannot run, listing the policies that it can."""
    if is_plugin(name):
        _load_policy(name)
    elif name not in experiment.policies:
        raise UsageError(f'"{experiment.name}" has no policy "{name}"; {suggest_name(name, experiment.policies)}')


def find_metric(experiment: Experiment, name: str) -> Metric:
    """Find the description of a metric of an experiment."""
    return experiment.own.get(name) or METRICS.get(name) or Metric(name)


def is_plugin(name: str) -> bool:
    """Check whether a policy or experiment name is that of a plug-in: ``package.module:Name``."""
    return ":" in name


@cache
def _load_policy(name: str) -> Any:  # noqa: ANN401 - see policy_named
    kind = _import_object(name)
    try:
        policy = kind() if inspect.isclass(kind) else kind
    except Exception as error:
        raise UsageError(f"{name} cannot be created without arguments: {error}") from error
    if complaint := find_violation(policy):
        raise UsageError(f"{name} fails the policy checks: {complaint}; see vedette.policy for the rules")
    return policy


@cache
def _import_object(place: str) -> Any:  # noqa: ANN401 - anything may be there
    module, _, name = place.partition(":")
    if os.getcwd() not in sys.path:  # noqa: PTH109 - sys.path holds texts
        # An installed program does not search the current folder, where plug-ins are written.
        sys.path.append(os.getcwd())  # noqa: PTH109 - as above
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise UsageError(f'"{place}": there is no module {error.name}; use package.module:Name') from error
    except (AttributeError, ValueError) as error:
        raise UsageError(f'"{place}": there is no "{name}" in {module}; use package.module:Name') from error
    except Exception as error:
        raise UsageError(
            f'"{place}" cannot be loaded ({type(error).__name__}: {error}); use package.module:Name'
        ) from error


def suggest_name(word: str, choices: Iterable[str]) -> str:
    """Return a hint for an unknown policy or experiment name: the nearest, and all known names.

    >>> suggest_name("radnom", ["random", "round-robin"])
    'did you mean random? Available: random, round-robin'
    """
    names = list(choices)
    meant = did_you_mean(word, names, "")
    return f"{meant} Available: {', '.join(names)}".lstrip() if names else "none are available"
