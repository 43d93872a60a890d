"""Render child process, run as a script by ``vedette.adapters.net.renderer``; it renders one page at a time.

A page's script is an untrusted program. It runs in Chromium's sandbox, as user ``nobody``, in a network namespace
without an interface, under the kernel's limits, and the browser can open no files but programs (Landlock); if the
machine offers less, at least its proxy and resolver lead nowhere. Every request of the page is intercepted: those for
scripts and data are passed to the parent, which fetches or refuses them; images and styles get an empty response;
frames, pop-ups, sockets, workers that outlive the page and downloads are refused. The process holds no state.

A message in either direction is two lengths, a head in JSON, and a body.
"""

import asyncio
import ctypes
import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from html import escape
from importlib import import_module
from itertools import count
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any

from vedette.adapters.sandbox import forbid_privileges, hide_files

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Request, Route, ViewportSize

LENGTHS = Struct("!II")
MAX_HTML_BYTES = 4 << 20
# Requests that go through the parent; all others are answered here.
FETCHED_KINDS = frozenset({"script", "xhr", "fetch"})

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_NOBODY = 65_534
_MAX_FILE_BYTES = 64 << 20
# What a browser opens, beside the folders of Python, of the browser, and its own; not /home, /root, /srv, /tmp, /var.
_PROGRAMS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/snap", "/sys", "/var/cache/fontconfig"),
    *(f"/etc/{name}" for name in ("alternatives", "chromium", "chromium.d", "fonts", "ld.so.cache", "localtime")),
    *(f"/etc/{name}" for name in ("hosts", "machine-id", "nsswitch.conf", "passwd", "ssl")),
)
_DEVICES, _SHARED_MEMORY = ("/dev", "/proc"), "/dev/shm"  # noqa: S108 - the browser's choice
_SWITCHES = (
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--block-new-web-contents",
    "--js-flags=--max-old-space-size=256",
    "--renderer-process-limit=1",
    "--disable-gpu",
    "--disable-remote-fonts",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--no-first-run",
    "--mute-audio",
)
_VIEWPORT: "ViewportSize" = {"width": 1280, "height": 1600}
_STEP_S = 0.1
# A page is idle when nothing changed for this many steps: longer if it shows almost nothing yet.
_QUIET_STEPS, _QUIET_EMPTY_STEPS = 4, 20
_FEW_CHARACTERS = 200
_MAX_SCROLLS = 5
# How long the processes of a killed browser have to exit, so that none is left to an init that does not reap.
_LAST_STEPS = 15
_PIXEL = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")

# Two frames first: observers and timers of the page get their turn, however busy the machine is.
_STATE = """async () => {
  const frame = () => new Promise(done => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 500); });
  await frame(); await frame();
  const body = document.body;
  return [document.getElementsByTagName("*").length, body ? body.textContent.length : 0,
    document.documentElement.scrollHeight];
}"""
# Lazy content sees each part of the page for two frames. False if there is nothing to scroll.
_SCROLL = """async () => {
  if (document.documentElement.scrollHeight <= innerHeight) return false;
  const frame = () => new Promise(done => setTimeout(done, 34));
  const most = Math.min(document.documentElement.scrollHeight, 40000);
  for (let y = 0; y < most; y += innerHeight * 0.8) { scrollTo(0, y); await frame(); }
  scrollTo(0, document.documentElement.scrollHeight); await frame();
  return true;
}"""
# Templates, scripts and requests to enable JavaScript are no text of a page whose script has run; shadow trees are.
_SERIALIZE = """() => {
  const roots = [];
  const visit = tree => {
    const gone = 'template, noscript, style, script:not([type="application/ld+json"])';
    for (const one of tree.querySelectorAll(gone)) one.remove();
    for (const one of tree.querySelectorAll("*")) {
      if (one.shadowRoot) { roots.push(one.shadowRoot); visit(one.shadowRoot); }
    }
  };
  visit(document);
  const page = document.documentElement;
  const inner = roots.length && page.getHTML ? page.getHTML({shadowRoots: roots}) : page.innerHTML;
  const text = inner.replaceAll("<template shadowrootmode=", "<div data-shadowrootmode=")
    .replaceAll("</template>", "</div>");
  return `<!DOCTYPE html><html lang="${page.lang.replace(/[^a-zA-Z0-9-]/g, "")}">${text}</html>`;
}"""


