"""Measures what a link does on a line of known delay, rate and loss. Nothing but `kafila bench` needs it."""
