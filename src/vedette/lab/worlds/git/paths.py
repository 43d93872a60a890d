"""Pages by file path: which files of a git repository are pages, and under what URL a server would show them.

- HTML files (``.html .htm .xhtml``) are pages. If the whole history has more *sources* (``.md .markdown .rst``, and
  ``.txt`` below a folder called ``doc`` or ``docs``) than HTML files, the sources are the pages instead, and the HTML
  files count as templates, which they mostly are there. A world is one or the other, so no page counts twice.
- ``.xml .rss .atom .rdf`` are feeds or sitemaps if the first readable version is one, otherwise no pages.
- An index file is its folder: ``a/index.html`` is ``a/``. If there are several, the first of ``INDEX_FILES`` is shown.
- Hidden files and folders (``.github``) are not served, nor names that are invalid in URLs (``..``, or too long).
- The site of a page is its first folder, and ``/`` for files outside of any. If the first folder is a host name
  (``www.example.org``), the site is that host, and the folder its root.
"""

import re
from urllib.parse import quote_from_bytes

HTML, SOURCE, XML = "html", "source", "xml"
_GROUPS = {
    **dict.fromkeys(("html", "htm", "xhtml"), HTML),
    **dict.fromkeys(("md", "markdown", "rst", "txt"), SOURCE),
    **dict.fromkeys(("xml", "rss", "atom", "rdf"), XML),
}
INDEX_FILES = (
    *("index.html", "index.htm", "index.xhtml"),
    *("index.md", "index.markdown", "_index.md", "index.rst", "index.txt"),
    *("readme.md", "readme.markdown", "readme.rst"),
)
_INDEX_RANKS = {name: rank for rank, name in enumerate(INDEX_FILES)}
# Text files of documentation folders that are meant for programs.
_MACHINE_FILES = re.compile(
    r"(?:requirements.*|constraints.*|robots|cmakelists|humans|security|llms)\.txt", re.IGNORECASE
)
MAX_PATH_LENGTH = 2000
# Not every name with a dot: "setup.py" and "jquery.ui" would be hosts in Paraguay and nowhere.
_HOST = re.compile(
    r"www(?:\.[a-z0-9-]{1,63}){2,8}|(?:[a-z0-9-]{1,63}\.){1,8}(?:com|org|net|edu|gov|io|dev)", re.IGNORECASE
)
_SAFE = "/-._~!$&'()*+,;=:@"


def classify_path(path: str, folder: str = "") -> str:
    """Classify a file of a git repository by its path: ``html``, ``source``, ``xml``, or empty for no page.

    >>> [classify_path(path) for path in ("a/B.HTML", "docs/intro.txt", "intro.txt", ".github/a.md", "../a.html")]
    ['html', 'source', '', '', '']
    """
    if len(path) > MAX_PATH_LENGTH or path.startswith(".") or "/." in path or "//" in path:
        return ""
    group = _GROUPS.get(path[-12:].rpartition(".")[2].lower(), "")
    if group == SOURCE and path[-4:].lower() == ".txt" and not _is_documentation(path, folder):
        return ""
    return group


def _is_documentation(path: str, folder: str) -> bool:
    *folders, name = f"{folder}/{path}".lower().split("/")
    return ("doc" in folders or "docs" in folders) and not _MACHINE_FILES.fullmatch(name)


def page_for_path(path: str) -> tuple[str, int]:
    """Return the page that a file path in a git repository becomes, and its rank among that page's files.

    >>> page_for_path("a/index.htm"), page_for_path("a/b.html"), page_for_path("index.html")
    (('a/', 1), ('a/b.html', 0), ('', 0))
    """
    folder, slash, name = path.rpartition("/")
    rank = _INDEX_RANKS.get(name.lower())
    return (path, 0) if rank is None else (folder + slash, rank)


def is_host(name: str) -> bool:
    """Check whether a folder of a git repository is named like a host: starts with ``www.`` or has an old TLD.

    >>> [is_host(name) for name in ("www.example.fr", "example.org", "1.2.x", "blog", "setup.py", "org")]
    [True, True, False, False, False, False]
    """
    return bool(_HOST.fullmatch(name))


def site_for_page(page: str) -> str:
    """Return the site of a page of a git repository: its host folder or first folder.

    >>> site_for_page("blog/2020/a.html"), site_for_page("about.html"), site_for_page("www.example.org/a.html")
    ('/blog/', '/', 'www.example.org')
    """
    first, slash, _ = page.partition("/")
    if not slash:
        return "/"
    return first.lower() if is_host(first) else f"/{first}/"


def page_url(page: str, host: str) -> str:
    """Return the URL of a git page in a world that is served at a host.

    >>> page_url("a/b c.html", "docs.invalid"), page_url("www.example.org/a/", "docs.invalid")
    ('https://docs.invalid/a/b%20c.html', 'https://www.example.org/a/')
    """
    first, slash, rest = page.partition("/")
    if slash and is_host(first):
        host, page = first.lower(), rest
    return f"https://{host}/{quote_from_bytes(page.encode(errors='surrogateescape'), _SAFE)}"
