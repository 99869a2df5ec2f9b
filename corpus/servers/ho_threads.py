"""ho_threads.py PORT: HTTP/1.1, a thread a connection. Where no thread can be started, it says so and closes the connection."""

import socket
import sys
import threading

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def serve(connection):
    rest = b""
    with connection:
        try:
            while part := connection.recv(65_536):
                *requests, rest = (rest + part).split(b"\r\n\r\n")
                connection.sendall(RESPONSE * len(requests))
        except OSError:
            pass


with socket.create_server(("", int(sys.argv[1])), backlog=1_024) as listener:
    while True:
        accepted, _ = listener.accept()
        try:
            threading.Thread(target=serve, args=(accepted,), daemon=True).start()
        except RuntimeError as error:
            print(error, file=sys.stderr, flush=True)
            accepted.close()
