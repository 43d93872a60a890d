"""Real web servers on loopback, each over the same folder of pages, with common problems for crawlers.

    /raw          redirects to a name in raw UTF-8
    /coded.html   is sent plain, under a Content-Encoding that is none
    /wall.html    sets a cookie and redirects to itself, until the cookie is sent back
    /README       has no extension, so that no server knows its type
    /listed.html  is named only in /sitemap.xml, which robots.txt does not mention

Which servers there are, is found: a test of one that is missing says what it leaves out.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

__all__ = ["PAGES", "SERVERS", "WORDS", "find_server", "run_server", "serve_all"]

WORDS = "The harbour was quiet in the morning, and the boats lay still beside the wall. "
PAGES = ("", "docs/", "notes.txt", "README", "caf%C3%A9.html", "coded.html", "wall.html", "listed.html")
START_S = 300.0

NGINX = """
daemon off; {user} pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 64; }}
http {{
  access_log off; default_type text/plain; types {{ text/html html; application/xml xml; }}
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  gzip on; gzip_types text/plain;
  server {{
    listen 127.0.0.1:{port}; root {pages}; absolute_redirect off;
    location = /raw {{ return 301 /café.html; }}
    location = /coded.html {{ gzip off; add_header Content-Encoding utf-8; }}
    location = /wall.html {{
      if ($cookie_seen = "") {{ add_header Set-Cookie "seen=1; Path=/"; return 302 /wall.html; }}
    }}
  }}
}}
"""
APACHE = """
{modules}
Listen 127.0.0.1:{port}
ServerName localhost
PidFile {folder}/pid
ErrorLog {folder}/errors
DefaultRuntimeDir {folder}
DocumentRoot {pages}
TypesConfig /dev/null
AddType text/html .html
AddType text/plain .txt
AddType application/xml .xml
DirectoryIndex index.html
AddOutputFilterByType DEFLATE text/html text/plain
Redirect 301 /raw /café.html
<Directory {pages}>
  Require all granted
</Directory>
<Location /coded.html>
  SetEnv no-gzip 1
  Header set Content-Encoding utf-8
</Location>
<Location /wall.html>
  RewriteEngine On
  RewriteCond %{{HTTP_COOKIE}} !seen=1
  RewriteRule .* /wall.html [R=302,L,CO=seen:1:%{{SERVER_NAME}}:0:/]
</Location>
"""
APACHE_MODULES = "mpm_event authz_core mime dir filter deflate alias headers env rewrite"
LIGHTTPD = """
server.document-root = "{pages}"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{folder}/errors"
server.modules = ("mod_setenv", "mod_redirect", "mod_deflate", "mod_staticfile")
index-file.names = ("index.html")
mimetype.assign = (".html" => "text/html", ".txt" => "text/plain", ".xml" => "application/xml", "" => "text/plain")
deflate.mimetypes = ("text/html", "text/plain")
deflate.allowed-encodings = ("gzip")
url.redirect = ("^/raw$" => "/café.html")
$HTTP["url"] == "/coded.html" {{
  deflate.mimetypes = ()
  setenv.set-response-header = ("Content-Encoding" => "utf-8")
}}
$HTTP["url"] == "/wall.html" {{
  $REQUEST_HEADER["Cookie"] !~ "seen=1" {{
    setenv.add-response-header = ("Set-Cookie" => "seen=1; Path=/")
    url.redirect = ("" => "/wall.html")
    url.redirect-code = 302
  }}
}}
"""
CADDY = """
{{
  admin off
  auto_https off
}}
:{port} {{
  bind 127.0.0.1
  root * {pages}
  encode zstd gzip
  redir /raw /café.html 301
  header /coded.html Content-Encoding utf-8
  @stranger {{
    path /wall.html
    not header Cookie *seen=1*
  }}
  header @stranger Set-Cookie "seen=1; Path=/"
  redir @stranger /wall.html 302
  file_server
}}
"""


def _run_apache(program: str, file: Path) -> list[str]:
    return [program, "-D", "FOREGROUND", "-f", str(file)]


SERVERS: dict[str, tuple[str, Callable[[str, Path], list[str]]]] = {
    "nginx": (NGINX, lambda program, file: [program, "-c", str(file)]),
    "apache2": (APACHE, _run_apache),
    "lighttpd": (LIGHTTPD, lambda program, file: [program, "-D", "-f", str(file)]),
    "caddy": (CADDY, lambda program, file: [program, "run", "--config", str(file), "--adapter", "caddyfile"]),
}


def find_server(name: str) -> str | None:
    """Return the path of a server's program, even if only root has it on the path."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def write_pages(folder: Path) -> None:
    """Write the pages that every server has."""
    (folder / "docs").mkdir(parents=True)
    linked = ("docs", "notes.txt", "README", "raw", "coded.html", "wall.html")
    links = "".join(f'<a href="/{path}">x</a>' for path in linked)
    titles = {
        "index": "Home",
        "docs/index": "Docs",
        **{name: name.title() for name in ("café", "coded", "wall", "listed")},
    }
    for number, (name, title) in enumerate(titles.items()):
        head = f"<!doctype html><meta charset=utf-8><title>{title}</title>"
        body = f"{head}<p>{WORDS * (40 + number)}</p>{links if name == 'index' else ''}"
        (folder / f"{name}.html").write_text(body, encoding="utf-8")
    for name in ("notes.txt", "README"):
        (folder / name).write_text(f"About the {name}\n\n{WORDS * 50}", encoding="utf-8")
    (folder / "sitemap.xml").write_text("<urlset><url><loc>/listed.html</loc></url></urlset>", encoding="utf-8")


@contextmanager
def run_server(name: str, folder: Path) -> Iterator[int]:
    """Run a server over the pages until the end of the block; yield its port."""
    template, command = SERVERS[name]
    program = find_server(name)
    assert program is not None
    own, pages = folder / name, folder / "pages"
    own.mkdir()
    if not pages.exists():
        write_pages(pages)
    port = _find_port()
    modules = "\n".join(
        f"LoadModule {module}_module {path}"
        for module in APACHE_MODULES.split()
        if (path := _find_module(module)) is not None
    )
    file = own / ("Caddyfile" if name == "caddy" else "conf")
    # As root, nginx would give up its rights, and then may not read the pages of this test.
    user = "" if os.getuid() else "user root root;"
    settings = {"folder": own, "pages": pages, "port": port, "modules": modules, "user": user}
    file.write_text(template.format(**settings), encoding="utf-8")
    with (own / "said").open("wb") as said:
        process = subprocess.Popen(
            command(program, file), stdout=said, stderr=said, env={"HOME": str(own), "PATH": "/usr/bin:/bin"}
        )
    try:
        _wait_for(port, process, own / "said")
        yield port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def serve_all(folder: Path, names: Sequence[str]) -> Iterator[dict[str, int]]:
    """Run several servers; yield their ports by name."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(run_server(name, folder)) for name in names}


def _find_module(name: str) -> Path | None:
    places = (Path("/usr/lib/apache2/modules"), Path("/usr/lib64/httpd/modules"), Path("/usr/libexec/apache2"))
    return next((file for place in places if (file := place / f"mod_{name}.so").exists()), None)


def _find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _wait_for(port: int, process: "subprocess.Popen[bytes]", said: Path) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            time.sleep(0.05)  # a server says nothing when it listens
        else:
            return
    pytest.fail(f"the server does not start: {said.read_text(errors='replace')[-500:]}")
