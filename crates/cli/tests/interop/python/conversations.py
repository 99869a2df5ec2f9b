"""Conversations with a server of TLS that go to the limits of its rules and beyond, as those of tlsfuzzer do, with tlslite-ng: `conversations.py PORT`.
Prints a line for each: its name, and what the server did: `responds`, `alert NAME`, `ends` (close_notify), `closes`, `resets`."""

import os
import socket
import struct
import sys

from tlslite.api import HandshakeSettings, TLSConnection
from tlslite.constants import AlertDescription, ExtensionType
from tlslite.errors import TLSAbruptCloseError, TLSLocalAlert, TLSRemoteAlert
from tlslite.extensions import SupportedVersionsExtension, TLSExtension
from tlslite.messages import ClientHello, ClientKeyExchange, Finished, Message

ADDRESS = ("127.0.0.1", int(sys.argv[1]))
TLS_1_3, TLS_1_2 = (3, 4), (3, 3)
LIMIT = 2**14
CCS, ALERT, HANDSHAKE, DATA, HEARTBEAT = 20, 21, 22, 23, 24
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Wire:
    """A socket. `change`, if there is one, is applied to the next record on its way."""

    def __init__(self):
        self.socket, self.change = socket.create_connection(ADDRESS, timeout=5), None

    def send(self, record):
        self.sendall(record)
        return len(record)

    def sendall(self, record):
        change, self.change = self.change or bytes, None
        self.socket.sendall(change(record))

    def __getattr__(self, name):
        return getattr(self.socket, name)


class Client(TLSConnection):
    """A client of one version. `change` is applied to each handshake message before it is sent; what it returns, if anything, is sent instead."""

    def __init__(self, version, change=lambda message: None, **settings):
        self.wire, self.change = Wire(), change
        super().__init__(self.wire)
        self.settings = HandshakeSettings()
        self.settings.minVersion = self.settings.maxVersion = version
        self.settings.versions = [version]
        self.settings.eccCurves, self.settings.dhGroups = ["x25519", "secp256r1"], []
        self.settings.keyShares = ["x25519"]
        for name, value in settings.items():
            setattr(self.settings, name, value)

    def _sendMsg(self, message, *rest, **named):
        if message.contentType == HANDSHAKE:
            message = self.change(message) or message
        yield from super()._sendMsg(message, *rest, **named)

    def shake_hands(self):
        self.handshakeClientCert(settings=self.settings)
        return self

    def record(self, kind, content):
        """One record, however long."""
        for _ in self._recordLayer.sendRecord(Message(kind, bytearray(content))):
            pass

    def update_keys(self, request, sent=None):
        """A KeyUpdate; `sent` instead of its records."""
        (sent or self.record)(HANDSHAKE, bytes([24, 0, 0, 1, request]))
        session = self.session
        session.cl_app_secret, session.sr_app_secret = self._recordLayer.calcTLS1_3KeyUpdate_reciever(
            session.cipherSuite, session.cl_app_secret, session.sr_app_secret)

    def get(self):
        self.record(DATA, REQUEST)
        return self.response()

    def response(self):
        data = b""
        while b"Hello World!" not in data:
            data += (piece := self.read(min=1))
            if not piece:
                return "ends"
        return "responds"


def client(version, **named):
    return Client(version, **named).shake_hands()


def outcome(conversation):
    try:
        return conversation()
    except TLSRemoteAlert as alert:
        level = "" if alert.level == 2 else "warning "
        return f"{level}alert {AlertDescription.toStr(alert.description)}"
    except TLSLocalAlert as alert:
        return f"responds with what the client refuses: {alert}"
    except TLSAbruptCloseError:
        return "closes"
    except TimeoutError:
        return "waits"
    except (ConnectionResetError, BrokenPipeError):
        return "resets"


def after_handshake(version, name, *records):
    """A conversation of these records after the handshake, and then a request."""
    def conversation():
        c = client(version)
        for kind, content in records:
            c.record(kind, content)
        return c.get()
    return name, conversation


def hello(version, name, change, **settings):
    """A conversation with this change of the ClientHello, and a request."""
    def changed(message):
        if isinstance(message, ClientHello):
            change(message)
    return name, lambda: client(version, change=changed, **settings).get()


