"""An answer that comes from a file instead of a server, taken as if it had been fetched then.

It is read like any other answer and gets an archive record of our own. The request that brought it is not invented:
there is none in the archive.
"""

from dataclasses import dataclass
from http import HTTPStatus

from vedette.adapters.archive.warc_record import Exchange, answer_record, digest
from vedette.engine.fetcher.page_reader import read_outcome
from vedette.engine.links import Links
from vedette.engine.messages import Errand, Fetched
from vedette.fetch.body import decode
from vedette.model import Answer, Failure, Headers

__all__ = ["Old", "Replayed", "answer_of", "body_of", "replay"]


@dataclass(frozen=True, slots=True)
class Old:
    """What a server once said: ``payload`` has its content coding still, ``source`` says where it was found."""

    url: str
    fetched_s: float
    status: int
    headers: Headers
    payload: bytes
    source: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """The answer as the keeper would have been told, and its record, packed."""

    result: Fetched
    record: bytes


def replay(old: Old, errand: Errand, links: Links, limit_bytes: int) -> Replayed | Failure:
    """Read it; why not, where its body cannot be unpacked."""
    body = body_of(old, limit_bytes)
    if isinstance(body, Failure):
        return body
    result = read_outcome(errand, answer_of(old, body), links)
    assert isinstance(result, Fetched)
    result = result._replace(payload_digest=digest(old.payload))
    exchange = Exchange(old.url, old.fetched_s, b"", _head(old), old.payload, "")
    return Replayed(result, answer_record(exchange, old.source)[1])


def body_of(old: Old, limit_bytes: int) -> bytes | Failure:
    """Its body without the content coding; why not, where it cannot be unpacked."""
    coding = next((value for name, value in old.headers if name == "content-encoding"), "")
    return decode(old.payload, coding, limit_bytes)


def answer_of(old: Old, body: bytes) -> Answer:
    """As if a server had just said it."""
    return Answer(
        old.url, "page", old.status, old.headers, body, started_s=old.fetched_s, ended_s=old.fetched_s, address=""
    )


def _head(old: Old) -> bytes:
    known = {status.value: status.phrase for status in HTTPStatus}
    lines = [f"HTTP/1.1 {old.status} {known.get(old.status, '')}", *(f"{name}: {value}" for name, value in old.headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
