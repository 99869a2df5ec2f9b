"""From a capture to connections and their exchanges: what was sent when.

Times are seconds (CLOCK_REALTIME) at which the packet passed the loopback. A request's is that of its last octet, a
response has one for its first and one for its last."""

import re
import struct

FIN, SYN, RST, ACK = 1, 2, 4, 16


class Exchange:
    """A request, or a message, and its outcome."""

    def __init__(self, connection, asked, octets, path, number):
        self.connection, self.asked, self.octets, self.path, self.number = connection, asked, octets, path, number
        self.first = self.answered = self.status = None
        self.head = self.body = self.wire = 0
        self.right = True
        self.goodbye = False
        self.payload = None
        # Set by outside.py: when it was due; and of an open loop, since when its connection was free.
        self.due, self.free = None, 0.0

    def late(self):
        """How late throng sent it. Where all connections were busy when it was due, it waited for the one that was free first."""
        return self.asked - max(self.due, self.free)


class Half:
    """One direction of a connection."""

    def __init__(self):
        self.base = self.next = None
        self.octets = self.retransmitted = self.segments = 0
        self.buffer = b""
        # How much had arrived when.
        self.marks = []
        self.fin = self.rst = None


class Connection:
    def __init__(self, client, server, syn):
        self.client, self.server, self.syn = client, server, syn
        self.syns, self.synack, self.ack = 1, None, None
        self.out, self.into = Half(), Half()
        self.exchanges, self.waiting = [], []
        self.upgraded = False
        self.client_close = self.server_close = None
        self.from_server = []
        self.refused = None
        self.handshake = None

    @property
    def port(self):
        return self.server[1]

    @property
    def host(self):
        return self.server[0]

    def heard_before(self, time):
        """When the server last sent anything, up to a time."""
        heard = [one for one in self.from_server if one <= time]
        return heard[-1] if heard else None

    def over(self):
        """When the first end of it was seen, and by which side."""
        ends = [(half.fin, side) for side, half in (("client", self.out), ("server", self.into)) if half.fin]
        ends += [(half.rst, side) for side, half in (("client", self.out), ("server", self.into)) if half.rst]
        return min(ends) if ends else (None, None)


