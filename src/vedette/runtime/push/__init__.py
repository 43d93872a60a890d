"""Push in a running crawler: WebSub subscriptions and deliveries, IndexNow pings, change signals, promises."""
