"""Whether a hub signed what it sent with the secret that it was given (WebSub, section 7.1)."""

import hmac

__all__ = ["is_signed"]

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
