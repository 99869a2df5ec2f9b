"""threads_limited.py PORT: HTTP/1.1, a thread a connection; where none can be started it logs why and closes the connection."""

import socket
import sys
import threading

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
threading.stack_size(256 * 1024)


def serve(connection):
    with connection:
        while connection.recv(65_536):
            connection.sendall(RESPONSE)


with socket.create_server(("", int(sys.argv[1])), backlog=4_096) as listener:
    while True:
        accepted, _ = listener.accept()
        try:
            threading.Thread(target=serve, args=(accepted,), daemon=True).start()
        except RuntimeError as error:
            print(f"RuntimeError: {error}", file=sys.stderr, flush=True)
            accepted.close()