def on_the_wire(version, name, change):
    """A conversation of a request whose record is changed when it is sealed."""
    def conversation():
        c = client(version)
        c.wire.change = change
        return c.get()
    return name, conversation


def padded(length):
    """A request, with padding to this length of its content."""
    return REQUEST[:-2] + b"Pad: " + b"x" * (length - len(REQUEST) - 7) + b"\r\n\r\n"


def key_updates(request, times):
    def conversation():
        c = client(TLS_1_3)
        for _ in range(times):
            c.update_keys(request)
        return c.get()
    return conversation


def key_update_in_pieces():
    c = client(TLS_1_3)
    c.update_keys(1, lambda kind, message: [c.record(kind, bytes([byte])) for byte in message])
    return c.get()


def key_update_between_data():
    c = client(TLS_1_3)
    c.record(DATA, REQUEST[:5])
    c.update_keys(1)
    c.record(DATA, REQUEST[5:])
    return c.response()


def data_within_a_key_update():
    c = client(TLS_1_3)
    c.record(HANDSHAKE, bytes([24, 0]))
    return c.get()


def key_update_and_more_in_its_record():
    c = client(TLS_1_3)
    c.update_keys(0, lambda kind, message: c.record(kind, message + message))
    return c.get()


def record_of_another_version():
    c = client(TLS_1_3)
    # What is authenticated is the header as it is sent.
    c._recordLayer._recordSocket.version = (3, 1)
    return c.get()


def padding_of_records():
    c = client(TLS_1_3, padding_cb=lambda length, kind, most: bytearray(most))
    return c.get()


def hello_in_pieces(version, size):
    def conversation():
        c = Client(version)
        c.recordSize = size
        c.shake_hands()
        c.recordSize = LIMIT
        return c.get()
    return conversation


def data_in_pieces(version):
    def conversation():
        c = client(version)
        for byte in REQUEST:
            c.record(DATA, bytes([byte]))
        return c.response()
    return conversation


def raw(*pieces):
    """Bytes without TLS, and the alert that comes back."""
    def conversation():
        wire = Wire()
        for piece in pieces:
            wire.sendall(piece)
        head = wire.recv(7)
        if not head:
            return "closes"
        return f"alert {AlertDescription.toStr(head[6])}" if head[0] == ALERT else f"other bytes: {head!r}"
    return conversation


def wrong_finished(version):
    def change(message):
        if isinstance(message, Finished):
            message.verify_data[0] ^= 1
    return lambda: client(version, change=change).get()


def before(kind_of_message, version, *records):
    """Records in plain text before this message of the client's."""
    def conversation():
        def change(message):
            if isinstance(message, kind_of_message):
                for kind, content in records:
                    c.sock.send(struct.pack("!BHH", kind, 0x0303, len(content)) + content)
        c = Client(version, change=change)
        return c.shake_hands().get()
    return conversation


def sealed_before_finished(kind, content):
    def conversation():
        def change(message):
            if isinstance(message, Finished):
                c.record(kind, content)
        c = Client(TLS_1_3, change=change)
        return c.shake_hands().get()
    return conversation


def close_notify(version):
    def conversation():
        c = client(version)
        c.record(ALERT, bytes([1, 0]))
        return c.response()
    return conversation


def extensions(count):
    return lambda message: message.extensions.extend(TLSExtension(extType=0xA000 + n).create(bytearray(n % 7)) for n in range(count))


def version_of(version, name, versions, **named):
    """A ClientHello with this version, and these in its extension."""
    def change(message):
        message.client_version = version
        message.extensions = [e for e in message.extensions if e.extType != ExtensionType.supported_versions]
        if versions:
            message.extensions.append(SupportedVersionsExtension().create(versions))
    return hello(TLS_1_3 if versions else TLS_1_2, name, change, **named)


def ciphers(*numbers):
    def change(message):
        message.cipher_suites = list(numbers)
    return change


def compression(*methods):
    def change(message):
        message.compression_methods = list(methods)
    return change


def duplicate_extension(message):
    message.extensions += [TLSExtension(extType=0xA000).create(bytearray())] * 2


def flipped(record):
    return record[:-1] + bytes([record[-1] ^ 1])


