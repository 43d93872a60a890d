"""Optional libraries of the lab (scipy, pyarrow), imported when they are needed."""

from importlib import import_module
from typing import Any

from vedette.errors import UsageError


def import_extra(purpose: str, *names: str) -> tuple[Any, ...]:
    """Return modules of a library of the extra ``lab``; it has no types to check against.

    They are imported late: listing experiments does not need them.
    """
    try:
        return tuple(import_module(name) for name in names)
    except ImportError as error:
        library = names[0].partition(".")[0]
        raise UsageError(f'{purpose} {library}, which is not here: pip install "vedette[lab]"') from error
