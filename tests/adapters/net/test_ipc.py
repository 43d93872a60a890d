"""Messages between processes: complete or not at all, in order, never blocking, and only from the same user."""

import os
import select
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tree_runs import PATIENCE_S

from vedette.adapters.net.ipc import (
    Channel,
    ChannelClosed,
    Hello,
    Request,
    connect,
    decode_message,
    encode_message,
    is_listening,
    is_same_user,
    listen,
)
from vedette.discover.urls.duplicate_rules import CopyRule, CopyRules, RuleSubject
from vedette.engine.messages import (
    Ack,
    ArchiveLocation,
    Content,
    FetchFailure,
    FetchReport,
    FetchSuccess,
    FetchTask,
    HostSettings,
    HostUpdate,
    PagePart,
    PartReply,
    PartRequest,
    Recall,
    Rendering,
    Stop,
    StoredCopy,
    WorkBatch,
)
from vedette.errors import StoreError
from vedette.model import Failure, Origin, Site
from vedette.parse.change.comparison import Change, StoredVersion

NOBODY = 65_534
KNOCK = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sys.stdin.read()
"""
# What a pickle would need to touch a file: as a message it is refused, and nothing is touched.
PICKLED_CALL = b"cpathlib\nPath.touch\n(cpathlib\nPath\n(S'touched'\ntRtR."
IMPOSTOR = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
sock = socket.socket(socket.AF_UNIX)
sock.bind(sys.argv[1])
sock.listen()
print("listening", flush=True)
sys.stdin.read()
"""
# Knocks as soon as there is a name, over and over; says each error but that of a name that is not there (yet).
EAGER = """
import socket, sys
while True:
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(sys.argv[1])
        except FileNotFoundError:
            continue
        except OSError as error:
            print(error, flush=True)
        break
"""

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
answers = st.dictionaries(st.text(max_size=5), plain, max_size=3)
VERSION = StoredVersion(b"\x00\xff", b"text", b"main", b"sketch", -(2**63), b"blob")
COPY = StoredCopy('"e"', "yesterday", "d", "p", 1.5, VERSION, 2.5)
TASK = FetchTask(
    2**32, "h", "http://h/ä", "page", 0.5, 3, 1, ('"e"', ""), COPY, Origin("http", "h", 80), inf, "a=b", "auto", "why",
    PagePart(1, 2, "http://h/", "*/*", 1), 0.25,
)  # fmt: skip
CONTENT = Content(
    VERSION, "utf-8", "en", "about", "http://h/", "noindex", 5, 1.0, 2.0, 0.5, (("spam", "why"),),
    Change(changed=True, share=0.5, links_added=1, links_removed=2, why="main"), ("anchor",), b"\xff", "http://h/",
    is_unmeasured=True, identity=b"\x01",
)  # fmt: skip
SUCCESS = FetchSuccess(
    TASK, 200, 1.0, 2.0, (("etag", "x"),), "feed", "title", ("http://h/1",), (None, 1.0), ("http://h/2",), "http://h/3",
    7, "d", "p", changed=False, place=ArchiveLocation("w0", 1, 2), robots_body=b"\xfe", content=CONTENT,
    unlisted_hosts=("i",), connection_s=0.1, cookies="c=d", is_rebuilt=True, rendering=Rendering(1.0, 2, 3, 4, "none"),
    part_body=b"\x00",
)  # fmt: skip
FAILURE = FetchFailure(TASK, Failure.TIMEOUT, "detail", 1.0, 2.0, 0.5)
RULES = CopyRules((CopyRule(RuleSubject("slash", "h", "*", "drop"), 3, 4),))
# One of each type, with every field set: what cannot be carried is found as soon as a message has it.
MESSAGES = [
    WorkBatch((HostSettings("h", "127.0.0.1", 1.0, None, 2.0, 3, 4.0),), (TASK,), (Site("http://h/"),), RULES, "agent"),
    FetchReport(9, (SUCCESS, FAILURE, SUCCESS), (TASK,), (HostUpdate("h", 1.0, 2, "slow"),), (("w0", 3),)),
    PartRequest("http://h/x", PagePart(1, 2, "http://h/")),
    PartReply(1, 200, "text/css", "no-store", b"\xff"),
    Recall(("h", "i")),
    Ack(2**40),
    Stop(),
    Hello(3, 4),
    Request("push", {"what": "x", "list": [1, None, "a"]}, "id"),
    {"error": "words", "number": 1.5, "nested": {"a": [b"bytes"]}},
]


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel]]:
    """Return two ends of a connection."""
    ours, theirs = map(Channel, socket.socketpair())
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def raw() -> Iterator[tuple[Channel, socket.socket]]:
    """Return a channel whose other end is a plain socket."""
    near, far = socket.socketpair()
    channel = Channel(near)
    yield channel, far
    channel.close()
    far.close()


