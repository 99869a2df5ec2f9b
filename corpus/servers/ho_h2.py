"""ho_h2.py PORT MODE [N]: HTTP/2 with prior knowledge, without a library. MODE: ok; refuse (RST_STREAM with REFUSED_STREAM from the Nth request
of a connection on); calm (GOAWAY with ENHANCE_YOUR_CALM at it); leave (GOAWAY without an error at it, after the response); internal
(RST_STREAM with INTERNAL_ERROR); mute (no response from it on); cut (TCP ends at it, without GOAWAY)."""

import asyncio
import socket
import struct
import sys

PORT, MODE, N = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
CODES = {"refuse": 7, "internal": 2}


def frame(kind, flags, stream, body=b""):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + body


async def serve(reader, writer):
    calls = 0
    try:
        await reader.readexactly(24)
        writer.write(frame(SETTINGS, 0, 0))
        while True:
            head = await reader.readexactly(9)
            body = await reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
            if kind == SETTINGS and not flags & 1:
                writer.write(frame(SETTINGS, 1, 0))
            elif kind == PING and not flags & 1:
                writer.write(frame(PING, 1, 0, body))
            if kind not in (HEADERS, DATA) or not flags & 1:
                continue
            calls += 1
            is_bad = MODE != "ok" and calls >= N
            if is_bad:
                print(MODE, flush=True)
            if is_bad and MODE in CODES:
                writer.write(frame(RST, 0, stream, struct.pack(">I", CODES[MODE])))
            elif is_bad and MODE == "calm":
                writer.write(frame(GOAWAY, 0, 0, struct.pack(">II", max(0, stream - 2), 11) + b"too_many_requests"))
                return
            elif is_bad and MODE == "cut":
                return
            elif not (is_bad and MODE == "mute"):
                writer.write(frame(HEADERS, 4, stream, b"\x88") + frame(DATA, 1, stream, b"ok"))
                if is_bad and MODE == "leave":
                    writer.write(frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)))
                    await writer.drain()
                    return
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    await asyncio.start_server(serve, "", PORT, backlog=4_096, family=socket.AF_INET)
    await asyncio.sleep(3_600)


asyncio.run(main())
