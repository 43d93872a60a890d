"""Receive alerts about new pages, and refuse messages that Vedette did not sign.

    vedette watch add news --site "*" --webhook http://127.0.0.1:9000/
    python examples/webhook_receiver.py 9000 whsec_SECRET

``vedette watch add`` prints the secret. A receiver on a private address must be listed in ``serve.webhook_networks``.
"""

import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

MAX_AGE_S = 300
MAX_BYTES = 1_000_000


def is_signed(secret: str, header: str, body: bytes) -> bool:
    """Check a message's signature and age, so that no one else can send or replay one."""
    stamp, _, digest = header.removeprefix("t=").partition(",v1=")
    wanted = hmac.digest(secret.encode(), stamp.encode() + b"." + body, "sha256").hex()
    is_ours = hmac.compare_digest(digest.encode(), wanted.encode())
    return is_ours and abs(time.time() - int(stamp)) < MAX_AGE_S


class Receiver(BaseHTTPRequestHandler):
    """Handler that prints the new pages of each signed message once; a message may come twice, with the same id."""

    secret = ""
    seen: set[str] = set()  # noqa: RUF012 - shared by all requests on purpose

    def do_POST(self) -> None:
        """Answer 204 to a signed message, 403 to any other."""
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), MAX_BYTES))
        if not is_signed(self.secret, self.headers.get("X-Vedette-Signature", ""), body):
            self.send_error(403, "not signed by this Vedette")
            return
        message = json.loads(body)
        if message["id"] not in self.seen:
            self.seen.add(message["id"])
            for item in message["items"]:
                print(f"{item['title']}  {item['url']}", flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """Print nothing else."""


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Receiver.secret = sys.argv[2]
    server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
    print(f"Listening on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
