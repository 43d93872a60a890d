"""Walk the commits of a git branch: what each changed in the files that may be pages.

Only *first parents* are followed: the states of the branch itself are what was published. Commits of a merged branch
were never shown there, and their changes arrive with the merge.

A commit's time is its committer's. Clocks are sometimes wrong, so not all are trusted: the longest nondecreasing
subsequence of times is; any other commit takes the time of the last trusted one before it, and if there is none, of the
first. So one clock in 2037, or in 1970, moves only its own commit. Commits of one second are one step: no one can have
seen what was between.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vedette.lab.worlds.git.paths import classify_path
from vedette.lab.worlds.git.repository import GitLocation, Progress, Tip, missing_folder_error

if TYPE_CHECKING:
    import pygit2


FILE_MODES = frozenset({0o100644, 0o100755, 0o100664})  # no symbolic link, no module
# Maximum number of added and removed files in one step for finding renames: the work grows with the square.
MAX_RENAMES = 400
REPORT_EVERY = 200


class Step(NamedTuple):
    """A step of a git branch: all changes within one second, as file to new blob id, None if it was deleted.

    ``renamed`` maps files that appeared to the similar file that disappeared.
    """

    at_s: float
    files: dict[str, bytes | None]
    renamed: dict[str, str]


class Walk(NamedTuple):
    """Result of walking a git branch: all steps in order, the last commit's time, and the missing objects."""

    steps: tuple[Step, ...]
    end_s: float
    missing: int


class _MissingObjectError(Exception):
    """Error: an object that the git repository refers to but lacks."""


def walk_commits(tip: Tip, place: GitLocation, progress: Progress) -> Walk:
    """Walk the commits of a git branch in one folder, from the first on, into steps."""
    commits, missing = tip.list_first_parents()
    times = repair_commit_times([commit.commit_time for commit in commits])
    last_of_second = [row for row, at_s in enumerate(times) if row + 1 == len(times) or times[row + 1] > at_s]
    before: pygit2.Tree | None = None
    there, steps = False, []
    for done, row in enumerate(last_of_second):
        if done % REPORT_EVERY == 0:
            progress(done, len(last_of_second))
        try:
            after = _find_folder(commits[row], place.folder)
            step = _diff_step(times[row], before, after, place.folder)
        except _MissingObjectError:
            missing += 1
            continue
        before, there = after, there or after is not None
        if step.files:
            steps.append(step)
    progress(len(last_of_second), len(last_of_second))
    if not there and not missing:
        raise missing_folder_error(place, tip.commit)
    return Walk(tuple(steps), times[-1], missing)


def repair_commit_times(times: Sequence[int]) -> list[float]:
    """Repair the times of git commits in order, so that none is before its predecessor.

    >>> repair_commit_times([10, 20, 2037, 30, 1, 40])
    [10.0, 20.0, 20.0, 30.0, 30.0, 40.0]
    >>> repair_commit_times([99, 10, 20])
    [10.0, 10.0, 20.0]
    """
    trusted = _longest_nondecreasing(times)
    trusted_times = [float(time) if row in trusted else None for row, time in enumerate(times)]
    last_s = next(time for time in trusted_times if time is not None)
    found = []
    for time in trusted_times:
        last_s = last_s if time is None else time
        found.append(last_s)
    return found


def _longest_nondecreasing(times: Sequence[int]) -> frozenset[int]:
    """Return the rows of a longest nondecreasing subsequence of commit times (patience sorting)."""
    tops: list[int] = []
    rows: list[int] = []
    before: list[int] = []
    for row, time in enumerate(times):
        at = bisect_right(tops, time)
        before.append(rows[at - 1] if at else -1)
        tops[at : at + 1], rows[at : at + 1] = [time], [row]
    chosen, row = [], rows[-1]
    while row >= 0:
        chosen.append(row)
        row = before[row]
    return frozenset(chosen)


def _find_folder(commit: "pygit2.Commit", folder: str) -> "pygit2.Tree | None":
    """Find the tree of a folder in a git commit; None if the commit has no such folder."""
    import pygit2

    try:
        tree: pygit2.Object = commit.tree
        for name in filter(None, folder.split("/")):
            if not isinstance(tree, pygit2.Tree) or name not in tree:
                return None
            tree = tree[name]
    except (KeyError, pygit2.GitError) as error:
        raise _MissingObjectError from error
    return tree if isinstance(tree, pygit2.Tree) else None


def _diff_step(at_s: float, before: "pygit2.Tree | None", after: "pygit2.Tree | None", folder: str) -> Step:
    import pygit2

    if before is None and after is None:
        return Step(at_s, {}, {})
    try:
        diff = _diff_trees(before, after)
        files = dict(_list_changed_files(diff.deltas, folder))
        return Step(at_s, files, _find_renames(diff, files))
    except (KeyError, OSError, pygit2.GitError) as error:
        raise _MissingObjectError from error


def _diff_trees(before: "pygit2.Tree | None", after: "pygit2.Tree | None") -> "pygit2.Diff":
    if before is not None and after is not None:
        return before.diff_to_tree(after)
    if after is not None:
        return after.diff_to_tree(swap=True)
    assert before is not None, "two trees that are not there do not differ"
    return before.diff_to_tree()


def _list_changed_files(deltas: Iterable["pygit2.DiffDelta"], folder: str) -> Iterator[tuple[str, bytes | None]]:
    """List the files that a commit's diff changed and that may be pages, with new blobs; deletions come first."""
    changed = []
    for delta in deltas:
        path = delta.new_file.raw_path.decode(errors="surrogateescape")
        if not classify_path(path, folder):
            continue
        if delta.status_char() != "D" and delta.new_file.mode in FILE_MODES:
            changed.append((path, delta.new_file.id.raw))
        else:
            yield path, None
    yield from changed


def _find_renames(diff: "pygit2.Diff", files: dict[str, bytes | None]) -> dict[str, str]:
    """Find the renames of a commit's diff by git similarity: new file to vanished file; stop at missing content."""
    import pygit2

    gone = sum(blob is None for blob in files.values())
    if not 0 < gone < len(files) or len(files) > MAX_RENAMES:
        return {}
    try:
        diff.find_similar(flags=pygit2.enums.DiffFind.FIND_RENAMES, rename_limit=MAX_RENAMES)
    except (KeyError, OSError, pygit2.GitError):
        return {}
    pairs = (
        (
            delta.new_file.raw_path.decode(errors="surrogateescape"),
            delta.old_file.raw_path.decode(errors="surrogateescape"),
        )
        for delta in diff.deltas
        if delta.status_char() == "R"
    )
    return {new: old for new, old in pairs if files.get(new) and old in files and files[old] is None}
