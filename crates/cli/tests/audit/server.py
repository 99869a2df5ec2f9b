"""An HTTP/1.1, WebSocket and TCP echo server with its own log: `server.py LOG [faulty-messages]`.

It uses only Python's library and epoll, and shares nothing with throng. Each accept, request, response, message and close
is written to LOG (JSON lines) with its time (CLOCK_REALTIME, as in the capture) when standard input ends."""

import base64
import hashlib
import heapq
import json
import re
import select
import socket
import struct
import sys
import time

import models

LOG = []
# What closes a connection, and how long after the first accept that begins: when the ramps of all models are over.
ENDS, RAMP = ("never", "close", "reset", "truncated", "goodbye"), 1.1
# Of ten connections, one each: from which message on, and what it does once.
WRONG = {3: (5, "silence"), 5: (4, "wrong"), 7: (6, "goodbye"), 9: (8, "close"), 1: (7, "crossing")}
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
REASONS = {200: b"OK", 404: b"Not Found", 500: b"Internal Server Error"}


def log(what, connection, **more):
    LOG.append({"t": time.time(), "what": what, "id": connection.id, **more})


def is_ramp():
    """Whether first dials are being made: a redial between them cannot be distinguished from them."""
    return time.time() - LOG[0]["t"] < RAMP


