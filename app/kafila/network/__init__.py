"""Sockets: the one UDP socket of a member, QUIC links over it, the rendezvous, LAN discovery."""
