"""box_between.py NEAR FAR CLIENT SERVER [--OPTION VALUE]...: a box between two links, which carries each packet of IPv4 from one to the other
by itself (the kernel's forwarding is off). CLIENT and SERVER are the addresses of its two neighbours. It keeps a table of TCP connections, and the
options say what it does to them. Times are in seconds, those of --cull-at from the first SYN. What it did is in box.json."""

import argparse
import array
import heapq
import json
import os
import random
import select
import socket
import struct
import sys
import time
import zlib

options = argparse.ArgumentParser()
for name in ("near", "far", "client", "server"):
    options.add_argument(name)
for name, kind, value in (
    # When it ends a connection, how (drop, or a reset to client, server, both), and what becomes of the packets that come later
    ("idle", float, 0), ("age", float, 0), ("octets", int, 0), ("requests", int, 0), ("by", str, "drop"), ("after", str, "drop"),
    ("cull-at", float, 0), ("cull", int, 2),
    # The table: how many connections of a source or in all, what becomes of those beyond (drop, meet: it completes the handshake, and resets;
    # evict: the longest idle one goes, in silence), and how long a closed one stays in it
    ("of-a-source", int, 0), ("most", int, 0), ("beyond", str, "drop"), ("lingers", float, 0),
    # Packets: later, all or those of one of N paths; held back for a while again and again; out of order, twice, damaged (with a right checksum)
    ("delay", float, 0), ("slow", float, 0), ("ways", int, 0), ("hold-every", float, 0), ("hold-for", float, 0),
    ("reorder", float, 0), ("late", float, 0.004), ("twice", float, 0), ("damage", int, 0), ("mends", int, 0), ("unscale", int, 0), ("seed", int, 7),
):
    options.add_argument(f"--{name}", type=kind, default=value)
options = options.parse_args()
counts = dict.fromkeys(("syns", "carried", "ended", "to_client", "to_server", "dropped", "beyond", "evicted", "most", "held", "reordered", "twice", "damaged",
                        "unscaled", "slow_ones", "late_ones"), 0)
random.seed(options.seed)
FIN, SYN, RST, ACK = 1, 2, 4, 16
flows, forgotten, due, began = {}, {}, [], 0.0
order = 0


class Flow:
    def __init__(self, now, server):
        self.born = self.last = now
        self.server = server
        self.octets = self.requests = self.next_client = self.next_server = self.fins = 0
        self.closed = 0.0
        self.refused = False