class Connection:
    """A connection of any protocol; `id` counts the accepts, `nth` those of its port."""

    def __init__(self, server, sock, peer, port):
        self.server, self.sock, self.port = server, sock, port
        self.id = server.accepted
        self.nth = server.by_port[port]
        self.buffer = b""
        self.upgraded = self.leaving = self.has_erred = False
        self.requests = self.messages = self.bytes_in = self.bytes_out = 0
        log("accept", self, port=port, local=sock.getsockname()[0], peer=peer[1])

    def send(self, data):
        if self.sock is None:
            # An earlier one has found that the client is gone.
            return None
        try:
            sent = self.sock.send(data)
        except (ConnectionResetError, BrokenPipeError):
            # The client has given up meanwhile.
            return self.end("reset-by-peer")
        assert sent == len(data), "small messages fit into an empty buffer"
        self.bytes_out += sent

    def end(self, how):
        if self.sock is None:
            return
        if how == "reset":
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        log("end", self, how=how, bytes_in=self.bytes_in, bytes_out=self.bytes_out)
        self.server.forget(self)
        self.sock.close()
        self.sock = None

    def readable(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            return self.end("reset-by-peer")
        if not data:
            return self.end("closed-by-peer")
        self.bytes_in += len(data)
        self.buffer += data
        if self.port == models.TCP:
            self.buffer = b""
            self.messages += 1
            log("message", self, octets=len(data), answer="echo")
            self.send(data)
        elif self.upgraded:
            self.frames()
        else:
            self.heads()

    # HTTP/1.1

    def heads(self):
        while self.sock is not None and not self.upgraded and b"\r\n\r\n" in self.buffer:
            head, rest = self.buffer.split(b"\r\n\r\n", 1)
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            length = int(length[1]) if length else 0
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.requests += 1
            self.request(head, len(head) + 4 + length)

    def request(self, head, octets):
        path = head.split(b" ")[1].decode()
        if b"upgrade: websocket" in head.lower():
            key = re.search(rb"(?i)sec-websocket-key: *([^\r]+)", head)[1]
            accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
            log("request", self, path=path, octets=octets, does="upgrade")
            self.upgraded = True
            self.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            log("response", self, status=101)
            return
        number = re.search(r"n=(\d+)", path)
        does = models.behaviour(int(number[1])) if number else "right"
        if does in ENDS and is_ramp():
            does = "right"
        log("request", self, path=path, octets=octets, does=does)
        delay = models.DELAY.get(does, models.BASE_DELAY)
        if delay is not None:
            self.server.later(delay, lambda: self.respond(does, int(number[1]) if number else 0))

    def respond(self, does, number):
        if self.sock is None:
            return
        if does in ("close", "reset"):
            return self.end(does)
        status = {"missing": 404, "broken": 500}.get(does, 200)
        body = b"x" * models.LENGTH(number)
        close = b"Connection: close\r\n" if does == "goodbye" else b""
        head = b"HTTP/1.1 %d %s\r\nContent-Length: %d\r\n%s\r\n" % (status, REASONS[status], len(body), close)
        if does == "truncated":
            self.send(head + body[:7])
            return self.end("truncated")
        self.send(head + body)
        if self.sock is None:
            return
        log("response", self, status=status, octets=len(head) + len(body))
        if does == "goodbye":
            self.end("goodbye")

    # WebSocket (RFC 6455)

    def frames(self):
        while self.sock is not None and len(self.buffer) >= 6:
            length = self.buffer[1] & 127
            assert length < 126 and self.buffer[1] & 128, "short and masked"
            if len(self.buffer) < 6 + length:
                return
            opcode, mask = self.buffer[0] & 15, self.buffer[2:6]
            text = bytes(c ^ mask[i % 4] for i, c in enumerate(self.buffer[6:6 + length]))
            self.buffer = self.buffer[6 + length:]
            self.frame(opcode, text)

    def frame(self, opcode, text):
        answer = {1: 1, 2: 2, 9: 10, 8: 8}.get(opcode)
        if answer is None:
            return
        if opcode == 8:
            if not self.leaving:
                self.send(bytes([0x80 | 8, len(text)]) + text)
            return self.end("close-handshake")
        if self.leaving:
            # After a close frame an endpoint sends nothing more (RFC 6455, 5.5.1): what was under way meanwhile gets no reply.
            return
        self.messages += 1
        does = self.misdeed()
        log("message", self, octets=len(text), answer=does or "echo")
        if does == "silence":
            return
        if does == "close":
            return self.end("close")
        if does == "crossing":
            # Announced while a message is outstanding: it gets no reply, and is sent again on another connection.
            self.leaving = True
            log("goodbye", self)
            return self.send(bytes([0x80 | 8, 2]) + struct.pack(">H", 1001))
        if does == "wrong":
            text = text.upper()
        self.send(bytes([0x80 | answer, len(text)]) + text)
        if does == "goodbye":
            self.send(bytes([0x80 | 8, 2]) + struct.pack(">H", 1001))
            self.leaving = True
            log("goodbye", self)

    def misdeed(self):
        if not self.server.faulty_messages:
            return None
        number, does = WRONG.get(self.nth % 10, (0, None))
        if self.has_erred or does is None or self.messages < number or does != "wrong" and is_ramp():
            return None
        self.has_erred = True
        return does


class Server:
    def __init__(self, faulty_messages):
        self.faulty_messages = faulty_messages
        self.epoll, self.by_fd, self.due = select.epoll(), {}, []
        self.accepted, self.by_port, self.order = 0, {}, 0
        self.listeners = {}
        for port, hosts in [(models.HTTP, ("127.0.0.1", "127.0.0.2")), (models.WS, ("127.0.0.1",)),
                            (models.TCP, ("127.0.0.1",))]:
            self.by_port[port] = 0
            for host in hosts:
                listener = socket.create_server((host, port), backlog=512)
                listener.setblocking(False)
                self.listeners[listener.fileno()] = (listener, port)
                self.epoll.register(listener.fileno(), select.EPOLLIN)
        self.epoll.register(sys.stdin.fileno(), select.EPOLLIN)

    def later(self, delay, what):
        self.order += 1
        heapq.heappush(self.due, (time.monotonic() + delay, self.order, what))

    def forget(self, connection):
        self.epoll.unregister(connection.sock.fileno())
        del self.by_fd[connection.sock.fileno()]

    def accept(self, listener, port):
        try:
            sock, peer = listener.accept()
        except BlockingIOError:
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.accepted += 1
        self.by_port[port] += 1
        self.by_fd[sock.fileno()] = Connection(self, sock, peer, port)
        self.epoll.register(sock.fileno(), select.EPOLLIN)

    def handle(self, wait):
        """Handles what is ready within these seconds; returns what that was."""
        ready = [fd for fd, _ in self.epoll.poll(wait)]
        for fd in ready:
            if fd in self.listeners:
                self.accept(*self.listeners[fd])
            elif fd in self.by_fd:
                self.by_fd[fd].readable()
        return ready

    def turn(self):
        """One wait; false when standard input has ended."""
        wait = self.due[0][0] - time.monotonic() if self.due else 1.0
        ended = sys.stdin.fileno() in self.handle(max(wait, 0.0))
        while self.due and self.due[0][0] <= time.monotonic():
            heapq.heappop(self.due)[2]()
        return not ended

    def finish(self):
        """Reads what throng has sent before its end, however late this server is."""
        self.epoll.unregister(sys.stdin.fileno())
        while self.handle(0.0):
            pass


def main():
    server = Server("faulty-messages" in sys.argv[2:])
    print("listening", flush=True)
    while server.turn():
        pass
    server.finish()
    with open(sys.argv[1], "w") as out:
        for entry in LOG:
            out.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    main()
