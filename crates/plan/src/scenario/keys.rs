//! The tables of all keys of a scenario file: reader, JSON schema and reference follow from them. Keys that are also flags are defined in
//! the table of flags.

use crate::flag;
use crate::key::Kind::{Named, Number, OneOf, Pairs, Tables, Text, TextOrTable, Texts, Truth, TruthOrText};
use crate::key::{ANSWER, Key, PROBE, Table, key};

/// Names in other tools, and the keys to suggest for them; the first that the table has is used.
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

/// All tables, in the order of the reference.
pub(super) static TABLES: [&Table; 9] =
    [&SCENARIO, &POPULATION, &STEP, &ANSWER, &CAPTURE, &ON, &STAGE, &PROBE, &CSV];

/// The top level.
pub(super) static SCENARIO: Table = Table {
    name: "scenario",
    place: "the top level",
    about: "The load, the checks of responses, and the conditions for the run to pass.",
    keys: &[
        flag::TARGET.in_file(),
        flag::CONNECTIONS.in_file(),
        flag::RAMP.in_file(),
        flag::DURATION.in_file(),
        flag::REQUESTS.in_file(),
        flag::RATE.in_file(),
        flag::ARRIVE.in_file(),
        flag::TOTAL.in_file(),
        flag::CALLS.in_file(),
        flag::THINK.in_file(),
        flag::PING.in_file(),
        flag::MESSAGE.in_file(),
        flag::EXPECT.in_file(),
        flag::TIMEOUT.in_file(),
        flag::RECONNECT.in_file(),
        COOKIES,
        flag::HTTP2.in_file(),
        flag::STREAMS.in_file(),
        flag::HEADER.in_file(),
        flag::USER.in_file(),
        flag::COMPRESSED.in_file(),
        flag::HOST.in_file(),
        flag::CONNECT_TO.in_file(),
        flag::METHOD.in_file(),
        flag::BODY.in_file(),
        flag::BODY_FILE.in_file(),
        flag::PROTOSET.in_file(),
        flag::SERVER_STREAMING.in_file(),
        flag::INSECURE.in_file(),
        flag::CACERT.in_file(),
        flag::CERT.in_file(),
        flag::KEY.in_file(),
        flag::SNI.in_file(),
        flag::TLS.in_file(),
        flag::NO_RESUME.in_file(),
        flag::THRESHOLD.in_file(),
        flag::MAX_LAG.in_file(),
        flag::NO_EXPERIMENTS.in_file(),
        flag::PROBE.in_file(),
        flag::SOURCES.in_file(),
        flag::SEED.in_file(),
        flag::THREADS.in_file(),
        flag::IO.in_file(),
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

const COOKIES: Key = key(
    "cookies",
    Truth,
    "true",
    "http, ws: each connection keeps the cookies that it is sent, and sends them with its requests and its upgrade; \
    default false",
);

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
    level, except `connections`, `requests`, `rate`, `arrive`, `total` and `calls`: each population has its own.",
    keys: &[
        key(
            "name",
            Text,
            "\"users\"",
            "letters, digits, - and _, a letter first; used in thresholds and output; required",
        ),
        flag::TARGET.in_file(),
        flag::CONNECTIONS.in_file(),
        flag::REQUESTS.in_file(),
        flag::RATE.in_file(),
        flag::ARRIVE.in_file(),
        flag::TOTAL.in_file(),
        flag::CALLS.in_file(),
        flag::THINK.in_file(),
        flag::PING.in_file(),
        flag::MESSAGE.in_file(),
        flag::EXPECT.in_file(),
        flag::TIMEOUT.in_file(),
        flag::RECONNECT.in_file(),
        COOKIES,
        flag::HTTP2.in_file(),
        flag::STREAMS.in_file(),
        flag::HEADER.in_file(),
        flag::USER.in_file(),
        flag::COMPRESSED.in_file(),
        flag::HOST.in_file(),
        flag::CONNECT_TO.in_file(),
        flag::METHOD.in_file(),
        flag::BODY.in_file(),
        flag::BODY_FILE.in_file(),
        flag::PROTOSET.in_file(),
        flag::SERVER_STREAMING.in_file(),
        flag::INSECURE.in_file(),
        flag::CACERT.in_file(),
        flag::CERT.in_file(),
        flag::KEY.in_file(),
        flag::SNI.in_file(),
        flag::TLS.in_file(),
        flag::NO_RESUME.in_file(),
        key(
            "loop",
            TruthOrText,
            "true",
            "after the last step: true: start again; a name: continue at that step; false: stay open and \
            do nothing (with `arrive`: close); default true, or the step after an upgrade; with `arrive` and without \
            `calls` false",
        ),
        key(
            "step",
            Tables(&STEP),
            "[[population.step]]",
            "what each connection does, in order; default: the request or message of the target's scheme",
        ),
        key(
            "on",
            Tables(&ON),
            "[[population.on]]",
            "ws: server messages to reply to or ignore, and heartbeats, independent of the steps",
        ),
    ],
};

static STEP: Table = Table {
    name: "step",
    place: "[[population.step]]",
    about: "One action of a connection: exactly one of request, upgrade, send (or send-hex, send-base64, send-file), \
    wait and close, or only expect.",
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
            "http, and ws before the upgrade: a method and a path, or a captured link (`{var next}`); a path alone: GET; a \
            method alone: the target's path; grpc: a path, /SERVICE/METHOD",
        ),
        key(
            "headers",
            Pairs,
            "{ Content-Type = \"application/json\" }",
            "header fields of the request or the upgrade, besides those of the population; throng sets Content-Length",
        ),
        key(
            "body",
            Text,
            "\"user={seq}\"",
            "body of the request; Content-Length is added; grpc: the message as JSON",
        ),
        key(
            "body-file",
            Text,
            "\"message.bin\"",
            "read the body from this file; grpc: the message, or JSON with protoset",
        ),
        key(
            "graphql",
            Text,
            "\"query User($id: ID!) { user(id: $id) { name } }\"",
            "http: the body is this document as JSON; the step has the name of its operation, and a response with errors is \
            wrong; default of request: POST to the target's path",
        ),
        key("variables", Text, "'{\"id\": {seq}}'", "the variables of the document, a JSON object"),
        key("operation", Text, "\"User\"", "the operation, if the document has several"),
        key(
            "redirects",
            Number,
            "5",
            "http: follow up to this many redirects to the same host; the response is then the last one; default 0",
        ),
        key(
            "upgrade",
            Text,
            "\"/chat?token={var token}\"",
            "ws: open the WebSocket at this path, after requests on the same connection; default: at the target's \
            path, before the first message",
        ),
        key("send", Text, "\"hello {seq}\"", "ws, tcp: a text message, or bytes"),
        key("send-hex", Text, "\"00 ff\"", "ws, tcp: a binary message, as hex digits"),
        key("send-base64", Text, "\"AP8=\"", "ws, tcp: a binary message, as base64"),
        key(
            "send-file",
            Text,
            "\"message.bin\"",
            "ws, tcp: a binary message, the contents of this file; at most 64 KiB",
        ),
        key(
            "expect",
            TextOrTable(&ANSWER),
            "{ status = 200, body = \"ok\" }",
            "http: checks of the response; ws, tcp: the next message, or the reply; default as for the \
            population, ws and tcp none",
        ),
        key(
            "capture",
            Named(&CAPTURE),
            "{ token = { json = \"/access_token\" } }",
            "keep a value of the response for later steps, as `{var token}`",
        ),
        key(
            "weight",
            Number,
            "3",
            "consecutive steps with a weight are alternatives: each time one is chosen, in proportion",
        ),
        key(
            "if",
            Text,
            "\"{var kind} = video\"",
            "skip the step unless these texts are equal, or with != differ",
        ),
        key("times", Number, "20", "take the step this often in a row, at most; default 1"),
        key(
            "until",
            Text,
            "\"{var state} = done\"",
            "with times: end the repetition when this holds; the last response is wrong if it does not",
        ),
        key("while", Text, "\"{var next} !=\"", "with times: repeat the step only while this holds"),
        key(
            "think",
            Number,
            "\"1s..5s\"",
            "idle time before the next step: fixed, uniform, or of a distribution; default as for the population",
        ),
        key("wait", Number, "\"5s\"", "do nothing for this time: fixed, uniform, or of a distribution"),
        key("close", Truth, "true", "close the connection; the next step dials again"),
    ],
};

