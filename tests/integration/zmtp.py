"""A peer of the control channel that speaks ZMTP 3.0 by hand, so that it can also say what no
ZeroMQ library would."""

import socket
import struct

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
PING = b"\x04\x07\x04PING\x00\x00"  # a whole command; asks for an answer
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER\x08Identity"
MORE, LONG, COMMAND = 1, 2, 4


def frame(body, more=False):
    """One part of a message; the last one unless `more`."""
    flags = (MORE if more else 0) | (LONG if len(body) > 255 else 0)
    return bytes([flags]) + struct.pack(">Q" if flags & LONG else ">B", len(body)) + body


def claim(size_bytes):
    """The head of a part of so many bytes, which never come."""
    return bytes([LONG]) + struct.pack(">Q", size_bytes)


def connect(address):
    """A bare connection to tcp://host:port or ipc:///path."""
    scheme, _, where = address.partition("://")
    if scheme == "ipc":
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(10)
        peer.connect(where)
        return peer
    host, port = where.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=10)


def dealer(address, identity=b""):
    """A connection after a DEALER's handshake: frames may follow."""
    ready = READY + struct.pack(">I", len(identity)) + identity
    peer = connect(address)
    peer.sendall(GREETING)
    receive(peer, len(GREETING))
    peer.sendall(bytes([COMMAND, len(ready)]) + ready)
    flags, size = receive(peer, 2)  # its READY, a short command
    assert flags == COMMAND, flags
    receive(peer, size)
    return peer


def receive(peer, size):
    data = b""
    while len(data) < size:
        part = peer.recv(size - len(data))
        if not part:
            raise ConnectionError("hung up on")
        data += part
    return data


def hung_up(peer, timeout_s=30):
    """Whether the other side closes the connection in time; what it says is thrown away."""
    peer.settimeout(timeout_s)
    try:
        while peer.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True
