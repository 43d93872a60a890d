"""Git repositories: opened by ``PATH[#branch[:folder]]``, their commits, their blobs, and processes that read them."""

import difflib
import multiprocessing
import os
import re
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vedette.adapters.subprocesses import die_with_parent, ignore_sigint, is_orphan
from vedette.errors import UsageError

if TYPE_CHECKING:
    import pygit2


Progress = Callable[[int, int], None]
MAX_PROCESSES = 8
MAX_NAMES = 8  # that a message lists
REPOSITORY_NAMES = ("repo", ".git")  # the name of the repository in a folder that contains nothing else


class GitLocation(NamedTuple):
    """Location in a git repository: path, branch (empty: HEAD's) and folder (empty: all of it)."""

    path: str
    branch: str = ""
    folder: str = ""

    @property
    def label(self) -> str:
        """Return a short label of the git repository for a host or a file, of letters, digits and hyphens.

        >>> GitLocation("/srv/apache+kafka-site/repo", "asf-site").label, GitLocation("/srv/Docs.git/").label
        ('apache-kafka-site', 'docs')
        """
        parts = [part for part in Path(self.path).parts if part not in REPOSITORY_NAMES]
        name = parts[-1].lower().removesuffix(".git") if parts else ""
        return re.sub(r"[^a-z0-9]+", "-", name)[:60].strip("-") or "history"


def parse_location(written: str) -> GitLocation:
    """Parse a typed git location ``PATH[#branch[:folder]]``, with or without ``git:`` in front.

    >>> parse_location("git:/srv/site.git#asf-site:content/")
    GitLocation(path='/srv/site.git', branch='asf-site', folder='content')
    """
    path, _, rest = written.removeprefix("git:").partition("#")
    branch, _, folder = rest.partition(":")
    if not path:
        raise UsageError("a git world needs a repository: use git:PATH, git:PATH#branch or git:PATH#branch:folder")
    return GitLocation(path, branch, folder.strip("/"))


class Tip(NamedTuple):
    """Tip of a git branch: an open repository and the last commit of the branch."""

    repository: "pygit2.Repository"
    commit: "pygit2.Commit"

    def list_first_parents(self) -> tuple[list["pygit2.Commit"], int]:
        """List the git branch's first-parent commits, oldest first, and whether (1) the chain breaks early."""
        import pygit2

        found = [self.commit]
        while found[-1].parent_ids:
            parent: object = self.repository.get(found[-1].parent_ids[0])
            if not isinstance(parent, pygit2.Commit):
                return found[::-1], 1
            found.append(parent)
        return found[::-1], 0


def open_tip(place: GitLocation) -> Tip:
    """Open the git repository of a location for reading, and find the tip of its branch."""
    repository = _open_repository(place.path)
    if repository.is_shallow:
        raise UsageError(f"{place.path}: shallow clone without its full history; run: git fetch --unshallow")
    return Tip(repository, _find_commit(repository, place))


def missing_folder_error(place: GitLocation, commit: "pygit2.Commit") -> UsageError:
    """Build the error for a folder that the git branch never had, with suggestions."""
    folders = [entry.name or "" for entry in commit.tree if entry.type_str == "tree"]
    advice = _suggest_names(place.folder, folders)
    return UsageError(f'{place.path}: there was never a folder "{place.folder[:80]}" on this branch; {advice}')


def _open_repository(path: str) -> "pygit2.Repository":
    try:
        import pygit2
    except ImportError:
        raise UsageError('git worlds need pygit2: run pip install "vedette[lab]"') from None
    for tried in (Path(path), Path(path) / REPOSITORY_NAMES[0]):
        try:
            return pygit2.Repository(str(tried))
        except (pygit2.GitError, KeyError, OSError, ValueError) as error:
            reason = error
    if Path(path).exists():
        raise UsageError(f"cannot read {path} as a git repository ({str(reason)[:120]})")
    raise UsageError(f"{path}: no such repository; pass the path to a clone (may be bare)")


def _find_commit(repository: "pygit2.Repository", place: GitLocation) -> "pygit2.Commit":
    import pygit2

    branches = sorted(repository.branches)
    if not branches and repository.is_empty:
        raise UsageError(f"{place.path}: the repository is empty")
    try:
        if place.branch:
            return repository.branches[place.branch].peel(pygit2.Commit)
        return repository.head.peel(pygit2.Commit)
    except (pygit2.GitError, KeyError, ValueError):
        wanted = f'there is no branch "{place.branch[:80]}"' if place.branch else "HEAD points to no existing branch"
        raise UsageError(f"{place.path}: {wanted}; {_suggest_names(place.branch, branches)}") from None


def _suggest_names(wanted: str, names: Sequence[str]) -> str:
    """Suggest existing branch or folder names of a git repository, those spelled alike first."""
    near = difflib.get_close_matches(wanted, names, MAX_NAMES)
    shown = [*near, *(name for name in names if name not in near)][:MAX_NAMES]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"there are: {', '.join(shown)}{more}" if shown else "there are none"


def find_blob(repository: "pygit2.Repository", blob: bytes) -> "pygit2.Blob | None":
    """Find a blob in the git repository by its id; None if it is missing, unreadable or not a blob."""
    import pygit2

    try:
        found = repository[pygit2.Oid(raw=blob)]
    except (KeyError, OSError, ValueError, pygit2.GitError):
        return None
    return found if isinstance(found, pygit2.Blob) else None


@cache
def reopen_repository(path: str) -> "pygit2.Repository":
    """Open a git repository once in each process that reads it."""
    import pygit2

    return pygit2.Repository(path)


def worker_count() -> int:
    """Return how many processes should read a git repository; one inside a pool, which may have no children."""
    return 1 if multiprocessing.current_process().daemon else min(len(os.sched_getaffinity(0)), MAX_PROCESSES)


@contextmanager
def open_process_pool(processes: int) -> Generator[ProcessPoolExecutor]:
    """Open a pool of processes to read a git repository; work not begun at exit is cancelled."""
    # Not forked: a copy of a process with threads may wait forever for a lock that one of them held.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_init_worker, initargs=(os.getpid(),))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _init_worker(parent: int) -> None:
    ignore_sigint()
    die_with_parent()
    if is_orphan(parent):
        os._exit(1)
