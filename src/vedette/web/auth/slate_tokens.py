"""The token of a slate: a page carries it, and whoever sends it back was shown that slate.

It is the slate's id, when the slate was made, and a signature over both, so that nobody can tell of slates that were
never shown, and nothing has to be kept to know one again. It says nothing of who searched, or for what.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

__all__ = ["SLATE_SHAPE", "Issued", "read_token", "token_of"]

ID_BYTES = 16
TIME_BYTES = 6  # milliseconds since 1970; enough for some thousands of years
SIGNATURE_BYTES = 14
# The three together fill whole characters of base64, so there is one way only to write a token.
SLATE_SHAPE = r"[A-Za-z0-9_-]{48}"
_PURPOSE = b"vedette slate 1\0"  # what else is signed with the same secret is no token


class Issued(NamedTuple):
    """What a token says: the slate's id, 32 hexadecimal digits, and when it was made (wall time)."""

    slate: str
    at_s: float


def token_of(issued: Issued, secret: bytes) -> str:
    """The token, written so that it can stand anywhere.

    >>> len(token_of(Issued("00" * 16, 1_770_000_000.0), b"secret"))
    48
    """
    at_ms = max(0, int(issued.at_s * 1000)) % (1 << 8 * TIME_BYTES)
    said = bytes.fromhex(issued.slate) + at_ms.to_bytes(TIME_BYTES)
    return urlsafe_b64encode(said + _signature(said, secret)).decode()


def read_token(token: str, secret: bytes) -> Issued | None:
    """What a token says; None where it is not one of ours.

    >>> read_token(token_of(Issued("ab" * 16, 5.25), b"secret"), b"secret")
    Issued(slate='abababababababababababababababab', at_s=5.25)
    >>> read_token(token_of(Issued("ab" * 16, 5.25), b"secret"), b"another") is None
    True
    """
    if not re.fullmatch(SLATE_SHAPE, token):
        return None
    held = urlsafe_b64decode(token)
    said, signature = held[:-SIGNATURE_BYTES], held[-SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _signature(said, secret)):
        return None
    return Issued(said[:ID_BYTES].hex(), int.from_bytes(said[ID_BYTES:]) / 1000)


def _signature(said: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, _PURPOSE + said, "sha256")[:SIGNATURE_BYTES]
