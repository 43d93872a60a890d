"""What a user types: one file per verb. Exit codes: 0 done, 1 failed, 2 wrong usage."""

import os
import sys
from collections.abc import Sequence

# Before numpy is loaded, which reads it. The tree has a process for each job: threads for the products of small
# matrices would only be in the way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from vedette.cli.arguments import parse_arguments
from vedette.errors import VedetteError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; errors are one line that says what to do (``--debug`` shows where they come from)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        options = parse_arguments(arguments)
        code: int = options.run(options)
    except VedetteError as error:
        if "--debug" in arguments:
            raise
        _print_error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has enough; Python would complain once more while closing it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def _print_error(message: str) -> None:
    red, plain = ("\x1b[31m", "\x1b[0m") if sys.stderr.isatty() and "NO_COLOR" not in os.environ else ("", "")
    print(f"{red}vedette: {message}{plain}", file=sys.stderr)
