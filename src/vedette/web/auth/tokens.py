"""The operator's token: what opens the console. Of it, too, only a digest is kept."""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple

__all__ = ["PREFIX", "SLATE_SHAPE", "Issued", "digest_of", "fits", "is_signed", "new_token", "read_token", "token_of"]

# It is the slate's id, when the slate was made, and a signature over both, so that nobody can tell of slates that were
# never shown, and nothing has to be kept to know one again. It says nothing of who searched, or for what.


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


METHODS = frozenset({"sha1", "sha256", "sha384", "sha512"})


def is_signed(body: bytes, header: str, secret: str) -> bool:
    """Whether ``X-Hub-Signature`` is right: the name of a method, and in hexadecimal what it makes of body and secret.

    >>> is_signed(b"news", "sha256=" + hmac.digest(b"secret", b"news", "sha256").hex(), "secret")
    True
    >>> is_signed(b"news", "md5=00", "secret"), is_signed(b"news", "", "secret")
    (False, False)
    """
    method, _, told = header.strip().partition("=")
    if method.lower() not in METHODS:
        return False
    right = hmac.digest(secret.encode(), body, method.lower()).hex()
    return hmac.compare_digest(right.encode(), told.strip().lower().encode("utf-8", "replace"))


PREFIX = "vt_"  # so that a token is known for one, wherever it is found
LONGEST = 200


def new_token(random_bytes: bytes) -> str:
    """A token to be shown once.

    >>> new_token(bytes(32))[:8]
    'vt_AAAAA'
    """
    if len(random_bytes) < 32:
        raise ValueError("a token is made of 32 random bytes")
    return PREFIX + urlsafe_b64encode(random_bytes).rstrip(b"=").decode()


def digest_of(secret: str) -> str:
    """By what a token or the secret of a session is kept; nobody guesses 256 random bits, so one hash is enough."""
    return sha256(secret[:LONGEST].encode("utf-8", "replace")).hexdigest()


def fits(token: str, digest: str) -> bool:
    """Whether this is the token of a digest. How long it takes tells nothing.

    >>> fits("vt_x", digest_of("vt_x")), fits("", "")
    (True, False)
    """
    return bool(digest) and compare_digest(digest_of(token), digest)
