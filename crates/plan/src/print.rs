//! Prints a plan as a scenario file that reads back as the same plan, with every default written out. Two things are lost: the header
//! fields and TLS settings of a probe with a separate target, which a file can set only at its top level, and the password in a target,
//! which a file must not contain.

use crate::{
    Act, Activity, Body, Bound, Capture, Csv, Expectation, Grpc, Heartbeat, Hold, IoChoice, LoadKeys,
    Matches, Plan, Population, Pushes, Ramp, Reconnect, Repeat, Rule, Sources, Stage, Step, Text, Then,
    Think, Tls, TlsVersions, csv::Take, population::DEFAULT_TIMEOUT, scheme::Http2, value::DEFAULT_MAX_LAG,
};
use std::fmt::{self, Display, Formatter, Result};
use units::{Nanos, Status};

/// A TOML string.
struct Quoted<T>(T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("\"")?;
        for c in self.0.to_string().chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

/// A TOML array of strings.
fn listed<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| Quoted(item).to_string()).collect();
    format!("[{}]", items.join(", "))
}

/// A TOML inline table.
fn braced<V: Display>(pairs: &[(String, V)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{} = {}", Quoted(name), Quoted(value))).collect();
    format!("{{ {} }}", pairs.join(", "))
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        // Quoted, because TOML's integers end at 2^63.
        writeln!(f, "seed = \"{}\"\nthreads = {}", self.seed, self.threads)?;
        let io = match self.io {
            IoChoice::Auto => "auto",
            IoChoice::Uring => "uring",
            IoChoice::Epoll => "epoll",
            IoChoice::Tun => "tun",
        };
        writeln!(f, "io = \"{io}\"")?;
        if let Sources::Listed(networks) = &self.sources {
            let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
            writeln!(f, "sources = {}", Quoted(networks.join(",")))?;
        }
        if !self.thresholds.is_empty() {
            writeln!(f, "thresholds = {}", listed(self.thresholds.iter().map(|threshold| &threshold.text)))?;
        }
        if self.max_lag != DEFAULT_MAX_LAG {
            writeln!(f, "max-lag = \"{}\"", self.max_lag)?;
        }
        if !self.experiments {
            writeln!(f, "no-experiments = true")?;
        }
        // The top-level timeout is that of the probe: each population prints its timeout itself.
        let of_probe = self.probe.iter().map(|probe| probe.populations[0].timeout);
        for timeout in of_probe.filter(|timeout| *timeout != DEFAULT_TIMEOUT) {
            writeln!(f, "timeout = \"{timeout}\"")?;
        }
        self.stages.iter().try_for_each(|stage| self.stage(f, stage))?;
        self.populations.iter().try_for_each(|population| population.fmt(f))?;
        if let Some(probe) = &self.probe {
            writeln!(f, "\n[probe]\nrate = \"{}\"", probe.rate)?;
            // A gRPC probe repeats the load's call and has no separate target.
            if probe.populations[0].grpc.is_none() {
                writeln!(f, "target = {}", Quoted(&probe.target().text))?;
            }
        }
        self.tables.iter().try_for_each(|table| csv(f, table))
    }
}

impl Plan {
    fn stage(&self, f: &mut Formatter<'_>, stage: &Stage) -> Result {
        writeln!(f, "\n[[stage]]\nname = {}", Quoted(&stage.name))?;
        let of = stage.of.iter().map(|population| &self.populations[usize::from(*population)].name);
        // A population at the top level of a file cannot be named in `of`, but all printed ones are [[population]] tables.
        writeln!(f, "of = {}\nto = \"{}\"", listed(of), stage.to)?;
        match stage.ramp {
            Ramp::Adaptive => {
                self.ramp_deadline(stage).iter().try_for_each(|deadline| {
                    writeln!(
                        f,
                        "# adaptive ramp: what is not open after {deadline} is dialled at a fixed rate"
                    )
                })?;
            }
            Ramp::Rate(rate) => writeln!(f, "ramp = \"{rate}\"")?,
            Ramp::Within(time) => writeln!(f, "ramp = \"{time}\"")?,
        }
        match stage.hold {
            Hold::Forever => writeln!(f, "for = \"forever\""),
            Hold::For(time) => writeln!(f, "for = \"{time}\""),
        }
    }
}

