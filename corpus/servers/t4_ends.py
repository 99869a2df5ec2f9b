"""t4_ends.py PORT KIND [VALUE]...: HTTP/1.1 with a manner of its own. What it did is in counts.json (counts-N.json of process N).
  half-close N [announce]   after N responses on a connection it ends its half, and reads on
  shards SECONDS            /item/N is kept by shard N % 7; shard 4 hangs from SECONDS on
  processes N MOST          N processes at one port (SO_REUSEPORT); each closes connections beyond MOST
  stapling SECONDS FILE     TLS; from SECONDS on each third handshake waits for something that never comes
  cuts N FILE               TLS; of each N handshakes one ends after the ClientHello
  uploads MOST              413 to bodies beyond MOST, which it does not read, and a close
  threads                   a thread for each connection"""

import asyncio
import json
import os
import re
import socket
import ssl
import sys
import threading
import time

PORT, KIND, *VALUES = sys.argv[1:]
PORT = int(PORT)
counts = dict.fromkeys(("accepted", "responses", "odd", "most_open", "open"), 0)
state = {"began": 0.0, "name": "counts.json", "most": 0}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def age():
    return time.monotonic() - state["began"] if state["began"] else 0


def write_counts():
    with open(state["name"] + ".new", "w") as file:
        json.dump(counts, file)
    os.replace(state["name"] + ".new", state["name"])


async def serve(sock, nth):
    counts["open"] += 1
    counts["most_open"] = max(counts["most_open"], counts["open"])
    writer = None
    try:
        context = state.get("context")
        hangs = KIND == "stapling" and age() >= float(VALUES[0]) and nth % 3 == 0
        if hangs or KIND == "cuts" and nth % int(VALUES[0]) == 0:
            counts["odd"] += 1
            await asyncio.get_running_loop().sock_recv(sock, 4_096)
            if hangs:
                await asyncio.sleep(1e6)
            sock.close()
            return
        if KIND == "processes" and counts["open"] > state["most"]:
            counts["odd"] += 1
            sock.close()
            return
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, sock, ssl=context)
        writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
        served = 0
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if KIND == "shards" and age() >= float(VALUES[0]) and int(re.search(rb"/item/(\d+)", head)[1]) % 7 == 4:
                counts["odd"] += 1
                await asyncio.sleep(1e6)
            served += 1
            counts["responses"] += 1
            last = KIND == "half-close" and served == int(VALUES[0])
            writer.write(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") if last and "announce" in VALUES else OK)
            if last:
                counts["odd"] += 1
                writer.write_eof()
                while await reader.read(4_096):
                    pass
                return
    except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
        pass
    finally:
        counts["open"] -= 1
        if writer:
            writer.close()


async def main():
    listener = socket.create_server(("", PORT), backlog=900, reuse_port=KIND == "processes")
    listener.setblocking(False)
    loop, tasks = asyncio.get_running_loop(), set()
    loop.set_exception_handler(lambda _loop, _context: None)

    async def counting():
        while True:
            write_counts()
            await asyncio.sleep(0.2)

    tasks.add(asyncio.create_task(counting()))
    while True:
        sock, _ = await loop.sock_accept(listener)
        state["began"] = state["began"] or time.monotonic()
        counts["accepted"] += 1
        task = asyncio.create_task(serve(sock, counts["accepted"]))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def blocking(sock):
    """One connection of `uploads` or `threads`."""
    kept = b""
    with sock:
        while True:
            while b"\r\n\r\n" not in kept:
                part = sock.recv(1_500)
                if not part:
                    return
                kept += part
            head, _, kept = kept.partition(b"\r\n\r\n")
            found = re.search(rb"(?i)content-length: *(\d+)", head)
            left = int(found[1]) if found else 0
            if KIND == "uploads" and left > int(VALUES[0]):
                counts["odd"] += 1
                sock.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            while len(kept) < left:
                part = sock.recv(65_536)
                if not part:
                    return
                kept += part
            kept = kept[left:]
            counts["responses"] += 1
            sock.sendall(OK)


def quietly(sock):
    try:
        blocking(sock)
    except OSError:
        pass


def with_threads():
    listener = socket.create_server(("", PORT), backlog=900)
    written = 0
    while True:
        sock, _ = listener.accept()
        counts["accepted"] += 1
        try:
            threading.Thread(target=quietly, args=(sock,), daemon=True).start()
        except RuntimeError as error:
            counts["odd"] += 1
            print(f"ERROR connection {counts['accepted']}: {error}", flush=True)
            sock.close()
        if KIND == "threads":
            counts["open"] = threading.active_count() - 1
            counts["most_open"] = max(counts["most_open"], counts["open"])
            write_counts()
        elif not written:
            written = threading.Timer(0, lambda: [(write_counts(), time.sleep(0.2)) for _ in range(500)])
            written.daemon = True
            written.start()


if KIND in ("stapling", "cuts"):
    state["context"] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    state["context"].load_cert_chain(VALUES[1])
if KIND == "processes":
    for process in range(1, int(VALUES[0])):
        if os.fork() == 0:
            state["name"] = f"counts-{process}.json"
            break
    else:
        state["name"] = "counts-0.json"
    state["most"] = int(VALUES[1])
if KIND in ("uploads", "threads"):
    with_threads()
else:
    asyncio.run(main())
