"""Cases from the description of the API, created when a test runs.

Schemathesis would create them during collection, in every test process, which takes a third of the collection time.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import BaseSchema, Case
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test

from vedette.web.api.openapi import build_openapi

OPERATIONS = tuple(
    f"{method.upper()} {path}"
    for path, methods in build_openapi("vedette", "", "1")["paths"].items()
    for method in methods
)


@cache
def _load_description() -> BaseSchema:
    return schemathesis.openapi.from_dict(build_openapi("vedette", "", "1"))


def try_cases(operation: str, check: Callable[[Case[Any]], object], max_examples: int) -> None:
    """Call a function with cases of an operation such as ``GET /api/v1/search``, valid and invalid ones."""
    method, path = operation.split()
    description = _load_description()
    phases = [Phase.explicit, Phase.generate]
    limited = settings(max_examples=max_examples, phases=phases, suppress_health_check=list(HealthCheck))

    def check_case(case: Case[Any]) -> None:
        check(case)

    run = build_operation_test(
        config=description.config,
        operation=description[path][method],
        test_func=limited(check_case),
        given_kwargs={},
        feedback=FeedbackSources(),
    )
    run()
