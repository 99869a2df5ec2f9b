"""hungry.py PORT BYTES: HTTP/1.1, and BYTES of memory for each connection; without them it logs MemoryError and closes."""

import selectors
import socket
import sys
import traceback

listener = socket.create_server(("", int(sys.argv[1])), backlog=4_096)
selector, kept = selectors.DefaultSelector(), {}
selector.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            peer, _ = listener.accept()
            try:
                kept[peer] = b"x" * int(sys.argv[2])
                selector.register(peer, selectors.EVENT_READ)
            except MemoryError:
                traceback.print_exc()
                peer.close()
            continue
        try:
            if key.fileobj.recv(16_384):
                key.fileobj.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                continue
        except OSError:
            pass
        selector.unregister(key.fileobj)
        del kept[key.fileobj]
        key.fileobj.close()
