"""odd.py PORT [--OPTION VALUE]...: HTTP/1.1 in one thread, with what the options add. Times are in seconds; those of --at are counted
from the first connection. What it did is in the file `counts.json` of its folder, outside of its log."""

import argparse
import asyncio
import gc
import json
import os
import random
import socket
import ssl
import struct
import sys
import time

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
for name, kind, value in (
    ("address", str, ""), ("backlog", int, 4_096), ("listen-after", float, 0), ("cert", str, ""),
    # Each response
    ("delay", float, 0), ("spread", float, 0), ("length", int, 2), ("response", str, ""), ("status", str, "200 OK"), ("header", str, ""),
    ("work", float, 0), ("pieces", int, 1), ("greeting", str, ""), ("after-response", str, ""),
    # From a moment on, for a while, only for a share of the requests
    ("at", float, 0), ("for", float, 1e9), ("share", float, 1), ("every", int, 0), ("then", str, ""), ("amount", float, 0),
    # Connections
    ("most", int, 0), ("beyond", str, "close"), ("responses", int, 0), ("announce", int, 0), ("idle", float, 0), ("age", float, 0),
    ("age-spread", float, 0), ("first", float, 0), ("end-by", str, "close"), ("accept-rate", float, 0), ("per-address", int, 0), ("bytes", int, 0),
    ("linger", float, 0), ("pool", int, 0), ("say", str, ""), ("stall-every", float, 0), ("stall-for", float, 0), ("exit-status", int, 1), ("spin-at", float, 0), ("spin-for", float, 0),
):
    options.add_argument(f"--{name}", type=kind, default=value)
options = options.parse_args()
counts = dict.fromkeys(("accepted", "turned_away", "closed", "responses", "odd", "silent", "most_open", "accept_errors"), 0)
state = {"began": 0.0, "open": 0, "of": {}, "requests": 0, "kept": [], "stopped": False, "open_ones": {}}


COUNTS = os.open("counts.json", os.O_RDWR | os.O_CREAT)


def write_counts():
    """Without a new file: there may be none left."""
    os.pwrite(COUNTS, json.dumps(counts).ljust(400).encode(), 0)


def response(last=False):
    if options.response:
        return options.response.encode().decode("unicode_escape").encode("latin-1")
    more = options.header + "\r\n" if options.header else ""
    more += "Connection: close\r\n" if last and options.announce else ""
    body = "x" * options.length
    return f"HTTP/1.1 {options.status}\r\nContent-Length: {len(body)}\r\n{more}\r\n{body}".encode()


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def is_odd():
    """Whether `then` applies to this request."""
    age = time.monotonic() - state["began"]
    if not options.then or not options.at <= age < options.at + getattr(options, "for"):
        return False
    state["requests"] += 1
    return state["requests"] % options.every == 0 if options.every else random.random() < options.share


def kind():
    """What happens to an odd request."""
    match options.then:
        case "mixed":
            return random.choice(["close", "half", "error"])
        case "half-or-reset":
            return "half" if counts["odd"] % 3 else "reset"
        case other:
            return other


def end(writer, how):
    counts["closed"] += 1
    if how == "reset":
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    else:
        writer.close()


