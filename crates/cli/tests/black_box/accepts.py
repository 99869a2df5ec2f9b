"""A server that has N connections at once, and leaves the others in its accept queue of 500: `accepts.py N`."""

import selectors
import socket
import sys

most = int(sys.argv[1])
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(500)
listener.setblocking(False)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
selector.register(sys.stdin, selectors.EVENT_READ)
print("listening on http://%s:%d/" % listener.getsockname(), flush=True)
kept = set()


def accept():
    if len(kept) >= most:
        selector.unregister(listener)
        return
    peer, _ = listener.accept()
    peer.setblocking(False)
    selector.register(peer, selectors.EVENT_READ)
    kept.add(peer)


def serve(peer):
    try:
        if peer.recv(65536):
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            return
    except OSError:
        pass
    selector.unregister(peer)
    kept.remove(peer)
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