static CAPTURE: Table = Table {
    name: "capture",
    place: "capture.NAME",
    about: "Where a value stands in a response: exactly one place. At most 4 KiB, not empty, without control \
    characters; a response without it is a fault, and the connection ends, unless there is a default.",
    keys: &[
        key("json", Text, "\"/access_token\"", "at this pointer (RFC 6901) of the content, which is JSON"),
        key("header", Text, "\"X-Token\"", "http: in this header field"),
        key("cookie", Text, "\"session\"", "http: in the cookie of this name"),
        key(
            "regex",
            Text,
            "'token=([0-9a-f]+)'",
            "the first group of this expression, or all that it matches, in the first 64 KiB of the content",
        ),
        key("default", Text, "\"\"", "the value if the response has none, or null"),
    ],
};

static ON: Table = Table {
    name: "on",
    place: "[[population.on]]",
    about: "Independent of the steps: a server message that is never a response to them, with its reply, or a heartbeat. One of is, \
    starts, contains and every; of several that fit a message the first applies.",
    keys: &[
        key("is", Text, "\"2\"", "a message that is exactly this text"),
        key("starts", Text, "\"ping\"", "a message that begins with this text"),
        key("contains", Text, "\"heartbeat\"", "a message with this text in it"),
        key(
            "every",
            Number,
            "\"25s\"",
            "send at this interval, the first time that long after the connection is open",
        ),
        key(
            "send",
            Text,
            "\"3\"",
            "the reply, or the heartbeat, with \"\" a control ping; default: pass over the message",
        ),
    ],
};

static CSV: Table = Table {
    name: "csv",
    place: "[csv.NAME]",
    about: "A table of values (RFC 4180): the first line is the header, and each connection keeps one of \
    the rows, unless `take` says otherwise.",
    keys: &[
        key("file", Text, "\"users.csv\"", "path of the file, relative to the scenario file; required"),
        key(
            "take",
            OneOf(&["connection", "request", "random"]),
            "\"request\"",
            "`connection`: each keeps one row; `request`: each request or message takes the next row; `random`: \
            each takes a random row; default connection",
        ),
        key("once", Truth, "true", "refuse a load that would use a row twice; default false"),
    ],
};
