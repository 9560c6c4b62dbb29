"""The session: a pure `step(state, event)`, and the effects that it asks for, run in asyncio."""