class _Job:
    """The page being rendered, and its requests."""

    def __init__(self, head: dict[str, Any], body: bytes) -> None:
        self.head, self.body = head, body
        self.served = False
        self.fetched = 0
        self.moved = ""
        self.task: asyncio.Task[None] | None = None
        self.parts: dict[int, asyncio.Future[tuple[dict[str, Any], bytes]]] = {}


class _Renderer:
    """Render pages in one browser, on request of the parent process."""

    def __init__(self, writer: asyncio.StreamWriter, browser: "Browser") -> None:
        self._writer, self._browser = writer, browser
        self._job: _Job | None = None
        self._numbers = count(1)

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Send a message to the parent process."""
        encoded = json.dumps(head).encode()
        self._writer.write(LENGTHS.pack(len(encoded), len(body)) + encoded + body)

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Serve the parent's messages until it closes the connection."""
        self.send({"type": "ready"})
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head_bytes, body_bytes = LENGTHS.unpack(await reader.readexactly(LENGTHS.size))
                head = json.loads(await reader.readexactly(head_bytes))
                body = await reader.readexactly(body_bytes)
                if head["type"] == "render":
                    self._job = _Job(head, body)
                    self._job.task = asyncio.create_task(self._render(self._job))
                elif self._job is not None and (waiting := self._job.parts.pop(head["id"], None)) is not None:
                    waiting.set_result((head, body))
        for _ in range(_LAST_STEPS):
            if not _has_children():
                break
            await asyncio.sleep(_STEP_S)
        os._exit(0)

    async def _render(self, job: _Job) -> None:
        try:
            html = await self._read_page(job)
        except Exception as error:  # noqa: BLE001 - whatever a page does to the browser is its own failure
            self.send({"type": "failed", "why": str(error).partition("\n")[0][:200]})
            return
        if job.moved:
            html = f'<meta http-equiv="refresh" content="0; url={escape(job.moved)}">{html}'
        body = html.encode("utf-8", "replace")[:MAX_HTML_BYTES]
        self.send({"type": "done", "asked": job.fetched}, body)

    async def _read_page(self, job: _Job) -> str:
        context = await self._browser.new_context(
            user_agent=job.head["agent"], viewport=_VIEWPORT, service_workers="block", accept_downloads=False
        )
        try:
            page = await self._open_page(context, job)
            await self._settle(page, job)
            html = await page.evaluate(_SERIALIZE)
            return html if isinstance(html, str) else ""
        finally:
            await context.close()

    async def _open_page(self, context: "BrowserContext", job: _Job) -> "Page":
        await context.add_init_script("window.open = () => null;")
        await context.route("**/*", lambda route, request: self._answer(route, request, job))
        await context.route_web_socket("**/*", lambda way: way.close())
        page = await context.new_page()
        context.on("page", lambda other: asyncio.ensure_future(other.close()))
        await page.goto(job.head["url"], wait_until="commit", timeout=1_000 * job.head["script_s"])
        return page

    async def _settle(self, page: "Page", job: _Job) -> None:
        """Wait until the page is idle, scroll through it, and wait again if that loaded something."""
        left_s, before = float(job.head["script_s"]), None
        for _ in range(_MAX_SCROLLS):
            state, left_s = await self._rest(page, job, left_s)
            if state == before or left_s <= 0 or not await page.evaluate(_SCROLL):
                return
            before = state

    async def _rest(self, page: "Page", job: _Job, left_s: float) -> tuple[list[int], float]:
        """Wait until the page is idle; return its state, and its remaining time."""
        before: list[int] = []
        quiet = 0
        while True:
            state: list[int] = await page.evaluate(_STATE)
            quiet = quiet + 1 if state == before and not job.parts else 0
            before = state
            wanted = _QUIET_STEPS if state[1] >= _FEW_CHARACTERS else _QUIET_EMPTY_STEPS
            if quiet >= wanted or left_s <= 0:
                return state, left_s
            await asyncio.sleep(_STEP_S)
            left_s -= 0 if job.parts else _STEP_S

    async def _answer(self, route: "Route", request: "Request", job: _Job) -> None:
        with suppress(Exception):  # the page may be gone meanwhile
            kind = request.resource_type
            if kind == "document":
                await self._answer_document(route, request, job)
            elif kind == "stylesheet":
                await route.fulfill(content_type="text/css", body="")
            elif kind == "image":
                await route.fulfill(content_type="image/gif", body=_PIXEL)
            elif kind in FETCHED_KINDS and request.method == "GET" and job.fetched < job.head["most"]:
                await self._answer_part(route, request, job)
            else:
                await route.abort("blockedbyclient")

    async def _answer_document(self, route: "Route", request: "Request", job: _Job) -> None:
        """Answer the page itself with the fetched response; remember where its script navigates from there."""
        if request.frame.parent_frame is not None or job.served:
            if request.frame.parent_frame is None:
                job.moved = request.url[:2_000]
            await route.abort("aborted")
            return
        job.served = True
        await route.fulfill(status=200, headers={"content-type": job.head["content_type"]}, body=job.body)

    async def _answer_part(self, route: "Route", request: "Request", job: _Job) -> None:
        """Pass a request of the page to the parent, and the response back to the page."""
        job.fetched += 1
        number = next(self._numbers)
        answer = job.parts[number] = asyncio.get_running_loop().create_future()
        head = {"type": "part", "id": number, "url": request.url.partition("#")[0][:4_000]}
        self.send({**head, "kind": request.resource_type, "accept": request.headers.get("accept", "*/*")[:200]})
        reply, body = await answer
        if not reply["status"]:
            await route.abort("blockedbyclient")
            return
        origin = request.headers.get("origin", "*")
        shared = {"access-control-allow-origin": origin, "access-control-allow-credentials": "true"}
        headers = {"content-type": reply["content_type"], **shared}
        await route.fulfill(status=reply["status"], headers=headers, body=body)


