"""Versions of the pages of real web sites, out of their git histories.

The newest version of every page comes first, then the one before it, and so on; those of equal age in the order of
their hashes. So the same histories give the same versions.
"""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import xxhash

__all__ = ["SITES", "Version", "bodies_of", "versions"]

# Repository, the folder of its built pages, and the host that serves them.
SITES = (
    ("apache+kafka-site", "", "kafka.apache.org"),
    ("apache+incubator", "content/", "incubator.apache.org"),
    ("apache+flink-web", "content/", "flink.apache.org"),
)
BRANCH = "asf-site"
AT_ONCE = 500


class Version(NamedTuple):
    """A page as it was once; ``age`` counts the newer versions that it has."""

    age: int
    site: str
    url: str
    blob: str


def versions(histories: Path) -> list[Version]:
    """Every version of every page, each once."""
    found = [version for about in SITES for version in _versions_of(histories, *about)]
    return sorted(found, key=lambda version: (version.age, xxhash.xxh64_intdigest(version.blob.encode())))


def bodies_of(histories: Path, some: Sequence[Version]) -> Iterator[tuple[Version, bytes]]:
    """Versions with their bytes, in order, except for those that a copy of the history does not have."""
    for at in range(0, len(some), AT_ONCE):
        piece = some[at : at + AT_ONCE]
        content = {site: _contents(histories, site, piece) for site, _, _ in SITES}
        for version in piece:
            body = next(content[version.site])
            if body is not None:
                yield version, body


def _git(histories: Path, site: str, *words: str, told: bytes = b"") -> bytes:
    command = ["git", "--git-dir", str(histories / site / "repo"), *words]
    return subprocess.run(command, input=told, stdout=subprocess.PIPE, check=True).stdout


def _versions_of(histories: Path, site: str, root: str, host: str) -> list[Version]:
    wanted = ["--first-parent", "--diff-filter=AM", "--no-renames", "--raw", "--no-abbrev", "--format="]
    log = _git(histories, site, "-c", "core.quotePath=false", "log", BRANCH, *wanted, "--", f"{root}*.html")
    found: dict[str, Version] = {}
    newer: dict[str, int] = {}
    for line in filter(None, log.decode("utf-8", "replace").splitlines()):
        about, _, path = line.partition("\t")
        blob = about.split()[3]
        if blob not in found:
            found[blob] = Version(newer.get(path, 0), site, f"http://{host}/{path.removeprefix(root)}", blob)
            newer[path] = newer.get(path, 0) + 1
    return list(found.values())


def _contents(histories: Path, site: str, some: Sequence[Version]) -> Iterator[bytes | None]:
    """The bytes of a site's versions; None if missing."""
    blobs = [version.blob for version in some if version.site == site]
    content = _git(histories, site, "cat-file", "--batch", told="".join(f"{blob}\n" for blob in blobs).encode())
    at = 0
    for _ in blobs:
        start = content.index(b"\n", at) + 1
        about = content[at : start - 1].split()
        is_there = about[1] != b"missing"
        at = start + int(about[2]) + 1 if is_there else start
        yield content[start : at - 1] if is_there else None
