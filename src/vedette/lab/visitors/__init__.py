"""Who searches? A made public with known habits, which asks a real server over real HTTP and opens what it finds.

It gives the demo's console something to show, and later learning a truth to be tested against: how people read a page
of results is stated in ``habits`` and ``reading``, and what they do is drawn from it. ``VisitorPopulation`` decides,
with neither clock nor socket; ``outing`` carries it out.

- ``interests``: what people want, which drifts, and now and then becomes a fashion. ``phrasing``: how they type it.
- ``reading``: what they look at and open. ``public``: who comes when, and a visit from the first search to the last.
- ``result_page``, ``browser``: a page of results as it is served, and how it is asked for. ``outing``: all of it, in a
  process of its own.
"""
