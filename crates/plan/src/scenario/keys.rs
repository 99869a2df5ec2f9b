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
    place: "the top level",
    about: "The load, the checks of responses, and the conditions for the run to pass.",
    keys: &[
        TARGET,
        CONNECTIONS,
        key(
            "ramp",
            Number,
            "\"20k/s\"",
            "without stages: dial at this rate, or reach the load within this time; default adaptive, as \
            fast as the target accepts connections",
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
            "conditions for the run to pass, on all populations or on one; default none",
        ),
        key(
            "probe",
            TextOrTable(&PROBE),
            "\"10/s\"",
            "rate of requests independent of the load, on fresh and on kept connections; default none",
        ),
        key(
            "sources",
            Text,
            "\"10.1.0.0/16\"",
            "local addresses to dial from: a list with commas, or CIDR; \
             default automatic",
        ),
        key("seed", Number, "42", "seed of the random numbers, to repeat a run; default random, printed"),
        key("threads", Number, "2", "number of shards, with epoll the minimum; default one per core"),
        key("io", OneOf(&["auto", "uring", "epoll"]), "\"auto\"", "I/O backend; default auto"),
        key(
            "stage",
            Tables(&STAGE),
            "[[stage]]",
            "the schedule of the load: up, hold, step, down, one after the other; default: up by `ramp`, \
            hold for `duration`",
        ),
        key(
            "population",
            Tables(&POPULATION),
            "[[population]]",
            "a group of connections that do the same; default: one, called main, with the keys above",
        ),
        key("csv", Named(&CSV), "[csv.users]", "tables of values for `{csv NAME.COLUMN}`"),
    ],
};

static STAGE: Table = Table {
    name: "stage",
    place: "[[stage]]",
    about: "A part of the run: the load moves to a share of the populations' sizes, and stays there.",
    keys: &[
        key("name", Text, "\"up\"", "name in the output; default up, down or hold"),
        key("of", Texts, "[\"users\"]", "the populations that it affects; default all"),
        key(
            "to",
            Text,
            "\"100%\"",
            "the share of their load (connections and rates) at the end of the ramp; default unchanged, in \
            the first stage 100%",
        ),
        key(
            "ramp",
            Number,
            "\"20k/s\"",
            "the ramp: dial at this rate, or reach the share within this time; `0` is immediate; default: \
            up as fast as the target accepts connections, down immediately",
        ),
        key("for", Number, "\"5m\"", "time at that share, or `forever` in the last stage; default 0"),
    ],
};

static POPULATION: Table = Table {
    name: "population",
    place: "[[population]]",
    about: "A group of connections that do the same. Keys that are not set here are taken from the top \
    level.",
    keys: &[
        key(
            "name",
            Text,
            "\"users\"",
            "letters, digits, - and _, a letter first; used in thresholds and output; required",
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
            "after the last step: true: start again; a name: continue at that step; false: stay open and \
            do nothing (with `arrive`: close); default true, with `arrive` and without `calls` false",
        ),
        key(
            "step",
            Tables(&STEP),
            "[[population.step]]",
            "what each connection does, in order; default: the request or message of the target's scheme",
        ),
    ],
};

static STEP: Table = Table {
    name: "step",
    place: "[[population.step]]",
    about: "One action of a connection: exactly one of request, send, wait and close, or only expect.",
    keys: &[
        key(
            "name",
            Text,
            "\"login\"",
            "as for a population; latency is reported per step; default: derived from the action",
        ),
        key(
            "request",
            Text,
            "\"POST /login\"",
            "http: a method and a path; a path alone: GET; a method alone: the target's path",
        ),
        key(
            "headers",
            Pairs,
            "{ Content-Type = \"application/json\" }",
            "header fields of the request, except Host and Content-Length",
        ),
        key("body", Text, "\"user={seq}\"", "body of the request; Content-Length is added"),
        key("send", Text, "\"hello {seq}\"", "ws, tcp: a text message, or bytes"),
        key(
            "expect",
            TextOrTable(&ANSWER),
            "{ status = 200, body = \"ok\" }",
            "http: checks of the response; ws, tcp: the next message, or the reply; default as for the \
            population, ws and tcp none",
        ),
        key(
            "think",
            Number,
            "\"1s..5s\"",
            "idle time before the next step, uniform or fixed; default as for the population",
        ),
        key("wait", Number, "\"5s\"", "do nothing for this time, uniform or fixed"),
        key("close", Truth, "true", "close the connection; the next step dials again"),
    ],
};

