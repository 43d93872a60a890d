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
from vedette.cli.options import Subparsers, add_subcommand, add_subcommands, parse_speed, require_subcommand
from vedette.config import parse_duration
from vedette.errors import UsageError
from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.politeness import format_verdict, judge_log
from vedette.lab.worlds.synthetic.server import Server, connect_to_lines, open_world, serve
from vedette.lab.worlds.world import World

DESCRIPTION = "Experiments on recorded and made webs, and judging crawlers."

RUN_HELP = """\
Put an experiment to worlds, policies, budgets and seeds. Ctrl-C stops it; the same command
goes on where it stopped. The same command gives the same rows, to the byte.

  vedette lab run discovery --world frontpages:frontpages-2023.npz --budget 3,10 --policies random,bound-greedy
  vedette lab run refresh --world made:small --policies default,my_package.mine:Mine --seeds 20
"""

REPORT_HELP = """\
Write tables, comparisons and plots of finished runs.

  vedette lab report lab-runs/discovery-0a1b2c3d --to docs/results
  vedette lab report lab-runs/discovery-0a1b2c3d --data vedette-data
"""

HEADLINES_HELP = """\
Hold a discovery policy against a rival in runs of discovery-per-host, as Thompson23 does: ratios of coverage
and of overhead and the difference of hours to discovery as means over hosts, and pages found as ratios of sums.

  vedette lab run discovery --per-host --world frontpages:frontpages-2023.npz --policies thompson,pham --out runs/2023
  vedette lab headlines runs/2023 --policy thompson --rival pham
"""

SERVE_HELP = """\
Serve a made web on loopback until Ctrl-C. The file of --connect-to lines tells a crawler
where its hosts are:

  vedette lab serve made:small --speed 60 --log access.log --hosts hosts.txt
  vedette crawl http://wendle-echo.test/ --connect-to @hosts.txt --allow-private --speed 60
"""

JUDGE_HELP = """\
Read the access log of a made web and name every request that came too soon, was
disallowed by robots.txt, or was sent before robots.txt was known. Exit code 1 if any.

  vedette lab judge access.log --delay 1s
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette lab`` and their options."""
    inner = add_subcommands(parser)
    reads = (_add_list, _add_run, _add_report, _add_headlines)
    for add in (*reads, _add_import_git, _add_import_frontpages, _add_serve, _add_judge):
        add(inner).add_argument("--debug", action="store_true", help="show where an error comes from")


run = require_subcommand


def _add_list(inner: Subparsers) -> argparse.ArgumentParser:
    parser = add_subcommand(inner, "list", "experiments, policies, bounds, and the worlds that are here", list_lab)
    parser.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")
    return parser