def of_kind(kind):
    return lambda record: bytes([kind]) + record[1:]


def too_long(length):
    return lambda record: record[:3] + struct.pack("!H", length) + os.urandom(length)


def short(record):
    return record[:3] + struct.pack("!H", 15) + record[5:20]


def renegotiation():
    """Two ClientHellos after the handshake, with a request after each: what comes back, record by record."""
    c, came = client(TLS_1_2), []
    for _ in range(2):
        c.record(HANDSHAKE, b"\x01\x00\x00\x29\x03\x03" + bytes(32) + b"\x00\x00\x02\xc0\x2b\x01\x00")
        c.record(DATA, REQUEST)
        while came[-1:] != ["a response"]:
            header, parser = next(result for result in c._recordLayer.recvRecord() if result not in (0, 1))
            came.append("a response" if header.type == DATA else f"alert {parser.bytes[0]} {parser.bytes[1]}")
            if came[-1].startswith("alert 2"):
                return ", ".join(came)
        came.append("then")
    return ", ".join(came)


def both(version, name):
    """What both versions have in common."""
    return [
        (f"{name}: a request", lambda: client(version).get()),
        (f"{name}: a request, a byte in each record", data_in_pieces(version)),
        (f"{name}: a handshake in records of 1 byte", hello_in_pieces(version, 1)),
        (f"{name}: a handshake in records of 50 bytes", hello_in_pieces(version, 50)),
        hello(version, f"{name}: 100 unknown extensions", extensions(100)),
        hello(version, f"{name}: an extension twice", duplicate_extension),
        hello(version, f"{name}: unknown ciphers only", ciphers(0x5A5A, 0x7A7A)),
        hello(version, f"{name}: CBC only", ciphers(0xC013, 0x002F)),
        hello(version, f"{name}: compression only", compression(1)),
        after_handshake(version, f"{name}: a record of 2^14", (DATA, padded(LIMIT))),
        after_handshake(version, f"{name}: a record of 2^14 + 1", (DATA, padded(LIMIT + 1))),
        on_the_wire(version, f"{name}: a record whose length is beyond the limit", too_long(LIMIT + 2048 + 1)),
        on_the_wire(version, f"{name}: a record shorter than its tag", short),
        on_the_wire(version, f"{name}: a record with a wrong tag", flipped),
        on_the_wire(version, f"{name}: a record of another kind outside", of_kind(HANDSHAKE)),
        on_the_wire(version, f"{name}: a record of an unknown kind outside", of_kind(99)),
        after_handshake(version, f"{name}: 31 empty records of data", *[(DATA, b"")] * 31),
        after_handshake(version, f"{name}: 33 empty records of data", *[(DATA, b"")] * 33),
        after_handshake(version, f"{name}: an empty record of a handshake", (HANDSHAKE, b"")),
        after_handshake(version, f"{name}: an empty alert", (ALERT, b"")),
        after_handshake(version, f"{name}: half an alert", (ALERT, b"\x02")),
        after_handshake(version, f"{name}: a heartbeat", (HEARTBEAT, b"\x01\x00\x01x" + bytes(16))),
        after_handshake(version, f"{name}: ChangeCipherSpec after the handshake", (CCS, b"\x01")),
        after_handshake(version, f"{name}: a fatal alert", (ALERT, b"\x02\x50")),
        (f"{name}: close_notify", close_notify(version)),
        (f"{name}: a wrong Finished", wrong_finished(version)),
    ]