impl Display for Population {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "\n[[population]]\nname = {}", Quoted(&self.name))?;
        writeln!(f, "target = {}", Quoted(&self.target.text))?;
        if let Some((route, _)) = &self.target.route {
            writeln!(f, "connect-to = {}", listed([&route.text]))?;
        }
        // With connect-to, targets without a path have an authority, too, but no key `host`.
        if let Some(authority) = self.target.authority.as_ref().filter(|_| self.target.scheme.has_path()) {
            writeln!(f, "host = {}", Quoted(authority))?;
        }
        if !self.headers.is_empty() {
            writeln!(f, "headers = {}", braced(&self.headers))?;
        }
        let LoadKeys { connections, rate, arrive, total } = self.load.keys();
        connections.iter().try_for_each(|connections| writeln!(f, "connections = {connections}"))?;
        rate.iter().try_for_each(|rate| writeln!(f, "rate = \"{rate}\""))?;
        arrive.iter().try_for_each(|arrive| writeln!(f, "arrive = \"{arrive}\""))?;
        total.iter().try_for_each(|total| writeln!(f, "total = \"{total}\""))?;
        self.calls.iter().try_for_each(|calls| writeln!(f, "calls = \"{calls}\""))?;
        self.requests.iter().try_for_each(|requests| writeln!(f, "requests = \"{requests}\""))?;
        let reconnect = match self.reconnect {
            Reconnect::Planned => "planned".to_owned(),
            Reconnect::Never => "never".to_owned(),
            Reconnect::Backoff(span) => span.to_string(),
            Reconnect::OnDemand { .. } => unreachable!("only the probe's, which is printed as itself"),
        };
        writeln!(f, "timeout = \"{}\"\nreconnect = \"{reconnect}\"", self.timeout)?;
        let sends_pings = self.target.scheme.has_requests() && matches!(self.activity, Activity::Ping { .. });
        if let Some(streams) = self.streams {
            if self.target.scheme.http2() == Http2::Optional {
                writeln!(f, "http2 = true")?;
            }
            // PINGs belong to the connection, not to a stream.
            if !sends_pings {
                writeln!(f, "streams = {streams}")?;
            }
        }
        self.grpc.iter().try_for_each(|grpc| called(f, grpc))?;
        secured(f, &self.tls)?;
        if self.cookies {
            writeln!(f, "cookies = true")?;
        }
        self.keep_alive.iter().try_for_each(|every| writeln!(f, "ping = \"{every}\""))?;
        pushed_to(f, &self.pushes)?;
        match &self.activity {
            Activity::Idle => Ok(()),
            Activity::Ping { every, .. } if sends_pings => writeln!(f, "ping = \"{every}\""),
            // At a rate, or with a number of calls, messages have no interval.
            Activity::Ping { text, .. } if self.load.is_paced() || self.calls.is_some() => {
                writeln!(f, "message = {}", Quoted(text))
            }
            Activity::Ping { every, text } => writeln!(f, "ping = \"{every}\"\nmessage = {}", Quoted(text)),
            Activity::Steps { steps, then } => {
                match then {
                    Then::Again(0) => writeln!(f, "loop = true")?,
                    Then::Again(step) => writeln!(f, "loop = {}", Quoted(&steps[usize::from(*step)].name))?,
                    Then::Stay | Then::Close => writeln!(f, "loop = false")?,
                }
                steps.iter().try_for_each(|step| step.fmt(f))
            }
        }
    }
}

/// Settings that all gRPC calls share.
fn called(f: &mut Formatter<'_>, Grpc { protoset, is_streaming }: &Grpc) -> Result {
    match protoset {
        Some(protoset) => writeln!(f, "protoset = {}", Quoted(&protoset.file)),
        None if *is_streaming => writeln!(f, "server-streaming = true"),
        None => Ok(()),
    }
}

/// TLS settings that differ from the default.
fn secured(f: &mut Formatter<'_>, tls: &Tls) -> Result {
    let Tls { insecure, roots, identity, server_name, versions, resume } = tls;
    let identity = identity.iter().flat_map(|(cert, key)| [("cert", &cert.file), ("key", &key.file)]);
    let files = roots.iter().map(|roots| ("cacert", &roots.file)).chain(identity);
    let names = server_name.iter().map(|name| ("sni", name));
    files.chain(names).try_for_each(|(key, text)| writeln!(f, "{key} = {}", Quoted(text)))?;
    match versions {
        TlsVersions::Both => {}
        TlsVersions::Only12 => writeln!(f, "tls = \"1.2\"")?,
        TlsVersions::Only13 => writeln!(f, "tls = \"1.3\"")?,
    }
    let truths = [("insecure", *insecure), ("no-resume", !*resume)];
    truths.into_iter().filter(|(_, is_set)| *is_set).try_for_each(|(key, _)| writeln!(f, "{key} = true"))
}

