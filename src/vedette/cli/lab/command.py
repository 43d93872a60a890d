"""``vedette lab …``: run experiments and report their results; serve a synthetic web, judge a crawler by its log."""

import argparse
import dataclasses
import json
from functools import partial
from pathlib import Path

from vedette.adapters.clock import start_clock
from vedette.cli.lab.runs import (
    import_frontpages,
    import_git,
    list_lab,
    print_headlines,
    run_experiments,
    write_reports,
)
from vedette.cli.options import Subparsers, add_subcommand, add_subcommands, parse_port, parse_speed, require_subcommand
from vedette.cli.output import format_count
from vedette.config import parse_duration
from vedette.errors import UsageError
from vedette.lab.core.parity import replay_log
from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.politeness import format_verdict, judge_log
from vedette.lab.worlds.synthetic.server import Server, connect_to_lines, open_world, serve
from vedette.lab.worlds.world import World

DESCRIPTION = "Run experiments on recorded and synthetic webs, and evaluate crawlers."

RUN_HELP = """\
Run an experiment across worlds, policies, budgets and seeds. Press Ctrl-C to
stop; run the same command again to continue. The same command always produces
the same rows, byte for byte.

  vedette lab run discovery --world frontpages:frontpages-2023.npz --budget 3,10 --policies random,bound-greedy
  vedette lab run refresh --world made:small --policies default,my_package.mine:Mine --seeds 20
"""

REPORT_HELP = """\
Create tables, comparisons and plots from finished runs.

  vedette lab report lab-runs/discovery-0a1b2c3d --to docs/results
  vedette lab report lab-runs/discovery-0a1b2c3d --data vedette-data
"""

HEADLINES_HELP = """\
Compare one discovery policy with another, using discovery-per-host runs. The
metrics are those used in the Thompson23 paper: the coverage ratio, the
overhead ratio and the difference in hours to discovery, each averaged over
hosts, and the ratio of the total number of pages found.

  vedette lab run discovery --per-host --world frontpages:frontpages-2023.npz --policies thompson,pham --out runs/2023
  vedette lab headlines runs/2023 --policy thompson --rival pham
"""

REPLAY_HELP = """\
Read the decisions logged by a crawl, give the same facts to the lab's
policies, and report the first decision that differs. Exits with code 1 if
there is one.

  VEDETTE_DECISIONS=decisions.jsonl vedette crawl https://example.org/ --pages 100 --contact me@example.org
  vedette lab replay decisions.jsonl
"""

SERVE_HELP = """\
Serve a synthetic web on loopback until you press Ctrl-C. To let a crawler
reach its hosts, write a file with --hosts and pass that file to the crawler
with --connect-to:

  vedette lab serve made:small --speed 60 --log access.log --hosts hosts.txt
  vedette crawl http://wendle-echo.test/ --connect-to @hosts.txt --allow-private --speed 60
"""

JUDGE_HELP = """\
Read a synthetic web's access log and list every request that was sent too
soon, was disallowed by robots.txt, or was sent before robots.txt was fetched.
Exits with code 1 if there are any.

  vedette lab judge access.log --delay 1s
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette lab`` and their options."""
    inner = add_subcommands(parser)
    reads = (_add_list, _add_run, _add_report, _add_headlines)
    for add in (*reads, _add_replay, _add_import_git, _add_import_frontpages, _add_serve, _add_judge):
        add(inner).add_argument("--debug", action="store_true", help="show the full traceback of an error")


run = require_subcommand


