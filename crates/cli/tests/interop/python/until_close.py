"""Responses that last until the connection ends: `/announced` with a close_notify, `/cut` without. First line: the port.
Arguments: certificate, key, version."""

import socket
import ssl
import sys
import threading


def serve(connection):
    request = b""
    while b"\r\n\r\n" not in request:
        piece = connection.recv(4096)
        if not piece:
            return connection.close()
        request += piece
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nHello World!")
    if request.startswith(b"GET /announced "):
        try:
            connection = connection.unwrap()
        except (ssl.SSLError, OSError):
            pass
    connection.close()


def shake_hands(plain, context):
    try:
        serve(context.wrap_socket(plain, server_side=True))
    except (ssl.SSLError, OSError):
        plain.close()


def main(certificate, key, version):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version.replace(".", "_")]
    listener = socket.create_server(("127.0.0.1", 0))
    print("listening on", listener.getsockname()[1], flush=True)
    while True:
        plain, _ = listener.accept()
        threading.Thread(target=shake_hands, args=(plain, context), daemon=True).start()


main(*sys.argv[1:])
