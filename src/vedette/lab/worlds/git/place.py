"""Where a git history is: ``PATH[#branch[:folder]]``, and what to type where there is none."""

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vedette.errors import UsageError

if TYPE_CHECKING:
    import pygit2

__all__ = ["Place", "Tip", "folder_names", "no_folder", "open_tip", "read_place"]

MOST_NAMES = 8  # that a message lists
INNER = ("repo", ".git")  # how a folder that holds nothing but a repository calls it


class Place(NamedTuple):
    """A repository, a branch (empty: the one that HEAD names) and a folder in it (empty: all of it)."""

    path: str
    branch: str = ""
    folder: str = ""

    @property
    def label(self) -> str:
        """A short name for a host or a file, of letters, digits and hyphens.

        >>> Place("/srv/apache+kafka-site/repo", "asf-site").label, Place("/srv/Docs.git/").label
        ('apache-kafka-site', 'docs')
        """
        parts = [part for part in Path(self.path).parts if part not in INNER]
        name = parts[-1].lower().removesuffix(".git") if parts else ""
        return re.sub(r"[^a-z0-9]+", "-", name)[:60].strip("-") or "history"


def read_place(written: str) -> Place:
    """The place that somebody wrote, with or without ``git:`` before it.

    >>> read_place("git:/srv/site.git#asf-site:content/")
    Place(path='/srv/site.git', branch='asf-site', folder='content')
    """
    path, _, rest = written.removeprefix("git:").partition("#")
    branch, _, folder = rest.partition(":")
    if not path:
        raise UsageError("a git world needs a repository: write git:PATH, git:PATH#branch or git:PATH#branch:folder")
    return Place(path, branch, folder.strip("/"))


class Tip(NamedTuple):
    """An open repository and the last commit of the branch that is asked for."""

    repository: "pygit2.Repository"
    commit: "pygit2.Commit"


def open_tip(place: Place) -> Tip:
    """The repository of a place, opened for reading, and the end of its branch."""
    repository = _opened(place.path)
    if repository.is_shallow:
        raise UsageError(f"{place.path}: is a shallow clone, its past is cut off; type: git fetch --unshallow")
    return Tip(repository, _commit(repository, place))


def folder_names(commit: "pygit2.Commit") -> list[str]:
    """The folders at the top of a commit's tree."""
    return [entry.name or "" for entry in commit.tree if entry.type_str == "tree"]


def no_folder(place: Place, commit: "pygit2.Commit") -> UsageError:
    """What to say where a folder was never there."""
    known = _known(place.folder, folder_names(commit))
    return UsageError(f'{place.path}: never had a folder "{place.folder[:80]}" on this branch; {known}')


def _opened(path: str) -> "pygit2.Repository":
    try:
        import pygit2
    except ImportError:
        raise UsageError('git worlds need pygit2; type: pip install "vedette[lab]"') from None
    for tried in (Path(path), Path(path) / INNER[0]):
        try:
            return pygit2.Repository(str(tried))
        except (pygit2.GitError, KeyError, OSError, ValueError) as error:
            reason = error
    if Path(path).exists():
        raise UsageError(f"{path}: cannot be read as a git repository ({str(reason)[:120]})")
    raise UsageError(f"{path}: there is no such repository; write the path of a clone, bare or not")


def _commit(repository: "pygit2.Repository", place: Place) -> "pygit2.Commit":
    import pygit2

    branches = sorted(repository.branches)
    if not branches and repository.is_empty:
        raise UsageError(f"{place.path}: the repository is empty")
    try:
        if place.branch:
            return repository.branches[place.branch].peel(pygit2.Commit)
        return repository.head.peel(pygit2.Commit)
    except (pygit2.GitError, KeyError, ValueError):
        wanted = f'there is no branch "{place.branch[:80]}"' if place.branch else "HEAD names no branch that is there"
        raise UsageError(f"{place.path}: {wanted}; {_known(place.branch, branches)}") from None


def _known(wanted: str, names: Sequence[str]) -> str:
    """The names that there are, those first that are spelled nearly so."""
    near = difflib.get_close_matches(wanted, names, MOST_NAMES)
    shown = [*near, *(name for name in names if name not in near)][:MOST_NAMES]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"there are: {', '.join(shown)}{more}" if shown else "there are none"
