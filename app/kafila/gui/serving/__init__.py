"""The page of a session that serves: its ring, its graphs and the chat."""
