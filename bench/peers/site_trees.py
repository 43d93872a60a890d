"""Real web sites out of git trees, answered from memory as Apache httpd would answer.

Directories get their slash and their index page, ``name`` finds ``name.html`` (MultiViews), server-side includes are
filled in, and the redirects of the tree's own ``.htaccess`` apply. Closed paths of the table are disallowed in
robots.txt, so that a site of tens of thousands of generated pages has a size that a bench can crawl.
"""

import mimetypes
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from bench.peers.known_pages import fill_includes

__all__ = ["SITES", "RealSite", "Reply", "SiteTree", "load_tree"]

MAX_FILE_BYTES = 4 << 20  # larger ones may be missing from a copy, and no page is larger
_HTML = (".html", ".htm")
_NOT_FOUND = (
    b'<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">\n<html><head>\n<title>404 Not Found</title>\n</head><body>\n'
    b"<h1>Not Found</h1>\n<p>The requested URL was not found on this server.</p>\n</body></html>\n"
)


@dataclass(frozen=True, slots=True)
class RealSite:
    """A site: its repository, branch and folder of built pages, the host that serves it, and where a crawl starts.

    ``mount`` is the path at which the folder appears, ``closed`` are paths for robots.txt to disallow, and
    ``is_secure`` says that plain HTTP only redirects to HTTPS.
    """

    repo: str
    branch: str
    root: str
    start: str
    mount: str = "/"
    closed: tuple[str, ...] = ()
    is_secure: bool = False

    @property
    def host(self) -> str:
        """The host name of the site."""
        return urlsplit(self.start).netloc


