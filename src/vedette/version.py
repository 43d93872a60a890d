"""The version of this package, which ``vedette --version`` prints."""

__version__ = "0.1.0"