def _has_children() -> bool:
    with suppress(OSError):
        return bool(Path("/proc/thread-self/children").read_text(encoding="ascii").strip())
    return False


def _confine(folder: str, browser_path: str, memory_bytes: int, *, sandbox: bool) -> None:
    """Drop what rendering does not need: the network, privileges, the environment, files of others, large files."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the orphans of a killed browser
    user, group = os.getuid(), os.getgid()  # in a new user namespace they are unknown until they are mapped
    if os.geteuid() == 0:
        libc.unshare(_CLONE_NEWNET)
        _hide_files(folder, browser_path)
        os.chown(folder, _NOBODY, _NOBODY)
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user resets it
    elif libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        _map_user(user, group)
        _hide_files(folder, browser_path)
    elif not sandbox:  # Chromium's may need a setuid program here
        forbid_privileges()
        _hide_files(folder, browser_path)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_FILE_BYTES, _MAX_FILE_BYTES))
    # Not the address space, since the browser reserves terabytes of it, but writable memory.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(HOME=folder, TMPDIR=folder, PATH="/usr/bin:/bin", LANG="C.UTF-8")


def _hide_files(folder: str, browser_path: str) -> None:
    modules = [path for path in sys.path if Path(path).is_absolute()]
    homes = (sys.prefix, sys.base_prefix, *modules, str(Path(browser_path).resolve().parent))
    hide_files((*_PROGRAMS, *homes), _DEVICES, (folder, _SHARED_MEMORY))


def _map_user(user: int, group: int) -> None:
    """Map the same user into the new user namespace; the browser needs it to create its own."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with suppress(OSError):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")


async def _serve(line: socket.socket, browser_path: str, *, sandbox: bool) -> None:
    from playwright.async_api import async_playwright

    reader, writer = await asyncio.open_connection(sock=line)
    async with async_playwright() as driver:
        try:
            browser = await driver.chromium.launch(
                executable_path=browser_path, chromium_sandbox=sandbox, args=list(_SWITCHES)
            )
        except Exception as error:  # noqa: BLE001 - the parent reports the outcome
            encoded = json.dumps({"type": "unavailable", "why": str(error)[:4_000]}).encode()
            writer.write(LENGTHS.pack(len(encoded), 0) + encoded)
            await writer.drain()
            return
        await _Renderer(writer, browser).serve(reader)


def main() -> None:
    """Serve rendering requests from standard input until the other end closes it."""
    folder, browser_path, sandbox, memory_bytes = sys.argv[1:]
    import_module("playwright.async_api")  # before dropping privileges: the user "nobody" may not be able to read it

    line = socket.socket(fileno=os.dup(0))
    _confine(folder, browser_path, int(memory_bytes), sandbox=sandbox == "yes")
    asyncio.run(_serve(line, browser_path, sandbox=sandbox == "yes"))


if __name__ == "__main__":
    main()
