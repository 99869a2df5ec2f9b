"""threads.py PORT [DELAY_S] [BACKLOG]: HTTP/1.1 with keep-alive, a thread a connection, each response after DELAY_S."""

import socket
import sys
import threading
import time

PORT, DELAY_S = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
BACKLOG = int(sys.argv[3]) if len(sys.argv) > 3 else 4_096
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def serve(connection):
    rest = b""
    with connection:
        while part := connection.recv(65_536):
            *requests, rest = (rest + part).split(b"\r\n\r\n")
            for _ in requests:
                time.sleep(DELAY_S)
                connection.sendall(RESPONSE)


with socket.create_server(("", PORT), backlog=BACKLOG) as listener:
    while True:
        try:
            accepted, _ = listener.accept()
        except OSError as error:
            print(f"accept: {error}", file=sys.stderr, flush=True)
            time.sleep(0.05)
            continue
        threading.Thread(target=serve, args=(accepted,), daemon=True).start()
