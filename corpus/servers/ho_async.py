"""ho_async.py PORT [options]: one asyncio loop that speaks HTTP/1.1 with keep-alive, well or badly, as the options say.
Prints what it did wrong: `over`, `cut`, `reset`, `bad`, one word a time, at most a thousand lines."""

import argparse
import asyncio
import collections
import os
import random
import signal
import socket
import ssl
import struct
import sys
import time

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
options.add_argument("--host", default="")
options.add_argument("--six", action="store_true", help="IPv6")
options.add_argument("--backlog", type=int, default=4_096)
options.add_argument("--delay", type=float, default=0.0, help="seconds before each response")
options.add_argument("--share", type=float, default=1.0, help="share of the responses that --delay, --drop and --bad apply to")
options.add_argument("--tick", type=float, default=0.0, help="responses leave together, at each multiple of these seconds")
options.add_argument("--pause", type=float, default=0.0, help="the whole loop sleeps this long each --every")
options.add_argument("--every", type=float, default=1.0)
options.add_argument("--spin", type=float, default=0.0, help="seconds of CPU a request")
options.add_argument("--lock", type=float, default=0.0, help="seconds that each request holds the only lock, asleep")
options.add_argument("--pool", type=int, default=1, help="how many may hold the lock")
options.add_argument("--body", type=int, default=2)
options.add_argument("--style", default="plain", help="plain, chunked, dribble, until-close, http10, odd, early, continue, none")
options.add_argument("--status", default="200 OK")
options.add_argument("--bad", default="", help="status of a share of the responses, or from --after requests on")
options.add_argument("--after", type=int, default=0, help="requests (of all connections) before --bad, --drop and --truncate apply")
options.add_argument("--head", action="append", default=[], help="a header")
options.add_argument("--truncate", action="store_true", help="half of the body, then FIN")
options.add_argument("--drop", default="", help="rst or fin instead of a response")
options.add_argument("--max", type=int, default=0, help="connections at once")
options.add_argument("--per-ip", type=int, default=0)
options.add_argument("--over", default="rst", help="what happens to those above: rst, fin, 503, 429, silent, unlisten, exit, kill")
options.add_argument("--calls", type=int, default=0, help="requests per connection; then FIN")
options.add_argument("--announce", action="store_true", help="say so in the last response")
options.add_argument("--age", type=float, default=0.0, help="seconds that a connection may last")
options.add_argument("--idle", type=float, default=0.0, help="seconds that a connection may idle")
options.add_argument("--cut", default="fin", help="how --age and --idle end it: fin or rst")
options.add_argument("--tls", default="", help="certificate and key, with a comma")
options.add_argument("--ca", default="", help="ask for certificates of this CA")
O = options.parse_args()
open_now, by_address, seen, said = 0, collections.Counter(), 0, 0
lock = asyncio.Semaphore(O.pool)


def note(word):
    global said
    said += 1
    if said <= 1_000:
        print(word, file=sys.stderr, flush=True)


def reset(writer):
    one = writer.get_extra_info("socket")
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def end(writer, how):
    reset(writer) if how == "rst" else writer.close()


