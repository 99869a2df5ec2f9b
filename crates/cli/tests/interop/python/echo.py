"""The `websockets` package as an echo server. First line: the port. Arguments: seconds between its pings."""

import asyncio
import sys

import websockets


async def echo(socket):
    async for message in socket:
        await socket.send(message)


async def main(interval):
    async with websockets.serve(echo, "127.0.0.1", 0, ping_interval=interval, ping_timeout=interval) as server:
        print("listening on", server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


asyncio.run(main(float(sys.argv[1])))
