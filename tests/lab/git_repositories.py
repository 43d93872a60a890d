"""Create small repositories with real git objects: commits with any files, times and parents."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pygit2

TREE, FILE = 0o40000, 0o100644
WHO = ("A", "a@example.org")


class Repository:
    """A bare repository in a folder; commits are made from whole states (path: content)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git = pygit2.init_repository(str(path), bare=True)

    def commit(self, files: Mapping[bytes, bytes], at_s: int, *parents: pygit2.Oid) -> pygit2.Oid:
        """Commit exactly these files."""
        who = pygit2.Signature(*WHO, at_s, 0)
        return self.git.create_commit(None, who, who, "x", self.tree(files), list(parents))

    def branch(self, name: str, *states: tuple[int, Mapping[bytes, bytes]]) -> str:
        """Create a branch with one commit per time and state; return its name as a world."""
        tip: tuple[pygit2.Oid, ...] = ()
        for at_s, files in states:
            tip = (self.commit(files, at_s, *tip),)
        return self.name(name, tip[0])

    def name(self, name: str, tip: pygit2.Oid) -> str:
        """Make a branch point to a commit; return its name as a world."""
        self.git.references.create(f"refs/heads/{name}", tip, force=True)
        return f"git:{self.path}#{name}"

    def tree(self, files: Mapping[bytes, bytes]) -> pygit2.Oid:
        """Return a tree of files, written byte by byte, so that it can have any name."""
        inner: dict[bytes, dict[bytes, bytes]] = {}
        rows: dict[bytes, tuple[int, pygit2.Oid]] = {}
        for path, content in files.items():
            first, slash, rest = path.partition(b"/")
            if slash:
                inner.setdefault(first, {})[rest] = content
            else:
                rows[first] = (FILE, self.git.create_blob(content))
        rows |= {name: (TREE, self.tree(below)) for name, below in inner.items()}
        ordered = sorted(rows, key=lambda name: name + (b"/" if rows[name][0] == TREE else b""))
        raw = b"".join(b"%o %s\0%s" % (rows[name][0], name, rows[name][1].raw) for name in ordered)
        written: Any = self.git.write(pygit2.GIT_OBJECT_TREE, raw)
        assert isinstance(written, pygit2.Oid)
        return written

    def lose(self, blob: bytes) -> None:
        """Delete the object of a content."""
        name = str(pygit2.hash(blob))
        (self.path / "objects" / name[:2] / name[2:]).unlink()