def summed(data):
    if len(data) & 1:
        data += b"\0"
    total = sum(array.array("H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def mended(packet):
    """With right checksums: those of a packet that has not left a host yet are not complete."""
    at = (packet[0] & 15) * 4
    packet[10:12] = b"\0\0"
    packet[10:12] = struct.pack("=H", summed(bytes(packet[:at])))
    if packet[9] == 6:
        packet[at + 16 : at + 18] = b"\0\0"
        pseudo = bytes(packet[12:20]) + struct.pack("!HH", 6, len(packet) - at)
        packet[at + 16 : at + 18] = struct.pack("=H", summed(pseudo + bytes(packet[at:])))
    return packet


def segment(source, target, seq, ack, flags):
    """Of its own, as from `source`: pairs of an address and a port."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, random.randrange(65_536), 0, 64, 6, 0, source[0], target[0])
    return mended(bytearray(head + struct.pack("!HHIIBBHHH", source[1], target[1], seq, ack, 0x50, flags, 64_240 if flags & SYN else 0, 0, 0)))


def send(packet, side):
    try:
        sockets[side].sendto(packet, (names[side], 0x0800, 0, 0, macs[side]))
    except OSError as error:
        print(f"{len(packet)} bytes: {error}", file=sys.stderr, flush=True)


def later(at, packet, side):
    global order
    order += 1
    heapq.heappush(due, (at, order, packet, side))


def reset(key, flow, side):
    if side == 0:
        counts["to_client"] += 1
        send(segment(flow.server, key, flow.next_server, flow.next_client, RST | ACK), 0)
    else:
        counts["to_server"] += 1
        send(segment(key, flow.server, flow.next_client, flow.next_server, RST | ACK), 1)


def finish(key, flow):
    counts["ended"] += 1
    flows.pop(key, None)
    forgotten[key] = flow
    if options.by in ("client", "both"):
        reset(key, flow, 0)
    if options.by in ("server", "both"):
        reset(key, flow, 1)


def admits(key, now):
    """Whether there is room for one more."""
    of_a_source = options.of_a_source and sum(1 for other in flows if other[0] == key[0] and not flows[other].refused) >= options.of_a_source
    if not of_a_source and not (options.most and len(flows) >= options.most):
        return True
    if options.beyond == "evict":
        oldest = min(flows, key=lambda one: flows[one].last)
        counts["evicted"] += 1
        forgotten[oldest] = flows.pop(oldest)
        return True
    counts["beyond"] += 1
    return False


def tcp(packet, side, now):
    """Whether it goes on."""
    global began
    at = (packet[0] & 15) * 4
    ports = struct.unpack_from("!HH", packet, at)
    seq, ack = struct.unpack_from("!II", packet, at + 4)
    flags = packet[at + 13]
    content = len(packet) - at - (packet[at + 12] >> 4) * 4
    ends = ((bytes(packet[12:16]), ports[0]), (bytes(packet[16:20]), ports[1]))
    key, server = ends if side == 0 else ends[::-1]
    flow = flows.get(key)
    if flags & (SYN | ACK) == SYN and side == 0 and (flow is None or flow.closed):
        began = began or now
        counts["syns"] += 1
        forgotten.pop(key, None)
        admitted = admits(key, now)
        if not admitted and options.beyond == "drop":
            counts["dropped"] += 1
            return False
        flow = flows[key] = Flow(now, server)
        flow.next_client = (seq + 1) & 0xFFFFFFFF
        if not admitted:
            flow.refused = True
            send(segment(server, key, 77_777, flow.next_client, SYN | ACK), 0)
            return False
        counts["most"] = max(counts["most"], sum(1 for one in flows.values() if not one.refused))
        return True
    if flow is None:
        if key in forgotten and options.after == "forward":
            return True
        counts["dropped"] += 1
        return False
    if flow.refused:
        if not flags & SYN:
            flow.next_server = ack
            reset(key, flow, 0)
            del flows[key]
        return False
    flow.last = now
    end = (seq + content + bool(flags & SYN) + bool(flags & FIN)) & 0xFFFFFFFF
    name = "next_client" if side == 0 else "next_server"
    if flags & SYN or (end - getattr(flow, name)) & 0xFFFFFFFF < 1 << 31:
        setattr(flow, name, end)
    flow.octets += content
    flow.fins |= (1 << side) if flags & FIN else 0
    if (flags & RST or flow.fins == 3) and not flow.closed:
        flow.closed = now
    if side == 0 and content:
        flow.requests += 1
        if options.requests and flow.requests > options.requests:
            flow.next_client = seq
            finish(key, flow)
            return False
    if options.octets and flow.octets > options.octets:
        if side == 1:
            flow.next_server = seq
        finish(key, flow)
        return False
    if options.unscale and flags & SYN and side == 1:
        nth = at + 20
        while nth < at + (packet[at + 12] >> 4) * 4 and packet[nth]:
            if packet[nth] == 3:
                packet[nth : nth + 3] = b"\1\1\1"
                counts["unscaled"] += 1
            nth += 1 if packet[nth] == 1 else packet[nth + 1]
    if options.damage and side == 1 and content > 20:
        counts["candidates"] = counts.get("candidates", 0) + 1
        if counts["candidates"] % options.damage == 0:
            counts["damaged"] += 1
            if not options.mends:
                mended(packet)
            packet[-7] ^= 0x10
            return "mend" if options.mends else "as it is"
    if options.ways and zlib.crc32(key[0] + struct.pack("!H", key[1])) % options.ways == 1:
        counts["slow_ones"] += 1
        return "slow"
    return True


def carry(packet, side, now):
    if packet[8] <= 1:
        return
    packet[8] -= 1
    how = tcp(packet, side, now) if packet[9] == 6 else True
    if not how:
        return
    if how != "as it is":
        mended(packet)
    else:
        packet[10:12] = b"\0\0"
        packet[10:12] = struct.pack("=H", summed(bytes(packet[:20])))
    counts["carried"] += 1
    wait = options.delay + (options.slow if how == "slow" else 0)
    if options.hold_every and began:
        phase = (now - began) % options.hold_every
        if phase > options.hold_every - options.hold_for:
            counts["held"] += 1
            wait += options.hold_every - phase
    if options.reorder and random.random() < options.reorder:
        counts["reordered"] += 1
        wait += options.late
    if options.twice and random.random() < options.twice:
        counts["twice"] += 1
        later(now + wait + options.late / 2, bytes(packet), 1 - side)
    if wait:
        later(now + wait, bytes(packet), 1 - side)
    else:
        send(packet, 1 - side)


def sweep(now):
    for key, flow in list(flows.items()):
        if flow.closed:
            if now - flow.closed >= max(options.lingers, 0.3):
                del flows[key]
        elif options.idle and now - flow.last >= options.idle or options.age and now - flow.born >= options.age:
            finish(key, flow)
    if options.cull_at and began and now - began >= options.cull_at:
        options.cull_at = 0
        for nth, (key, flow) in enumerate(list(flows.items())):
            if nth % options.cull == 0 and not flow.closed:
                finish(key, flow)


def mac_of(address):
    """Of a neighbour, which the kernel asks."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _ in range(100):
            asked.sendto(b"?", (address, 9))
            time.sleep(0.05)
            with open("/proc/net/arp") as table:
                for line in table:
                    if line.split()[0] == address and line.split()[2] == "0x2":
                        return bytes.fromhex(line.split()[3].replace(":", ""))
    raise SystemExit(f"no neighbour {address}")


names = (options.near, options.far)
macs = [mac_of(options.client), mac_of(options.server)]
sockets = []
for name in names:
    sockets.append(socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)))
    sockets[-1].setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
    sockets[-1].bind((name, 0x0800))
    sockets[-1].setblocking(False)