SITES = (
    RealSite(
        "apache+kafka-site",
        "asf-site",
        "",
        "https://kafka.apache.org/",
        closed=tuple(f"/{version}/javadoc/" for version in ("0*", "1*", "2*", *range(30, 37), 38)),
    ),
    RealSite("apache+flink-web", "asf-site", "content/", "https://flink.apache.org/", is_secure=True),
    RealSite("apache+incubator", "asf-site", "content/", "http://incubator.apache.org/"),
    RealSite(
        "apache+cassandra-website",
        "asf-site",
        "content/",
        "https://cassandra.apache.org/",
        closed=("/doc/4.0.", "/doc/3.11."),
        is_secure=True,
    ),
    RealSite(
        "apache+struts-site",
        "asf-site",
        "output/",
        "https://struts.apache.org/",
        closed=("/maven/apidocs/", "/maven/struts2-plugins/*/apidocs/"),
        is_secure=True,
    ),
    RealSite(
        "apache+activemq-website",
        "asf-site",
        "output/",
        "https://activemq.apache.org/",
        closed=("/components/classic/documentation/maven/", "/components/cms/api_docs/activemqcpp-3."),
        is_secure=True,
    ),
    RealSite(
        "apache+bookkeeper",
        "asf-site",
        "content/",
        "https://bookkeeper.apache.org/",
        closed=("/docs/latest/api/", "/archives/docs/r4.2", "/archives/docs/r4.3.0", "/archives/docs/r4.3.1"),
    ),
    RealSite("rust-lang+book", "gh-pages", "", "https://doc.rust-lang.org/book/", mount="/book/", is_secure=True),
    RealSite(
        "networkx+documentation",
        "gh-pages",
        "stable/",
        "https://networkx.org/documentation/stable/",
        mount="/documentation/stable/",
        is_secure=True,
    ),
    RealSite("apache+jmeter-site", "asf-site", "", "https://jmeter.apache.org/", is_secure=True),
    RealSite("apache+nifi-site", "asf-site", "", "https://nifi.apache.org/", is_secure=True),
    RealSite(
        "apache+sling-site", "asf-site", "", "https://sling.apache.org/", closed=("/apidocs/", "/components/*/apidocs/")
    ),
    RealSite("apache+tomee-site-pub", "asf-site", "", "https://tomee.apache.org/", closed=("/*/javadoc/",)),
    RealSite("apache+ozone-site", "asf-site", "", "https://ozone.apache.org/", is_secure=True),
    RealSite("apache+parquet-site", "asf-site", "output/", "https://parquet.apache.org/", is_secure=True),
    RealSite(
        "rust-lang+async-book",
        "gh-pages",
        "",
        "https://rust-lang.github.io/async-book/",
        mount="/async-book/",
        is_secure=True,
    ),
    RealSite("sympy+sympy.github.com", "gh-pages", "", "https://www.sympy.org/", is_secure=True),
    RealSite("python+peps", "gh-pages", "", "https://peps.python.org/", is_secure=True),
    RealSite("debezium+debezium.github.io", "gh-pages", "", "https://debezium.io/", is_secure=True),
    RealSite("apache+druid-website", "asf-site", "", "https://druid.apache.org/", closed=("/docs/0.",), is_secure=True),
    RealSite("jestjs+jest", "gh-pages", "", "https://jestjs.io/", is_secure=True),
    RealSite("google+guava", "gh-pages", "", "https://guava.dev/releases/snapshot-jre/api/docs/", is_secure=True),
    RealSite("apache+rocketmq-site", "asf-site", "content/", "https://rocketmq.apache.org/", is_secure=True),
    RealSite("apache+tvm-site", "asf-site", "", "https://tvm.apache.org/", is_secure=True),
    RealSite("apache+orc", "asf-site", "", "https://orc.apache.org/", is_secure=True),
    RealSite("apache+httpd-site", "asf-site", "output/", "https://httpd.apache.org/"),
    RealSite("apache+ant", "master", "manual/", "https://ant.apache.org/manual/", mount="/manual/", is_secure=True),
    RealSite(
        "apache+logging-log4j-site",
        "asf-site",
        "1.x/",
        "https://logging.apache.org/log4j/1.x/",
        mount="/log4j/1.x/",
        is_secure=True,
    ),
    RealSite("hexojs+hexojs.github.io", "master", "", "https://hexo.io/", is_secure=True),
    RealSite("vim-jp+vimdoc-ja", "gh-pages", "", "https://vim-jp.org/vimdoc-ja/", mount="/vimdoc-ja/", is_secure=True),
    RealSite("vuejs+v2.vuejs.org", "gh-pages", "", "https://v2.vuejs.org/", is_secure=True),
    RealSite("jekyll+jekyll", "gh-pages", "", "https://jekyllrb.com/", is_secure=True),
    RealSite("nlohmann+json", "gh-pages", "", "https://json.nlohmann.me/", is_secure=True),
    RealSite("mkdocs+mkdocs", "gh-pages", "", "https://www.mkdocs.org/", is_secure=True),
    RealSite("tidyverse+dplyr", "gh-pages", "", "https://dplyr.tidyverse.org/", is_secure=True),
    RealSite("tidyverse+ggplot2", "gh-pages", "", "https://ggplot2.tidyverse.org/", is_secure=True),
    RealSite("maku77+maku77.github.io", "gh-pages", "", "https://maku77.github.io/", is_secure=True),
    RealSite("kaitai-io+formats-kaitai-io.github.io", "master", "", "https://formats.kaitai.io/", is_secure=True),
    RealSite(
        "rust-lang+rust-by-example",
        "gh-pages",
        "",
        "https://doc.rust-lang.org/rust-by-example/",
        mount="/rust-by-example/",
        is_secure=True,
    ),
    RealSite("junit-team+junit4", "gh-pages", "", "https://junit.org/junit4/", mount="/junit4/", is_secure=True),
    RealSite(
        "apache+incubator-seata-website",
        "asf-site",
        "",
        "https://seata.apache.org/",
        closed=("/build/",),
        is_secure=True,
    ),
    RealSite("numpy+doc", "main", "2.3/", "https://numpy.org/doc/2.3/", mount="/doc/2.3/", is_secure=True),
    RealSite(
        "gazebosim+docs",
        "gh-pages",
        "api/math/7/",
        "https://gazebosim.org/api/math/7/",
        mount="/api/math/7/",
        is_secure=True,
    ),
)


class Reply(NamedTuple):
    """A response: its status, body, media type, redirect target, and the file of the tree that was sent."""

    status: int
    body: bytes = b""
    content_type: str = "text/html"
    location: str = ""
    file: str = ""

    @property
    def is_page(self) -> bool:
        """Whether the answer is an HTML page of the tree."""
        return self.status == 200 and self.content_type == "text/html"


class _Rule(NamedTuple):
    """A line of .htaccess: a pattern of paths, its target (empty to skip lines), and its conditions."""

    pattern: re.Pattern[str]
    target: str
    status: int
    conditions: tuple[tuple[str, str], ...] = ()
    skip: int = 0


