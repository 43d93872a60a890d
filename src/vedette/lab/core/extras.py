"""Optional libraries of the lab (scipy, pyarrow), imported only when needed."""

from importlib import import_module
from typing import Any

from vedette.errors import UsageError


def import_extra(purpose: str, *names: str) -> tuple[Any, ...]:
    """Import optional modules (scipy, pyarrow) of the extra ``lab``, which have no types to check against.

    They are imported late, since listing experiments does not need them.
    """
    try:
        return tuple(import_module(name) for name in names)
    except ImportError as error:
        library = names[0].partition(".")[0]
        raise UsageError(f'{purpose} {library}, which is not installed: run pip install "vedette[lab]"') from error
