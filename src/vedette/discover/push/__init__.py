"""Push signals for new and changed pages (WebSub hubs, IndexNow pings), trust in them, and promises."""
