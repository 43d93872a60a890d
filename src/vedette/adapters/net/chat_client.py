"""Client of a chat completion API as OpenAI defined it, which many servers of language models have.

Redirects are not followed, so that what is sent goes to the configured server only. Every outcome is a value.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from math import ceil
from typing import NamedTuple

import pycurl

from vedette.adapters.net.http import DIRECT, CaBundle, ConnectionSettings, Limits, create_handle

MAX_BYTES = 1 << 20
CONNECT_TIMEOUT_S = 5.0


class ChatReply(NamedTuple):
    """The reply of a language model, or why there is none."""

    text: str = ""
    error: str = ""


class ChatClient:
    """Asks a language model through the API at ``endpoint``; may be called from several threads."""

    def __init__(self, endpoint: str, model: str, key: str, timeout_s: float, way: ConnectionSettings = DIRECT) -> None:
        self._url = f"{endpoint.rstrip('/')}/chat/completions"
        self._model, self._way = model, way
        self._headers = ["Content-Type: application/json", "Accept: application/json", "Expect:"]
        self._headers += [f"Authorization: Bearer {key}"] if key else []
        # A model may think for long before it writes.
        self._limits = Limits(CONNECT_TIMEOUT_S, timeout_s, MAX_BYTES, slow_s=ceil(timeout_s) + 1)
        self._roots = CaBundle(way.ca_file)

    def ask(self, messages: Sequence[dict[str, str]], max_tokens: int) -> ChatReply:
        """Send messages and return the text of the reply; whatever else it contains, such as tool calls, is ignored."""
        body = {
            "model": self._model,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": False,
        }
        return self._post(json.dumps(body).encode())

    def close(self) -> None:
        """Close the client."""
        self._roots.close()

    def _post(self, body: bytes) -> ChatReply:
        curl, answer = create_handle(self._limits, self._way, self._roots), BytesIO()

        def receive(data: bytes) -> int:
            answer.write(data)
            return len(data) if answer.tell() <= self._limits.body_bytes else -1

        try:
            curl.setopt(pycurl.URL, self._url)
            curl.setopt(pycurl.HTTPHEADER, self._headers)
            curl.setopt(pycurl.POSTFIELDS, body)
            curl.setopt(pycurl.WRITEFUNCTION, receive)
            curl.perform()
            status = curl.getinfo(pycurl.RESPONSE_CODE)
        except pycurl.error as error:
            return ChatReply(error=str((*error.args, "")[1])[:200] or "the connection failed")
        finally:
            curl.close()
        return parse_reply(answer.getvalue()) if status == 200 else ChatReply(error=f"it returned status {status}")


def parse_reply(body: bytes) -> ChatReply:
    """Parse the text of a chat completion.

    >>> parse_reply(b'{"choices": [{"message": {"content": "At noon [1].", "tool_calls": [{}]}}]}').text
    'At noon [1].'
    """
    with suppress(ValueError, LookupError, TypeError, RecursionError):
        text = json.loads(body)["choices"][0]["message"]["content"]
        if isinstance(text, str):
            return ChatReply(text)
    return ChatReply(error="its reply has no text")
