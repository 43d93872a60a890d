"""The endpoint of observers where there are none: a cluster or a server of its own says so."""

from tests.web.small_operator import Console

from vedette.engine.observers.messages import EXCHANGE_PATH


def test_a_server_without_observers_says_so() -> None:
    """An observer prints this line, so it says what to do."""
    reply = Console().client.post(EXCHANGE_PATH, content=b"x")
    assert reply.status_code == 501
    assert "not to a cluster" in reply.text
    assert reply.text.count("\n") == 1
