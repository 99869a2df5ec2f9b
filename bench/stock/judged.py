"""What is right and wrong of an answer of `throng find`, and the table of all."""

AT_MOST_OFF, AT_MOST_S = 0.03, 60
NONE_AT_MOST_S = 10  # where nothing can be held
MOST_UNCERTAIN = 0.1  # of a result, to be called found
HEAD = ("server", "truth", "found", "±", "outcome", "s", "steps", "cause", "")
WORDS = ("server", "outcome", "cause", "")  # columns of text


def off(found, truth):
    """By how much of it the result is beside the truth; 0 within it.

    >>> off(95, {"least": 100, "most": 200}), off(150, {"least": 100, "most": 200}), off(0, {"least": 0, "most": 0})
    (0.05, 0.0, 0)
    """
    nearest = min(max(found, truth["least"]), truth["most"])
    return round(abs(found - nearest) / nearest, 4) if nearest else found


def shown_truth(truth):
    least, most = truth["least"], truth["most"]
    return f"{least:,}" if least == most else f"{least:,}..{most:,}"


def faults(server, truth, search):
    """What is wrong with an answer, in words."""
    holds_none = truth["most"] == 0
    wanted, most_s = ("impossible", NONE_AT_MOST_S) if holds_none else ("found", AT_MOST_S)
    wrong = []
    if search["off"] > AT_MOST_OFF:
        wrong.append("number")
    if search["answer"]["error"] > MOST_UNCERTAIN * search["answer"]["max"]:
        wrong.append("±")
    if search["answer"]["outcome"] != wanted or search["interrupted"]:
        wrong.append("outcome")
    if search["took_s"] > most_s:
        wrong.append("time")
    if search["cause"] not in server.causes:
        wrong.append("cause")
    return wrong


def print_table(rows):
    widths = [max(map(len, column)) for column in zip(HEAD, *rows)]
    for row in (HEAD, *rows):
        cells = [cell.ljust(width) if column in WORDS else cell.rjust(width) for cell, width, column in zip(row, widths, HEAD)]
        print("  ".join(cells).rstrip())
