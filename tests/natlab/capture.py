"""Everything that passes one computer of a lab, as it is on the wire."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

from natlab.namespaces import Namespace

_EVERY_PROTOCOL = 0x0003
_PACKET_BYTES = 65536


class Capture:
    """Packets in the order in which they passed."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []


@contextmanager
def capturing(namespace: Namespace) -> Generator[Capture]:
    """Listen on every interface."""
    capture, over = Capture(), threading.Event()
    # Made inside, a socket stays inside, whichever thread reads it.
    listening = namespace.call(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERY_PROTOCOL)))
    listening.settimeout(0.1)

    def listen() -> None:
        while not over.is_set():
            try:
                capture.packets.append(listening.recv(_PACKET_BYTES))
            except TimeoutError:
                continue

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield capture
    finally:
        over.set()
        thread.join()
        listening.close()
