"""Figures compared with outside counts: every leaf of throng's output must have a rule, or the audit fails."""

import math
import re


class Setting:
    """A figure without an outside count, and why."""

    def __init__(self, why):
        self.why = why


class Rule:
    """`expect(context, groups)` gives a number (exact), (least, expected, most), None (null), or a text.

    tolerance: a share of the expected value, in addition; reason: what is counted outside, and why the tolerance."""

    def __init__(self, pattern, expect, reason, tolerance=0.0):
        # A path element is what is between two slashes; `**` is any number of them.
        glob = re.escape(pattern).replace(r"\*\*", "(.+)").replace(r"\*", "([^/]+)")
        self.pattern, self.regex = pattern, re.compile(glob + r"\Z")
        self.expect, self.reason, self.tolerance = expect, reason, tolerance


def leaves(value, path=""):
    """(path, leaf) of JSON; list members are named by their identifying field, else by their index."""
    if isinstance(value, dict):
        if not value:
            yield path, "empty"
        for key, one in value.items():
            yield from leaves(one, f"{path}/{key}" if path else key)
    elif isinstance(value, list):
        if not value:
            yield path, "empty"
        for at, one in enumerate(value):
            yield from leaves(one, f"{path}/{name(one, at)}")
    else:
        yield path, value


def name(member, at):
    if isinstance(member, dict) and "kind" in member:
        return "·".join(member[key] for key in ("side", "stage", "kind"))
    if isinstance(member, dict) and "destination" in member:
        return member["destination"]
    return str(at)


class Table:
    """The rows of an audit: what was compared, with what, and the result. Without `compares` only that there is a rule for
    each figure, which no busy machine changes."""

    def __init__(self, compares=True):
        self.compares, self.rows, self.settings, self.failures = compares, [], {}, []

    def without_rule(self, where, path, value):
        self.failures.append(f"{where}: {path} = {value!r}: no outside count, and not said to have none")

    def audit(self, where, rules, context, figures):
        for path, value in figures:
            rule = next((rule for rule in rules if rule.regex.match(path)), None)
            if rule is None:
                self.without_rule(where, path, value)
                continue
            if not self.compares:
                continue
            groups = rule.regex.match(path).groups()
            if isinstance(rule.expect, Setting):
                self.settings[f"{where}: {rule.pattern}"] = rule.expect.why
                continue
            try:
                expected = rule.expect(context, *groups)
            except Exception as error:
                error.add_note(f"{where}: {path} = {value!r}")
                raise
            self.compare(where, path, value, expected, rule.tolerance, rule.reason)

    def compare(self, where, path, value, expected, tolerance, reason):
        if not self.compares:
            return
        if isinstance(expected, Setting):
            self.settings[f"{where}: {path}"] = expected.why
            return
        if isinstance(expected, tuple):
            low, middle, high = expected
        else:
            low = middle = high = expected
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
        if numeric and isinstance(middle, (int, float)) and not isinstance(middle, bool):
            extra = abs(middle) * tolerance if math.isfinite(middle) else 0.0
            # The rounding of a double printed as text.
            extra += 1e-6 * abs(middle) + 1e-9 if math.isfinite(middle) else 1e-9
            right = low - extra <= value <= high + extra
        else:
            # A percentile that may lie among requests without a time.
            right = value == middle or value is None and high == math.inf
        self.rows.append((where, path, value, middle, low, high, right, reason))
        if not right:
            self.failures.append(f"{where}: {path} = {short(value)}, outside {short(middle)}"
                                 f" ({short(low)} to {short(high)}): {reason}")

    def text(self):
        lines = ["figure | throng | outside | between | differs | why so near"]
        for where, path, value, middle, low, high, right, reason in self.rows:
            lines.append(" | ".join([f"{'' if right else 'WRONG '}{where}: {path}", short(value), short(middle),
                                     f"{short(low)} .. {short(high)}", differs(value, middle), reason]))
        lines += ["", "no outside count:"] + [f"{path}: {why}" for path, why in sorted(self.settings.items())]
        return "\n".join(lines + ["", f"{len(self.rows)} compared, {len(self.failures)} wrong", *self.failures]) + "\n"


def differs(value, middle):
    try:
        return "0" if value == middle else f"{(value - middle) / middle:+.3%}" if middle else f"{value - middle:+g}"
    except (TypeError, ZeroDivisionError):
        return "0" if value == middle else "yes"


def short(value):
    return f"{value:.7g}" if isinstance(value, float) else str(value)
