"""ho_middle.py PORT HOST TO [options]: a middlebox that takes connections and passes bytes on, with a delay or with losses of whole
connections. Prints what it did: `delayed`, `reset`, `swallowed`."""

import argparse
import asyncio
import random
import socket
import struct
import time

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
options.add_argument("host")
options.add_argument("to", type=int)
options.add_argument("--delay", type=float, default=0.0, help="seconds for each piece of a response")
options.add_argument("--share", type=float, default=1.0, help="share of the pieces that are delayed, reset or swallowed")
options.add_argument("--reset", action="store_true")
options.add_argument("--swallow", action="store_true", help="such a piece never arrives")
options.add_argument("--age", type=float, default=0.0, help="a reset of both sides at this age of a connection, in seconds")
options.add_argument("--idle", type=float, default=0.0, help="bytes that come after a silence of these seconds are swallowed")
options.add_argument("--max", type=int, default=0, help="connections above it are reset")
options.add_argument("--rate", type=float, default=0.0, help="bytes a second in all, of responses")
O = options.parse_args()
said, open_now, pipe = 0, 0, asyncio.Lock()


def note(word):
    global said
    said += 1
    if said <= 500:
        print(word, flush=True)


def reset(writer):
    note("reset")
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def pump(reader, writer, back, state):
    try:
        while part := await reader.read(65_536):
            now = time.monotonic()
            state["dead"] = state["dead"] or O.idle and now - state["seen"] > O.idle
            state["seen"] = now
            if state["dead"]:
                note("swallowed")
                continue
            chosen = back and random.random() < O.share
            if back and O.rate:
                async with pipe:
                    await asyncio.sleep(len(part) / O.rate)
            if chosen and O.reset:
                return reset(writer)
            if chosen and O.swallow:
                note("swallowed")
                continue
            if chosen and O.delay:
                note("delayed")
                await asyncio.sleep(O.delay)
            writer.write(part)
            await writer.drain()
    except (ConnectionError, RuntimeError):
        pass
    finally:
        writer.close()


async def serve(reader, writer):
    global open_now
    open_now += 1
    try:
        if O.max and open_now > O.max:
            return reset(writer)
        there, here = await asyncio.open_connection(O.host, O.to)
        state = {"seen": time.monotonic(), "dead": False}
        if O.age:
            asyncio.get_running_loop().call_later(O.age, lambda: (reset(writer), reset(here)))
        await asyncio.gather(pump(reader, here, False, state), pump(there, writer, True, state))
    finally:
        open_now -= 1


async def main():
    await asyncio.start_server(serve, "", O.port, backlog=4_096, family=socket.AF_INET)
    await asyncio.sleep(3_600)


asyncio.run(main())
