"""The minimum cost of a crawler in Python: libcurl fetches, Lexbor finds links, a set stores known URLs.

No robots.txt, no politeness, nothing stored or archived, no text, no fingerprint. The last line is one JSON object.

    python bench/peers/curl_loop.py URL...
"""

import json
import sys
from collections import deque
from io import BytesIO

import ada_url
import pycurl
from selectolax.lexbor import LexborHTMLParser

CONCURRENCY = 200
WAIT_S = 1.0


class Loop:
    """Handles that are free, URLs that wait, URLs that are known."""

    def __init__(self, starts: list[str]) -> None:
        self.pages = 0
        self._known = set(starts)
        self._waiting = deque(starts)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, 2 * CONCURRENCY)
        self._free = [pycurl.Curl() for _ in range(CONCURRENCY)]
        self._under_way: dict[pycurl.Curl, tuple[str, BytesIO]] = {}

    def run(self) -> None:
        """Fetch until nothing waits."""
        while self._waiting or self._under_way:
            while self._waiting and self._free:
                self._ask(self._waiting.popleft(), self._free.pop())
            self._multi.perform()
            _, done, failed = self._multi.info_read()
            for handle in done:
                self._answered(handle)
            if failed:
                raise SystemExit(f"pycurl: {failed[0][2]}")
            if not done:
                self._multi.select(WAIT_S)

    def _ask(self, url: str, handle: pycurl.Curl) -> None:
        body = BytesIO()
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.WRITEDATA, body)
        self._under_way[handle] = url, body
        self._multi.add_handle(handle)

    def _answered(self, handle: pycurl.Curl) -> None:
        url, body = self._under_way.pop(handle)
        self._multi.remove_handle(handle)
        self._free.append(handle)
        if handle.getinfo(pycurl.RESPONSE_CODE) == 200:
            self.pages += 1
            self._follow(url, body.getvalue())

    def _follow(self, base: str, body: bytes) -> None:
        for anchor in LexborHTMLParser(body).css("a[href]"):
            url = ada_url.join_url(base, anchor.attributes["href"] or "")
            if url not in self._known:
                self._known.add(url)
                self._waiting.append(url)


if __name__ == "__main__":
    loop = Loop(sys.argv[1:])
    loop.run()
    sys.stdout.write(json.dumps({"pages": loop.pages}) + "\n")
