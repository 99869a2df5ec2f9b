"""The application of uvicorn's quick start."""


async def app(scope, _receive, send):
    assert scope["type"] == "http"
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"13")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"Hello, world!"})
