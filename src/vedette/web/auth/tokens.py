"""The operator's token: what opens the console. Of it, too, only a digest is kept."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest

__all__ = ["PREFIX", "digest_of", "fits", "new_token"]

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
