"""two_faults.py PORT: accepts and serves five connections, and no more, with a backlog of 8; 2.5 s later it uses up its files."""

import socket
import sys
import time

listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=8)
kept = []
for _ in range(5):
    connection, _ = listener.accept()
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    kept.append(connection)
time.sleep(2.5)
try:
    while True:
        kept.append(open("/dev/null"))
except OSError:
    print("out of files", flush=True)
    time.sleep(1e6)
