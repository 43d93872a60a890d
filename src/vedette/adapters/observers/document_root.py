"""Watch a document root at the source: list new, changed and deleted files as URLs of the site.

Files are compared by time and size every few seconds. A notification service of the kernel would be faster, but it
needs a handle per folder and loses events when its queue is full. Changes made while the observer is not running are
found by home's own fetches.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from vedette.errors import UsageError

MAX_FILES = 100_000
INDEX_NAMES = frozenset({"index.html", "index.htm"})


class DocumentRoot:
    """The files in a folder that a site serves under a URL."""

    def __init__(self, folder: Path, url: str) -> None:
        if not folder.is_dir():
            raise UsageError(f"--watch {folder}: there is no such folder")
        self._folder, self._url = folder, url if url.endswith("/") else f"{url}/"
        self._seen = dict(self._scan())

    def find_changed(self) -> list[str]:
        """Find the URLs of files that are new, changed or gone since the last call."""
        now = dict(self._scan())
        changed = [path for path in {**self._seen, **now} if self._seen.get(path) != now.get(path)]
        self._seen = now
        return [self._to_url(path) for path in changed]

    def _scan(self) -> Iterator[tuple[str, tuple[int, int]]]:
        count = 0
        for folder, folders, files in os.walk(self._folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = os.path.join(folder, name)  # noqa: PTH118 - many of them
                try:
                    found = os.stat(path)  # noqa: PTH116 - many of them
                except OSError:
                    continue  # it is gone again
                if name.startswith(".") or count >= MAX_FILES:
                    continue
                count += 1
                yield os.path.relpath(path, self._folder), (found.st_mtime_ns, found.st_size)

    def _to_url(self, path: str) -> str:
        """Return the URL of a file; an index file has the URL of its folder."""
        folder, _, name = path.rpartition("/")
        shown = (f"{folder}/" if folder else "") if name in INDEX_NAMES else path
        return self._url + quote(shown)


def parse_watch(text: str) -> DocumentRoot:
    """Parse a value of ``--watch``: a folder, and the URL under which the site serves it."""
    folder, equals, url = text.partition("=")
    if not equals or not url.startswith(("http://", "https://")):
        raise UsageError(f'--watch "{text}": use FOLDER=URL, such as /var/www/html=https://www.example.org/')
    return DocumentRoot(Path(folder), url)