def _add_list(inner: Subparsers) -> argparse.ArgumentParser:
    parser = add_subcommand(inner, "list", "list experiments, policies, bounds and available worlds", list_lab)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _add_run(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "run an experiment across worlds, policies, budgets and seeds"
    parser = add_subcommand(inner, "run", purpose, run_experiments, RUN_HELP)
    parser.add_argument(
        "experiments", metavar="NAME", help="comma-separated names from vedette lab list, or module:OBJECT"
    )
    parser.add_argument(
        "--world",
        metavar="W,…",
        default="",
        help="the worlds, as listed by vedette lab list: git:PATH, made:NAME, community:NAME …",
    )
    parser.add_argument(
        "--budget",
        metavar="B,…",
        default="",
        help="budgets to compare, such as 3,10 (default: the experiment's own)",
    )
    parser.add_argument(
        "--policies",
        metavar="P,…",
        default="",
        help="policy names, or module:Policy (default: all policies of the experiment)",
    )
    parser.add_argument("--seeds", metavar="N", default="10", help="seeds 1 to N (default: 10)")
    parser.add_argument(
        "--charge",
        choices=("bid", "live"),
        default="bid",
        help="for sponsor: bid charges the full bid at once, as in the papers; live charges like the server "
        "(default: bid)",
    )
    parser.add_argument(
        "--per-host", action="store_true", help="run each host separately, with its own budget (discovery)"
    )
    parser.add_argument(
        "--as-live",
        action="store_true",
        help="use the crawler's and server's own modules (discovery, order-joined, ranking, refresh, sponsor)",
    )
    parser.add_argument(
        "--from",
        metavar="X",
        dest="begin",
        default="",
        help="start on this date, such as 2023-01-31, or this many days after the world begins",
    )
    parser.add_argument(
        "--to",
        metavar="Y",
        dest="end",
        default="",
        help="end before this date, or this many days after the world begins",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="the run folder (default: a folder in lab-runs)")
    parser.add_argument(
        "--jobs", metavar="N", default="", help="number of cells to run in parallel (default: one per core)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per row and nothing else")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
    return parser


def _add_report(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "create tables, comparisons and plots from finished runs"
    parser = add_subcommand(inner, "report", purpose, write_reports, REPORT_HELP)
    parser.add_argument("runs", metavar="RUN", nargs="*", type=Path, help="run folders (default: all in lab-runs)")
    parser.add_argument("--to", metavar="DIR", type=Path, help="the folder to write to")
    parser.add_argument(
        "--data",
        metavar="DIR",
        nargs="?",
        const="",
        help="show the report in this data folder's console (default: the configured one)",
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="the configuration file (default: vedette.toml, if it exists)"
    )
    return parser


def _add_headlines(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "compare one discovery policy with another"
    parser = add_subcommand(inner, "headlines", purpose, print_headlines, HEADLINES_HELP)
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", type=Path, help="folders of runs of the discovery-per-host experiment"
    )
    parser.add_argument("--policy", metavar="NAME", default="default", help="the policy (default: default)")
    parser.add_argument("--rival", metavar="NAME", default="thompson", help="its rival (default: thompson)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line and nothing else")
    return parser


def _add_replay(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "check that the lab makes the same decisions as a logged crawl"
    parser = add_subcommand(inner, "replay", purpose, _replay, REPLAY_HELP)
    parser.add_argument(
        "log", metavar="LOG", type=Path, help="the decisions logged by a crawl that ran with VEDETTE_DECISIONS set"
    )
    return parser


def _add_import_git(inner: Subparsers) -> argparse.ArgumentParser:
    parser = add_subcommand(inner, "import-git", "import a website's git history into a single file", import_git)
    parser.add_argument("repo", metavar="REPO", help="a clone, as git:PATH[#BRANCH[:FOLDER]] (may be bare)")
    parser.add_argument(
        "out", metavar="OUT", type=Path, help="the output file; experiments can use it as the world git:OUT"
    )
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
    return parser


def _add_import_frontpages(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "import a public recording of front pages into a single file"
    parser = add_subcommand(inner, "import-frontpages", purpose, import_frontpages)
    parser.add_argument("clone", metavar="CLONE", help="a clone of the recording, as PATH[#BRANCH] (may be bare)")
    parser.add_argument("out", metavar="OUT", type=Path, help="the output file, such as frontpages-2024.npz")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
    return parser


def _add_serve(inner: Subparsers) -> argparse.ArgumentParser:
    parser = add_subcommand(inner, "serve", "serve a synthetic web on loopback", _serve, SERVE_HELP)
    parser.add_argument(
        "world", metavar="made:SIZE", help="the web to serve: made:tiny, made:small, made:medium or made:large"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the synthetic web (default: 1)")
    parser.add_argument(
        "--speed",
        metavar="X",
        type=parse_speed,
        default=1.0,
        help="speed of the web's clock, as a multiple of real time",
    )
    parser.add_argument("--port", metavar="N", type=parse_port, default=0, help="the port (default: any free port)")
    parser.add_argument("--log", metavar="FILE", type=Path, help="write the access log to this file")
    parser.add_argument(
        "--hosts", metavar="FILE", type=Path, help="write a --connect-to line for each host to this file"
    )
    return parser


def _add_judge(inner: Subparsers) -> argparse.ArgumentParser:
    parser = add_subcommand(inner, "judge", "list impolite requests in a server's access log", _judge, JUDGE_HELP)
    parser.add_argument("log", metavar="LOG", type=Path, help="a synthetic web's access log")
    parser.add_argument("--delay", metavar="TIME", default="1s", help="minimum delay per host (default: 1s)")
    parser.add_argument(
        "--address-delay", metavar="TIME", default="250ms", help="minimum delay per address (default: 250ms)"
    )
    parser.add_argument("--agent", metavar="NAME", default="vedette", help="the crawler to judge (default: vedette)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    return parser


def _replay(options: argparse.Namespace) -> int:
    if not options.log.is_file():
        raise UsageError(
            f"{options.log}: no such file; choose a log written by a crawl that ran with VEDETTE_DECISIONS set"
        )
    count, difference = replay_log(options.log)
    if difference is not None:
        print(
            f"Decision {difference.number + 1} ({difference.stage}) differs in {difference.column}[{difference.row}]."
        )
        return 1
    print(f"{format_count(count, 'decision')}: the lab makes the same.")
    return 0


def _serve(options: argparse.Namespace) -> int:
    for path in (options.log, options.hosts):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise UsageError(f"{path}: the folder does not exist; choose a file in an existing folder")
    world = open_world(options.world, options.seed)
    clock = start_clock(world.start_s, options.speed)
    ready = partial(_print_served, world, options.hosts)
    serve(world, clock=clock, port=options.port, log_path=options.log, ready=ready)
    return 0


def _print_served(world: World, hosts: Path | None, server: Server) -> None:
    lines = connect_to_lines(world, server.port)
    if hosts is not None:
        hosts.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    first = world.hosts()[0].name
    print(
        f"Serving {world.name}: {len(world.hosts())} hosts on port {server.port} of loopback addresses. Ctrl-C to stop."
    )
    print(f"Try: curl -H 'Host: {first}' http://127.0.0.1:{server.port}/", flush=True)


def _judge(options: argparse.Namespace) -> int:
    if not options.log.is_file():
        raise UsageError(f"{options.log}: no such file; choose a log written by vedette lab serve --log")
    header, entries = read_log(options.log)
    verdict = judge_log(
        entries,
        header,
        delay_s=parse_duration(options.delay),
        address_delay_s=parse_duration(options.address_delay),
        user_agent=options.agent,
    )
    print(json.dumps(dataclasses.asdict(verdict)) if options.json else format_verdict(verdict))
    return 1 if verdict.total else 0
