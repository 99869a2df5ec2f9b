"""raw.py PORT [--greeting TEXT] [--reply TEXT [--every 1]]: bytes over TCP, of whatever protocol: a greeting, and a reply to the first bytes
that come, or to each message. It never closes."""

import argparse
import asyncio

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
for name, kind, value in (("greeting", str, ""), ("reply", str, ""), ("every", int, 0)):
    options.add_argument(f"--{name}", type=kind, default=value)
options = options.parse_args()


def text_of(option):
    return option.encode().decode("unicode_escape").encode("latin-1")


async def serve(reader, writer):
    writer.write(text_of(options.greeting))
    replied = False
    while await reader.read(65536):
        if options.reply and (options.every or not replied):
            writer.write(text_of(options.reply))
            replied = True
    writer.close()


async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", options.port) as server:
        await server.serve_forever()


asyncio.run(main())
