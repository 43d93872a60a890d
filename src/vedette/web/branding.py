"""How the pages present themselves: the few things about them that an operator sets."""

from dataclasses import dataclass

from vedette.fetch.request import PRODUCT


@dataclass(frozen=True, slots=True)
class Branding:
    """What the pages say about their operator.

    ``name`` is the name shown. ``address`` is where readers find the pages ("https://search.example.org"); where it is
    empty, the address of each request counts. ``embed_origins`` are the origins whose pages may have a search box of
    ours with suggestions ("https://docs.example.org"). ``contact`` is a mail address or a URL for the page about the
    crawler, ``product`` the name by which robots.txt files call it. ``demo`` lists new pages on the first page.
    """

    name: str = "Vedette"
    address: str = ""
    embed_origins: tuple[str, ...] = ()
    contact: str = ""
    product: str = PRODUCT
    demo: bool = False
