"""Impact: what a first fetch of an unseen URL would bring to search, estimated before it is fetched (Impact08).

Live it learns from words, places and importance. Sketches, matching and the scorer are used in the lab alone; see
docs/results/order.md.

``url_features`` is what can be known of such a URL, ``matching`` which needy queries its words match, ``forest`` and
``scorer`` how well it will probably answer them, ``sketches`` which results it would have to pass, ``query_need`` which
queries are worth the trouble, ``group_means`` what similar pages brought. ``estimator`` puts it together, and
``estimates`` orders the frontier by it.
"""
