"""Tells TLS from plain speech on a new connection, and answers the latter with a sentence."""

import asyncio
import socket

_TLS_HANDSHAKE = b"\x16"
"""How every TLS connection begins."""
_SENTENCE = b"This is a Kafila rendezvous. It speaks TLS only: use https instead of http.\n"
_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_SENTENCE), _SENTENCE)
)


async def speaks_tls(connection: socket.socket) -> bool:
    """Whether TLS begins here; what came stays to be read. Somebody else has had the sentence. Raises OSError."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(connection, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(connection)
    first = connection.recv(1, socket.MSG_PEEK)
    if first and first != _TLS_HANDSHAKE:
        # What is left unread would make the system take the answer back.
        connection.recv(1 << 16)
        await loop.sock_sendall(connection, _ANSWER)
    return first == _TLS_HANDSHAKE
