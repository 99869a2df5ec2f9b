"""resolver.py NAME ADDRESS DELAY_S: a DNS server at 127.0.0.1:53, as slow as that, with one name and its IPv4 address; of IPv6 it has none, and
says so as slowly. Its log has a line for each question."""

import socket
import struct
import sys
import threading

name, address, delay = sys.argv[1], socket.inet_aton(sys.argv[2]), float(sys.argv[3])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
print("ready", flush=True)


def reply(question, sender):
    end = question.index(b"\0", 12) + 5
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    kind = struct.unpack_from("!H", question, end - 4)[0]
    is_ours = ".".join(labels) == name
    answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + address if is_ours and kind == 1 else b""
    head = question[:2] + struct.pack("!HHHHH", 0x8580 | (0 if is_ours else 3), 1, 1 if answer else 0, 0, 0)
    server.sendto(head + question[12:end] + answer, sender)
    print(f"answered {'.'.join(labels)} {kind}", flush=True)


while True:
    asked = server.recvfrom(2_000)
    threading.Timer(delay, reply, asked).start()
