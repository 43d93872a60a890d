"""Push signals of new and changed pages (WebSub hubs, IndexNow pings), how far they are trusted, and promises."""
