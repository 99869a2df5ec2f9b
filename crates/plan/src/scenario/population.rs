//! Parses and checks a population.

use super::document::Section;
use super::expectation::{self, Context};
use super::load;
use super::step::message;
use super::{Reader, StepContext, name};
use crate::phases::wrong_order;
use crate::population::DEFAULT_TIMEOUT;
use crate::scheme::Http2;
use crate::text::Place;
use crate::value::{DEFAULT_PING, between_pings, reconnect, streams, timeout};
use crate::{
    Act, Activity, Body, Expectation, Load, Pem, Population, Reconnect, Scheme, Step, Target, Text, Then,
    Think, Tls, TlsVersions, flag, tls,
};
use units::{Count, Nanos};

/// First parts of figure names. A population must not be called that: `latency.p99` would be ambiguous.
const FIGURES: [&str; 44] = [
    "agents",
    "all",
    "answered",
    "broadcasts",
    "bytes",
    "closed",
    "connect",
    "connections",
    "delay",
    "drained",
    "dropped",
    "duplicates",
    "duration",
    "failed",
    "faults",
    "gap",
    "generator",
    "handshake",
    "held",
    "kernel",
    "lag",
    "latency",
    "limit",
    "lost",
    "messages",
    "opened",
    "out_of_order",
    "peak",
    "ping_rtt",
    "probe",
    "pushes",
    "ramp",
    "redialled",
    "requests",
    "sent",
    "spread",
    "status",
    "target",
    "thresholds",
    "tls",
    "tls_resumed",
    "total",
    "verdict",
    "wanted",
];

/// Keys of the request of a population without steps.
const OF_ONE_REQUEST: [&str; 3] = ["method", "body", "body-file"];

/// Keys of `expect` that concern a single response.
const OF_STEPS: [&str; 6] = ["status", "length", "headers", "body", "echo", "skip"];

/// Checks the name of a population; names of figures are reserved.
pub(super) fn population_name(text: &str) -> Result<String, String> {
    match name(text)? {
        name if FIGURES.contains(&name.as_str()) => {
            Err(format!("reserved as the name of a figure; use another, as {name}-users"))
        }
        name => Ok(name),
    }
}

/// Whether a population with HTTP/2 sends PINGs in addition to requests: another key schedules its requests, or the protocol always uses
/// HTTP/2.
fn pings_beside(own: &Section, scheme: Scheme) -> bool {
    let says_when = ["step", "think", "rate", "arrive"].iter().any(|key| own.has(key));
    let has_requests_too = says_when || scheme.http2() == Http2::Always;
    own.has("ping") && scheme.has_requests() && has_requests_too
}

impl Reader<'_, '_> {
    /// Reads a population; `None` if its target is missing or its scheme invalid. `alone`: it is the one that the top level defines.
    pub(super) fn population(&mut self, own: &Section, alone: bool) -> Option<Population> {
        if !alone && !own.has("name") {
            self.notes.add(own.at, &own.path, "missing name; use name = \"users\"");
        }
        let name =
            if alone { Some("main".to_owned()) } else { own.read(self.notes, "name", population_name) };
        let (load, calls, requests) = load::read(self.notes, own);
        let timeout = self.inherited(own, "timeout", timeout).unwrap_or(DEFAULT_TIMEOUT);
        let reconnect = self.inherited(own, "reconnect", reconnect).unwrap_or(Reconnect::Planned);
        let target = self.target(own, "target").or_else(|| self.stand_in(own))?;
        let tls = self.tls(own, target.secure);
        let streams = self.streams(own, &target);
        let grpc = self.grpc(own, &target);
        let fields = self.fields(own, &target);
        let variables = self.variables(own);
        let is_request = |step: &Section| step.has("request") || step.has("upgrade");
        let logs_in = target.scheme.is_upgraded() && own.sections("step").iter().any(is_request);
        let context = StepContext {
            variables,
            logs_in,
            own,
            target: &target,
            grpc: &grpc,
            headers: &fields,
            think: self.think(own, &target, load),
            rated: load.is_paced(),
            pings_beside: streams.is_some() && pings_beside(own, target.scheme),
        };
        let keep_alive = match context.pings_beside {
            true => own.read(self.notes, "ping", between_pings),
            false => None,
        };
        let (activity, calls) = match self.pings(&context, streams.is_some()) {
            Some(activity) => (activity, calls),
            None => self.activity(&context, load, calls),
        };
        let cookies = self.cookies(own, &target);
        let variables = context.variables;
        self.several_at_once(own, target.scheme, streams, &activity);
        let name = name.unwrap_or_default();
        let headers = if target.scheme.has_requests() { Vec::new() } else { fields };
        let pushes = self.pushes(own, &target);
        let mut population = Population {
            name,
            target,
            tls,
            streams,
            grpc,
            headers,
            load,
            calls,
            requests,
            timeout,
            reconnect,
            cookies,
            variables,
            activity,
            pushes,
            keep_alive,
        };
        self.bind(own, &mut population);
        self.check_requests(own, &population);
        Some(population)
    }

