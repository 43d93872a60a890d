"""Settings that are on or off."""

from dataclasses import dataclass

from vedette.errors import ConfigError

__all__ = ["Switch"]

_WORDS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Switch:
    """True or false; on a command line it comes as a word.

    >>> Switch().read("false"), Switch().read(True), Switch().write(False)
    (False, True, 'false')
    """

    def read(self, value: object) -> bool:
        """What the file has, checked."""
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value in _WORDS:
            return _WORDS[value]
        raise ConfigError("write true or false")

    def write(self, value: bool) -> str:  # noqa: FBT001 - what is written is the value itself
        """As the file would have it."""
        return "true" if value else "false"