async def exchange(reader, writer, pool, served):
    """One request; False: the connection is over."""
    patience = options.idle if served or not options.first else options.first
    try:
        await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), patience or None)
    except asyncio.TimeoutError:
        end(writer, options.end_by)
        return False
    if is_odd():
        counts["odd"] += 1
        if options.say:
            print(options.say, flush=True)
        match kind():
            case "hang":
                counts["silent"] += 1
                await asyncio.sleep(1e6)
            case "delay":
                await asyncio.sleep(options.amount)
            case "work":
                spin(options.amount)
            case "close" | "reset" as how:
                end(writer, how)
                return False
            case "half":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nabc")
                end(writer, "close")
                return False
            case "error":
                writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
                return True
            case "trickle":
                for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000:
                    writer.write(bytes([byte]))
                    await asyncio.sleep(options.amount)
            case "block":
                time.sleep(options.amount)
            case "files":
                while True:
                    try:
                        state["kept"].append(open("/dev/null"))
                    except OSError:
                        break
            case "exit":
                write_counts()
                os._exit(options.exit_status)
            case "stop-accepting":
                state["stopped"] = True
            case "unlisten":
                state["listener"].close()
    if options.work:
        spin(options.work)
    if options.delay or options.spread:
        pause = options.delay + random.uniform(0, options.spread)
        if pool:
            async with pool:
                await asyncio.sleep(pause)
        else:
            await asyncio.sleep(pause)
    last = options.responses and served + 1 >= options.responses
    whole = response(last)
    part = -(-len(whole) // options.pieces)
    for start in range(0, len(whole), part):
        writer.write(whole[start : start + part])
        if options.pieces > 1:
            await asyncio.sleep(0.02)
    counts["responses"] += 1
    await writer.drain()
    if options.after_response:
        await asyncio.sleep(0.3)
        writer.write(options.after_response.encode().decode("unicode_escape").encode("latin-1"))
        await asyncio.sleep(1e6)
    if last:
        await asyncio.sleep(options.linger)
        end(writer, options.end_by)
        return False
    return True


async def serve(sock, address, pool, context):
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    protocol = asyncio.StreamReaderProtocol(reader)
    writer, timer, kept = None, None, b"x" * options.bytes
    state["open"] += 1
    counts["most_open"] = max(counts["most_open"], state["open"])
    state["of"][address] = state["of"].get(address, 0) + 1
    try:
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, ssl=context)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        is_beyond = options.most and state["open"] > options.most or options.per_address and state["of"][address] > options.per_address
        if is_beyond and options.beyond != "evict":
            counts["turned_away"] += 1
            if options.say and not options.then:
                print(options.say, flush=True)
            match options.beyond:
                case "close" | "reset":
                    end(writer, options.beyond)
                    return
                case "503":
                    await reader.readuntil(b"\r\n\r\n")
                    writer.write(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                    end(writer, "close")
                    return
                case "silence":
                    await asyncio.sleep(1e6)
        state["open_ones"][writer] = None
        if is_beyond:
            counts["turned_away"] += 1
            oldest = next(iter(state["open_ones"]))
            del state["open_ones"][oldest]
            end(oldest, "close")
        if options.age:
            timer = loop.call_later(options.age + random.uniform(0, options.age_spread), end, writer, options.end_by)
        if options.greeting:
            writer.write(options.greeting.encode().decode("unicode_escape").encode())
        served = 0
        while await exchange(reader, writer, pool, served):
            served += 1
            if writer in state["open_ones"] and options.beyond == "evict":
                del state["open_ones"][writer]
                state["open_ones"][writer] = None
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError):
        pass
    finally:
        del kept
        state["open"] -= 1
        state["of"][address] -= 1
        state["open_ones"].pop(writer, None)
        if timer:
            timer.cancel()
        if writer:
            writer.close()


async def stalls():
    """The whole process pauses, as in a collection of garbage."""
    while True:
        await asyncio.sleep(options.stall_every)
        time.sleep(options.stall_for)


async def main():
    context = None
    if options.cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.cert)
    time.sleep(options.listen_after)
    family = socket.AF_INET6 if ":" in options.address else socket.AF_INET
    listener = state["listener"] = socket.create_server((options.address, options.port), family=family, backlog=options.backlog)
    listener.setblocking(False)
    loop, pool, tasks = asyncio.get_running_loop(), asyncio.Semaphore(options.pool) if options.pool else None, set()
    loop.set_exception_handler(lambda _loop, _context: None)

    async def counting():
        while True:
            await asyncio.sleep(0.2)
            write_counts()

    async def busy():
        while not state["began"] or time.monotonic() < state["began"] + options.spin_at:
            await asyncio.sleep(0.05)
        until = time.monotonic() + options.spin_for
        while time.monotonic() < until:
            spin(0.02)
            await asyncio.sleep(0)

    tasks.add(asyncio.create_task(counting()))
    if options.spin_for:
        tasks.add(asyncio.create_task(busy()))
    if options.stall_every:
        tasks.add(asyncio.create_task(stalls()))
    while True:
        if state["stopped"] or options.beyond == "leave" and options.most and state["open"] >= options.most:
            await asyncio.sleep(0.05)
            continue
        try:
            sock, address = await loop.sock_accept(listener)
        except OSError as error:
            if listener.fileno() < 0:
                await asyncio.sleep(1e6)
            counts["accept_errors"] += 1
            print(f"accept: {error}", file=sys.stderr, flush=True)
            await asyncio.sleep(0.05)
            continue
        state["began"] = state["began"] or time.monotonic()
        counts["accepted"] += 1
        task = asyncio.create_task(serve(sock, address[0], pool, context))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if options.accept_rate:
            await asyncio.sleep(1 / options.accept_rate)
        else:
            await asyncio.sleep(0)


gc.freeze()
write_counts()
asyncio.run(main())
