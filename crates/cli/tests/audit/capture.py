"""Every packet on loopback, with the kernel's timestamp: `capture.py FILE`, until standard input ends; with `all` as a further argument
those of every device, also of ones that are made later.

Written as records of time (ns, u64), length (u32) and the frame. Fails if the kernel dropped a packet: a capture with holes is
worthless."""

import select
import socket
import struct
import sys

SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 263, 6, 23
ETH_P_ALL = 3
PACKET_OUTGOING, ARPHRD_LOOPBACK, ARPHRD_NONE = 4, 772, 65534


def opened(everywhere):
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
    tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    if not everywhere:
        # A packet passes loopback twice; one is enough.
        tap.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        tap.bind(("lo", 0))
    tap.setblocking(False)
    return tap


def packets(tap):
    """The packets that have arrived, each with its time."""
    while True:
        try:
            frame, more, _, (_, protocol, kind, hardware, _) = tap.recvmsg(1 << 17, 64)
        except BlockingIOError:
            return
        if hardware == ARPHRD_LOOPBACK and kind == PACKET_OUTGOING:
            continue
        if hardware == ARPHRD_NONE:
            # A TUN device's packets have no head of Ethernet.
            frame = bytes(12) + struct.pack(">H", protocol) + frame
        seconds, nanos = struct.unpack("qq", more[0][2])
        yield seconds * 10**9 + nanos, frame


def main():
    tap, kept = opened(sys.argv[2:] == ["all"]), []
    print("capturing", flush=True)
    ended = False
    while not ended:
        ready, _, _ = select.select([tap, sys.stdin], [], [])
        # Packets sent before the order to end are in the socket by now.
        ended = sys.stdin in ready
        kept.extend(packets(tap))
    _, dropped = struct.unpack("II", tap.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    if dropped:
        sys.exit(f"the kernel dropped {dropped} packets of the capture")
    with open(sys.argv[1], "wb") as out:
        for time, frame in kept:
            out.write(struct.pack("<QI", time, len(frame)) + frame)


if __name__ == "__main__":
    main()
