"""Tokens and signatures: signed tokens of slates and ads, hub signatures, and the operator's hashed token.

Written by hand, since ``TimestampSigner`` of itsdangerous 2.2 makes 57 characters of the same id where these are 48,
and counts whole seconds where events need milliseconds: ``len(TimestampSigner("k").sign(b64_of_16_bytes))``.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple

# A slate's token is its id, its creation time, and a signature over both, so that no one can report slates that were
# never shown, and nothing has to be stored to verify one. It says nothing about who searched, or for what.
ID_BYTES = 16
TIME_BYTES = 6  # milliseconds since 1970; enough for some thousands of years
SIGNATURE_BYTES = 14
# The three together fill whole characters of base64, so a token has only one spelling.
TOKEN_PATTERN = r"[A-Za-z0-9_-]{48}"  # noqa: S105 - a pattern
_CONTEXT = b"vedette slate 1\0"  # other values signed with the same secret are no tokens


class TokenClaims(NamedTuple):
    """The claims of a signed token: the slate's id of 32 hexadecimal digits, and when it was issued (wall time)."""

    id: str
    at_s: float


def sign_token(issued: TokenClaims, secret: bytes) -> str:
    """Sign a token's claims; return the token in URL-safe characters.

    >>> len(sign_token(TokenClaims("00" * 16, 1_770_000_000.0), b"secret"))
    48
    """
    at_ms = max(0, int(issued.at_s * 1000)) % (1 << 8 * TIME_BYTES)
    payload = bytes.fromhex(issued.id) + at_ms.to_bytes(TIME_BYTES)
    return urlsafe_b64encode(payload + _sign(payload, secret)).decode()


def verify_token(token: str, secret: bytes) -> TokenClaims | None:
    """Verify a signed token and return its claims; None if the signature is not ours.

    >>> verify_token(sign_token(TokenClaims("ab" * 16, 5.25), b"secret"), b"secret")
    TokenClaims(id='abababababababababababababababab', at_s=5.25)
    >>> verify_token(sign_token(TokenClaims("ab" * 16, 5.25), b"secret"), b"another") is None
    True
    """
    if not re.fullmatch(TOKEN_PATTERN, token):
        return None
    held = urlsafe_b64decode(token)
    payload, signature = held[:-SIGNATURE_BYTES], held[-SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _sign(payload, secret)):
        return None
    return TokenClaims(payload[:ID_BYTES].hex(), int.from_bytes(payload[ID_BYTES:]) / 1000)


def _sign(payload: bytes, secret: bytes) -> bytes:
    return hmac.digest(secret, _CONTEXT + payload, "sha256")[:SIGNATURE_BYTES]


SIGNATURE_METHODS = frozenset({"sha1", "sha256", "sha384", "sha512"})


def is_valid_signature(body: bytes, header: str, secret: str) -> bool:
    """Check the ``X-Hub-Signature`` of a WebSub delivery: ``method=hexdigest``, the HMAC of body and secret.

    >>> is_valid_signature(b"news", "sha256=" + hmac.digest(b"secret", b"news", "sha256").hex(), "secret")
    True
    >>> is_valid_signature(b"news", "md5=00", "secret"), is_valid_signature(b"news", "", "secret")
    (False, False)
    """
    method, _, signature = header.strip().partition("=")
    if method.lower() not in SIGNATURE_METHODS:
        return False
    right = hmac.digest(secret.encode(), body, method.lower()).hex()
    return hmac.compare_digest(right.encode(), signature.strip().lower().encode("utf-8", "replace"))


TOKEN_PREFIX = "vt_"  # noqa: S105 - no secret; so that a token is recognizable wherever it appears
MAX_TOKEN_LENGTH = 200


def create_operator_token(random_bytes: bytes) -> str:
    """Create an operator's token, to be shown once.

    >>> create_operator_token(bytes(32))[:8]
    'vt_AAAAA'
    """
    if len(random_bytes) < 32:
        raise ValueError("a token needs 32 random bytes")
    return TOKEN_PREFIX + urlsafe_b64encode(random_bytes).rstrip(b"=").decode()


def hash_secret(secret: str) -> str:
    """Hash an operator's token or a session's secret for storage; 256 random bits need only one hash."""
    return sha256(secret[:MAX_TOKEN_LENGTH].encode("utf-8", "replace")).hexdigest()


def matches_digest(token: str, digest: str) -> bool:
    """Check in constant time whether an operator's token or session secret matches a stored digest.

    >>> matches_digest("vt_x", hash_secret("vt_x")), matches_digest("", "")
    (True, False)
    """
    return bool(digest) and compare_digest(hash_secret(token), digest)