def packed(message: object) -> bytes:
    """Encode a message for the wire."""
    data = encode_message(message)
    return struct.pack("<Q", len(data)) + data


@given(
    messages=st.lists(answers | st.sampled_from(MESSAGES), max_size=5), cuts=st.lists(st.integers(1, 50), max_size=30)
)
def test_messages_arrive_whole_and_in_order_however_they_are_cut(messages: list[object], cuts: list[int]) -> None:
    """However the stream is split, nothing is delivered in parts, twice or out of order."""
    near, far = socket.socketpair()
    with closing(Channel(near)) as channel, far:
        stream, received = b"".join(map(packed, messages)), []
        for cut in (*cuts, len(stream)):
            far.sendall(stream[:cut])
            stream = stream[cut:]
            received += channel.receive()
        assert received == messages


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message: object) -> None:
    """Types and fields are the same, so the engine decides the same in one process and in several."""
    arrived = decode_message(encode_message(message))
    assert arrived == message
    assert repr(arrived) == repr(message)


def test_nothing_is_here_before_a_message_is_whole(raw: tuple[Channel, socket.socket]) -> None:
    """A partial message is kept until it is complete."""
    channel, far = raw
    data = packed({"whole": 1})
    far.sendall(data[:-1])
    assert channel.receive() == []
    far.sendall(data[-1:] + data[:3])
    assert channel.receive() == [{"whole": 1}]


def test_a_sender_never_waits(pair: tuple[Channel, Channel]) -> None:
    """Data that the socket does not accept stays with the sender until the other side reads."""
    ours, theirs = pair
    letters = [{"body": bytes([number]) * 3_000_000} for number in range(5)]
    for letter in letters:
        ours.send(letter)
    assert len(ours._outbox) > 0
    received: list[object] = []
    for _ in range(1000):
        received += theirs.receive()
        ours.flush()
    assert received == letters
    assert not ours._outbox


def test_a_descriptor_can_be_watched(pair: tuple[Channel, Channel]) -> None:
    """A message wakes up a poller."""
    ours, theirs = pair
    poll = select.poll()
    poll.register(theirs.fd, select.POLLIN)
    assert poll.poll(0) == []
    ours.send(Stop())
    assert [fd for fd, _ in poll.poll(300_000)] == [theirs.fd]


def test_what_was_sent_before_the_end_is_handed_out_first(pair: tuple[Channel, Channel]) -> None:
    """Messages from a peer that closed the connection are still delivered."""
    ours, theirs = pair
    ours.send({"last": "words"})
    ours.close()
    assert theirs.receive() == [{"last": "words"}]
    with pytest.raises(ChannelClosed):
        theirs.receive()


def test_a_peer_that_goes_in_the_middle_of_a_word_is_gone(raw: tuple[Channel, socket.socket]) -> None:
    """A partial message is never delivered."""
    channel, far = raw
    far.sendall(packed({"ne": "ver"})[:-2])
    far.close()
    with pytest.raises(ChannelClosed):
        channel.receive()


def test_sending_to_a_peer_that_is_gone_says_so(pair: tuple[Channel, Channel]) -> None:
    """There is no signal and no other exception."""
    ours, theirs = pair
    theirs.close()
    with pytest.raises(ChannelClosed):
        ours.send(Stop())


