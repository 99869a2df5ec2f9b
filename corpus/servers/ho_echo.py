"""ho_echo.py PORT MODE: WebSocket or TCP on one asyncio loop. MODE: ws, ws-wrong (another text), ws-refuse (403), ws-close:N (close frame
1008 after N messages), ws-mute:N (no replies once N are open), tcp, tcp-max:N (RST above N), tcp-greet (speaks first)."""

import asyncio
import base64
import hashlib
import socket
import struct
import sys

PORT, MODE, _, N = int(sys.argv[1]), *sys.argv[2].partition(":")
N = int(N or 0)
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
open_now = 0


def frame(kind, body):
    length = bytes([len(body)]) if len(body) < 126 else b"\x7e" + struct.pack(">H", len(body))
    return bytes([0x80 | kind]) + length + body


async def read_frame(reader):
    first, second = await reader.readexactly(2)
    length = second & 0x7F
    if length == 126:
        length = struct.unpack(">H", await reader.readexactly(2))[0]
    mask = await reader.readexactly(4)
    body = await reader.readexactly(length)
    return first & 15, bytes(byte ^ mask[index % 4] for index, byte in enumerate(body))


async def websocket(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    if MODE == "ws-refuse":
        print("refused", flush=True)
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return
    lines = dict(line.lower().split(b": ", 1)[:1] + [line.split(b": ", 1)[1]] for line in head.split(b"\r\n")[1:] if b": " in line)
    accept = base64.b64encode(hashlib.sha1(lines[b"sec-websocket-key"] + GUID).digest())
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    count = 0
    while True:
        kind, body = await read_frame(reader)
        count += 1
        if MODE == "ws-mute" and open_now > N:
            print("mute", flush=True)
            continue
        if kind == 8:
            writer.write(frame(8, body[:2]))
            return
        if MODE == "ws-close" and count > N:
            print("closed by policy", flush=True)
            writer.write(frame(8, struct.pack(">H", 1008) + b"policy"))
            return
        writer.write(frame(10, body) if kind == 9 else frame(kind, b"wrong" if MODE == "ws-wrong" else body))


async def raw(reader, writer):
    if MODE == "tcp-max" and open_now > N:
        print("over", flush=True)
        one = writer.get_extra_info("socket")
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return writer.transport.abort()
    if MODE == "tcp-greet":
        writer.write(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n")
    while part := await reader.read(65_536):
        if MODE != "tcp-greet":
            writer.write(part)


async def serve(reader, writer):
    global open_now
    open_now += 1
    try:
        await (websocket if MODE.startswith("ws") else raw)(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        open_now -= 1
        writer.close()


async def main():
    await asyncio.start_server(serve, "", PORT, backlog=4_096, family=socket.AF_INET)
    await asyncio.sleep(3_600)


asyncio.run(main())
