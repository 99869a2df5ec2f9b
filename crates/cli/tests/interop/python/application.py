"""An ASGI application for uvicorn: a greeting, in one piece or several, at once or slowly, and a WebSocket echo."""

import asyncio


async def app(scope, receive, send):
    if scope["type"] == "websocket":
        return await echo(receive, send)
    if scope["type"] != "http":
        return
    path = scope["path"]
    pieces = [b"Hello ", b"World!"] if path in ("/chunked", "/slow") else [b"Hello World!"]
    fields = [] if path == "/chunked" else [(b"content-length", b"12")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    for piece in pieces:
        if path == "/slow":
            await asyncio.sleep(0.6)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def echo(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] == "websocket.receive":
        said = {key: event[key] for key in ("text", "bytes") if event.get(key) is not None}
        await send({"type": "websocket.send", **said})