def packets(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        time, length = struct.unpack_from("<QI", data, at)
        at += 12
        yield time / 1e9, data[at:at + length]
        at += length


def segments(path):
    """TCP over IPv4: time, source, destination, sequence number, flags, payload."""
    for time, frame in packets(path):
        if len(frame) < 34 or frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        total = struct.unpack_from(">H", frame, 16)[0]
        ip = 14 + (frame[14] & 15) * 4
        source, target = (".".join(map(str, frame[a:a + 4])) for a in (26, 30))
        sport, dport, seq = struct.unpack_from(">HHI", frame, ip)
        payload = frame[ip + (frame[ip + 12] >> 4) * 4:14 + total]
        yield time, (source, sport), (target, dport), seq, frame[ip + 13], payload


class Wire:
    """All connections to the server's ports, in the order of their first SYN; others are only counted."""

    def __init__(self, path, ports, message=None):
        self.ports, self.message = set(ports), message
        self.connections, self.open, self.others = [], {}, {}
        self.resets = {"client": 0, "server": 0}
        self.retransmitted = self.packets = 0
        self.sockets = []
        for time, source, target, seq, flags, payload in segments(path):
            self.packets += 1
            if target[1] in self.ports:
                self.segment(time, source, target, "client", seq, flags, payload)
            elif source[1] in self.ports:
                self.segment(time, target, source, "server", seq, flags, payload)
            elif flags & SYN and not flags & ACK:
                self.others[target[1]] = self.others.get(target[1], 0) + 1

    def segment(self, time, client, server, side, seq, flags, payload):
        connection = self.open.get((client, server))
        if side == "client" and flags & SYN and not flags & ACK:
            if connection and connection.synack is None and connection.refused is None:
                connection.syns += 1
                return
            connection = self.open[(client, server)] = Connection(client, server, time)
            connection.out.base = connection.out.next = (seq + 1) & 0xFFFFFFFF
            self.connections.append(connection)
            return
        if connection is None:
            return
        half = connection.out if side == "client" else connection.into
        if side == "server":
            connection.from_server.append(time)
            if flags & SYN and connection.synack is None:
                connection.synack = time
                half.base = half.next = (seq + 1) & 0xFFFFFFFF
        half.segments += 1
        if flags & RST:
            self.resets[side] += 1
            half.rst = half.rst or time
            if side == "server" and connection.synack is None:
                connection.refused = time
        if payload:
            self.payload(connection, half, side, time, seq, payload)
        if flags & FIN:
            half.fin = half.fin or time

    def payload(self, connection, half, side, time, seq, payload):
        behind = (half.next - seq) & 0xFFFFFFFF
        if behind >= 1 << 31:
            raise ValueError("a segment is missing in the capture")
        if behind >= len(payload):
            self.retransmitted += 1
            half.retransmitted += 1
            return
        payload = payload[behind:]
        half.next = (half.next + len(payload)) & 0xFFFFFFFF
        half.octets += len(payload)
        half.marks.append((time, len(payload)))
        half.buffer += payload
        if connection.upgraded:
            frames(connection, half, side, time)
        elif self.message and connection.port == self.message[0]:
            lines(connection, half, side, time, self.message[1])
        elif side == "client":
            requests(connection, half, time)
        else:
            responses(connection, half, time)


# HTTP/1.1 (RFC 9112), as far as this server uses it: Content-Length, no chunks.


def requests(connection, half, time):
    while b"\r\n\r\n" in half.buffer:
        head, rest = half.buffer.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(length[1]) if length else 0
        if len(rest) < length:
            return
        half.buffer = rest[length:]
        path = head.split(b" ")[1].decode()
        number = len(connection.exchanges)
        exchange = Exchange(connection, time, len(head) + 4 + length, path, number)
        if b"upgrade: websocket" in head.lower():
            connection.handshake = exchange
        else:
            connection.exchanges.append(exchange)
        connection.waiting.append(exchange)


def responses(connection, half, time):
    while half.buffer and connection.waiting:
        exchange = connection.waiting[0]
        exchange.first = exchange.first or time
        if b"\r\n\r\n" not in half.buffer:
            return
        head, rest = half.buffer.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(length[1]) if length else 0
        exchange.head, exchange.status = len(head) + 4, int(head.split(b" ")[1])
        exchange.body = min(len(rest), length)
        if len(rest) < length:
            return
        exchange.wire = exchange.head + length
        exchange.answered = time
        exchange.goodbye = b"\r\nconnection: close" in head.lower()
        half.buffer = rest[length:]
        connection.waiting.pop(0)
        if exchange is connection.handshake:
            connection.upgraded = True
            return


# WebSocket (RFC 6455): short frames, masked by the client.


def frames(connection, half, side, time):
    masked = 4 if side == "client" else 0
    while len(half.buffer) >= 2:
        length = half.buffer[1] & 127
        if length > 125:
            raise ValueError("no frame is so long here")
        end = 2 + masked + length
        if len(half.buffer) < end:
            return
        frame, half.buffer = half.buffer[:end], half.buffer[end:]
        text = frame[2 + masked:]
        if masked:
            text = bytes(c ^ frame[2 + i % 4] for i, c in enumerate(text))
        opcode = frame[0] & 15
        if opcode == 8:
            if side == "client":
                connection.client_close = connection.client_close or time
            else:
                connection.server_close = connection.server_close or time
        elif side == "client":
            sent(connection, time, end, text)
        elif connection.waiting:
            echoed(connection, time, end, text)
            if opcode == 10:
                # A pong's payload is no content.
                connection.exchanges[-1].body = 0


def sent(connection, time, octets, text):
    exchange = Exchange(connection, time, octets, None, len(connection.exchanges))
    exchange.payload = text
    connection.exchanges.append(exchange)
    connection.waiting.append(exchange)


def echoed(connection, time, octets, text):
    exchange = connection.waiting.pop(0)
    exchange.first = exchange.answered = time
    exchange.wire, exchange.body = octets, len(text)
    exchange.right = text == exchange.payload


# Raw TCP: messages of one length, and each is echoed.


def lines(connection, half, side, time, length):
    while len(half.buffer) >= length:
        text, half.buffer = half.buffer[:length], half.buffer[length:]
        if side == "client":
            sent(connection, time, length, text)
        elif connection.waiting:
            echoed(connection, time, length, text)