async def above(reader, writer):
    """What a connection above the limit gets."""
    note(f"over at {open_now}")
    if O.over == "exit":
        sys.stderr.flush()
        os._exit(3)
    if O.over == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if O.over in ("rst", "fin"):
        return end(writer, O.over)
    if O.over == "silent":
        await asyncio.sleep(3_600)
    await reader.readuntil(b"\r\n\r\n")
    name = {"503": "503 Service Unavailable", "429": "429 Too Many Requests"}[O.over]
    writer.write(f"HTTP/1.1 {name}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    writer.close()


async def respond(writer, calls):
    """One response; whether the connection stays."""
    global seen
    seen += 1
    chosen = seen > O.after and (O.share >= 1 or random.random() < O.share)
    if O.spin:
        until = time.thread_time() + O.spin
        while time.thread_time() < until:
            pass
    if O.lock:
        async with lock:
            await asyncio.sleep(O.lock)
    if O.delay and chosen:
        await asyncio.sleep(O.delay)
    if O.tick:
        await asyncio.sleep(O.tick - time.monotonic() % O.tick)
    if O.drop and chosen:
        note("reset" if O.drop == "rst" else "cut")
        end(writer, O.drop)
        return False
    status = O.bad if O.bad and chosen else O.status
    if status != O.status:
        note("bad")
    body, heads = b"x" * O.body, "".join(f"{head}\r\n" for head in O.head)
    last = O.calls and calls >= O.calls
    if O.style in ("until-close", "http10"):
        version = "1.0" if O.style == "http10" else "1.1"
        heads += "Connection: close\r\n" if O.style == "until-close" else ""
        writer.write(f"HTTP/{version} {status}\r\n{heads}\r\n".encode() + body)
        return False
    if last and O.announce:
        heads += "Connection: close\r\n"
    if O.style == "early":
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n")
        await asyncio.sleep(0.02)
    if O.style == "continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.02)
    if O.style == "odd":
        heads += "".join(f"x-note-{number}: {'v' * 90}\r\n" for number in range(40))
        writer.write(f"HTTP/1.1 200\r\ncontent-LENGTH:   {len(body)}\r\n{heads}\r\n".encode() + body)
    elif O.style == "chunked":
        writer.write(f"HTTP/1.1 {status}\r\n{heads}Transfer-Encoding: chunked\r\n\r\n".encode())
        for part in (body[: len(body) // 2], body[len(body) // 2 :]):
            writer.write(f"{len(part):x};a=b\r\n".encode() + part + b"\r\n")
            await asyncio.sleep(0.01)
        writer.write(b"0\r\nX-Sum: 1\r\n\r\n")
    elif O.style == "none":
        writer.write(f"HTTP/1.1 {status}\r\n{heads}\r\n".encode())
    else:
        head = f"HTTP/1.1 {status}\r\n{heads}Content-Length: {len(body)}\r\n\r\n".encode()
        if O.truncate and chosen:
            writer.write(head + body[: len(body) // 2])
            note("cut")
            return False
        if O.style == "dribble":
            for byte in head + body:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.002)
        else:
            writer.write(head + body)
    await writer.drain()
    if last and not O.announce:
        note("cut")
    return not last


async def serve(reader, writer):
    global open_now
    address, began, calls = writer.get_extra_info("peername")[0], time.monotonic(), 0
    open_now += 1
    by_address[address] += 1
    try:
        if O.max and open_now > O.max or O.per_ip and by_address[address] > O.per_ip:
            return await above(reader, writer)
        if O.max == open_now and O.over == "unlisten":
            note("over: no longer listens")
            server.close()
        while True:
            limits = [O.idle] if O.idle else []
            limits += [max(0.001, began + O.age - time.monotonic())] if O.age else []
            try:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), min(limits) if limits else None)
            except asyncio.TimeoutError:
                note("cut")
                return end(writer, O.cut)
            lower = head.lower()
            if b"expect: 100-continue" in lower:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if b"content-length:" in lower:
                await reader.readexactly(int(lower.split(b"content-length:")[1].split(b"\r\n")[0]))
            calls += 1
            if not await respond(writer, calls):
                return
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
        pass
    finally:
        open_now -= 1
        by_address[address] -= 1
        writer.close()


async def pauses():
    while True:
        await asyncio.sleep(O.every)
        time.sleep(O.pause)


async def main():
    global server
    context = None
    if O.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*O.tls.split(","))
        if O.ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(O.ca)
    family = socket.AF_INET6 if O.six else socket.AF_INET
    server = await asyncio.start_server(serve, O.host, O.port, family=family, backlog=O.backlog, ssl=context, limit=1 << 20)
    pausing = asyncio.create_task(pauses()) if O.pause else None
    await asyncio.sleep(3_600)
    del pausing


asyncio.run(main())
