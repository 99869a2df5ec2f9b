"""A server with a limit: `limited.py KIND N`. `accepts N`: it has N connections at once, and leaves the others in its
accept queue. `keeps N`: beyond N it closes the one that was idle for longest. `answers N`: it closes each connection after
N responses. `short N`: N connections, and one more, may wait in its accept queue."""

import selectors
import socket
import sys
import time

kind, most = sys.argv[1], int(sys.argv[2])
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(most if kind == "short" else 500)
listener.setblocking(False)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
selector.register(sys.stdin, selectors.EVENT_READ)
print("listening on http://%s:%d/" % listener.getsockname(), flush=True)
# Responses, and when the last one was sent.
kept = {}


def accept():
    if kind == "accepts" and len(kept) >= most:
        selector.unregister(listener)
        return
    peer, _ = listener.accept()
    peer.setblocking(False)
    selector.register(peer, selectors.EVENT_READ)
    kept[peer] = [0, time.monotonic()]
    if kind == "keeps" and len(kept) > most:
        close(min(kept, key=lambda one: kept[one][1]))


def close(peer):
    selector.unregister(peer)
    del kept[peer]
    peer.close()


def serve(peer):
    try:
        if not peer.recv(65536):
            return close(peer)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except OSError:
        return close(peer)
    kept[peer] = [kept[peer][0] + 1, time.monotonic()]
    if kind == "answers" and kept[peer][0] >= most:
        close(peer)


while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            accept()
        elif key.fileobj is sys.stdin:
            # The test has ended, however that was.
            sys.exit()
        elif key.fileobj in kept:
            serve(key.fileobj)
