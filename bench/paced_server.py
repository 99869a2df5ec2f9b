"""An HTTP server that keeps connections alive but accepts only so many a second: paced_server.py RATE PORT BACKLOG WORKERS

WORKERS processes share one listener with a queue of BACKLOG and accept RATE connections/s together, without catching up
on what they missed; each may hold as many as it may open files."""

import ctypes
import os
import select
import signal
import socket
import sys
import time

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n\r\nHello World!"
TICK_S = 0.002
MOST_AT_ONCE_S = 0.01  # what a late worker may make up for
READ_BYTES = 65_536


def answer(connections, poll, number):
    """Answers the requests that came together; no request of a measurement is split."""
    try:
        data = connections[number].recv(READ_BYTES)
        if data:
            connections[number].send(ANSWER * data.count(b"\r\n\r\n"))
            return
    except OSError:
        pass  # gone without a word: closed all the same
    poll.unregister(number)
    connections.pop(number).close()


def work(listener, rate):
    """One worker: answers at once, accepts as the pace allows."""
    poll, connections = select.epoll(), {}
    allowed, last = 0.0, time.monotonic()
    while True:
        for number, _ in poll.poll(TICK_S):
            answer(connections, poll, number)
        now = time.monotonic()
        allowed, last = min(allowed + rate * (now - last), rate * MOST_AT_ONCE_S), now
        while allowed >= 1:
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                break
            allowed -= 1
            connection.setblocking(False)
            connections[connection.fileno()] = connection
            poll.register(connection.fileno(), select.EPOLLIN)


def main():
    rate, port, backlog, workers = map(int, sys.argv[1:])
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(backlog)
    listener.setblocking(False)
    for number in range(workers):
        if number == workers - 1 or os.fork() == 0:
            if number < workers - 1:
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            work(listener, rate / workers)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()