def test_a_length_beyond_all_measure_is_not_waited_for(raw: tuple[Channel, socket.socket]) -> None:
    """The sender is disconnected before its message is read, and memory use stays small."""
    channel, far = raw
    far.sendall(struct.pack("<Q", 1 << 62) + b"x" * 1000)
    tracemalloc.start()
    with pytest.raises(ChannelClosed, match="announced"):
        channel.receive()
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff of no known type",
        encode_message({"cut": "off"})[:-3],
        encode_message({"two": "messages"}) * 2,
        encode_message(Ack(1))[:1] + encode_message({"another": "type"})[1:],
        encode_message(FetchReport(1)).replace(b"\x90", b"\x91\x92\xc0\xc0", 1),
        PICKLED_CALL,
    ],
)
def test_what_cannot_be_read_ends_the_connection_and_nothing_else(
    raw: tuple[Channel, socket.socket], data: bytes
) -> None:
    """Garbage and messages of another version disconnect the sender, and the process continues."""
    channel, far = raw
    far.sendall(struct.pack("<Q", len(data)) + data)
    with pytest.raises(ChannelClosed, match="could not be read"):
        channel.receive()


def test_the_garbage_of_a_page_does_not_end_the_fetcher() -> None:
    """Half a surrogate pair in a title is replaced, and the rest of the report arrives unchanged."""
    result = FetchSuccess(TASK, 200, 1.0, 2.0, (), title="a\ud800b", links=("http://h/ä",), robots_body=b"\xff")
    report = FetchReport(1, (result,))
    assert decode_message(encode_message(report)) == report._replace(results=(result._replace(title="a?b"),))


# Places


def test_only_the_owner_can_reach_the_socket(tmp_path: Path) -> None:
    """The file mode does not depend on the umask, which is restored."""
    before = os.umask(0o000)
    try:
        with listen(tmp_path / "s"):
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
            assert os.umask(0o000) == 0o000
    finally:
        os.umask(before)


def test_a_socket_of_a_dead_process_is_replaced(tmp_path: Path) -> None:
    """A leftover of a crash is not in the way."""
    listen(tmp_path / "s").close()
    assert (tmp_path / "s").exists()
    with pytest.raises(ConnectionRefusedError):
        connect(tmp_path / "s")
    with listen(tmp_path / "s") as server:
        channel = Channel(connect(tmp_path / "s"))
        accepted, _ = server.accept()
        with accepted, closing(channel):
            assert is_same_user(accepted)


def test_whoever_sees_the_name_can_connect(tmp_path: Path) -> None:
    """An early worker finds no socket or one that accepts; never one that is not listening yet."""
    for number in range(20):
        path = tmp_path / f"s{number}"
        with subprocess.Popen([sys.executable, "-c", EAGER, str(path)], stdout=subprocess.PIPE) as eager:
            time.sleep(0.05 + number / 1000)
            with listen(path):
                answer, _ = eager.communicate(timeout=PATIENCE_S)
        assert answer == b""


def test_without_a_listener_there_is_no_connection(tmp_path: Path) -> None:
    """The caller gets a system error, and no socket is left open."""
    with pytest.raises(FileNotFoundError):
        connect(tmp_path / "nobody")


def test_a_long_path_is_reached_from_nearby(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond about a hundred bytes, the relative path is used; if that is too long, an error says so."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    with listen(deep / "s"), closing(Channel(connect(deep / "s"))):
        pass
    monkeypatch.chdir("/")
    with pytest.raises(StoreError, match="shorter path"):
        listen(deep / "t")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_socket_of_another_user_is_not_talked_to() -> None:
    """A client refuses a socket that someone else put into the folder, and says why."""
    # Not below the folder of pytest, which each of its runs closes to other users.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        path = Path(name) / "s"
        command = [sys.executable, "-c", IMPOSTOR, str(path), str(NOBODY)]
        # It lives until its input ends.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as impostor:
            assert impostor.stdout is not None
            assert impostor.stdout.readline()
            with pytest.raises(StoreError, match="another user"):
                connect(path)
            assert not is_listening(path)
            impostor.kill()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_a_process_of_another_user_is_not_ours() -> None:
    """The kernel identifies the other end, even if the file's permissions allow access."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        with listen(Path(name) / "s") as server:
            (Path(name) / "s").chmod(0o666)
            command = [sys.executable, "-c", KNOCK, str(Path(name) / "s"), str(NOBODY)]
            with subprocess.Popen(command, stdin=subprocess.PIPE) as stranger:
                server.setblocking(True)
                accepted, _ = server.accept()
                with accepted:
                    assert not is_same_user(accepted)
                assert stranger.stdin is not None
                stranger.stdin.close()
