"""Impact: what a first fetch of an unseen URL would bring to search, estimated before it is fetched (Impact08).

``url_features`` is what can be known of such a URL, ``matching`` which needy queries its words match, ``forest`` and
``scorer`` how well it will probably answer them, ``sketches`` which results it would have to pass, ``query_need`` which
queries are worth the trouble, ``group_means`` what similar pages brought. ``estimator`` puts it together, and
``estimates`` orders the frontier by it.
"""
