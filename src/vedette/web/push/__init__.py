"""Push endpoints: WebSub callbacks and IndexNow pings."""
