"""Messages between observer and home on the wire: MessagePack, signed with the observer's key (HMAC-SHA256).

The key is derived from the data folder's secret, so keys are not stored. The signature includes the direction, so a
reply cannot be sent back as a report.
"""

import hashlib
import hmac
from typing import Literal, TypeVar

import msgspec

KEY_BYTES = 32

Kind = TypeVar("Kind", bound=tuple[object, ...])
_encode = msgspec.msgpack.Encoder().encode


def encode(message: tuple[object, ...]) -> bytes:
    """Encode a message between observer and home, or part of one."""
    return _encode(message)


def decode(kind: type[Kind], data: bytes) -> Kind:
    """Decode a message between observer and home; raise ``ValueError`` if the bytes are not one.

    >>> from vedette.engine.observers.messages import HostPace
    >>> decode(HostPace, encode(HostPace("a.test", 1, 2.5, 0, "")))
    HostPace(name='a.test', epoch=1, wait_s=2.5, failure_streak=0, trouble='')
    """
    return msgspec.msgpack.decode(data, type=kind)


def derive_key(secret: bytes, name: str, generation: int) -> bytes:
    """Derive the key of an observer from the data folder's secret, so that it need not be stored.

    Each enrollment has its own key.


    >>> derive_key(b"secret", "tokyo", 1) == derive_key(b"secret", "tokyo", 2)
    False
    """
    return hmac.digest(secret, f"observer {generation} {name}".encode(), hashlib.sha256)


def sign(key: bytes, direction: Literal["report", "orders"], name: str, body: bytes) -> str:
    """Sign a message from or to an observer.

    >>> sign(b"key", "report", "tokyo", b"body") == sign(b"key", "orders", "tokyo", b"body")
    False
    """
    return hmac.digest(key, f"{direction} {name} ".encode() + body, hashlib.sha256).hex()


def is_signed(key: bytes, direction: Literal["report", "orders"], name: str, body: bytes, signature: str) -> bool:
    """Check the signature of a message from or to an observer, in constant time."""
    return hmac.compare_digest(sign(key, direction, name, body).encode(), signature.encode("utf-8", "replace"))
