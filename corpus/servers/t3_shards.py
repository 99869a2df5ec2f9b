"""t3_shards.py PORT: HTTP/1.1 in six threads, each of which serves the connections that it was given, in turn. 2.4 s after the first
connection the fifth one meets a key that is not in its table, and ends with it; its connections stay open, and nobody reads them."""

import queue
import select
import socket
import sys
import threading
import time

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
began = []


def shard(nth, given):
    known, poll = {}, select.epoll()
    while True:
        while not given.empty():
            connection = given.get()
            known[connection.fileno()] = connection
            poll.register(connection, select.EPOLLIN)
        for number, _ in poll.poll(0.02):
            if nth == 4 and time.monotonic() - began[0] > 2.4:
                known.pop(-1)
            connection = known[number]
            try:
                content = connection.recv(65_536)
                if content:
                    connection.sendall(RESPONSE * content.count(b"\r\n\r\n"))
                    continue
            except OSError:
                pass
            poll.unregister(connection)
            known.pop(number).close()


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=1_024)
queues = [queue.Queue() for _ in range(6)]
for nth, given in enumerate(queues):
    threading.Thread(target=shard, args=(nth, given), name=f"shard-{nth}", daemon=True).start()
total = 0
kept = []
while True:
    accepted, _ = listener.accept()
    began = began or [time.monotonic()]
    kept.append(accepted)
    queues[total % 6].put(accepted)
    total += 1
