"""The audit of one run: `audit.py MODEL THRONG FOLDER IO`. In its own network namespace, as root.

Starts the server, the capture and the samples of the kernel's counters, runs throng with every sink, and compares each figure of the
summary (JSON and text), the report (JSON, Markdown, page), the live page's stream and the metrics (CSV, JSON lines, Prometheus) with
the outside counts. All of it goes to FOLDER, with `audit.txt`, the table. Exit status 1 if a figure differs, or is in no table."""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
import time

import files
import kernel
import models
from compare import Table
from context import Context
from wire import Wire

# From this length on throng subtracts its own stalls from latencies (docs/decisions/0017), and nothing outside shows how.
STALL_US, TRIES = 10_000, 4
# Fewer samples of throng, of some eighty, say nothing of what it used in between.
SAMPLES = 16
HERE = os.path.dirname(os.path.abspath(__file__))


def beside(script, *args, ready):
    """A process of the audit that ends with its standard input."""
    words = [sys.executable, os.path.join(HERE, script), *args]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if line.strip() != ready:
        sys.exit(f"{script}: {line!r}")
    return process


def ended(process, name):
    process.stdin.close()
    if process.wait(30) != 0:
        sys.exit(f"{name} failed: {process.returncode}")


class Live(threading.Thread):
    """The page's stream, from the time its address is known to its end; each event with its name."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.events = address, []

    def run(self):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("GET", "/events", headers={"Host": self.address})
        response, name = connection.getresponse(), None
        for line in response:
            line = line.decode().rstrip("\r\n")
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                self.events.append((name or "message", json.loads(line[5:] or "null")))
                if name == "end":
                    return


class Scrapes(threading.Thread):
    """What Prometheus would store: a scrape twice a second, until there is no response."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.answers = address, []

    def run(self):
        while True:
            try:
                connection = http.client.HTTPConnection(self.address, timeout=5)
                connection.request("GET", "/metrics")
                self.answers.append(connection.getresponse().read().decode())
                connection.close()
            except (OSError, http.client.HTTPException):
                return
            time.sleep(0.5)


def punctual():
    """With priority over everything else on this machine: no outside figure shows for how long throng waited for a processor."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Run:
    """throng, with every sink."""

    def __init__(self, throng, model, folder, io):
        self.folder, self.stderr = folder, []
        target = model.words
        if model.scenario:
            path = os.path.join(folder, "scenario.toml")
            with open(path, "w") as file:
                file.write(model.scenario)
            target = [path]
        at = lambda file: os.path.join(folder, file)
        words = [throng, "run", *target, "--no-experiments", "--seed", "7", "--io", io, "--live", "line", "--json", at("own.json"), "--jsonl", at("own.jsonl"),
                 "--csv", at("own.csv"), "--prometheus", "0", "--dashboard", "0", "--out", at("bundle")]
        environment = {**os.environ, "XDG_DATA_HOME": at("data")}
        self.out = open(at("stdout.txt"), "w")
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.PIPE, text=True,
                                        env=environment, preexec_fn=punctual)
        self.words = words
        self.reading = threading.Thread(target=self.read, daemon=True)
        self.live = self.scrapes = None
        self.reading.start()

    def read(self):
        for line in self.process.stderr:
            self.stderr.append(line)
            address = line.partition("http://")[2].split("/")[0].strip()
            if "metrics at http://" in line and self.scrapes is None:
                self.scrapes = Scrapes(address)
                self.scrapes.start()
            elif "http://" in line and line.startswith("throng: ") and self.live is None:
                self.live = Live(address)
                self.live.start()

    def end(self):
        _, status, usage = os.wait4(self.process.pid, 0)
        ended = time.time()
        self.reading.join(10)
        for thread in (self.live, self.scrapes):
            if thread is None:
                sys.exit("throng did not say where page and metrics are:\n" + "".join(self.stderr))
            thread.join(10)
        return os.waitstatus_to_exitcode(status), usage, ended


def measured(name, throng, folder, io):
    """Runs it; returns the context with its outside counts, and throng's output files."""
    model = models.MODELS[name]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    everywhere = ["all"] if io == "tun" else []
    capture = beside("capture.py", os.path.join(folder, "capture"), *everywhere, ready="capturing")
    misdeeds = ["faulty-messages"] if model.faulty_messages else []
    server = beside("server.py", os.path.join(folder, "server.jsonl"), *misdeeds, ready="listening")
    ports = {models.HTTP, models.WS, models.TCP}
    looks = kernel.Looks(server.pid, ports)
    looks.start()
    # The first sample precedes the first dial, even on a busy machine.
    while not looks.all:
        time.sleep(0.01)
    run = Run(throng, model, folder, io)
    looks.throng = run.process.pid
    files_limit = __import__("resource").prlimit(server.pid, __import__("resource").RLIMIT_NOFILE)[0]
    status, usage, over = run.end()
    looks.stop(over, usage)
    ended(server, "the server")
    ended(capture, "the capture")
    with open(os.path.join(folder, "stderr.txt"), "w") as file:
        file.writelines(run.stderr)
    with open(os.path.join(folder, "looks.json"), "w") as file:
        json.dump(looks.all, file)
    if not os.path.exists(os.path.join(folder, "own.json")):
        sys.exit(f"throng ended with {status}:\n" + "".join(run.stderr))
    message = (models.TCP, model.message) if model.message else None
    wire = Wire(os.path.join(folder, "capture"), ports, message)
    with open(os.path.join(folder, "server.jsonl")) as file:
        log = [json.loads(line) for line in file]
    with open(os.path.join(folder, "own.json")) as file:
        summary = json.load(file)
    facts = {"server": server.pid, "usage": usage, "status": status, "files_limit": files_limit, "io": io}
    return Context(model, wire, log, looks, facts, summary), run


def main():
    name, throng, folder, io = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for attempt in range(1, TRIES + 1):
        context, run = measured(name, throng, folder, io)
        stall = context.summary["generator"]["stall_us"]
        samples = sum(one["throng"] is not None for one in context.looks.all)
        is_quiet = stall < STALL_US and samples >= SAMPLES
        if is_quiet:
            break
        if attempt < TRIES:
            shutil.rmtree(folder)
            os.makedirs(folder)
    context.set_clock(files.own_lines(folder), files.ticks(folder))
    table = Table(compares=is_quiet)
    files.books(table, context)
    files.summary(table, context, folder)
    files.metrics(table, context, folder, run.scrapes.answers)
    files.histograms(table, context, folder)
    files.report(table, context, folder, throng)
    files.page(table, context, run.live.events)
    with open(os.path.join(folder, "audit.txt"), "w") as file:
        file.write(table.text())
    wrong = [f"wrong: {failure}" for failure in table.failures]
    if not (is_quiet or wrong):
        print(f"skipped, {name}: in the last of {TRIES} runs this machine left throng without a processor for {stall / 1e3:.0f} ms, and the "
              f"audit with {samples} samples of it")
        sys.exit(0)
    print("\n".join([f"{name}: {len(table.rows)} figures compared, {len(wrong)} wrong", *wrong]))
    sys.exit(1 if table.failures else 0)


if __name__ == "__main__":
    main()
