"""The body of a request, read whole before any route sees it: so none can forget that it must be small."""

import json

from starlette.types import Message, Receive

__all__ = ["LONGEST_BODY", "again", "json_value", "whole_body"]

LONGEST_BODY = 65_536


async def whole_body(receive: Receive, most: int = LONGEST_BODY) -> bytes | None:
    """All that is sent; None for what is longer than ``most``, or what its sender did not finish."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def again(body: bytes, receive: Receive) -> Receive:
    """As if the body came only now; after it comes what comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def json_value(body: bytes) -> object:
    """What a body says; None where it is no JSON, or holds half of a surrogate pair, which no text can."""
    try:
        value: object = json.loads(body)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value
