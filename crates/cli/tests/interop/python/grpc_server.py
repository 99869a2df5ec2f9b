"""grpcio's server, with messages as they are: no generated code. At SIGTERM it prints what it has counted, and ends.

Arguments: `--pings` allows any number of PINGs; then nothing, or the files of a certificate and its key."""

import asyncio
import signal
import sys

import grpc

counts = {"calls": 0, "messages": 0}


async def say(request, context):
    counts["calls"] += 1
    counts["messages"] += 1
    return request


async def watch(request, context):
    """The request: how many messages (0: without end), and the milliseconds between them."""
    counts["calls"] += 1
    count, interval = map(int, request.split())
    nth = 0
    while count == 0 or nth < count:
        nth += 1
        yield b"message %d" % nth
        counts["messages"] += 1
        await asyncio.sleep(interval / 1000)


async def fail(request, context):
    counts["calls"] += 1
    code = next(code for code in grpc.StatusCode if code.value[0] == int(request))
    await context.abort(code, "as was asked for")


class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return {
            "/test.Test/Say": grpc.unary_unary_rpc_method_handler(say),
            "/test.Test/Watch": grpc.unary_stream_rpc_method_handler(watch),
            "/test.Test/Fail": grpc.unary_unary_rpc_method_handler(fail),
        }.get(details.method)


# By default three in less than five minutes, or without calls in less than two hours, are too many.
ANY_PINGS = [
    ("grpc.http2.min_ping_interval_without_data_ms", 1),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 0),
]


async def main():
    options = ANY_PINGS if "--pings" in sys.argv else []
    files = [arg for arg in sys.argv[1:] if arg != "--pings"]
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((Handler(),))
    if files:
        cert, key = (open(name, "rb").read() for name in files)
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, cert)]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    print(f"listening on {port}", flush=True)
    await ended.wait()
    await server.stop(0)
    print(counts["calls"], counts["messages"], flush=True)


asyncio.run(main())
