"""prefork.py PORT WORKERS: processes that accept from one listener; the parent logs which of them ended, and starts no other. The number
of each process is in the file worker-N."""

import os
import pathlib
import selectors
import socket
import sys

listener = socket.create_server(("", int(sys.argv[1])), backlog=4_096)
listener.setblocking(False)
children = {}


def work():
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            try:
                if key.fileobj is listener:
                    peer, _ = listener.accept()
                    selector.register(peer, selectors.EVENT_READ)
                elif key.fileobj.recv(16_384):
                    key.fileobj.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                else:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
            except BlockingIOError:
                pass
            except OSError:
                selector.unregister(key.fileobj)
                key.fileobj.close()


for number in range(1, int(sys.argv[2]) + 1):
    child = os.fork()
    if child == 0:
        work()
    children[child] = number
    pathlib.Path(f"worker-{number}").write_text(str(child))
while children:
    ended, status = os.wait()
    print(f"worker {children.pop(ended)} ended: {os.waitstatus_to_exitcode(status)}", flush=True)
