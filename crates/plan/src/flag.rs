//! The table of all flags of `throng run`. Parser, help, reference, the keys of a scenario file with their schema, and the verbs that
//! refuse a flag all follow from it. Values are parsed in `flags.rs` and `outputs.rs`.

use crate::key::Kind::{Number, OneOf, Pairs, Text, TextOrTable, Texts, Truth};
use crate::key::{ANSWER, Key, Kind, PROBE as PROBE_TABLE};

mod group;

pub use group::Group;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Name without dashes. [`TARGET`] is positional.
    pub name: &'static str,
    /// Its one-letter form, if any.
    pub short: Option<char>,
    /// How many values it takes.
    pub takes: Takes,
    /// Name of its value in the help.
    pub value: &'static str,
    /// Subject of the flag.
    pub role: Role,
    /// Heading under which the help lists it.
    pub group: Group,
    /// Its help text.
    pub help: &'static str,
    /// Its one-line help, if the short help has it.
    pub brief: Option<&'static str>,
    /// The equivalent key of a scenario file, if any.
    pub(crate) key: Option<Key>,
}

/// How many values a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No value.
    Nothing,
    /// One value.
    One,
    /// One value; if it is omitted, this one.
    OneOr(&'static str),
    /// One value each time that the flag is given; the flag may be repeated.
    Many,
}

/// The subject of a flag, which decides which verbs refuse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// How much load, and for how long. Next to a scenario file, it changes the file's load.
    Load,
    /// What each connection does. Next to a scenario file, which has a key for it, the flag is refused.
    Work,
    /// How this machine applies the load and takes its samples.
    Machine,
    /// Which machines apply the load. Not part of a plan, because each of these machines makes its own plan.
    Place,
    /// How a run is observed, judged and reproduced; the load is the same without it.
    Judgement,
    /// Where the figures of a run are written. Also applies to a stored run, when it is replayed. Not part of a plan.
    Export,
    /// What displays or stores a run while it lasts. Not part of a plan.
    View,
}

/// The flags that apply only to connections with TLS.
pub(crate) const OF_TLS: [&Flag; 7] = [&INSECURE, &CACERT, &CERT, &KEY, &SNI, &TLS, &NO_RESUME];

/// Whether the value of the flag, or of the key, with this name is secret: it is never stored or shown.
pub(crate) fn is_secret(name: &str) -> bool {
    name == USER.name
}

/// The flags that apply only to gRPC.
pub(crate) const OF_GRPC: [&Flag; 2] = [&PROTOSET, &SERVER_STREAMING];

impl Role {
    /// Whether it concerns [`crate::Outputs`], not the plan.
    pub fn is_output(self) -> bool {
        matches!(self, Role::Export | Role::View)
    }

    /// Whether it concerns the plan.
    pub fn is_of_plan(self) -> bool {
        !self.is_output() && self != Role::Place
    }

    /// Whether two runs that differ only in it have the same load, applied in the same way.
    pub fn keeps_load(self) -> bool {
        self == Role::Judgement || self.is_output()
    }
}

impl Flag {
    /// Finds a flag as typed: `target`, `--think`, `-c`.
    pub fn named(arg: &str) -> Option<&'static Flag> {
        let is_it = |flag: &&&Flag| flag.place() == arg || flag.short.is_some_and(|c| arg == format!("-{c}"));
        FLAGS.iter().find(is_it).copied()
    }

    /// An example value, if it takes a number.
    pub fn example(&self) -> Option<&'static str> {
        let key = self.key.filter(|key| matches!(key.kind, Kind::Number))?;
        Some(key.example.trim_matches('"'))
    }

    /// Its name in messages.
    pub fn place(&self) -> String {
        if self.name == TARGET.name { self.name.to_owned() } else { format!("--{}", self.name) }
    }

    /// Its key in a scenario file. Only for flags that have one.
    pub(crate) const fn in_file(&self) -> Key {
        self.key.expect("a flag that a scenario file has as a key")
    }

    const fn short(self, short: char) -> Flag {
        Flag { short: Some(short), ..self }
    }

    const fn within(self, group: Group) -> Flag {
        Flag { group, ..self }
    }

    const fn brief(self, brief: &'static str) -> Flag {
        Flag { brief: Some(brief), ..self }
    }

    const fn takes(self, takes: Takes) -> Flag {
        Flag { takes, ..self }
    }

    /// Adds the key of the same name in scenario files.
    const fn key(self, kind: Kind, example: &'static str, about: &'static str) -> Flag {
        self.key_as(self.name, kind, example, about)
    }

    const fn key_as(
        self,
        name: &'static str,
        kind: Kind,
        example: &'static str,
        about: &'static str,
    ) -> Flag {
        Flag { key: Some(Key { name, kind, about, example }), ..self }
    }
}

