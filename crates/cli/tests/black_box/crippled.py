"""A server with faults: `crippled.py BACKLOG PAUSE WORK BYTES [ADDRESS]`. It accepts one connection every PAUSE seconds,
spins for WORK seconds a request, and keeps BYTES for each connection. Out of files it continues with those that it has."""

import selectors
import socket
import sys
import time

backlog, pause, work, size = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
listener = socket.socket()
listener.bind((sys.argv[5] if len(sys.argv) > 5 else "127.0.0.1", 0))
listener.listen(backlog)
listener.setblocking(False)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
kept = {}
selector.register(sys.stdin, selectors.EVENT_READ)
print("listening on http://%s:%d/" % listener.getsockname(), flush=True)


def accept():
    try:
        peer, _ = listener.accept()
    except BlockingIOError:
        return
    except OSError:
        time.sleep(0.02)
        return
    peer.setblocking(False)
    selector.register(peer, selectors.EVENT_READ)
    kept[peer] = bytearray(b"x" * size)
    if pause:
        time.sleep(pause)


def serve(peer):
    try:
        if peer.recv(65536):
            until = time.thread_time() + work
            while time.thread_time() < until:
                pass
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return
    except OSError:
        pass
    selector.unregister(peer)
    del kept[peer]
    peer.close()


while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            accept()
        elif key.fileobj is sys.stdin:
            # The test has ended, however that was.
            sys.exit()
        else:
            serve(key.fileobj)
