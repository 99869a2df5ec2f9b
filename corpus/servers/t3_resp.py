"""t3_resp.py PORT [--keys SECONDS] [--maxmemory BYTES]: a store that speaks as Redis does, in one thread: PING, SET of 500 bytes, and
KEYS, which uses so much CPU. What it did is in counts.json."""

import argparse
import json
import os
import selectors
import socket
import time

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
options.add_argument("--keys", type=float, default=0)
options.add_argument("--maxmemory", type=int, default=0)
options = options.parse_args()
counts = {"pings": 0, "sets": 0, "refused": 0, "keys": 0}
FILE = os.open("counts.json", os.O_RDWR | os.O_CREAT)
listener = socket.create_server(("", options.port), backlog=511)
listener.setblocking(False)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
used, written = 0, 0.0


def reply(command):
    global used
    match command.strip().split(b" ")[0].upper():
        case b"PING":
            counts["pings"] += 1
            return b"+PONG\r\n"
        case b"SET":
            if options.maxmemory and used + 500 > options.maxmemory:
                counts["refused"] += 1
                return b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
            used += 500
            counts["sets"] += 1
            return b"+OK\r\n"
        case b"KEYS":
            counts["keys"] += 1
            until = time.thread_time() + options.keys
            while time.thread_time() < until:
                pass
            return b"*0\r\n"
        case other:
            return b"-ERR unknown command '" + other + b"'\r\n"


while True:
    for key, _ in selector.select(0.1):
        try:
            if key.fileobj is listener:
                peer, _ = listener.accept()
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(peer, selectors.EVENT_READ)
                continue
            text = key.fileobj.recv(16_384)
            if text:
                key.fileobj.send(b"".join(reply(line) for line in text.splitlines() if line.strip()))
                continue
        except BlockingIOError:
            continue
        except OSError:
            pass
        selector.unregister(key.fileobj)
        key.fileobj.close()
    if time.monotonic() > written + 0.1:
        written = time.monotonic()
        os.pwrite(FILE, json.dumps(counts).ljust(200).encode(), 0)
