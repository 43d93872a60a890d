"""What a first fetch of an unseen URL would bring to those who search, judged before its content is known (Impact08).

``described`` is what can be known of such a URL, ``matching`` which needy queries its words match, ``forest`` and
``scorer`` how well it will probably answer them, ``sketches`` whom it would have to pass, ``neediness`` which queries
are worth the trouble, ``expected`` and ``worst_case`` what follows from all that, ``independent`` what its importance
alone says. ``expecting`` puts it together.
"""
