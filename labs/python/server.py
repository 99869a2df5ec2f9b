"""Hello, world over HTTP/1.1, with nothing but asyncio: server.py ADDRESS PORT."""

import asyncio
import sys

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world!"


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        *requests, self.rest = (self.rest + data).split(b"\r\n\r\n")
        self.transport.write(ANSWER * len(requests))
        if any(b"connection: close" in request.lower() for request in requests):
            self.transport.close()


async def main(address, port):
    server = await asyncio.get_running_loop().create_server(Connection, address, int(port), backlog=4096)
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