@dataclass(slots=True)
class SiteTree:
    """A site in memory: the bytes of its files by path."""

    site: RealSite
    files: Mapping[str, bytes]
    modified_s: float
    rules: Sequence[_Rule] = ()
    folders: frozenset[str] = field(default=frozenset())
    robots: bytes = b""

    def answer(self, url: str) -> Reply:
        """Answer a GET request for an absolute URL of this site."""
        parts = urlsplit(url)
        path = unquote(parts.path, errors="surrogateescape") or "/"
        if path == "/robots.txt":
            return Reply(200, self.robots, "text/plain", file="robots.txt")
        if self.site.is_secure and parts.scheme == "http":
            return Reply(
                301, location=f"https://{self.site.host}{parts.path}" + (f"?{parts.query}" if parts.query else "")
            )
        if not path.startswith(self.site.mount):
            return self._not_found()
        inner = "/" + path.removeprefix(self.site.mount)
        return self._redirect(inner, parts.scheme) or self._send(inner, parts.scheme)

    def _redirect(self, path: str, scheme: str) -> Reply | None:
        skip = 0
        for rule in self.rules:
            if skip:
                skip -= 1
                continue
            found = rule.pattern.search(path)
            if found and all(self._holds(test, wanted, path, found) for test, wanted in rule.conditions):
                skip = rule.skip
                if rule.target:
                    return Reply(rule.status, location=self._absolute(found.expand(rule.target), scheme))
        return None

    def _absolute(self, target: str, scheme: str) -> str:
        if target.startswith("http"):
            return target
        return f"{scheme}://{self.site.host}" + quote(self.site.mount[:-1] + target, safe="/#?=&%:@+,;!'()*~$")

    def _holds(self, test: str, wanted: str, path: str, found: re.Match[str]) -> bool:
        """Whether a RewriteCond holds; HTTP is redirected before, so only the path is checked."""
        negated, wanted = wanted.startswith("!"), wanted.removeprefix("!")
        if wanted in {"-f", "-d"}:
            name = path.strip("/")
            holds = name in (self.files if wanted == "-f" else self.folders)
        elif test.startswith("$"):
            holds = (found[int(test[1:])] or "") == wanted.removeprefix("=")
        else:
            holds = re.search(wanted, path, re.IGNORECASE) is not None
        return holds != negated

    def _send(self, path: str, scheme: str) -> Reply:
        name = path.lstrip("/")
        if name.rstrip("/") in self.folders or not name:
            if name and not name.endswith("/"):
                return Reply(301, location=self._absolute(path + "/", scheme))
            name += "index.html"
        for file in (name, f"{name}.html"):
            body = self.files.get(file)
            if body is not None:
                kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
                return Reply(200, body, "text/html" if file.endswith(_HTML) else kind, file=file)
        return self._not_found()

    def _not_found(self) -> Reply:
        return Reply(404, self.files.get("404.html", _NOT_FOUND))


def load_tree(histories: Path, site: RealSite) -> SiteTree:
    """Load the files of a site from its git tree."""
    repo = histories / site.repo / "repo"
    git_dir = repo if (repo / "HEAD").exists() else repo / ".git"
    closed = [re.compile(re.escape(path.lstrip("/")).replace(r"\*", ".*")) for path in site.closed]
    files = {
        path: body
        for path, body in _read_files(git_dir, site.branch, site.root)
        if not any(pattern.match(path) for pattern in closed)
    }
    filled = {path: fill_includes(body, path, files) if path.endswith(_HTML) else body for path, body in files.items()}
    parts = (path.split("/")[:-1] for path in files)
    folders = frozenset("/".join(names[:depth]) for names in parts for depth in range(1, len(names) + 1))
    modified_s = float(_git(git_dir, "log", "-1", "--format=%ct", site.branch))
    rules = tuple(_parse_htaccess(files.get(".htaccess", b"").decode("utf-8", "replace")))
    own = files.get("robots.txt", b"") if site.mount == "/" else b""
    return SiteTree(site, filled, modified_s, rules, folders, _robots_of(own, site.closed))


