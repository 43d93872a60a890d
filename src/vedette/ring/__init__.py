"""The way of a URL, in order and pure: ``step(crawl, event) -> commands``. ``live`` and ``lab`` both drive it."""
