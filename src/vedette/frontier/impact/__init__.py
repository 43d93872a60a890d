"""Impact: the expected search gain of a first fetch of an unseen URL, estimated before it is fetched (Impact08).

In production it learns from words, folders and importance. Sketches, matching and the scorer are used only in the lab;
see docs/results/order.md.

``url_features`` is what is known about such a URL, ``matching`` finds needy queries that match its words, ``forest``
and ``scorer`` predict how well it will answer them, ``sketches`` hold the results it would have to beat, ``query_need``
selects the queries, ``group_means`` hold the gains of similar pages. ``estimator`` combines them, and ``estimates``
orders the frontier by the result.
"""