    /// Reports a total of requests that can never be reached: connections that run their steps once send no more than those, and only acts
    /// that await a response count.
    fn check_requests(&mut self, own: &Section, population: &Population) {
        let Activity::Steps { steps, then } = &population.activity else { return };
        // Only one of several alternatives runs.
        let of_alternatives = steps.chunk_by(|one, other| one.weight.is_some() && other.weight.is_some());
        let most_of = |some: &[Step]| {
            let requests = some.iter().filter(|step| step.act.is_request());
            requests.map(|step| u64::from(step.times())).max().unwrap_or(0)
        };
        let each: u64 = of_alternatives.map(most_of).sum();
        let connections = population.load.connections();
        let most = each * u64::from(connections);
        if population.requests.is_some() && each == 0 && !steps.is_empty() {
            let why = "no step sends something and expects a response; use duration = \"10s\"";
            own.note(self.notes, "requests", why);
        } else if *then == Then::Stay && population.requests.is_some_and(|wanted| wanted > most) {
            let of = Count(connections.into()).of("connection");
            let why =
                format!("{of} can send only {most}, each {each}: its steps end; use fewer, or loop = true");
            own.note(self.notes, "requests", why);
        }
    }

    /// Whether connections keep cookies: the population's key, or else the top-level one.
    fn cookies(&mut self, own: &Section, target: &Target) -> bool {
        let has_cookies = |scheme: Scheme| scheme.of_requests().has_plain_requests();
        if !has_cookies(target.scheme) {
            own.refuse(self.notes, &["cookies"], Scheme::required(Scheme::PLAIN, has_cookies));
            return false;
        }
        own.truth("cookies").or_else(|| self.top.truth("cookies")).unwrap_or(false)
    }

    /// Checks top-level defaults, even if no population uses them.
    pub(super) fn defaults(&mut self) {
        let (notes, top, tables) = (&mut *self.notes, self.top, self.tables);
        top.read(notes, "think", Think::parse_or_seconds);
        top.read(notes, "timeout", timeout);
        top.read(notes, "reconnect", reconnect);
        top.read(notes, "ping", Nanos::parse_or_seconds);
        top.read(notes, "message", |text| Text::parse(text, Place::Content, tables));
        let scheme = top.scalar("target").and_then(|target| Scheme::of_target(&target.text));
        let scheme = scheme.filter(|scheme| scheme.has_requests()).unwrap_or_default();
        expectation::read(notes, top, Context { scheme, numbers: None, sent: true });
    }

    /// TLS settings: the population's keys, or else the top-level ones.
    pub(super) fn tls(&mut self, own: &Section, secure: bool) -> Tls {
        if !secure {
            let why = Scheme::required(Scheme::OVER_TLS, |_| true);
            own.refuse(self.notes, &flag::OF_TLS.map(|flag| flag.name), why);
            return Tls::default();
        }
        for (one, other) in [("cert", &flag::KEY), ("key", &flag::CERT)] {
            if own.has(one) && !own.has(other.name) {
                own.note(self.notes, one, format!("requires {}", self.notes.written(other, "\"FILE\"")));
            }
        }
        let cert = self.inherited(own, "cert", Pem::named);
        let key = self.inherited(own, "key", Pem::named);
        let truth = |key| own.truth(key).or_else(|| self.top.truth(key)).unwrap_or(false);
        let (insecure, no_resume) = (truth("insecure"), truth("no-resume"));
        Tls {
            insecure,
            roots: self.inherited(own, "cacert", Pem::named),
            identity: cert.zip(key),
            server_name: self.inherited(own, "sni", tls::server_name),
            versions: self.inherited(own, "tls", tls::versions).unwrap_or(TlsVersions::Both),
            resume: !no_resume,
        }
    }

