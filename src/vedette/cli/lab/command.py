"""``vedette lab …``: put questions to worlds, report the answers; serve a made web, judge a crawler by its log."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.lab.lab_grammar import add_experiments
from vedette.cli.options import speed_of
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser
    from vedette.lab.worlds.synthetic.server_part import Server
    from vedette.lab.worlds.world import World

__all__ = ["add"]

SERVE = """\
Serve a made web on loopback until Ctrl-C. The file of --connect-to lines tells a crawler
where its hosts are:

  vedette lab serve made:small --speed 60 --log access.log --hosts hosts.txt
  vedette crawl http://wendle-echo.test/ --connect-to @hosts.txt --allow-private --speed 60
"""

JUDGE = """\
Read the access log of a made web and name every request that came too soon, was
disallowed by robots.txt, or was sent before robots.txt was known. Exit code 1 if any.

  vedette lab judge access.log --delay 1s
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    lab = verbs.add_parser("lab", help="experiments on recorded and made webs, and judging crawlers")
    lab.set_defaults(run=_say_what, parser=lab)
    inner = lab.add_subparsers(metavar="VERB", parser_class=type(lab))
    add_experiments(inner)
    _add_serve(inner)
    _add_judge(inner)


def _add_serve(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = verbs.add_parser("serve", help="serve a made web on loopback", description=SERVE)
    parser.add_argument("world", metavar="made:SIZE", help="tiny, small, medium or large")
    parser.add_argument("--seed", type=int, default=1, help="another number is another web (default: 1)")
    parser.add_argument("--speed", metavar="X", type=speed_of, default=1.0, help="how many times as fast its time runs")
    parser.add_argument("--port", metavar="N", type=_port_of, default=0, help="(default: any that is free)")
    parser.add_argument("--log", metavar="FILE", type=Path, help="write the access log here")
    parser.add_argument("--hosts", metavar="FILE", type=Path, help="write one --connect-to line a host here")
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    parser.set_defaults(run=_serve, parser=parser)


def _add_judge(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = verbs.add_parser("judge", help="name what was impolite, by the servers' log", description=JUDGE)
    parser.add_argument("log", metavar="LOG", type=Path, help="the access log of a made web")
    parser.add_argument("--delay", metavar="TIME", default="1s", help="least pause of a host (default: 1s)")
    parser.add_argument(
        "--address-delay", metavar="TIME", default="250ms", help="least pause of an address (default: 250ms)"
    )
    parser.add_argument("--agent", metavar="NAME", default="vedette", help="whose requests (default: vedette)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, and nothing else")
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    parser.set_defaults(run=_judge, parser=parser)


def _port_of(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f'"{text}" is no port: write a number up to 65535, or 0 for any that is free')
    return int(text)


def _say_what(_: argparse.Namespace) -> int:
    verbs = "list, run, report, import-git, import-frontpages, serve or judge"
    raise UsageError(f"say what to do in the lab: {verbs}; see vedette lab --help")


def _serve(options: argparse.Namespace) -> int:
    from vedette.adapters.clock import start_clock
    from vedette.lab.worlds.synthetic.server_part import open_world, serve

    for path in (options.log, options.hosts):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise UsageError(f"{path}: name a file in a folder that is there")
    world = open_world(options.world, options.seed)
    clock = start_clock(world.start_s, options.speed)
    serve(
        world,
        clock=clock,
        port=options.port,
        log_path=options.log,
        ready=lambda server: _say(world, server, options.hosts),
    )
    return 0


def _say(world: "World", server: "Server", hosts: Path | None) -> None:
    from vedette.lab.worlds.synthetic.server_part import connect_to_lines

    lines = connect_to_lines(world, server.port)
    if hosts is not None:
        hosts.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    first = world.hosts()[0].name
    print(
        f"{world.name} is served: {len(world.hosts())} hosts on port {server.port} of loopback addresses. Ctrl-C stops."
    )
    print(f"Look: curl -H 'Host: {first}' http://127.0.0.1:{server.port}/", flush=True)


def _judge(options: argparse.Namespace) -> int:
    from vedette.config import parse_duration
    from vedette.lab.judge.access_log import read_log
    from vedette.lab.judge.politeness import judge, report

    if not options.log.is_file():
        raise UsageError(f"{options.log}: no such file; name the log that vedette lab serve --log wrote")
    header, entries = read_log(options.log)
    verdict = judge(
        entries,
        header,
        delay_s=parse_duration(options.delay),
        address_delay_s=parse_duration(options.address_delay),
        user_agent=options.agent,
    )
    print(json.dumps(dataclasses.asdict(verdict)) if options.json else report(verdict))
    return 1 if verdict.total else 0