/// Reactions to messages that the server pushes. `expect` has to precede the tables of TOML.
fn pushed_to(f: &mut Formatter<'_>, pushes: &Pushes) -> Result {
    let time = pushes.time.iter().map(|time| format!("time = {}", Quoted(time)));
    let number = pushes.number.iter().map(|number| format!("number = {}", Quoted(number)));
    let receivers = pushes.receivers.iter().map(|receivers| format!("receivers = \"{receivers}\""));
    let expected: Vec<String> = time.chain(number).chain(receivers).collect();
    if !expected.is_empty() {
        writeln!(f, "expect = {{ {} }}", expected.join(", "))?;
    }
    let rule = |Rule { matches, reply }: &Rule| {
        let (key, text) = match matches {
            Matches::Is(text) => ("is", text),
            Matches::Starts(text) => ("starts", text),
            Matches::Contains(text) => ("contains", text),
        };
        let send = reply.iter().map(|text| format!(", send = {}", Quoted(text)));
        format!("{{ {key} = {}{} }}", Quoted(text), send.collect::<String>())
    };
    let beat = |beat: &Heartbeat| format!("{{ every = \"{}\", send = {} }}", beat.every, Quoted(&beat.text));
    let on: Vec<String> = pushes.rules.iter().map(rule).chain(pushes.heartbeat.iter().map(beat)).collect();
    if on.is_empty() { Ok(()) } else { writeln!(f, "on = [{}]", on.join(", ")) }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "\n[[population.step]]\nname = {}", Quoted(&self.name))?;
        self.weight.iter().try_for_each(|weight| writeln!(f, "weight = {weight}"))?;
        self.only_if.iter().try_for_each(|condition| writeln!(f, "if = {}", Quoted(condition)))?;
        if let Some(Repeat { times, bound }) = &self.repeat {
            writeln!(f, "times = {times}")?;
            match bound {
                Bound::Times => {}
                Bound::While(condition) => writeln!(f, "while = {}", Quoted(condition))?,
                Bound::Until(condition) => writeln!(f, "until = {}", Quoted(condition))?,
            }
        }
        match &self.act {
            Act::Request { request, think } => {
                writeln!(f, "request = {}", Quoted(format_args!("{} {}", request.method, request.path)))?;
                fields(f, &request.headers)?;
                if let Some(body) = &request.body {
                    let key = if matches!(body, Body::File(_)) { "body-file" } else { "body" };
                    writeln!(f, "{key} = {}", Quoted(body))?;
                }
                if request.redirects > 0 {
                    writeln!(f, "redirects = {}", request.redirects)?;
                }
                expects(f, &request.expect)?;
                thinks(f, think)
            }
            Act::Upgrade { path, headers, think } => {
                writeln!(f, "upgrade = {}", Quoted(path))?;
                fields(f, headers)?;
                thinks(f, think)
            }
            Act::Send { message, expected, think } => {
                let key = match message {
                    Body::Text(_) => "send",
                    Body::File(_) => "send-file",
                    Body::Hex(_) => "send-hex",
                    Body::Base64(_) => "send-base64",
                };
                writeln!(f, "{key} = {}", Quoted(message))?;
                expected.iter().try_for_each(|expected| expects(f, expected))?;
                thinks(f, think)
            }
            Act::Expect { expected, think } => {
                expects(f, expected)?;
                thinks(f, think)
            }
            Act::Wait(time) => writeln!(f, "wait = \"{time}\""),
            Act::Close => writeln!(f, "close = true"),
        }
    }
}

/// Header fields, if any.
fn fields(f: &mut Formatter<'_>, headers: &[(String, Text)]) -> Result {
    if headers.is_empty() { Ok(()) } else { writeln!(f, "headers = {}", braced(headers)) }
}

/// Checks of a response, and what is captured from it.
fn expects(f: &mut Formatter<'_>, expected: &Expectation) -> Result {
    writeln!(f, "expect = {}", table(expected))?;
    let captures: Vec<String> = expected
        .captures
        .iter()
        .map(|Capture { name, from, default, .. }| {
            let (key, text) = from.written();
            let default = default.as_ref().map(|text| format!(", default = {}", Quoted(text)));
            format!("{name} = {{ {key} = {}{} }}", Quoted(text), default.unwrap_or_default())
        })
        .collect();
    if captures.is_empty() { Ok(()) } else { writeln!(f, "capture = {{ {} }}", captures.join(", ")) }
}

fn csv(f: &mut Formatter<'_>, table: &Csv) -> Result {
    writeln!(f, "\n[csv.{}]\nfile = {}", table.name, Quoted(&table.file))?;
    if table.take != Take::default() {
        writeln!(f, "take = \"{}\"", table.take.name())?;
    }
    if table.once { writeln!(f, "once = true") } else { Ok(()) }
}

/// The think time, unless zero: with a rate, not even `think = 0` is accepted.
fn thinks(f: &mut Formatter<'_>, think: &Think) -> Result {
    if think.max > Nanos::ZERO { writeln!(f, "think = \"{think}\"") } else { Ok(()) }
}

/// The checks of a response as an inline table.
fn table(expected: &Expectation) -> impl fmt::Display {
    let mut keys: Vec<String> = Vec::new();
    keys.extend(expected.status.map(|status| match Status(status) {
        status if status.is_grpc() => format!("status = \"{status}\""),
        status => format!("status = {status}"),
    }));
    keys.extend(expected.length.map(|length| format!("length = \"{length}\"")));
    if !expected.headers.is_empty() {
        keys.push(format!("headers = {}", braced(&expected.headers)));
    }
    keys.extend(expected.body.iter().map(|body| format!("body = {}", Quoted(body))));
    if !expected.json.is_empty() {
        keys.push(format!("json = {}", braced(&expected.json)));
    }
    if !expected.absent.is_empty() {
        keys.push(format!("absent = {}", listed(&expected.absent)));
    }
    keys.extend(expected.echo.then(|| "echo = true".to_owned()));
    keys.extend(expected.skip.then(|| "skip = true".to_owned()));
    format!("{{ {} }}", keys.join(", "))
}