/// What an answer is checked for.
pub(super) static ANSWER: Table = Table {
    name: "expect",
    place: "expect",
    about: "Checks of a response, in addition to complete framing; all must hold.",
    keys: &[
        key("status", Number, "200", "http: this status; default any 2xx"),
        key("length", Number, "\"$1\"", "octets of content; `$1` is the first random number of the request"),
        key(
            "headers",
            Pairs,
            "{ Content-Type = \"text/plain\" }",
            "http: header fields, each with a text that its value must contain",
        ),
        key("body", Text, "\"welcome\"", "a text that the content must contain"),
        key("echo", Truth, "true", "ws, tcp: exactly the message that was sent"),
    ],
};

static PROBE: Table = Table {
    name: "probe",
    place: "[probe]",
    about: "Requests independent of the load, to measure what an independent user sees.",
    keys: &[
        key("rate", Number, "\"10/s\"", "request rate, half of it on fresh connections; required"),
        key(
            "target",
            Text,
            "\"http://127.0.0.1:8000/\"",
            "the URL; default the top-level target, otherwise the first population's with http://",
        ),
    ],
};

static CSV: Table = Table {
    name: "csv",
    place: "[csv.NAME]",
    about: "A table of values (RFC 4180): the first line is the header, and each connection keeps one of \
    the rows.",
    keys: &[key("file", Text, "\"users.csv\"", "path of the file, relative to the scenario file; required")],
};

const TARGET: Key = key(
    "target",
    Text,
    "\"http://127.0.0.1:8000/\"",
    "http://HOST[:PORT]/PATH, ws://HOST[:PORT]/PATH or \
     tcp://HOST:PORT; several destinations: 127.0.0.{1..30}, ports {9000..9010}; required",
);
const CONNECTIONS: Key = key("connections", Number, "\"500k\"", "number of connections to hold; default 50");
const RATE: Key = key(
    "rate",
    Number,
    "\"20k/s\"",
    "open loop: total request rate over the held connections; latency from when each was due",
);
const ARRIVE: Key = key(
    "arrive",
    Number,
    "\"6000/s\"",
    "open loop of connections: rate of new connections, instead of `connections`",
);
const TOTAL: Key = key(
    "total",
    Number,
    "\"40k\"",
    "with arrive: total number of connections; default unlimited for the \
    duration of the stages",
);
const CALLS: Key = key(
    "calls",
    Number,
    "10",
    "requests per connection, after which it is closed, and dialled again if connections are held; default \
    no limit, http with `arrive` and without steps 1",
);
const THINK: Key = key(
    "think",
    Number,
    "\"5s..45s\"",
    "http: idle time between a response and the next request, uniform or fixed; default 0, closed loop",
);
const PING: Key = key(
    "ping",
    Number,
    "\"30s\"",
    "ws, tcp: interval between messages on each connection, the first after a random part of it; default \
    30s",
);
const MESSAGE: Key = key(
    "message",
    Text,
    "\"ping\"",
    "ws, tcp: the message, which must be echoed; ws with \"\": a control ping; default ping, tcp none: \
    open and hold only",
);
const EXPECT: Key = key(
    "expect",
    TextOrTable(&ANSWER),
    "\"status=200,length=$1\"",
    "http: checks of the response; default 2xx",
);
const TIMEOUT: Key =
    key("timeout", Number, "\"10s\"", "timeout of a dial, a handshake and a response, each; default 10s");
const RECONNECT: Key = key(
    "reconnect",
    Text,
    "\"planned\"",
    "when to dial a connection again; planned: after a close announced by the server; never: not even \
    then; 1s..30s: also after a loss, with this back-off; default planned",
);
