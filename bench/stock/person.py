"""What a careful person finds with wrk: connections are doubled until wrk reports errors, and then the gap between what went well and
what did not is halved until it is within 3 %. wrk sends on each connection as fast as responses come, with a timeout of its own."""

import re
import time

import harness

FIRST, MOST = 100, 18_000
STEP_S, REST_S = 5, 1
WITHIN = 0.03


def errors(said):
    """What wrk reports to have failed; nothing where all went well.

    >>> errors("Requests/sec: 10.00\\n  Socket errors: connect 0, read 3, write 0, timeout 7\\n")
    'Socket errors: connect 0, read 3, write 0, timeout 7'
    >>> errors("Requests/sec:      0.00"), errors("Requests/sec:  10.00")
    ('no responses', None)
    """
    rate = re.search(r"Requests/sec:\s*([\d.]+)", said)
    if not rate or float(rate[1]) == 0:
        return "no responses"
    failed = re.search(r"(Socket errors|Non-2xx).*", said)
    return failed[0].strip() if failed else None


def next_load(passed, failed):
    """What to try next, or None.

    >>> next_load(0, None), next_load(100, None), next_load(400, 800), next_load(790, 800), next_load(0, 100), next_load(0, 1)
    (100, 200, 600, None, 50, None)
    """
    if failed is None:
        return min(2 * passed, MOST) if 0 < passed < MOST else None if passed else FIRST
    if failed - passed <= max(WITHIN * failed, 1):
        return None
    return (passed + failed) // 2


def search(url):
    """The largest number of connections that wrk had no errors with, seconds, and each step."""
    began, passed, failed, steps = time.monotonic(), 0, None, []
    while load := next_load(passed, failed):
        wrk = harness.Process(["wrk", f"-t{min(load, 2)}", f"-c{load}", f"-d{STEP_S}s", url])
        ended = wrk.finish(10 * STEP_S)
        why = errors(ended.output())
        steps.append([load, why])
        passed, failed = (passed, load) if why else (load, failed)
        time.sleep(REST_S)
    return {"found": passed, "took_s": round(time.monotonic() - began, 1), "steps": steps}
