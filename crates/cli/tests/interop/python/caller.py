"""The `websockets` package as a client of an echo server: `caller.py URL [CERTIFICATE]`, which is the one to trust. Prints how many messages were echoed correctly."""

import asyncio
import ssl
import sys

import websockets

MESSAGES = ["", "a", "Grüße, 世界 🌍", *("x" * n for n in (125, 126, 65535, 65536)), b"", bytes(range(256))]


async def main(url, *roots):
    right = 0
    secured = {"ssl": ssl.create_default_context(cafile=roots[0])} if roots else {}
    async with websockets.connect(url, **secured) as socket:
        for message in MESSAGES:
            await socket.send(message)
            right += await socket.recv() == message
        # An iterable is sent as one message of several frames.
        await socket.send(["in ", "three ", "frames"])
        right += await socket.recv() == "in three frames"
        await (await socket.ping(b"there?"))
    print(f"{right} of {len(MESSAGES) + 1}, closed with {socket.close_code}")


asyncio.run(main(*sys.argv[1:]))
