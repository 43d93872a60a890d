"""The access log never has a later end of a response than the client saw, which would look like a violation."""

import socket
from pathlib import Path
from threading import Thread

from vedette.lab.judge.access_log import read_log
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.lab.worlds.world import Delivery, Reply, WorldHost, WorldRequest

CLIENTS = 8
REQUESTS = 40


class LateMoves:
    """Redirects every request, after a short delay and without a body."""

    name = "late moves"
    start_s = 1_000_000_000.0

    def hosts(self) -> tuple[WorldHost, ...]:
        """Return the only host."""
        return (WorldHost("moved.test", "127.0.0.2"),)

    def reply(self, question: WorldRequest, now_s: float) -> Reply:  # noqa: ARG002 - it is the same always
        """Return a redirect."""
        return Reply(301, (("location", f"{question.target}/"),), b"", Delivery(wait_s=0.002))


def late_moves(seed: int) -> LateMoves:
    """Return the world for a child process, which opens it by name and seed."""
    assert seed >= 0
    return LateMoves()


def ask_often(web: ServerHandle, client: int, had_s: dict[str, float]) -> None:
    """Send requests on one connection, and record when each response arrived."""
    with socket.create_connection(("127.0.0.2", web.port)) as connection:
        for number in range(REQUESTS):
            target = f"/{client}/{number}"
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: moved.test\r\n\r\n".encode())
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += connection.recv(65_536)
            had_s[target] = web.clock.wall_now()


def test_an_answer_without_a_body_ends_with_its_head(tmp_path: Path) -> None:
    """The logged end is never later than the client's receipt, even if the server was busy."""
    had_s: dict[str, float] = {}
    with start_server("tests.lab.worlds.synthetic.test_log_times:late_moves", log_path=tmp_path / "log") as web:
        threads = [Thread(target=ask_often, args=(web, client, had_s)) for client in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    entries = read_log(tmp_path / "log")[1]
    assert len(entries) == CLIENTS * REQUESTS
    assert [entry.target for entry in entries if entry.wall_end_s > had_s[entry.target]] == []