    /// Concurrent requests per connection; `None` without HTTP/2.
    fn streams(&mut self, own: &Section, target: &Target) -> Option<u16> {
        let keys = [flag::HTTP2.name, flag::STREAMS.name];
        match target.scheme.http2() {
            Http2::Never => {
                let why = Scheme::required(Scheme::BOTH, |scheme| scheme.http2() == Http2::Optional);
                own.refuse(self.notes, &keys, why);
                return None;
            }
            Http2::Always => {
                own.refuse(self.notes, &["http2"], "gRPC is over HTTP/2; remove it");
                return Some(self.inherited(own, "streams", streams).unwrap_or(1));
            }
            Http2::Optional => {}
        }
        let is_http2 = own.truth("http2").or_else(|| self.top.truth("http2")).unwrap_or(false);
        if !is_http2 && own.has("streams") {
            own.refuse(
                self.notes,
                &["streams"],
                format!("requires {}", self.notes.written(&flag::HTTP2, "true")),
            );
        }
        let streams = self.inherited(own, "streams", streams).unwrap_or(1);
        if is_http2 && streams > 1 && own.has("step") && !target.scheme.has_requests() {
            let section = if own.has("streams") { own } else { self.top };
            let why = "steps are those of one WebSocket on each connection; remove it";
            section.note(self.notes, "streams", why);
        }
        is_http2.then_some(streams)
    }

    /// Reports several concurrent requests per connection together with pauses between requests.
    fn several_at_once(&mut self, own: &Section, scheme: Scheme, streams: Option<u16>, activity: &Activity) {
        // [`Reader::streams`] checks WebSockets.
        let Activity::Steps { steps, .. } = activity else { return };
        let is_several = scheme.has_requests() && streams.is_some_and(|streams| streams > 1);
        if is_several && steps.iter().any(|step| step.act.pauses()) {
            let section = if own.has("streams") { own } else { self.top };
            let why = "with a pause between requests a connection has one request at a time; use more connections instead, or no \
                pauses";
            section.refuse(self.notes, &["streams"], why);
        }
    }

    /// The think time of a population. A top-level value is ignored where think times do not apply.
    fn think(&mut self, own: &Section, target: &Target, load: Load) -> Think {
        let pings = !target.scheme.has_requests() && !own.has("step");
        let rated = load.is_paced();
        if pings {
            let scheme = target.scheme;
            let (ping, fix) = (self.notes.name(&flag::PING), self.notes.written(&flag::PING, "\"30s\""));
            let why = format!("not for {scheme}, which sends a message per {ping}; use {fix}");
            own.refuse(self.notes, &["think"], why);
        } else if rated {
            let why = self.set_by_rate();
            own.refuse(self.notes, &["think"], why);
        }
        let think = self.inherited(own, "think", Think::parse_or_seconds).unwrap_or_default();
        if pings || rated { Think::default() } else { think }
    }

    /// Why a key that schedules requests cannot be used with a rate.
    fn set_by_rate(&self) -> String {
        let rate = self.notes.name(&flag::RATE);
        format!("cannot be used with {rate}, which sets when requests are due; remove one of the two")
    }

    /// What each connection does, and after how many requests it is closed.
    fn activity(&mut self, context: &StepContext, load: Load, calls: Option<u64>) -> (Activity, Option<u64>) {
        let own = context.own;
        let arrives = load.arrival_rate().is_some();
        self.check_expect(context);
        if !context.target.scheme.has_requests() {
            let scheme = context.target.scheme;
            let fix = self.notes.written(&flag::MESSAGE, "\"ping\"");
            own.refuse(self.notes, &OF_ONE_REQUEST, format!("{scheme} sends messages; use {fix}"));
        } else if own.has("step") {
            own.refuse(self.notes, &OF_ONE_REQUEST, "the steps define what is sent; remove it");
        }
        if own.has("step") {
            return (self.in_steps(context, arrives, calls), calls);
        }
        own.refuse(self.notes, &["loop"], "no steps; remove it, or use [[population.step]]");
        // By default, an arrival leaves after one request.
        let calls = calls.or(arrives.then_some(1));
        if !context.target.scheme.has_requests() {
            return self.messages(context, calls);
        }
        if !context.pings_beside {
            let (http2, think) = (self.notes.written(&flag::HTTP2, "true"), self.notes.name(&flag::THINK));
            let why =
                format!("HTTP/1.1 has no PING; add {http2}, or use {think} for the time between requests");
            own.refuse(self.notes, &["ping"], why);
        }
        let others = Scheme::list(Scheme::PLAIN, "and", Scheme::has_requests);
        let why =
            format!("not for {others}; use {} for the content of requests", self.notes.name(&flag::BODY));
        own.refuse(self.notes, &["message"], why);
        let steps = vec![self.only_request(context)];
        (Activity::Steps { steps, then: Then::Again(0) }, calls)
    }

