"""The `websockets` package as an echo server. First line: the port. Arguments: seconds between its pings; certificate and key, for wss."""

import asyncio
import ssl
import sys

import websockets


async def echo(socket):
    try:
        async for message in socket:
            await socket.send(message)
    finally:
        print("pongs" if socket.latency > 0 else "no pong", flush=True)


async def main(interval, *files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if files else None
    if files:
        context.load_cert_chain(*files)
    times = {"ping_interval": interval, "ping_timeout": None}
    async with websockets.serve(echo, "127.0.0.1", 0, ssl=context, **times) as server:
        print("listening on", server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


asyncio.run(main(float(sys.argv[1]), *sys.argv[2:]))