def _add_run(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "put an experiment to worlds, policies, budgets and seeds"
    parser = add_subcommand(inner, "run", purpose, run_experiments, RUN_HELP)
    parser.add_argument(
        "experiments", metavar="NAME", help="of vedette lab list, several with commas, or module:OBJECT"
    )
    parser.add_argument(
        "--world", metavar="W,…", default="", help="as vedette lab list shows: git:PATH, made:NAME, community:NAME …"
    )
    parser.add_argument("--budget", metavar="B,…", default="", help="numbers above 0 (default: the experiment's own)")
    parser.add_argument("--policies", metavar="P,…", default="", help="names, or module:Policy (default: all it knows)")
    parser.add_argument("--seeds", metavar="N", default="10", help="seeds 1 to N (default: 10)")
    parser.add_argument(
        "--charge",
        choices=("bid", "live"),
        default="bid",
        help="sponsor: charge the bid at once, as published, or as a server does (default: bid)",
    )
    parser.add_argument("--per-host", action="store_true", help="each host on its own (discovery), with its own budget")
    parser.add_argument("--as-live", action="store_true", help="with the crawler's own modules (discovery, refresh)")
    parser.add_argument("--from", metavar="X", dest="begin", default="", help="a day such as 2023-01-31, or a number")
    parser.add_argument("--to", metavar="Y", dest="end", default="", help="the same; not included")
    parser.add_argument("--out", metavar="DIR", type=Path, help="the run's folder (default: one in lab-runs)")
    parser.add_argument("--jobs", metavar="N", default="", help="how many cells at once (default: one a core)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a row, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _add_report(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "tables, comparisons and plots of finished runs"
    parser = add_subcommand(inner, "report", purpose, write_reports, REPORT_HELP)
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
    return parser


def _add_headlines(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "how much better a discovery policy is than a rival"
    parser = add_subcommand(inner, "headlines", purpose, print_headlines, HEADLINES_HELP)
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="folders of runs of discovery-per-host")
    parser.add_argument("--policy", metavar="NAME", default="default", help="the policy (default: default)")
    parser.add_argument("--rival", metavar="NAME", default="thompson", help="its rival (default: thompson)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, and nothing else")
    return parser


def _add_import_git(inner: Subparsers) -> argparse.ArgumentParser:
    parser = add_subcommand(inner, "import-git", "read the history of a web site in git into one file", import_git)
    parser.add_argument("repo", metavar="REPO", help="git:PATH[#BRANCH[:FOLDER]], a clone, bare or not")
    parser.add_argument("out", metavar="OUT", type=Path, help="what is written; git:OUT is a world then")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _add_import_frontpages(inner: Subparsers) -> argparse.ArgumentParser:
    purpose = "read a public recording of front pages into one file"
    parser = add_subcommand(inner, "import-frontpages", purpose, import_frontpages)
    parser.add_argument("clone", metavar="CLONE", help="PATH[#BRANCH] of a clone of the recording, bare or not")
    parser.add_argument("out", metavar="OUT", type=Path, help="what is written, such as frontpages-2024.npz")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _add_serve(inner: Subparsers) -> argparse.ArgumentParser:
    parser = add_subcommand(inner, "serve", "serve a made web on loopback", _serve, SERVE_HELP)
    parser.add_argument("world", metavar="made:SIZE", help="tiny, small, medium or large")
    parser.add_argument("--seed", type=int, default=1, help="another number is another web (default: 1)")
    parser.add_argument(
        "--speed", metavar="X", type=parse_speed, default=1.0, help="how many times as fast its time runs"
    )
    parser.add_argument("--port", metavar="N", type=_parse_port, default=0, help="(default: any that is free)")
    parser.add_argument("--log", metavar="FILE", type=Path, help="write the access log here")
    parser.add_argument("--hosts", metavar="FILE", type=Path, help="write one --connect-to line a host here")
    return parser


def _add_judge(inner: Subparsers) -> argparse.ArgumentParser:
    parser = add_subcommand(inner, "judge", "name what was impolite, by the servers' log", _judge, JUDGE_HELP)
    parser.add_argument("log", metavar="LOG", type=Path, help="the access log of a made web")
    parser.add_argument("--delay", metavar="TIME", default="1s", help="least pause of a host (default: 1s)")
    parser.add_argument(
        "--address-delay", metavar="TIME", default="250ms", help="least pause of an address (default: 250ms)"
    )
    parser.add_argument("--agent", metavar="NAME", default="vedette", help="whose requests (default: vedette)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")
    return parser


def _parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f'"{text}" is no port: write a number up to 65535, or 0 for any that is free')
    return int(text)


def _serve(options: argparse.Namespace) -> int:
    for path in (options.log, options.hosts):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise UsageError(f"{path}: name a file in a folder that is there")
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
        f"{world.name} is served: {len(world.hosts())} hosts on port {server.port} of loopback addresses. Ctrl-C stops."
    )
    print(f"Look: curl -H 'Host: {first}' http://127.0.0.1:{server.port}/", flush=True)


def _judge(options: argparse.Namespace) -> int:
    if not options.log.is_file():
        raise UsageError(f"{options.log}: no such file; name the log that vedette lab serve --log wrote")
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
