"""t3_frames.py PORT: HTTP/2 with prior knowledge, and much that is allowed and seldom seen: heads in CONTINUATIONs, 103 before the response,
padded DATA, empty DATA, frames of unknown types, PRIORITY, PINGs and SETTINGS of its own in the middle, trailers. counts in frames.json."""

import asyncio
import json
import os
import struct
import sys

DATA, HEADERS, PRIORITY, SETTINGS, PING, GOAWAY, UPDATE, MORE, GREASE = 0, 1, 2, 4, 6, 7, 8, 9, 0x2B
counts = dict.fromkeys(("accepted", "requests", "pongs", "acks"), 0)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


def answer(stream, nth):
    head = b"\x88" + literal(b"content-type", b"text/plain") + literal(b"x-filler", b"f" * 90) + literal(b"x-more", b"m" * 60)
    third = len(head) // 3
    parts = [
        frame(HEADERS, 4, stream, literal(b":status", b"103") + literal(b"link", b"</style.css>; rel=preload")),
        frame(HEADERS, 0, stream, head[:third]),
        frame(MORE, 0, stream, head[third : 2 * third]),
        frame(MORE, 4, stream, head[2 * third :]),
        frame(GREASE, 0, stream, b"what is this"),
        frame(DATA, 8, stream, bytes([37]) + b"hello, " + bytes(37)),
        frame(PRIORITY, 0, stream, struct.pack(">IB", 0, 15)),
        frame(DATA, 0, stream),
        frame(DATA, 0, stream, b"world"),
    ]
    if nth % 5 == 1:
        parts.insert(5, frame(PING, 0, 0, b"\x01\x02\x03\x04\x05\x06\x07\x08"))
    if nth % 11 == 4:
        parts.insert(5, frame(SETTINGS, 0, 0, struct.pack(">HIHI", 4, 200_000, 0x0A0A, 7)))
    parts.append(frame(HEADERS, 5, stream, literal(b"x-digest", b"17")))
    return b"".join(parts)


async def connection(reader, writer):
    counts["accepted"] += 1
    try:
        await reader.readuntil(b"SM\r\n\r\n")
        writer.write(frame(SETTINGS, 0, 0, struct.pack(">HIHIHI", 3, 100, 5, 16_384, 0x1A1A, 99)) + frame(UPDATE, 0, 0, struct.pack(">I", 1_000_000)))
        while True:
            head = await reader.readexactly(9)
            length, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            payload = await reader.readexactly(length)
            if kind == SETTINGS:
                counts["acks"] += flags & 1
                if not flags & 1:
                    writer.write(frame(SETTINGS, 1, 0))
            elif kind == PING:
                counts["pongs"] += flags & 1
                if not flags & 1:
                    writer.write(frame(PING, 1, 0, payload))
            elif kind == HEADERS and flags & 1:
                counts["requests"] += 1
                await asyncio.sleep(0.006)
                writer.write(answer(stream, counts["requests"]))
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(connection, "", int(sys.argv[1]), backlog=1_024)
    while server.is_serving():
        with open("frames.part", "w") as file:
            json.dump(counts, file)
        os.replace("frames.part", "frames.json")
        await asyncio.sleep(0.2)


asyncio.run(main())