own = {socket.inet_aton(line.split()[1].split("/")[0]) for line in os.popen("ip -4 -o addr show | awk '{print $3, $4}'")}
poll = select.poll()
for one in sockets:
    poll.register(one, select.POLLIN)
by_number = {one.fileno(): side for side, one in enumerate(sockets)}
print("ready", flush=True)
swept = written = 0.0
while True:
    now = time.monotonic()
    until = min(swept + 0.02, due[0][0] if due else now + 1)
    for number, _ in poll.poll(max(0, (until - now) * 1_000)):
        side = by_number[number]
        for _ in range(64):
            try:
                data, address = sockets[side].recvfrom(70_000)
            except BlockingIOError:
                break
            if address[2] != socket.PACKET_OUTGOING and data[16:20] not in own:
                carry(bytearray(data[: struct.unpack_from("!H", data, 2)[0]]), side, time.monotonic())
    now = time.monotonic()
    while due and due[0][0] <= now:
        at, _, packet, side = heapq.heappop(due)
        counts["late_ones"] += now - at > 0.1
        send(packet, side)
    if now - swept >= 0.02:
        swept = now
        sweep(now)
    if now - written >= 0.2:
        written = now
        with open("box.part", "w") as file:
            json.dump({**counts, "open": len(flows)}, file)
        os.replace("box.part", "box.json")
