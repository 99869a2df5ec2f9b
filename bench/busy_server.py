"""An HTTP server of one thread in which each response takes MS milliseconds of CPU: busy_server.py PORT MS

It serves 1,000 / MS requests/s, less what Python needs for each."""

import select
import socket
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
READ_BYTES = 65_536


def accept_all(listener, poll, connections):
    while True:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        connections[connection.fileno()] = connection
        poll.register(connection.fileno(), select.EPOLLIN)


def answer(connection, busy_s):
    """Whether the connection is still there."""
    try:
        data = connection.recv(READ_BYTES)
        for _ in range(data.count(b"\r\n\r\n")):
            until = time.perf_counter() + busy_s
            while time.perf_counter() < until:
                pass
            connection.send(ANSWER)
        return bool(data)
    except OSError:
        return False


def main():
    port, busy_s = int(sys.argv[1]), float(sys.argv[2]) / 1e3
    listener = socket.create_server(("127.0.0.1", port), backlog=4096)
    listener.setblocking(False)
    poll, connections = select.epoll(), {}
    poll.register(listener.fileno(), select.EPOLLIN)
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                accept_all(listener, poll, connections)
            elif not answer(connections[number], busy_s):
                poll.unregister(number)
                connections.pop(number).close()


if __name__ == "__main__":
    main()
