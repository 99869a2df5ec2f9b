"""manners.py PORT KIND [VALUE...]: small servers with manners of their own. What they did is in counts.json.
  tls-threads N FILE    N threads, each with one connection from its handshake to its end; the others are accepted, and wait for a thread
  clients N             lines PING; beyond N clients a line that says so, and a close
  errors                404 for each thirteenth item, after which the connection is closed without a word
  log BYTES             a line of BYTES for each request on standard output, which whoever reads it may delay
  records N FILE        TLS, with a record for each N bytes
  shed N                announces a close in each response while more than N connections are open
  to-thread MS          each response needs a thread of asyncio for so long
  journal BYTES         writes BYTES for each request, and syncs them
  cache BYTES           writes BYTES to a spool file for each request, which stay in the page cache"""

import asyncio
import concurrent.futures
import json
import os
import socket
import ssl
import sys
import threading
import time

port, kind, values = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
counts = dict.fromkeys(("accepted", "served", "odd", "open", "most_open", "responses", "log_ms"), 0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
COUNTS = os.open("counts.json", os.O_RDWR | os.O_CREAT)
waiting = []
spool = open("spool", "wb") if kind in ("cache", "journal") else None


def tell():
    os.pwrite(COUNTS, json.dumps(counts).ljust(300).encode(), 0)


def entered():
    counts["accepted"] += 1
    counts["open"] += 1
    counts["most_open"] = max(counts["most_open"], counts["open"])


def context(file):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(file)
    return made


def in_threads(most, file, record):
    tls, pool = context(file), concurrent.futures.ThreadPoolExecutor(most)

    def serve(raw):
        entered()
        try:
            raw.settimeout(60)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with tls.wrap_socket(raw, server_side=True) as peer:
                counts["served"] += 1
                while head := peer.recv(4_096):
                    while b"\r\n\r\n" not in head:
                        head += peer.recv(4_096)
                    text = OK if not record else b"HTTP/1.1 200 OK\r\nContent-Length: 431\r\n\r\n" + b"r" * 431
                    for start in range(0, len(text), record or len(text)):
                        peer.send(text[start : start + (record or len(text))])
                        counts["odd"] += 1
                    counts["responses"] += 1
        except OSError:
            pass
        finally:
            counts["open"] -= 1

    def report():
        while True:
            time.sleep(0.2)
            tell()

    threading.Thread(target=report, daemon=True).start()
    listener = socket.create_server(("", port), backlog=700)
    while True:
        pool.submit(serve, listener.accept()[0])


async def clients(reader, writer):
    entered()
    try:
        if counts["open"] > int(values[0]):
            counts["odd"] += 1
            writer.write(b"-ERR max number of clients reached\r\n")
            await writer.drain()
            return
        counts["served"] += 1
        while await reader.readline():
            writer.write(b"+PONG\r\n")
            counts["responses"] += 1
    except OSError:
        pass
    finally:
        counts["open"] -= 1
        writer.close()


def answer(head):
    """The response, and whether the connection ends after it."""
    number = int(values[0]) if values else 0
    if kind == "errors" and int(head.split(b" ")[1].rpartition(b"/")[2]) % 13 == 0:
        counts["odd"] += 1
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nnothing", True
    if kind == "log":
        began = time.monotonic()
        line = (head.decode().replace("\r\n", " ") * 99)[: number - 1].encode() + b"\n"
        while line:
            line = line[os.write(1, line) :]
        counts["log_ms"] += (time.monotonic() - began) * 1_000
    if kind == "journal":
        began = time.monotonic()
        spool.write(b"j" * number)
        spool.flush()
        os.fdatasync(spool.fileno())
        counts["log_ms"] += (time.monotonic() - began) * 1_000
    if kind == "cache":
        spool.write(b"s" * number)
        spool.flush()
    if kind == "shed" and counts["open"] > number:
        counts["odd"] += 1
        return OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), True
    return OK, False


async def http(reader, writer):
    entered()
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if kind == "journal":
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
            text, last = answer(head)
            if kind == "to-thread":
                waiting.append(1)
                counts["odd"] = max(counts["odd"], len(waiting) - 6)
                await asyncio.to_thread(time.sleep, int(values[0]) / 1_000)
                waiting.pop()
            writer.write(text)
            counts["responses"] += 1
            if last:
                await writer.drain()
                break
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        counts["open"] -= 1
        writer.close()


async def main():
    await asyncio.start_server(clients if kind == "clients" else http, port=port, backlog=700)
    while True:
        await asyncio.sleep(0.2)
        tell()


if kind == "tls-threads":
    in_threads(int(values[0]), values[1], 0)
elif kind == "records":
    in_threads(400, values[1], int(values[0]))
else:
    asyncio.run(main())
