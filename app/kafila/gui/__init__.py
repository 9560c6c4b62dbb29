"""The window: pages, ring, chat and graphs. It knows `kafila.domain` only."""