def conversations():
    yield from both(TLS_1_3, "1.3")
    yield "1.3: a record that says it is of TLS 1.0", record_of_another_version
    yield "1.3: padding", padding_of_records
    yield hello(TLS_1_3, "1.3: no key share", lambda message: None, keyShares=[])
    yield after_handshake(TLS_1_3, "1.3: a record of padding only", (0, b""))
    yield after_handshake(TLS_1_3, "1.3: a second Finished", (HANDSHAKE, b"\x14\x00\x00\x20" + bytes(32)))
    yield after_handshake(TLS_1_3, "1.3: a ClientHello after the handshake", (HANDSHAKE, b"\x01\x00\x00\x02\x03\x03"))
    yield "1.3: ChangeCipherSpec in the handshake", before(Finished, TLS_1_3, (CCS, b"\x01"))
    yield "1.3: a ChangeCipherSpec of 2", before(Finished, TLS_1_3, (CCS, b"\x02"))
    yield "1.3: empty data in the handshake", sealed_before_finished(DATA, b"")
    yield "1.3: padding only in the handshake", sealed_before_finished(0, b"")
    yield "1.3: a plain alert in the handshake", before(Finished, TLS_1_3, (ALERT, b"\x02\x50"))
    yield "1.3: plain data in the handshake", before(Finished, TLS_1_3, (DATA, bytes(40)))
    yield "1.3: KeyUpdate", key_updates(0, 1)
    yield "1.3: KeyUpdate that asks for another", key_updates(1, 1)
    yield "1.3: KeyUpdate of 2", key_updates(2, 1)
    yield "1.3: 30 KeyUpdates that ask for others", key_updates(1, 30)
    yield "1.3: 33 KeyUpdates", key_updates(0, 33)
    yield "1.3: KeyUpdate in records of 1 byte", key_update_in_pieces
    yield "1.3: KeyUpdate in the middle of a request", key_update_between_data
    yield "1.3: data in the middle of a KeyUpdate", data_within_a_key_update
    yield "1.3: two KeyUpdates in one record", key_update_and_more_in_its_record
    yield after_handshake(TLS_1_3, "1.3: a KeyUpdate without content", (HANDSHAKE, b"\x18\x00\x00\x00"))
    yield after_handshake(TLS_1_3, "1.3: a KeyUpdate of 2 bytes", (HANDSHAKE, b"\x18\x00\x00\x02\x00\x00"))
    yield after_handshake(TLS_1_3, "1.3: a message of 2^24 - 1", (HANDSHAKE, b"\x18\xff\xff\xff"))
    yield version_of((3, 3), "versions: 1.4 and 1.3", [(3, 5), (3, 4)])
    yield version_of((3, 3), "versions: unknown ones and 1.3", [(0x5A, 0x5A), (3, 4)])
    yield version_of((3, 3), "versions: 1.1 in the extension", [(3, 2)])
    yield version_of((3, 3), "versions: 1.2 without the extension", None)
    yield version_of((3, 4), "versions: 1.3 without the extension", None)
    yield version_of((3, 9), "versions: 1.8 without the extension", None)
    yield version_of((3, 2), "versions: 1.1", None)
    yield version_of((3, 0), "versions: SSL 3", None)
    yield "versions: SSL 2", raw(b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10\x01\x00\x80\x02\x00\x80\x03\x00\x80\x04\x00\x80\x05\x00\x80\x06\x00\x40\x07\x00\xc0" + bytes(16))
    yield "no TLS: a request in plain text", raw(REQUEST)
    yield "no TLS: a record of data", raw(b"\x17\x03\x03\x00\x10" + bytes(16))
    yield "no TLS: an empty handshake record", raw(b"\x16\x03\x01\x00\x00")
    yield "no TLS: a ClientHello of 2^24 - 1", raw(b"\x16\x03\x01\x00\x04\x01\xff\xff\xff")
    yield from both(TLS_1_2, "1.2")
    yield hello(TLS_1_2, "1.2: with a fallback", lambda message: message.cipher_suites.append(0x5600))
    yield hello(TLS_1_2, "1.2: without extended master secret", lambda message: None, useExtendedMasterSecret=False)
    yield "1.2: renegotiation", renegotiation
    yield "1.2: data in the handshake", before(ClientKeyExchange, TLS_1_2, (DATA, REQUEST))
    yield "1.2: ChangeCipherSpec too early", before(ClientKeyExchange, TLS_1_2, (CCS, b"\x01"))
    yield "1.2: plain data after ChangeCipherSpec", before(Finished, TLS_1_2, (DATA, REQUEST))
    yield after_handshake(TLS_1_2, "1.2: 31 warnings", *[(ALERT, b"\x01\x5a")] * 31)
    yield after_handshake(TLS_1_2, "1.2: 33 warnings", *[(ALERT, b"\x01\x5a")] * 33)


for name, conversation in conversations():
    print(f"{name}: {outcome(conversation)}", flush=True)
