"""Every packet on loopback, with the kernel's timestamp: `capture.py FILE`, until standard input ends.

Written as records of time (ns, u64), length (u32) and the frame. Fails if the kernel dropped a packet: a capture with holes is
worthless."""

import select
import socket
import struct
import sys

SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 263, 6, 23
ETH_P_ALL = 3


def opened():
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
    tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    # A packet passes loopback twice; one is enough.
    tap.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    tap.bind(("lo", 0))
    tap.setblocking(False)
    return tap


def packets(tap):
    """The packets that have arrived, each with its time."""
    while True:
        try:
            frame, more, _, _ = tap.recvmsg(1 << 17, 64)
        except BlockingIOError:
            return
        seconds, nanos = struct.unpack("qq", more[0][2])
        yield seconds * 10**9 + nanos, frame


def main():
    tap, kept = opened(), []
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