/// A flag that takes one value and has no key.
const fn flag(name: &'static str, value: &'static str, role: Role, help: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        takes: Takes::One,
        value,
        role,
        group: Group::of(role),
        help,
        brief: None,
        key: None,
    }
}

/// Names the rows, and lists them in the order of the help.
macro_rules! flags {
    ($($name:ident: $flag:expr;)*) => {
        $(#[doc = concat!("The row ", stringify!($name), ".")] pub const $name: Flag = $flag;)*
        /// All of them, in the order of the help.
        pub static FLAGS: &[&Flag] = &[$(&$name),*];
    };
}

flags! {
    TARGET: flag("target", "TARGET", Role::Load,
        "[http://]HOST[:PORT]/PATH, ws://HOST[:PORT]/PATH, grpc://HOST[:PORT]/SERVICE/METHOD or tcp://HOST:PORT; \
        over TLS https://, wss://, grpcs:// or tls://. Several destinations: \
        http://127.0.0.{1..30}:8000/, ports {9000..9010}. `{rand A B}` in the path is a random number per request. \
        http://USER:PASSWORD@HOST/ logs in by basic authentication. \
        Or a scenario file, X.toml; -c, --ramp, -d, -n, --rate, --arrive and --total override its load")
        .brief("[http[s]://]HOST[:PORT]/PATH, ws[s]://, grpc[s]://, tcp://, X.toml")
        .key(Text, "\"http://127.0.0.1:8000/\"",
            "[http://]HOST[:PORT]/PATH, ws://HOST[:PORT]/PATH, grpc://HOST[:PORT]/SERVICE/METHOD or tcp://HOST:PORT, over TLS https://, wss://, grpcs:// or tls://; several destinations: \
            127.0.0.{1..30}, ports {9000..9010}; required");
    CONNECTIONS: flag("connections", "N", Role::Load, "Hold N connections at once [default: 50]")
        .brief("Hold N connections at once [default: 50]")
        .short('c')
        .key(Number, "\"500k\"", "number of connections to hold; default 50");
    RAMP: flag("ramp", "RATE|TIME", Role::Load,
        "Dial at RATE (20k/s), or reach N within TIME [default: adaptive, as fast as the target accepts \
        connections; after 30s, or 1 ms per connection, at a fixed rate]")
        .brief("Dial at 20k/s, or within 30s [default: adaptive]")
        .key(Number, "\"20k/s\"",
            "without stages: dial at this rate, or reach the load within this time; default adaptive, as fast as \
            the target accepts connections");
    DURATION: flag("duration", "TIME", Role::Load,
        "Time at full load, after the ramp; `forever` until SIGINT [default: 10s]")
        .brief("Time at full load [default: 10s]; forever")
        .short('d')
        .key(Number, "\"5m\"", "without stages: time at full load, after the ramp, or `forever`; default 10s");
    REQUESTS: flag("requests", "N", Role::Load,
        "Send N requests in total, once all connections are open, and end the run when all responses have arrived; -d limits the \
        time at full load. WebSocket and TCP: messages with a reply [default: as many as -d has time for]")
        .brief("End after N requests in total")
        .short('n')
        .key(Number, "\"100k\"",
            "number of requests in total, once all connections are open, after which the load ends; ws, tcp: messages that await a \
            reply; default no limit");
    RATE: flag("rate", "R", Role::Load,
        "Open loop: R requests/s in total over the held connections, latency from when each was due [default: each \
        connection sends at its own pace]")
        .brief("Open loop: R requests/s over all connections")
        .key(Number, "\"20k/s\"",
            "open loop: total request rate over the held connections; latency from when each was due");
    ARRIVE: flag("arrive", "R", Role::Load,
        "Open loop of connections: R new connections/s, --total in total, --calls requests each, then close. -d \
        limits the duration; with --ramp TIME, R is reached within TIME")
        .brief("Open loop: R new connections/s")
        .key(Number, "\"6000/s\"", "open loop of connections: rate of new connections, instead of `connections`");
    TOTAL: flag("total", "N", Role::Load, "--arrive: total number of connections [default: as many as arrive within -d]")
        .key(Number, "\"40k\"",
            "with arrive: total number of connections; default unlimited for the duration of the stages");
    CALLS: flag("calls", "K", Role::Work,
        "Requests per connection, after which it is closed, and dialled again if connections are held [default: no limit; with --arrive 1]")
        .within(Group::Load)
        .key(Number, "10",
            "requests per connection, after which it is closed, and dialled again if connections are held; default \
            no limit, with `arrive` and without steps 1");
    PROBE: flag("probe", "R", Role::Work,
        "Send R requests/s independently of the load, half on fresh and half on kept connections, to measure what \
        an independent user sees [default: off; without R: 10/s]")
        .within(Group::Load)
        .brief("Measure what an independent user sees")
        .takes(Takes::OneOr("10/s"))
        .key(TextOrTable(&PROBE_TABLE), "\"10/s\"",
            "rate of requests independent of the load, on fresh and on kept connections; default none");
    THINK: flag("think", "TIME|A..B", Role::Work,
        "Idle time between a response and the next request: fixed, uniform in A..B, or of a distribution: 'exponential 5s', \
        'log-normal 5s 30s', 'pareto 1s 1.5' [default: 0, closed loop]")
        .within(Group::Load)
        .brief("Pause after a response [default: 0]")
        .key(Number, "\"5s..45s\"",
            "http: idle time between a response and the next request: fixed, uniform, or of a distribution; default 0, closed \
            loop");
    PING: flag("ping", "TIME", Role::Work,
        "ws:// and tcp://: interval between messages on each connection [default: 30s; 0: closed loop]. http:// with --http2: \
        interval between PINGs on each connection, whose replies are timed, instead of requests; with --think, --rate or \
        --arrive, and grpc://: in addition to requests, send a PING when a connection has received nothing for TIME [default: \
        requests without PINGs]")
        .brief("ws, tcp: a message each TIME [default: 30s]")
        .key(Number, "\"30s\"",
            "ws, tcp: interval between messages on each connection, the first after a random part of it; http with \
            http2: between PINGs, instead of requests; with think, rate, arrive or steps, and grpc: in addition to \
            requests, a PING when a connection has received nothing for this time; default 30s, http none");
    MESSAGE: flag("message", "TEXT", Role::Work,
        "Text of the message, whose echo is checked and timed. ws:// with '': a control ping, whose pong is timed \
        [default: ping; tcp://: none, open and hold only]")
        .brief("ws, tcp: the message to send and await")
        .key(Text, "\"ping\"",
            "ws, tcp: the message, which must be echoed; ws with \"\": a control ping; default ping, tcp none: \
            open and hold only");
    TIMEOUT: flag("timeout", "TIME", Role::Work,
        "Timeout for each dial, handshake and response [default: 10s]")
        .brief("For each dial and response [default: 10s]")
        .key(Number, "\"10s\"", "timeout for each dial, handshake and response; default 10s");
    EXPECT: flag("expect", "CHECKS", Role::Work,
        "Check each response: status=200,length=$1 ($1: the first random number); gRPC: status=NOT_FOUND [default: any 2xx; \
        gRPC: OK]")
        .brief("Check each response: status=200,length=$1")
        .key(TextOrTable(&ANSWER), "\"status=200,length=$1\"", "http, grpc: checks of the response; default 2xx, grpc OK");
    RECONNECT: flag("reconnect", "HOW", Role::Work,
        "When to dial a connection again. `planned`: after a close announced by the server; `never`: not even \
        then; a back-off (1s..30s): also after a loss or a failed dial, with exponential back-off and full \
        jitter [default: planned]")
        .key(Text, "\"planned\"",
            "when to dial a connection again; planned: after a close announced by the server; never: not even \
            then; 1s..30s: also after a loss, with this back-off; default planned");
    HTTP2: flag("http2", "", Role::Work,
        "http://, https://, ws://, wss://: HTTP/2, by ALPN over TLS, otherwise with prior knowledge; WebSocket by extended \
        CONNECT (RFC 8441) [default: HTTP/1.1]")
        .brief("HTTP/2")
        .takes(Takes::Nothing)
        .key(Truth, "true", "http, https, ws, wss: HTTP/2, by ALPN over TLS, otherwise with prior knowledge; WebSocket by \
            extended CONNECT (RFC 8441); default false");
    STREAMS: flag("streams", "N", Role::Work,
        "--http2, grpc://: concurrent requests, or WebSockets, per connection [default: 1]")
        .key(Number, "10", "http2, grpc: concurrent requests, or WebSockets, per connection; default 1");
    HEADER: flag("header", "NAME:VALUE", Role::Work,
        "Send this header with each request, call or WebSocket upgrade; repeatable. It may have variables: {seq}, {rand A B}, \
        {choice A B}")
        .brief("Send this header; repeatable")
        .short('H')
        .takes(Takes::Many)
        .key_as("headers", Pairs, "{ Authorization = \"Bearer abc\" }",
            "http, grpc, ws: header fields of each request, call or upgrade; a step's field replaces one of the same name");
    USER: flag("user", "USER:PASSWORD", Role::Work, "Log in by basic authentication; nothing is percent-encoded")
        .short('u')
        .key(Text, "\"me:secret\"", "http, grpc, ws: log in with this user and password, USER:PASSWORD, by basic authentication");
    COMPRESSED: flag("compressed", "", Role::Work,
        "http://, https://: ask for compressed responses (Accept-Encoding: gzip, deflate, br, zstd). Expectations and captures read decoded \
        content; lengths and bytes are those received")
        .takes(Takes::Nothing)
        .key(Truth, "true",
            "http: ask for compressed responses (Accept-Encoding: gzip, deflate, br, zstd); expectations and captures read decoded content; \
            default false");
    METHOD: flag("method", "METHOD", Role::Work,
        "http://, https://: the method [default: GET; with --body or --body-file POST]")
        .brief("Method [default: GET; with a body POST]")
        .short('X')
        .key(Text, "\"POST\"", "http, without steps: the method; default GET, with body or body-file POST");
    BODY: flag("body", "TEXT", Role::Work,
        "http://, https://: the content of each request; for a Content-Type, use -H. It may contain variables, which \
        begin with `{` and a lower-case letter, so JSON needs no escaping. grpc://, grpcs://: the message as JSON; \
        requires --protoset [default: none; an empty message]")
        .brief("Send this content; a file's with --body-file")
        .key(Text, "'{\"name\": \"throng\"}'",
            "http, grpc, without steps: the content of each request; grpc: the message as JSON, requires protoset; without it an \
            empty message");
    BODY_FILE: flag("body-file", "FILE", Role::Work,
        "http://, https://: read the content from FILE. grpc://, grpcs://: read the message from FILE: its bytes, or JSON with \
        --protoset")
        .key(Text, "\"message.bin\"",
            "http, grpc, without steps: read the content from this file; grpc: the message, its bytes, or JSON with protoset");
    HOST: flag("host", "NAME", Role::Work,
        "Send NAME[:PORT] as the Host header, or as :authority of HTTP/2 [default: the target's host]")
        .key(Text, "\"example.org\"", "http, grpc, ws: the Host header, :authority of HTTP/2; default the target's host");
    CONNECT_TO: flag("connect-to", "H1:P1:H2:P2", Role::Work,
        "Dial host H2 and port P2 instead of H1 and P1; an empty H1 or P1 matches any, an empty H2 or P2 keeps the target's. The Host \
        header and the TLS server name stay those of the target. Repeatable, the first match applies; H2:P2 alone matches every \
        target")
        .takes(Takes::Many)
        .key_as("connect-to", Texts, "[\"example.org:443:127.0.0.1:8443\"]",
            "dial another host and port than the target's, as --connect-to; default none");
    PROTOSET: flag("protoset", "FILE", Role::Work,
        "grpc://, grpcs://: descriptors of the methods, for messages as JSON: a FileDescriptorSet, as `protoc \
        --include_imports --descriptor_set_out=FILE` writes it")
        .key(Text, "\"service.protoset\"",
            "grpc: descriptors of the methods, for messages as JSON: a FileDescriptorSet, as protoc --include_imports \
            --descriptor_set_out=FILE writes it");
    SERVER_STREAMING: flag("server-streaming", "", Role::Work,
        "grpc://, grpcs://: accept any number of messages per response; --timeout limits the time to the next one \
        [default: as --protoset says; otherwise one message]")
        .takes(Takes::Nothing)
        .key(Truth, "true",
            "grpc: accept any number of messages per response; timeout limits the time to the next one; default as \
            protoset says, otherwise one message");
    INSECURE: flag("insecure", "", Role::Work,
        "With TLS: accept any certificate")
        .brief("Accept any certificate")
        .short('k')
        .takes(Takes::Nothing)
        .key(Truth, "true", "with TLS: accept any certificate; default false");
    CACERT: flag("cacert", "FILE", Role::Work,
        "With TLS: trust the certificates in FILE (PEM), instead of the system's")
        .key(Text, "\"ca.pem\"", "with TLS: trust the certificates in this file (PEM) instead of the system's");
    CERT: flag("cert", "FILE", Role::Work,
        "With TLS: present this client certificate chain (PEM); requires --key")
        .key(Text, "\"client.pem\"", "with TLS: present this client certificate chain (PEM); requires key");
    KEY: flag("key", "FILE", Role::Work, "Private key of --cert (PEM)")
        .key(Text, "\"client.key\"", "private key of cert (PEM)");
    SNI: flag("sni", "NAME", Role::Work,
        "With TLS: server name to send and to verify the certificate against [default: the \
        target's host]")
        .key(Text, "\"example.org\"",
            "with TLS: server name to send and to verify the certificate against; default the target's host");
    TLS: flag("tls", "1.2|1.3", Role::Work,
        "With TLS: offer only this version [default: both]")
        .key(OneOf(&["1.2", "1.3"]), "\"1.3\"", "with TLS: offer only this version; default both");
    NO_RESUME: flag("no-resume", "", Role::Work,
        "With TLS: a full handshake for each connection, without resumption of a session")
        .takes(Takes::Nothing)
        .key(Truth, "true", "with TLS: a full handshake for each connection, without resumption; default false");
    SOURCES: flag("sources", "LIST|CIDR", Role::Machine,
        "Local addresses to dial from: a list, or CIDR [default: automatic]")
        .key(Text, "\"10.1.0.0/16\"",
            "local addresses to dial from: a list with commas, or CIDR; default automatic");
    THREADS: flag("threads", "N", Role::Machine,
        "Number of threads of each population, at least one; the probe has two of its own. With epoll, the minimum [default: one per core]")
        .key(Number, "2", "number of threads of each population; the probe has two of its own; with epoll the minimum; default one per core");
    SEED: flag("seed", "N", Role::Judgement,
        "Seed of the random numbers, to repeat a run [default: random, printed]")
        .within(Group::Load)
        .key(Number, "42", "seed of the random numbers, to repeat a run; default random, printed");
    IO: flag("io", "IO", Role::Machine,
        "auto: io_uring if permitted, otherwise epoll; uring; epoll: as many threads as the open-file limit \
        requires; tun: throng's own TCP over a TUN device, without a socket for each connection (root) \
        [default: auto]")
        .key(OneOf(&["auto", "uring", "epoll", "tun"]), "\"auto\"", "I/O backend; default auto");
    LIVE: flag("live", "HOW", Role::View,
        "Progress on standard error. tui: full screen, with keys; line: one line a second; classic: the http-kit \
        client's line; off; auto: tui if standard error and standard input are a terminal, otherwise line \
        [default: auto]")
        .brief("auto, tui, line, classic or off");
    FORMAT: flag("format", "TOOL", Role::View,
        "Print the summary in another tool's format: wrk, fortio, ab, httperf; TOOL:POPULATION covers only that \
        population of a scenario [default: throng]");
    THRESHOLD: flag("threshold", "EXPR", Role::Judgement,
        "Pass or fail on this condition instead of on load and faults; repeatable: latency.p99 < 200ms, faults == \
        0, held >= 99.9%, or any number in the summary by its path")
        .brief("Pass only if 'latency.p99 < 200ms'; repeatable")
        .takes(Takes::Many)
        .key_as("thresholds", Texts, "[\"held >= 99.9%\", \"users.latency.p99 < 50ms\"]",
            "conditions for the run to pass, on all populations or on one; default none");
    MAX_LAG: flag("max-lag", "TIME", Role::Judgement,
        "Judge the run invalid if lag p99 exceeds both TIME and 5 % of latency p99 [default: 10ms; shared machines, such as CI runners, may need 50ms]")
        .key(Number, "\"50ms\"",
            "how late throng may be at the 99th percentile before the run is judged invalid; default 10ms");
    NO_EXPERIMENTS: flag("no-experiments", "", Role::Judgement,
        "Ask the target nothing after a load that did not go well: no dials or requests beside the load to distinguish \
        causes that look alike")
        .takes(Takes::Nothing)
        .key(Truth, "true",
            "ask the target nothing after a load that did not go well; default false: up to 10 s of single dials and \
            requests distinguish causes that look alike");
    HLOG: flag("hlog", "FILE", Role::Export, "Write the histograms of each second in HdrHistogram's log format");
    CSV: flag("csv", "FILE", Role::Export, "Write the metrics of each second as a line of CSV");
    JSONL: flag("jsonl", "FILE", Role::Export, "Write the metrics of each second as JSON, one object per line");
    PARQUET: flag("parquet", "FILE", Role::Export,
        "Write the metrics of each second as Parquet, with the columns of --csv; requires a build with --features \
        parquet");
    PROMETHEUS: flag("prometheus", "ADDR", Role::View,
        "Serve the metrics for Prometheus at http://ADDR/metrics during the run; a port alone is on loopback, 0 \
        takes a free port")
        .within(Group::Export);
    DASHBOARD: flag("dashboard", "ADDR", Role::View,
        "Serve a web page at ADDR that shows the run and can pause it, change its load and stop it; a port alone \
        is on loopback, 0 takes a free port [default: off; without ADDR: 127.0.0.1:9909]")
        .brief("Serve a live page [default: 127.0.0.1:9909]")
        .takes(Takes::OneOr("127.0.0.1:9909"));
    DASHBOARD_TOKEN_FILE: flag("dashboard-token-file", "FILE", Role::View,
        "Read the token for the page from FILE: http://ADDR/#token=… Without a token the page is on loopback only");
    INFLUX: flag("influx", "URL", Role::Export,
        "Push the metrics to InfluxDB every second: http://HOST:8086/write?db=DB, or for version 2 \
        http://HOST:8086/api/v2/write?org=O&bucket=B");
    INFLUX_TOKEN_FILE: flag("influx-token-file", "FILE", Role::Export,
        "Read InfluxDB's token from FILE [default: the environment variable INFLUX_TOKEN, if set]");
    OTLP: flag("otlp", "URL", Role::Export,
        "Push the metrics to an OpenTelemetry collector every second, as JSON over HTTP: http://HOST:4318");
    TAG: flag("tag", "TAG", Role::View,
        "Tag the stored run; repeatable. `throng compare tag:TAG` treats runs with the same tag as repetitions")
        .takes(Takes::Many);
    JSON: flag("json", "FILE", Role::Export, "Write the summary as JSON; `-` is standard output")
        .within(Group::Output)
        .brief("Write the summary as JSON; - is stdout");
    JUNIT: flag("junit", "FILE", Role::Export,
        "Write the verdict and each threshold as a test case of JUnit's XML, for CI");
    MARKDOWN: flag("markdown", "FILE", Role::Export,
        "Append the verdict, the thresholds and the main figures in Markdown, for CI: --markdown \"$GITHUB_STEP_SUMMARY\"");
    OUT: flag("out", "DIR", Role::View,
        "Write all outputs of the run to a new folder: summary, report, metrics, histograms");
    REPORT: flag("report", "FILE", Role::View,
        "Write a report of the run: HTML (.html), Markdown (.md) or JSON (.json), by the file's extension")
        .brief("Write a report: .html, .md or .json");
    FLEET: flag("fleet", "URL", Role::Place,
        "Run on the agents that joined at this NATS server instead of on this machine: nats://HOST:PORT, or tls://; several \
        servers of a cluster with commas between them. own, or own:ADDR:PORT: start a nats-server for this run, and print \
        how agents join it. k8s, or k8s://NAMESPACE?image=IMAGE&cpu=2: launch agents for this run in Kubernetes");
    ON_LOST: flag("on-lost", "HOW", Role::Place,
        "When an agent of the fleet is lost: `abort` the run, `continue` without it [default], or `reassign` its part to the \
        others");
    SHARE: flag("share", "HOW", Role::Place,
        "How to divide the load among the agents. `capacity`: by calibrated capacity, or by processors if any agent is not \
        calibrated [default]; `equal`: equally. No agent gets more than its machine and its caps allow");
    AGENTS: flag("agents", "N", Role::Place,
        "Wait up to two minutes until N agents are free. Not a maximum: all free agents take part. \
        With `--fleet k8s`: launch N [default: all agents that have joined; with k8s, one for each 50,000 connections]");
    NATS_CREDS: flag("nats-creds", "FILE", Role::Place,
        "Log in to NATS with the credentials in FILE: a user's JWT and seed [env: NATS_CREDS]");
    NATS_NKEY: flag("nats-nkey", "FILE", Role::Place,
        "Log in to NATS with the nkey whose seed is in FILE [env: NATS_NKEY]");
    NATS_TOKEN_FILE: flag("nats-token-file", "FILE", Role::Place,
        "Log in to NATS with the token in FILE [env: NATS_TOKEN, the token itself]");
    NATS_CA: flag("nats-ca", "FILE", Role::Place,
        "Require TLS, and trust the authorities in FILE (PEM) instead of the system's [env: NATS_CA]");
    NATS_CERT: flag("nats-cert", "FILE", Role::Place,
        "Present the client certificate in FILE (PEM) to NATS [env: NATS_CERT]");
    NATS_KEY: flag("nats-key", "FILE", Role::Place,
        "Read the private key of --nats-cert from FILE (PEM) [env: NATS_KEY]");
    TARGET_GC: flag("target-gc", "", Role::Machine,
        "Measure the live heap of the target's JVM with full collections (jcmd PID GC.run) before the first dial, \
        during the ramp and at full load; their pauses affect the other figures")
        .within(Group::Output)
        .takes(Takes::Nothing);
    OBSERVE: flag("observe", "URL", Role::Judgement,
        "Sample the target's host through `throng observe` there: http://HOST:PORT; or, where it has joined a NATS server, \
        nats://HOST:PORT[/NAME], or its NAME at the server of --fleet")
        .within(Group::Output);
    OBSERVE_TOKEN_FILE: flag("observe-token-file", "FILE", Role::Judgement,
        "Read the token for --observe from FILE")
        .within(Group::Output);
}