def _robots_of(own: bytes, closed: Sequence[str]) -> bytes:
    """The robots.txt of the tree, with the bench's closed paths added to its group for everyone."""
    lines = own.decode("utf-8", "replace").splitlines()
    at = next((number for number, line in enumerate(lines, 1) if re.match(r"user-agent:\s*\*", line, re.IGNORECASE)), 0)
    if not at:
        lines, at = ["User-agent: *", *lines], 1
    return "\n".join([*lines[:at], *(f"Disallow: {path}" for path in closed), *lines[at:], ""]).encode()


def _git(git_dir: Path, *words: str, sent: bytes = b"") -> bytes:
    return subprocess.run(["git", "--git-dir", git_dir, *words], input=sent, stdout=subprocess.PIPE, check=True).stdout


def _read_files(git_dir: Path, branch: str, root: str) -> Iterator[tuple[str, bytes]]:
    """Each file below the root that is there and not too large, and its bytes."""
    listed = _git(git_dir, "ls-tree", "-r", "-z", branch, root or ".").decode("utf-8", "surrogateescape")
    rows = [row.split(None, 3) for row in listed.split("\0") if row]
    wanted = [(row[2], row[3]) for row in rows if row[1] == "blob"]
    sent = "".join(f"{blob}\n" for blob, _ in wanted).encode()
    sizes = _git(git_dir, "cat-file", "--batch-check=%(objecttype) %(objectsize)", sent=sent).split(b"\n")
    small = [
        each for each, size in zip(wanted, sizes, strict=False)
        if size.startswith(b"blob ") and int(size.split()[1]) <= MAX_FILE_BYTES
    ]  # fmt: skip
    content = _git(git_dir, "cat-file", "--batch", sent="".join(f"{blob}\n" for blob, _ in small).encode())
    at = 0
    for _, path in small:
        start = content.index(b"\n", at) + 1
        end = start + int(content[at : start - 1].split()[2])
        yield path.removeprefix(root), content[start:end]
        at = end + 1


# --- .htaccess ---


def _parse_htaccess(text: str) -> Iterator[_Rule]:
    """The redirects of a file; what leads to HTTPS is left to the server, rewrites without [R] are left out."""
    conditions: list[tuple[str, str]] = []
    for line in text.splitlines():
        words = [word.strip('"') for word in line.split()]
        kind = words[0].lower() if words else ""
        if kind == "rewritecond" and len(words) > 2:
            conditions.append((words[1], words[2]))
        elif kind == "rewriterule" and len(words) > 2:
            if not any(test == "%{HTTPS}" for test, _ in conditions) and "%{HTTP" not in words[2]:
                yield from _rewrite_rule(words, tuple(conditions))
            conditions = []
        elif kind in {"redirect", "redirectmatch"} and len(words) > 2:
            yield from _redirect_rule(kind, words[1:])


def _rewrite_rule(words: Sequence[str], conditions: tuple[tuple[str, str], ...]) -> Iterator[_Rule]:
    flags = (words[3] if len(words) > 3 else "").strip("[]").split(",")
    skip = next((int(flag[2:]) for flag in flags if flag.startswith("S=")), 0)
    status = next((int(flag[2:] or 302) if flag[1:] else 302 for flag in flags if re.match(r"R(=\d+)?$", flag)), 0)
    # In .htaccess a path has no slash in front; ours have one.
    pattern = re.sub(r"^\^(/\?)?", "^/", words[1])
    if skip or status:
        yield _Rule(re.compile(pattern), "" if words[2] == "-" else _expandable(words[2]), status, conditions, skip)
    else:
        yield _Rule(re.compile(r"(?!)"), "", 0)  # counted by what skips


def _redirect_rule(kind: str, words: Sequence[str]) -> Iterator[_Rule]:
    names = {"permanent": 301, "temp": 302, "seeother": 303}
    status = names.get(words[0].lower(), int(words[0]) if words[0].isdigit() else 0)
    if status:
        words = words[1:]
    if len(words) < 2:
        return
    if kind == "redirect":
        yield _Rule(re.compile(f"^{re.escape(words[0])}(?=/|$)(.*)"), _expandable(words[1] + "$1"), status or 302)
    else:
        yield _Rule(re.compile(words[0]), _expandable(words[1]), status or 302)


def _expandable(target: str) -> str:
    return re.sub(r"\$(\d)", r"\\\1", target.replace("\\", ""))
