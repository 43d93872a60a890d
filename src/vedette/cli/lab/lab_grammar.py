"""The grammar of experiments: ``vedette lab list``, ``run``, ``report``, ``import-git`` and ``import-frontpages``."""

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add_experiments"]

RUN = """\
Put an experiment to worlds, policies, budgets and seeds. Ctrl-C stops it; the same command
goes on where it stopped. The same command gives the same rows, to the byte.

  vedette lab run discovery --world frontpages:frontpages-2023.npz --budget 3,10 --policies random,bound-greedy
  vedette lab run refresh --world made:small --policies default,my_package.mine:Mine --seeds 20
"""

REPORT = """\
Write tables, comparisons and plots of finished runs.

  vedette lab report lab-runs/discovery-0a1b2c3d --to docs/results
  vedette lab report lab-runs/discovery-0a1b2c3d --data vedette-data
"""


def add_experiments(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verbs and their options."""
    _add_list(verbs)
    _add_run(verbs)
    _add_report(verbs)
    _add_import_git(verbs)
    _add_import_frontpages(verbs)


def _add_list(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "list", "experiments, policies, bounds, and the worlds that are here")
    parser.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")


def _add_run(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "run", "put an experiment to worlds, policies, budgets and seeds", RUN)
    parser.add_argument(
        "experiments", metavar="NAME", help="of vedette lab list, several with commas, or module:OBJECT"
    )
    parser.add_argument(
        "--world", metavar="W,…", default="", help="as vedette lab list shows: git:PATH, made:NAME, community:NAME …"
    )
    parser.add_argument("--budget", metavar="B,…", default="", help="numbers above 0 (default: the experiment's own)")
    parser.add_argument("--policies", metavar="P,…", default="", help="names, or module:Policy (default: all it knows)")
    parser.add_argument("--seeds", metavar="N", default="10", help="seeds 1 to N (default: 10)")
    parser.add_argument("--per-host", action="store_true", help="each host on its own (discovery), with its own budget")
    parser.add_argument("--from", metavar="X", dest="begin", default="", help="a day such as 2023-01-31, or a number")
    parser.add_argument("--to", metavar="Y", dest="end", default="", help="the same; not included")
    parser.add_argument("--out", metavar="DIR", type=Path, help="the run's folder (default: one in lab-runs)")
    parser.add_argument("--jobs", metavar="N", default="", help="how many cells at once (default: one a core)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a row, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _add_report(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "report", "tables, comparisons and plots of finished runs", REPORT)
    parser.add_argument("runs", metavar="RUN", nargs="*", type=Path, help="folders of runs (default: all in lab-runs)")
    parser.add_argument("--to", metavar="DIR", type=Path, help="where the pages are written")
    parser.add_argument(
        "--data",
        metavar="DIR",
        nargs="?",
        const="",
        help="show them in the console of this data folder (without DIR: of the one in the settings)",
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="settings (default: vedette.toml, where there is one)"
    )


def _add_import_git(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "import-git", "read the history of a web site in git into one file")
    parser.add_argument("repo", metavar="REPO", help="git:PATH[#BRANCH[:FOLDER]], a clone, bare or not")
    parser.add_argument("out", metavar="OUT", type=Path, help="what is written; git:OUT is a world then")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _add_import_frontpages(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "import-frontpages", "read a public recording of front pages into one file")
    parser.add_argument("clone", metavar="CLONE", help="PATH[#BRANCH] of a clone of the recording, bare or not")
    parser.add_argument("out", metavar="OUT", type=Path, help="what is written, such as frontpages-2024.npz")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def _verb(
    verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str, description: str | None = None
) -> "Parser":
    told = description or f"{purpose[0].upper()}{purpose[1:]}."
    parser = verbs.add_parser(name, help=purpose, description=told)
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    parser.set_defaults(run=_runner(name), parser=parser)
    return parser


def _runner(name: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        # Heavy libraries load only when there is something to do.
        code: int = import_module("vedette.cli.lab.runs").VERBS[name](options)
        return code

    return run
