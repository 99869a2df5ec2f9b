"""h2.py PORT [--OPTION VALUE]...: HTTP/2 with prior knowledge, or gRPC with --grpc 1: one thread, each request answered with 200 unless an
option says otherwise. What it did is in `counts.json`."""

import argparse
import asyncio
import json
import os
import struct

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
for name, kind, value in (
    ("delay", float, 0), ("grpc", int, 0), ("grpc-status", int, 0), ("reset-code", int, -1), ("reset-every", int, 1), ("goaway-idle", float, 0),
    ("goaway-after", int, 0), ("goaway-code", int, 0), ("max-streams", int, 100), ("refuse-beyond", int, 0), ("settings", int, 1), ("age", float, 0),
    ("raw", str, ""), ("status", str, ""), ("pongs", int, 1), ("window", int, 65_535), ("pool", int, 0),
):
    options.add_argument(f"--{name}", type=kind, default=value)
options = options.parse_args()
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
counts = dict.fromkeys(("accepted", "requests", "responses", "resets", "goaways"), 0)
POOL = asyncio.Semaphore(options.pool) if options.pool else None


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


def answer(stream):
    if options.grpc:
        head = b"\x88" + literal(b"content-type", b"application/grpc")
        tail = literal(b"grpc-status", str(options.grpc_status).encode())
        if options.grpc_status:
            return frame(HEADERS, 5, stream, head + tail)
        return frame(HEADERS, 4, stream, head) + frame(DATA, 0, stream, bytes(5)) + frame(HEADERS, 5, stream, tail)
    if options.status:
        return frame(HEADERS, 5, stream, literal(b":status", options.status.encode()))
    return frame(HEADERS, 4, stream, b"\x88") + frame(DATA, 1, stream, b"ok")


async def connection(reader, writer):
    counts["accepted"] += 1
    tasks, last, served, open_ones = set(), 0, 0, set()

    def goaway():
        counts["goaways"] += 1
        writer.write(frame(GOAWAY, 0, 0, struct.pack(">II", last, options.goaway_code)))
        writer.close()

    async def one(stream):
        nonlocal served
        if POOL:
            async with POOL:
                await asyncio.sleep(options.delay)
        else:
            await asyncio.sleep(options.delay)
        writer.write(answer(stream))
        open_ones.discard(stream)
        counts["responses"] += 1
        served += 1
        if options.goaway_after and served >= options.goaway_after:
            goaway()

    try:
        await reader.readuntil(b"SM\r\n\r\n")
        if options.raw:
            writer.write(options.raw.encode().decode("unicode_escape").encode("latin-1"))
            await reader.read(1 << 30)
            return
        if options.settings:
            writer.write(frame(SETTINGS, 0, 0, struct.pack(">HIHI", 3, options.max_streams, 4, options.window)))
        timer = asyncio.get_running_loop().call_later(options.age, goaway) if options.age else None
        while True:
            head = await asyncio.wait_for(reader.readexactly(9), options.goaway_idle or None)
            length, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            payload = await reader.readexactly(length)
            if kind == SETTINGS and not flags & 1 and options.settings:
                writer.write(frame(SETTINGS, 1, 0))
            elif kind == PING and not flags & 1 and options.pongs:
                writer.write(frame(PING, 1, 0, payload))
            elif kind == DATA and length:
                for at in (0, stream):
                    writer.write(frame(8, 0, at, struct.pack(">I", length)))
            if kind in (HEADERS, DATA) and flags & 1:
                counts["requests"] += 1
                last = stream
                open_ones.add(stream)
                refused = options.refuse_beyond and len(open_ones) > options.refuse_beyond
                if refused or options.reset_code >= 0 and counts["requests"] % options.reset_every == 0:
                    counts["resets"] += 1
                    open_ones.discard(stream)
                    writer.write(frame(RST, 0, stream, struct.pack(">I", 7 if refused else options.reset_code)))
                    continue
                task = asyncio.create_task(one(stream))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
    except asyncio.TimeoutError:
        goaway()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        for task in tasks:
            task.cancel()
        writer.close()


async def main():
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    server = await asyncio.start_server(connection, "", options.port, backlog=4_096)
    while server.is_serving():
        with open("counts.part", "w") as file:
            json.dump(counts, file)
        os.replace("counts.part", "counts.json")
        await asyncio.sleep(0.2)


asyncio.run(main())
