"""Count the source files and functions that one URL passes, from being seen in a link to being found by a search.

    python tools/trace_url.py            two numbers
    python tools/trace_url.py --list     every function, file by file

A site of three pages is served on loopback: the start links to the second page, the second to the third. The real
coordinator and fetcher crawl it until nothing is left, the real indexer indexes the pages, and a search finds the third
one. They run as threads of one process, so that one profiler sees them all.

The URL passes through a function that is called with it: the URL of the third page, or a word that only this page has,
is part of an argument (searched three containers deep, without the object of a method). So startup, configuration and
periodic work are not counted, nor code that handles whole reports and batches without inspecting them. Comprehensions,
generator expressions, lambdas and the bodies of modules and classes are not counted either.
"""

import argparse
import inspect
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import CodeType, FrameType

import vedette
from vedette.adapters.clock import real_clock
from vedette.config import Config
from vedette.discover.urls.scope import read_site
from vedette.fetch.connect_to import parse_override
from vedette.runtime.indexing.indexer import open_indexer
from vedette.runtime.processes.coordinator import run_coordinator
from vedette.runtime.processes.fetcher import run_fetcher
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import SearchRequest

SOURCES = str(Path(vedette.__file__).parent)
PATIENCE_S = 30.0
URL, WORD = "site.test/third", "wordthird"
LINKS = {"/": "/second", "/second": "/third", "/third": "/"}
PROSE = {
    "/": "The heron waits by the river at dawn, and the ferry crosses when the mist has lifted over the meadows. ",
    "/second": "Bakers knead their dough at night; by six o'clock every shelf along our street smells of warm bread. ",
    "/third": "A lighthouse keeper counts ships, writes down the weather, and polishes the great lens each morning. ",
}


def carries(value: object, depth: int = 3) -> bool:
    """Whether the third page, by its URL or its text, is part of a value."""
    if isinstance(value, str):
        return URL in value or WORD in value
    if isinstance(value, bytes):
        return URL.encode() in value or WORD.encode() in value
    parts: Iterable[object] = ()
    if isinstance(value, dict):
        parts = (part for pair in value.items() for part in pair)
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    elif is_dataclass(value):
        parts = (getattr(value, each.name, None) for each in fields(value))
    return depth > 0 and any(carries(part, depth - 1) for part in parts)


class Trace:
    """The functions that are called with the third page, in all threads, while ``is_on``."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.is_on = False

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a call (see ``sys.setprofile``)."""
        code = frame.f_code
        if self.is_on and event == "call" and code.co_filename.startswith(SOURCES) and code not in self.codes:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            arguments = [frame.f_locals.get(name) for name in names if name not in {"self", "cls"}]
            if carries(arguments):
                self.codes.add(code)

    def list_functions(self) -> list[tuple[str, str]]:
        """File and name of each function of ours, in order."""
        named = [code for code in self.codes if code.co_name[0] != "<" and code.co_flags & inspect.CO_OPTIMIZED]
        return sorted({(code.co_filename.removeprefix(SOURCES)[1:], code.co_qualname) for code in named})


@contextmanager
def serve_site(trace: Trace) -> Iterator[int]:
    """Three pages on a port of loopback; the first request of the second one starts the trace."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            link = LINKS.get(self.path)
            trace.is_on = trace.is_on or self.path == "/second"
            prose = PROSE.get(self.path, "")
            words = f"<title>Page {self.path}</title><p>{prose * 5}</p><p>word{self.path[1:]}</p>"
            body = f'<html lang="en">{words}<a href="{link}">on to {link}</a></html>'.encode() if link else b""
            self.send_response(200 if link else 404)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


def crawl_and_search(folder: Path, port: int, trace: Trace) -> None:
    """Crawl, index and search the site as the processes of ``vedette up`` do."""
    settings = RuntimeSettings(
        config=Config(),
        clock=real_clock(),
        folder=folder,
        agent="vedette-trace",
        sites=(read_site("http://site.test/"),),
        detours=(parse_override(f"site.test:80=127.0.0.1:{port}"),),
        allow_private=True,
    )
    coordinator = threading.Thread(target=run_coordinator, args=(settings,))
    coordinator.start()
    wait_for(folder / "keeper.sock")
    fetcher = threading.Thread(target=run_fetcher, args=(settings, 0))
    fetcher.start()
    indexer = open_indexer(folder, settings.clock)
    search = FolderSearch(folder, settings.clock)
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        worked = indexer.step()
        if trace.is_on and not worked and search.search(SearchRequest(WORD)).results:
            break
        time.sleep(0.0 if worked else 0.05)  # polling interval while nothing is new
    else:
        raise SystemExit("the third page was not found in time")
    trace.is_on = False
    coordinator.join()
    fetcher.join()
    indexer.close()


def wait_for(path: Path) -> None:
    """Wait until a process has created its file."""
    until_s = time.monotonic() + PATIENCE_S
    while not path.exists() and time.monotonic() < until_s:
        time.sleep(0.01)


def main() -> None:
    """Trace, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print every function")
    wants_list = parser.parse_args().list
    trace = Trace()
    threading.setprofile(trace.profile)
    sys.setprofile(trace.profile)
    with tempfile.TemporaryDirectory() as folder, serve_site(trace) as port:
        crawl_and_search(Path(folder), port, trace)
    sys.setprofile(None)
    found = trace.list_functions()
    if wants_list:
        sys.stdout.writelines(f"{file} {name}\n" for file, name in found)
    sys.stdout.write(f"{len({file for file, _ in found})} files, {len(found)} functions\n")


if __name__ == "__main__":
    main()
