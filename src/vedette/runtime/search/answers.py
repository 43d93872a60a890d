"""Answer writer: ask the language model that the operator configured."""

import os
import sys
from pathlib import Path

from vedette.adapters.net.chat_client import ChatClient
from vedette.adapters.net.http import ConnectionSettings
from vedette.config import Serve
from vedette.errors import ConfigError
from vedette.serve.answers import build_messages
from vedette.serve.slate import Passage
from vedette.web.public.answers import WrittenReply

MAX_KEY_BYTES = 8192


class ModelAnswerWriter:
    """A ``web.public.answers.AnswerWriter`` that asks the API at ``serve.answer_endpoint``."""

    def __init__(self, serve: Serve, way: ConnectionSettings) -> None:
        key = read_key(serve.answer_key)
        self._client = ChatClient(serve.answer_endpoint, serve.answer_model, key, serve.answer_timeout_s, way)
        self._max_tokens = serve.answer_tokens

    def write(self, question: str, passages: list[Passage]) -> WrittenReply:
        """Write an answer to a question from passages; log a failure without the question."""
        reply = self._client.ask(build_messages(question, passages), self._max_tokens)
        if reply.error:
            sys.stderr.write(f"vedette: no answer from serve.answer_endpoint: {reply.error!r}\n")
        return WrittenReply(reply.text, reply.error)


def read_key(place: str) -> str:
    """Read the key of the answer API from where the configuration says it is; empty if it says nothing.

    >>> read_key("env:NO_SUCH_VARIABLE")
    Traceback (most recent call last):
    vedette.errors.ConfigError: serve.answer_key: set the environment variable NO_SUCH_VARIABLE
    """
    kind, _, rest = place.partition(":")
    if not place:
        return ""
    try:
        key = os.environ[rest] if kind == "env" else Path(rest).read_text("utf-8")[:MAX_KEY_BYTES]
    except KeyError:
        raise ConfigError(f"serve.answer_key: set the environment variable {rest}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"serve.answer_key: cannot read {rest} ({error})") from None
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable():
        raise ConfigError(f"serve.answer_key: {rest} must contain a key on one line")
    return key
