"""Measures links on lines of known delay, rate and loss, and a rendezvous. Nothing but `kafila bench` needs it."""
