"""The documentation as a site: every page can be reached from the first one, and there are no dead links."""

import re
from collections import deque

from vedette.lab.worlds.docs_site import DOCS_HOST, open_docs_site
from vedette.lab.worlds.world import WorldRequest


def test_every_page_is_reached_by_links_that_work() -> None:
    """Following links from the first page reaches exactly all pages."""
    site = open_docs_site()
    seen, waiting = {"/"}, deque(["/"])
    while waiting:
        answer = site.reply(WorldRequest(DOCS_HOST, waiting.popleft()), 0.0)
        assert answer.status == 200
        for path in re.findall(r'href="(/[^"#]*)', answer.body.decode()):
            if path not in seen:
                seen.add(path)
                waiting.append(path)
    assert seen == set(site.replies)
    assert {"/docs/configuration.html", "/docs/results/order.html"} <= seen


def test_a_page_that_is_known_is_not_sent_again() -> None:
    """The ETag of a page validates it; a missing page is a 404."""
    site = open_docs_site()
    (tag,) = (value for name, value in site.replies["/"].headers if name == "etag")
    again = site.reply(WorldRequest(DOCS_HOST, "/", if_none_match=tag), 0.0)
    assert (again.status, again.body) == (304, b"")
    assert site.reply(WorldRequest(DOCS_HOST, "/none.html"), 0.0).status == 404
