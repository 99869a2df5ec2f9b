"""The slow, careful measurement of what a server holds, with plain sockets and nothing of throng's.

Connections are opened one after the other: each is dialled when the one before has had its response. Each sends a request again
and again, with a pause that is shorter than the time after which the server closes an idle connection. The number is what is
open when the first new one is refused, closed, or without a response for 10 s, or when an older one is closed for it; those must
then go on for 20 s."""

import dataclasses
import errno
import heapq
import re
import selectors
import socket
import time

PATIENCE_S = 10  # without a response for so long: not served
IDLE_AT_MOST_S = 100  # an idle connection that is open after this is closed late, or never
# Between a response and the next request, of the time after which an idle connection is closed, and seconds at most. Where the number
# grows with the pause, the server is limited by requests/s and not by connections.
PAUSES = ((0.5, 8), (0.9, 18))
CLIMB_AT_MOST_S = 600
HOLD_S = 20
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@dataclasses.dataclass
class Answer:
    """What was found. `idle_s` None: still open after `IDLE_AT_MOST_S`; 0: closed with each response, `Connection: close`."""

    held: int
    idle_s: float | None
    pause_s: float
    ended: str  # why no more
    lost_later: int = 0  # of those that were open then, in the 20 s after it
    planned: int = 0  # closed with an announcement (after so many requests), and dialled again


class Closed(Exception):
    """The server has closed, or no response came; the text says which."""