    /// The activity of a population with HTTP/2 that sends only PINGs; `None` for others.
    fn pings(&mut self, context: &StepContext, is_http2: bool) -> Option<Activity> {
        let StepContext { own, target, pings_beside, .. } = context;
        if !is_http2 || !target.scheme.has_requests() || !own.has("ping") || *pings_beside {
            return None;
        }
        let [ping, think, rate] = [&flag::PING, &flag::THINK, &flag::RATE].map(|flag| self.notes.name(flag));
        let why = format!(
            "{ping} alone sends no requests; add {think} or {rate} for requests beside it, or remove one of the two"
        );
        let of_requests = ["expect", "message", "streams", "calls", "loop", "headers", "host"];
        own.refuse(self.notes, &of_requests, &why);
        own.refuse(self.notes, &OF_ONE_REQUEST, &why);
        let every = own.read(self.notes, "ping", between_pings).unwrap_or(DEFAULT_PING);
        Some(Activity::Ping { every, text: Text::default() })
    }

    /// Checks the population's `expect`, the default for its steps.
    fn check_expect(&mut self, context: &StepContext) {
        let scheme = context.target.scheme;
        if scheme.has_requests() {
            expectation::read(self.notes, context.own, Context { scheme, numbers: None, sent: true });
        } else {
            let why =
                format!("for {scheme} it is set per step; use a [[population.step]] of a scenario file");
            match context.own.section("expect") {
                Some(expect) => expect.refuse(self.notes, &OF_STEPS, why),
                None => context.own.refuse(self.notes, &["expect"], why),
            }
        }
    }

    fn in_steps(&mut self, context: &StepContext, arrives: bool, calls: Option<u64>) -> Activity {
        let own = context.own;
        let of_messages = if context.pings_beside { &["message"][..] } else { &["ping", "message"] };
        own.refuse(self.notes, of_messages, "the steps define what is sent; remove it");
        let before = self.notes.len();
        let steps = self.steps(context);
        let end = if arrives { Then::Close } else { Then::Stay };
        if self.notes.len() > before {
            // If steps were left out because of mistakes, the target of `loop` is unknown.
            self.check_loop(own);
            return Activity::Steps { steps, then: end };
        }
        if own.is_empty_list("step") {
            own.note(self.notes, "step", "empty; remove it, or use [[population.step]]");
        }
        let done = if arrives && calls.is_none() { Then::Close } else { Then::Again(0) };
        let then = self.behind(own, &steps, done, end);
        if context.target.scheme.is_upgraded()
            && context.logs_in
            && let Some((at, why)) = wrong_order(&steps, then)
        {
            let key = at.map_or_else(|| own.key("loop"), |at| own.key(&format!("step.{}", steps[at].name)));
            self.notes.add(own.at, &key, why);
        }
        Activity::Steps { steps, then }
    }

    /// The activity of WebSocket and TCP without steps: messages at an interval on each connection, or at the rate; with a number of calls,
    /// one message after another. TCP without a message does nothing.
    fn messages(&mut self, context: &StepContext, calls: Option<u64>) -> (Activity, Option<u64>) {
        let (own, scheme) = (context.own, context.target.scheme);
        let counted = calls.is_some();
        let given = own.has("message") || self.top.has("message");
        if scheme.has_bytes() && !given {
            let scheme = scheme.text(context.target.secure);
            let fix = self.notes.written(&flag::MESSAGE, "\"ping\"");
            let why = format!("{scheme} sends nothing without a message; add {fix}");
            own.refuse(self.notes, &["ping", "rate", "calls", "requests", "probe"], why);
            return (Activity::Idle, None);
        }
        if context.rated {
            let why = self.set_by_rate();
            own.refuse(self.notes, &["ping"], why);
        } else if counted {
            let calls = self.notes.name(&flag::CALLS);
            let why = "which sends messages one after the other; remove one of the two";
            own.refuse(self.notes, &["ping"], format!("cannot be used with {calls}, {why}"));
        }
        let every = self.inherited(own, "ping", Nanos::parse_or_seconds).unwrap_or(DEFAULT_PING);
        let tables = self.tables;
        let content = |text: &str| Text::parse(text, Place::Content, tables);
        let text = self.inherited(own, "message", |text| match text {
            "" if scheme.has_frames() && !counted => Ok(Text::default()),
            text => message(text, content),
        });
        let text = text.unwrap_or_else(|| Text::fixed("ping"));
        if !counted {
            return (Activity::Ping { every, text }, None);
        }
        let expected = Some(Expectation { echo: true, ..Expectation::default() });
        let act = Act::Send { message: Body::Text(text), expected, think: Think::default() };
        (Activity::Steps { steps: vec![Step::new("send", act)], then: Then::Again(0) }, calls)
    }
}
