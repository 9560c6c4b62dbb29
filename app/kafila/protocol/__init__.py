"""What travels between computers, without input or output: codecs and state machines.

Nothing here opens a socket or reads a clock. Bytes come in as arguments, bytes to send are
returned, and so is every deadline; randomness is handed in. Bytes from a peer are bounded before
they are believed; what is wrong with them is raised as `kafila.domain.errors.PeerError`.
"""
