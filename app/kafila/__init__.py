"""Kafila: several people's computers, one private model server."""

__version__ = "0.1.0"
