"""Vedette: a search engine in a box.

The way of a URL, in the order of the stages:

1. discover  it is seen in a link, normalised, checked against scope, and gets an id
2. order     it waits in the frontier of its host, by what a first fetch of it is worth
3. fetch     when its host may be asked again and its worth pays the price, politely
4. parse     text, title, links; what changed, and does it matter
5. index     it becomes findable; the gain in search quality is measured
6. refresh   its next due time follows from its model of change, its worth and the price
7. serve     a query gets a slate of results, with reasons and propensities
8. learn     views and clicks change the worth of the next fetches
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
