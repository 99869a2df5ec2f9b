//! Every key of a scenario file, once: the reader, the JSON schema and the reference come from this table.

/// A table of the file, and what may stand in it.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name in the schema.
    pub(super) name: &'static str,
    /// Where it is, as people write it.
    pub(super) place: &'static str,
    /// What it is for.
    pub(super) about: &'static str,
    /// In the order in which people would write them.
    pub(super) keys: &'static [Key],
}

/// A key of a [`Table`].
#[derive(Debug)]
pub(super) struct Key {
    /// As written.
    pub(super) name: &'static str,
    /// What may stand behind it.
    pub(super) kind: Kind,
    /// What it means, its default last.
    pub(super) about: &'static str,
    /// A value as written in TOML: the cure of a wrong type, and the example of the schema.
    pub(super) example: &'static str,
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A text.
    Text,
    /// A number with or without its unit: a text, or a whole number.
    Number,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Truth,
    /// `true`, `false` or a text.
    TruthOrText,
    /// Texts in brackets.
    Texts,
    /// A table whose keys are the user's, of texts and whole numbers.
    Pairs,
    /// A text in which all is said, or a table.
    TextOrTable(&'static Table),
    /// Tables, one behind the other: `[[name]]`.
    Tables(&'static Table),
    /// Tables with names of the user: `[key.name]`.
    Named(&'static Table),
}

impl Table {
    /// The key of this name.
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

const fn key(name: &'static str, kind: Kind, example: &'static str, about: &'static str) -> Key {
    Key { name, kind, about, example }
}

use Kind::{Named, Number, OneOf, Pairs, Tables, Text, TextOrTable, Texts, Truth, TruthOrText};

/// What other tools call it, and what it is here, in the first of these that the table has.
pub(super) const SYNONYMS: [(&str, &str); 29] = [
    ("assert", "expect"),
    ("check", "expect"),
    ("clients", "connections"),
    ("code", "status"),
    ("concurrency", "connections"),
    ("contains", "body"),
    ("delay", "wait"),
    ("duration", "for"),
    ("get", "request"),
    ("hold", "for"),
    ("message", "send"),
    ("method", "request"),
    ("path", "request"),
    ("pause", "wait"),
    ("population", "of"),
    ("populations", "of"),
    ("post", "request"),
    ("qps", "rate"),
    ("repeat", "loop"),
    ("rps", "rate"),
    ("share", "to"),
    ("sleep", "wait"),
    ("target", "to"),
    ("target", "request"),
    ("text", "send"),
    ("url", "request"),
    ("url", "target"),
    ("users", "connections"),
    ("vus", "connections"),
];

/// All of them, in the order in which people read of them.
pub(super) static TABLES: [&Table; 7] = [&SCENARIO, &POPULATION, &STEP, &ANSWER, &STAGE, &PROBE, &CSV];

/// The file itself.
pub(super) static SCENARIO: Table = Table {
    name: "scenario",
    place: "the file's top",
    about: "A load, what a right answer to it is, and when the run has passed.",
    keys: &[
        TARGET,
        CONNECTIONS,
        key(
            "ramp",
            Number,
            "\"20k/s\"",
            "without stages: dial at this rate, or reach the load within this time; \
             default: as fast as the target takes them",
        ),
        key(
            "duration",
            Number,
            "\"5m\"",
            "without stages: time at full load, after the ramp, or `forever`; \
             default 10s",
        ),
        RATE,
        ARRIVE,
        TOTAL,
        CALLS,
        THINK,
        PING,
        MESSAGE,
        EXPECT,
        TIMEOUT,
        RECONNECT,
        key(
            "thresholds",
            Texts,
            "[\"held >= 99.9%\", \"users.latency.p99 < 50ms\"]",
            "what the figures must keep, \
             of all or of one population; default none",
        ),
        key(
            "probe",
            TextOrTable(&PROBE),
            "\"10/s\"",
            "requests on a clock of their own, on fresh and on kept \
             connections, while the load is held; default none",
        ),
        key(
            "sources",
            Text,
            "\"10.1.0.0/16\"",
            "local addresses to dial from: a list with commas, or CIDR; \
             default automatic",
        ),
        key("seed", Number, "42", "repeats a run's random choices; default random, printed"),
        key("threads", Number, "2", "shards, over epoll at least so many; default one a core"),
        key("io", OneOf(&["auto", "uring", "epoll"]), "\"auto\"", "the kernel's interface; default auto"),
        key(
            "stage",
            Tables(&STAGE),
            "[[stage]]",
            "the course of the load: up, hold, step, down, one after the \
             other; default: up by `ramp`, hold for `duration`",
        ),
        key(
            "population",
            Tables(&POPULATION),
            "[[population]]",
            "connections that do the same; default: one, \
             called main, of the keys above",
        ),
        key("csv", Named(&CSV), "[csv.users]", "tables of values for `{csv NAME.COLUMN}`"),
    ],
};

static STAGE: Table = Table {
    name: "stage",
    place: "[[stage]]",
    about: "A stretch of the run: the load goes to a share of what the populations say, and stays there.",
    keys: &[
        key("name", Text, "\"up\"", "how it is called in the output; default up, down or hold"),
        key(
            "of",
            Texts,
            "[\"users\"]",
            "the populations that it moves, the others stay as they are; default all",
        ),
        key(
            "to",
            Text,
            "\"100%\"",
            "the share of their load, of connections and of rates alike, at the end of the \
             ramp; default: as it was, in the first stage 100%",
        ),
        key(
            "ramp",
            Number,
            "\"20k/s\"",
            "on the way there: dials at this rate, or all within this time; `0` is a \
             step at once; default: up as fast as the target takes them, down at once",
        ),
        key("for", Number, "\"5m\"", "how long it stays there, or `forever` in the last stage; default 0"),
    ],
};

static POPULATION: Table = Table {
    name: "population",
    place: "[[population]]",
    about: "Connections that do the same. What is not said here is as the file says at its top.",
    keys: &[
        key(
            "name",
            Text,
            "\"users\"",
            "letters, digits, - and _, a letter first: thresholds and output name it; \
             required",
        ),
        TARGET,
        CONNECTIONS,
        RATE,
        ARRIVE,
        TOTAL,
        CALLS,
        THINK,
        PING,
        MESSAGE,
        EXPECT,
        TIMEOUT,
        RECONNECT,
        key(
            "loop",
            TruthOrText,
            "true",
            "behind the last step: begin again, or at the step of this name; false: stay \
             open and do no more (with `arrive`: close); default true, with `arrive` and without `calls` \
             false",
        ),
        key(
            "step",
            Tables(&STEP),
            "[[population.step]]",
            "what each connection does, in this order; default: the \
             request, or the message, that the target's scheme has",
        ),
    ],
};

static STEP: Table = Table {
    name: "step",
    place: "[[population.step]]",
    about: "One thing that a connection does: exactly one of request, send, wait and close, or only expect.",
    keys: &[
        key(
            "name",
            Text,
            "\"login\"",
            "as of a population; latency is told for each step; default: from what it does",
        ),
        key(
            "request",
            Text,
            "\"POST /login\"",
            "http: a method and a path; one alone: GET, or the target's path",
        ),
        key(
            "headers",
            Pairs,
            "{ Content-Type = \"application/json\" }",
            "header fields of the request, besides Host \
             and Content-Length",
        ),
        key("body", Text, "\"user={seq}\"", "the request's content; its length is counted"),
        key("send", Text, "\"hello {seq}\"", "ws, tcp: a text message, or bytes"),
        key(
            "expect",
            TextOrTable(&ANSWER),
            "{ status = 200, body = \"ok\" }",
            "http: what a right answer is; ws, tcp: \
             what comes next, or comes back; default as of the population, ws and tcp none",
        ),
        key(
            "think",
            Number,
            "\"1s..5s\"",
            "idle before the next step, uniform or fixed; default as of the population",
        ),
        key("wait", Number, "\"5s\"", "do nothing for so long, uniform or fixed"),
        key("close", Truth, "true", "close the connection; the next step dials again"),
    ],
};

/// What an answer is checked for.
pub(super) static ANSWER: Table = Table {
    name: "expect",
    place: "expect",
    about: "What an answer is checked for, over and above complete framing; all of it must hold.",
    keys: &[
        key("status", Number, "200", "http: this status; default any 2xx"),
        key("length", Number, "\"$1\"", "octets of content; `$1` is the first number that the request drew"),
        key(
            "headers",
            Pairs,
            "{ Content-Type = \"text/plain\" }",
            "http: header fields, each with a text that its \
             value contains",
        ),
        key("body", Text, "\"welcome\"", "a text that the content contains"),
        key("echo", Truth, "true", "ws, tcp: the very message that was sent"),
    ],
};

static PROBE: Table = Table {
    name: "probe",
    place: "[probe]",
    about: "An independent lane of requests, to see what a stranger would see.",
    keys: &[
        key("rate", Number, "\"10/s\"", "requests in a time, half of them on fresh connections; required"),
        key(
            "target",
            Text,
            "\"http://127.0.0.1:8000/\"",
            "what it asks for; default the target at the top, else the \
             first population's with http://",
        ),
    ],
};

static CSV: Table = Table {
    name: "csv",
    place: "[csv.NAME]",
    about: "A table of values (RFC 4180): its first line names the columns, each connection keeps one of \
        the other lines.",
    keys: &[key("file", Text, "\"users.csv\"", "where it is, from the scenario file's folder; required")],
};

const TARGET: Key = key(
    "target",
    Text,
    "\"http://127.0.0.1:8000/\"",
    "http://HOST[:PORT]/PATH, ws://HOST[:PORT]/PATH or \
     tcp://HOST:PORT; several destinations: 127.0.0.{1..30}, ports {9000..9010}; required",
);
const CONNECTIONS: Key = key("connections", Number, "\"500k\"", "hold so many at once; default 50");
const RATE: Key = key(
    "rate",
    Number,
    "\"20k/s\"",
    "open loop: so many requests in a time, in all, over the connections \
     held; latency from when each was due",
);
const ARRIVE: Key = key(
    "arrive",
    Number,
    "\"6000/s\"",
    "open loop of connections: so many new ones in a time, instead of \
     `connections`",
);
const TOTAL: Key =
    key("total", Number, "\"40k\"", "with arrive: so many connections in all; default as long as the stages");
const CALLS: Key = key(
    "calls",
    Number,
    "10",
    "requests on each connection, then it is closed, and dialled again where connections are held; \
     default no limit, http with `arrive` and without steps 1",
);
const THINK: Key = key(
    "think",
    Number,
    "\"5s..45s\"",
    "http: idle between an answer and the next request, uniform or \
     fixed; default 0, closed loop",
);
const PING: Key = key(
    "ping",
    Number,
    "\"30s\"",
    "ws, tcp: from one message to the next on each connection, the first after \
     a random part of it; default 30s",
);
const MESSAGE: Key = key(
    "message",
    Text,
    "\"ping\"",
    "ws, tcp: what is sent and must come back; ws with \"\": a control \
     ping; default ping, tcp none: open and hold only",
);
const EXPECT: Key = key(
    "expect",
    TextOrTable(&ANSWER),
    "\"status=200,length=$1\"",
    "http: what a right answer is; default \
     2xx",
);
const TIMEOUT: Key =
    key("timeout", Number, "\"10s\"", "limit of a dial, a handshake and an answer, each; default 10s");
const RECONNECT: Key = key(
    "reconnect",
    Text,
    "\"planned\"",
    "planned: dial again what the server closed by announcement; \
     never: not even that; 1s..30s: also what was lost, after a back-off; default planned",
);
