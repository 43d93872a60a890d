"""The access log: it is read as written, even if truncated or continued.

Anything else is refused with a clear error.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.errors import UsageError
from vedette.lab.judge.access_log import AccessEntry, AccessLog, LogHeader, open_log, read_log, resolve_redirect

HEADER = LogHeader("made:small 7", 1000.0, 1e9, 1.7e9, 8080)
PLAIN = AccessEntry(1.0, 2.0, 10.0, 20.0, "a.test", "http", 80, "127.0.0.2", "GET", "/", 200, 5, True, "vedette/1")

SECONDS = st.floats(min_value=0, max_value=4e9)
WORDS = st.text(max_size=30)
ENTRIES = st.builds(
    AccessEntry,
    wall_start_s=SECONDS,
    wall_end_s=SECONDS,
    start_s=SECONDS,
    end_s=SECONDS,
    host=WORDS,
    scheme=st.sampled_from(["http", "https"]),
    port=st.integers(0, 65_535),
    address=st.sampled_from(["127.0.0.1", "127.3.2.1"]),
    method=WORDS,
    target=WORDS,
    status=st.integers(0, 999),
    bytes=st.integers(0, 1 << 40),
    whole=st.booleans(),
    agent=WORDS,
    retry_after=st.none() | WORDS,
    location=st.none() | WORDS,
    robots=st.none() | st.binary(max_size=50).map(lambda body: body.decode("utf-8", "surrogateescape")),
)


def written(path: Path, entries: list[AccessEntry]) -> Path:
    """Return a complete log."""
    log = open_log(path, HEADER, 4e9)
    for entry in entries:
        log.add(entry)
    log.close()
    return path


@given(st.lists(ENTRIES, max_size=5, unique_by=lambda entry: entry.start_s))
def test_log_is_read_as_written_in_order_of_start(
    tmp_path_factory: pytest.TempPathFactory, entries: list[AccessEntry]
) -> None:
    """This includes hostile hosts, targets, user agents and robots.txt bodies; each entry is one line of ASCII."""
    path = written(tmp_path_factory.mktemp("log") / "log", entries)
    assert read_log(path) == (HEADER, sorted(entries, key=lambda entry: entry.start_s))
    lines = path.read_bytes().decode("ascii").split("\n")
    assert len([json.loads(line) for line in lines[:-1]]) == 1 + len(entries)


@given(st.binary(max_size=200))
def test_robots_text_gives_its_bytes_back(body: bytes) -> None:
    """Bytes that are not UTF-8 survive JSON."""
    kept = json.loads(json.dumps(body.decode("utf-8", "surrogateescape")))
    assert kept.encode("utf-8", "surrogateescape") == body


def test_torn_last_line_is_left_out_at_every_byte(tmp_path: Path) -> None:
    """If the server is killed while writing, all earlier lines are readable."""
    path = written(tmp_path / "log", [PLAIN, replace(PLAIN, start_s=11.0)])
    data = path.read_bytes()
    last = data.rindex(b"\n", 0, -1) + 1
    for length in range(last, len(data)):
        path.write_bytes(data[:length])
        assert read_log(path) == (HEADER, [PLAIN])


def test_started_again_on_a_torn_log_it_goes_on(tmp_path: Path) -> None:
    """The incomplete line is removed; all earlier and later requests are there."""
    path = written(tmp_path / "log", [PLAIN])
    with path.open("ab") as file:
        file.write(b'{"wall_start_s": 3.')
    later = replace(PLAIN, start_s=30.0, end_s=31.0)
    written(path, [later])
    assert read_log(path) == (HEADER, [PLAIN, later])


def test_nothing_waits_for_close_after_a_flush(tmp_path: Path) -> None:
    """Flushed entries are on disk while the log is still open."""
    log = open_log(tmp_path / "log", HEADER, 0.0)
    log.add(PLAIN)
    log.flush()
    assert read_log(tmp_path / "log") == (HEADER, [PLAIN])
    log.close()
    log.close()


def test_large_robots_do_not_pile_up_in_memory(tmp_path: Path) -> None:
    """Even without a flush, lines are written to the file once they have many bytes."""
    file = (tmp_path / "log").open("wb")
    log = AccessLog(file)
    for _ in range(40):
        log.add(replace(PLAIN, robots="x" * 100_000))
    assert (tmp_path / "log").stat().st_size > 2_000_000
    log.close()


@pytest.mark.parametrize(
    "content",
    [b"", b"hello\n", b"{}\n", b"[]\n", b'{"log":"other"}\n', b"\x89PNG\r\n", b'{"log":"vedette access log 1"}\n'],
)
def test_a_file_that_is_no_log_is_named(content: bytes, tmp_path: Path) -> None:
    """The message names the file and the problem."""
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="notes is not a lab server's access log"):
        read_log(path)


@pytest.mark.parametrize("content", [b"my diary", b"my\ndiary"])
def test_a_file_that_is_no_log_is_never_written_to(content: bytes, tmp_path: Path) -> None:
    """Another file named as the log by mistake stays unchanged."""
    path = tmp_path / "diary"
    path.write_bytes(content)
    with pytest.raises(UsageError):
        open_log(path, HEADER, 0.0)
    assert path.read_bytes() == content


@pytest.mark.parametrize("line", [b"not json\n", b"[1]\n", b'{"host":"a.test"}\n'])
def test_damage_in_the_middle_is_told(line: bytes, tmp_path: Path) -> None:
    """Only the last line may be incomplete; any other damage could hide requests."""
    path = written(tmp_path / "log", [PLAIN])
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(UsageError, match="damaged"):
        read_log(path)


@pytest.mark.parametrize(
    ("header", "now_s", "word"),
    [
        (replace(HEADER, world="made:large 7"), 30.0, "made:large"),
        (replace(HEADER, speed=1.0), 30.0, "speed"),
        (HEADER, 19.0, "time"),
    ],
)
def test_one_log_is_of_one_world_and_its_time_never_goes_back(
    header: LogHeader, now_s: float, word: str, tmp_path: Path
) -> None:
    """A continuation that a judge could not interpret is refused before its first line."""
    path = written(tmp_path / "log", [PLAIN])
    before = path.read_bytes()
    with pytest.raises(UsageError, match=word):
        open_log(path, header, now_s)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("location", "target"),
    [("/b", "http://a.test/b"), ("", "http://a.test/x?y"), ("mailto:a@b", None), ("http://[", None)],
)
def test_redirects_lead_where_browsers_go(location: str, target: str | None) -> None:
    """Targets are relative to the requested URL; None if they are not HTTP."""
    assert resolve_redirect("http://a.test/x?y", location) == target
