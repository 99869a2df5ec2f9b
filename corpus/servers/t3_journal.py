"""t3_journal.py PORT FILE [--rotate-each SECONDS --rotate-for SECONDS]: a thread a connection; each request writes a line of its journal,
under one lock. A line that cannot be written is status 500. The journal is rotated by the request that finds it due."""

import argparse
import http.server
import os
import socketserver
import threading
import time

options = argparse.ArgumentParser()
options.add_argument("port", type=int)
options.add_argument("file")
options.add_argument("--rotate-each", type=float, default=0)
options.add_argument("--rotate-for", type=float, default=0)
options = options.parse_args()
LOCK = threading.Lock()
state = {"file": open(options.file, "ab", buffering=0), "due": 0.0}


def rotate():
    """The old one goes to an archive that is slow, as a share of files is that others use."""
    print(f"rotating {os.path.basename(options.file)}", flush=True)
    began = time.monotonic()
    os.rename(options.file, options.file + ".1")
    time.sleep(options.rotate_for)
    state["file"] = open(options.file, "ab", buffering=0)
    print(f"rotated in {time.monotonic() - began:.2f} s", flush=True)


def journal(line):
    with LOCK:
        now = time.monotonic()
        if options.rotate_each:
            state["due"] = state["due"] or now + options.rotate_each
            if now > state["due"]:
                rotate()
                state["due"] = time.monotonic() + options.rotate_each
        state["file"].write(line.encode())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536
    disable_nagle_algorithm = True

    def do_GET(self):
        status, body = 200, b"ok"
        try:
            journal(f"{time.time():.6f} {self.client_address} {self.requestline} " + "-" * 120 + "\n")
        except OSError as error:
            print(f"ERROR {self.path}: {error}: {options.file}", flush=True)
            status, body = 500, b"cannot write the journal"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 1_024


Server(("", options.port), Handler).serve_forever()