class Connection:
    """One connection with at most one request under way."""

    made = 0

    def __init__(self, address):
        Connection.made += 1
        self.key = Connection.made
        self.socket = socket.create_connection(address, timeout=PATIENCE_S)
        self.socket.setblocking(False)
        self.received, self.sent_at, self.closing, self.responses = b"", None, False, 0

    def ask(self, now):
        self.received, self.sent_at = b"", now
        try:
            self.socket.send(REQUEST)
        except OSError as error:
            raise Closed(errno.errorcode.get(error.errno, str(error))) from error

    def receive(self):
        """Whether the response is complete. Announced closes set `closing`."""
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return False
        except OSError as error:
            raise Closed(errno.errorcode.get(error.errno, str(error))) from error
        if not data:
            raise Closed("closed without a response" if self.sent_at else "closed while idle")
        self.received += data
        if not is_complete(self.received):
            return False
        status = self.received.split(b" ", 2)[1]
        if status != b"200":
            raise Closed(f"status {status.decode()}")
        self.closing = bool(re.search(rb"(?im)^connection:\s*close", head(self.received)))
        self.sent_at, self.responses = None, self.responses + 1
        return True

    def wait(self):
        """Waits for the response alone: a few milliseconds, or up to `PATIENCE_S`."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            deadline = self.sent_at + PATIENCE_S
            while time.monotonic() < deadline:
                if selector.select(deadline - time.monotonic()) and self.receive():
                    return
        raise Closed(f"no response in {PATIENCE_S} s")


def head(data):
    """The head of a response.

    >>> head(b"HTTP/1.1 200 OK\\r\\na: b\\r\\n\\r\\nbody")
    b'HTTP/1.1 200 OK\\r\\na: b'
    """
    return data.partition(b"\r\n\r\n")[0]


def is_complete(data):
    """Whether a response is there to its end.

    >>> [is_complete(b"HTTP/1.1 200 OK\\r\\n" + rest) for rest in (b"", b"Content-Length: 2\\r\\n\\r\\nh", b"content-length: 2\\r\\n\\r\\nhi")]
    [False, False, True]
    >>> [is_complete(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n" + rest) for rest in (b"2\\r\\nhi\\r\\n", b"2\\r\\nhi\\r\\n0\\r\\n\\r\\n")]
    [False, True]
    """
    first, found, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length:\s*(\d+)", first)
    if length:
        return bool(found) and len(body) >= int(length[1])
    return bool(found) and body.endswith(b"0\r\n\r\n")


def idle_s(address):
    """Seconds after which the server closes an idle connection; 0 with `Connection: close`; None: not in `IDLE_AT_MOST_S`."""
    connection = Connection(address)
    connection.ask(time.monotonic())
    connection.wait()
    if connection.closing:
        return 0
    since = time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(connection.socket, selectors.EVENT_READ)
        closed = selector.select(IDLE_AT_MOST_S)
    connection.socket.close()
    return round(time.monotonic() - since, 1) if closed else None


class Held:
    """The connections that are open, and when the next request is due on each."""

    def __init__(self, address, pause_s):
        self.address, self.pause_s = address, pause_s
        self.selector, self.due, self.open, self.planned = selectors.DefaultSelector(), [], {}, 0

    def dial(self):
        """One more, which has had its response; `Closed` if it has none."""
        try:
            connection = Connection(self.address)
        except OSError as error:
            raise Closed(f"dial: {error}") from error
        self._add(connection)
        connection.ask(time.monotonic())
        # The others go on meanwhile.
        while connection.sent_at is not None:
            lost = self.step(0.05)
            mine = [why for which, why in lost if which is connection]
            if mine:
                raise Closed(f"the new one: {mine[0]}")
            if lost:
                raise Closed(f"{len(lost)} of those before: {lost[0][1]}")

    def step(self, most_s):
        """Sends what is due, receives what came, and returns what was lost: connection and why."""
        now, lost = time.monotonic(), []
        while self.due and self.due[0][0] <= now:
            connection = self.open.get(heapq.heappop(self.due)[1])
            if connection and connection.sent_at is None:
                try:
                    connection.ask(now)
                except Closed as why:
                    lost.append(self._drop(connection, str(why)))
        until = min(self.due[0][0] - now, most_s) if self.due else most_s
        for key, _ in self.selector.select(max(until, 0)):
            connection = key.data
            try:
                if connection.receive():
                    if connection.closing and connection.responses == 1:
                        raise Closed("Connection: close in its first response")
                    self._responded(connection)
            except Closed as why:
                lost.append(self._drop(connection, str(why)))
        for connection in [c for c in self.open.values() if c.sent_at and now - c.sent_at > PATIENCE_S]:
            lost.append(self._drop(connection, f"no response in {PATIENCE_S} s"))
        return lost

    def _responded(self, connection):
        if not connection.closing:
            heapq.heappush(self.due, (time.monotonic() + self.pause_s, connection.key))
            return
        self._drop(connection, "")
        self.planned += 1
        again = Connection(self.address)
        self._add(again)
        again.ask(time.monotonic())

    def _add(self, connection):
        self.open[connection.key] = connection
        self.selector.register(connection.socket, selectors.EVENT_READ, connection)

    def _drop(self, connection, why):
        self.open.pop(connection.key, None)
        self.selector.unregister(connection.socket)
        connection.socket.close()
        connection.sent_at = None
        return connection, why

    def close(self):
        for connection in list(self.open.values()):
            self._drop(connection, "")
        self.selector.close()


def answer(address, most, between_s, idle, pause):
    """What the server at `address` holds, at most `most`. `idle`: from `idle_s`; `pause`: of `PAUSES`."""
    if idle == 0:
        return Answer(0, 0, 0, "each response closes its connection: Connection: close")
    share, longest_s = pause
    pause_s = min(idle * share, longest_s) if idle else longest_s
    held = Held(address, pause_s)
    ended, best = f"{most} are open, or {CLIMB_AT_MOST_S} s are over", 0
    try:
        give_up = time.monotonic() + CLIMB_AT_MOST_S
        while best < most and time.monotonic() < give_up:
            held.dial()
            best = len(held.open)
            until = time.monotonic() + between_s
            while time.monotonic() < until:
                lost = held.step(until - time.monotonic())
                if lost:
                    raise Closed(f"{len(lost)} of those before: {lost[0][1]}")
    except Closed as why:
        ended = str(why)
    lost_later, until = 0, time.monotonic() + HOLD_S
    while time.monotonic() < until:
        lost_later += len(held.step(until - time.monotonic()))
    planned = held.planned
    held.close()
    return Answer(best, idle, pause_s, ended, lost_later, planned)
