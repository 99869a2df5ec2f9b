//! What goes by a schedule of the whole run: `--rate`; `--arrive`, `--total`, `--calls`; `--probe`; `--ping` of HTTP/2.

use crate::flag::{self, Flag};
use crate::load::DEFAULT_CONNECTIONS;
use crate::scheme::Http2;
use crate::{Hold, Load, LoadKeys, Ramp, Scheme};
use units::{Count, Nanos, ParseError, Rate};

use super::{DEFAULT_HOLD, FlagReader, HAS_NO_PING, connections, hold, ramp, within};

/// How many connections, how fast, for how long, and when their requests are due.
pub(super) struct Loaded {
    pub(super) load: Load,
    pub(super) calls: Option<u64>,
    pub(super) requests: Option<u64>,
    pub(super) ramp: Ramp,
    pub(super) hold: Hold,
}

impl FlagReader<'_> {
    pub(super) fn load(&mut self, scheme: Option<Scheme>) -> Loaded {
        if self.get(&flag::ARRIVE).is_some() {
            return self.arrivals(scheme);
        }
        for flag in [&flag::TOTAL, &flag::CALLS] {
            self.refuse(flag, "requires --arrive; add it, or remove this");
        }
        let requests = self.requests(scheme);
        let connections = self.given(&flag::CONNECTIONS, connections).or_else(|| connections_for(requests));
        let ramp = self.read(&flag::RAMP, Ramp::Adaptive, ramp);
        let usual = if requests.is_some() { Hold::Forever } else { DEFAULT_HOLD };
        let hold = self.read(&flag::DURATION, usual, hold);
        let load = LoadKeys { connections, rate: self.rate(scheme), ..LoadKeys::default() }.load();
        Loaded { load, calls: None, requests, ramp, hold }
    }

    /// How many requests there are in all.
    fn requests(&mut self, scheme: Option<Scheme>) -> Option<u64> {
        self.get(&flag::REQUESTS)?;
        let requests = self.given(&flag::REQUESTS, requests);
        self.has_message(&flag::REQUESTS, scheme);
        requests
    }

    /// The rate of requests over all connections.
    fn rate(&mut self, scheme: Option<Scheme>) -> Option<Rate> {
        self.get(&flag::RATE)?;
        // The other scheme's flag is reported elsewhere.
        let own = if scheme.is_none_or(Scheme::has_requests) { &flag::THINK } else { &flag::PING };
        let why = "cannot be used with --rate, which sets when requests are due; remove it";
        self.refuse(own, why);
        let rate = self.given(&flag::RATE, |text| rate_per_s(text, "20k/s"));
        self.has_message(&flag::RATE, scheme);
        rate
    }

    fn arrivals(&mut self, scheme: Option<Scheme>) -> Loaded {
        for (flag, why) in [
            (&flag::CONNECTIONS, "--total sets the number of connections"),
            (&flag::RAMP, "--arrive sets the connection rate"),
            (&flag::RATE, "--calls sets the requests per connection"),
            (&flag::REQUESTS, "--total and --calls set the number of requests"),
            (&flag::RECONNECT, "no connection is dialled again"),
        ] {
            self.refuse(flag, format!("with --arrive, {why}; remove it"));
        }
        if let Some(scheme) = scheme.filter(|scheme| !scheme.has_requests()) {
            self.add(&flag::ARRIVE, format!("only for http:// in this version: {:?}", scheme.to_string()));
        }
        let calls = |text: &str| within(text, u32::MAX, "a number of requests", "1 or more, as 10");
        let arrive = self.given(&flag::ARRIVE, |text| rate_per_s(text, "100/s"));
        let total = self.given(&flag::TOTAL, connections);
        // Without their number, as many as come in the time.
        let usual = if self.get(&flag::TOTAL).is_some() { Hold::Forever } else { DEFAULT_HOLD };
        let hold = self.read(&flag::DURATION, usual, hold);
        let calls = Some(self.read(&flag::CALLS, 1, calls).into());
        let load = LoadKeys { arrive, total, ..LoadKeys::default() }.load();
        Loaded { load, calls, requests: None, ramp: Ramp::Adaptive, hold }
    }

    pub(super) fn probe(&mut self, scheme: Option<Scheme>) -> Option<Rate> {
        let text = self.get(&flag::PROBE)?;
        self.has_message(&flag::PROBE, scheme);
        if text.contains("://") {
            self.refuse(&flag::PROBE, "the target was read as the value of --probe; use --probe 10/s");
            return None;
        }
        self.given(&flag::PROBE, |text| rate_per_s(text, "10/s"))
    }

    /// How often a connection of HTTP/2 sends a PING instead of requests; none where it sends requests.
    pub(super) fn pings(&mut self, scheme: Option<Scheme>) -> Option<(Nanos, String)> {
        if self.pings_beside(scheme) {
            return None;
        }
        if self.get(&flag::HTTP2).is_none() {
            let why = format!("{HAS_NO_PING}; add --http2, or use --think for the time between requests");
            self.refuse(&flag::PING, why);
            return None;
        }
        let every = self.given(&flag::PING, between_pings)?;
        let of_requests = [
            &flag::EXPECT,
            &flag::STREAMS,
            &flag::HEADER,
            &flag::METHOD,
            &flag::BODY,
            &flag::BODY_FILE,
            &flag::HOST,
        ];
        for flag in of_requests {
            self.refuse(
                flag,
                "--ping alone sends no requests; add --think or --rate for requests beside it, or remove one of the two",
            );
        }
        Some((every, String::new()))
    }

    /// For how long a connection receives nothing before it sends a PING beside its requests.
    pub(super) fn keep_alive(&mut self, scheme: Option<Scheme>) -> Option<Nanos> {
        if self.pings_beside(scheme) { self.given(&flag::PING, between_pings) } else { None }
    }

    /// Whether PINGs go out beside requests: another flag says when those are due, or the protocol has nothing but HTTP/2.
    fn pings_beside(&self, scheme: Option<Scheme>) -> bool {
        let is_given = |flag: &Flag| self.get(flag).is_some();
        let says_when = is_given(&flag::THINK) || is_given(&flag::RATE) || is_given(&flag::ARRIVE);
        let is_asked_for = says_when && is_given(&flag::HTTP2);
        scheme.is_some_and(|it| it.has_requests() && (is_asked_for || it.http2() == Http2::Always))
    }

    /// Whether there is something to send: raw TCP sends nothing without `--message`, and `flag` is a mistake then.
    pub(super) fn has_message(&mut self, flag: &Flag, scheme: Option<Scheme>) -> bool {
        let silent = scheme.filter(|scheme| scheme.has_bytes() && self.get(&flag::MESSAGE).is_none());
        if let Some(scheme) = silent {
            let target = self.get(&flag::TARGET).unwrap_or_default().to_ascii_lowercase();
            let scheme = scheme.text(target.starts_with(&scheme.text(true)));
            self.refuse(flag, format!("{scheme} sends nothing without a message; add --message ping"));
        }
        silent.is_none()
    }
}

/// A number of requests.
pub(crate) fn requests(text: &str) -> Result<u64, ParseError> {
    match Count::parse(text) {
        Ok(Count(n)) if n > 0 => Ok(n),
        _ => Err(ParseError::new(text, "a number of requests", "1 or more, as 100k")),
    }
}

/// As many connections as so few requests need, where the usual number is more.
pub(crate) fn connections_for(requests: Option<u64>) -> Option<u32> {
    requests.and_then(|n| u32::try_from(n).ok()).filter(|n| *n < DEFAULT_CONNECTIONS)
}

/// The time between two PINGs of a connection: servers take many of them for an attack, and close the connection.
pub(crate) fn between_pings(text: &str) -> Result<Nanos, ParseError> {
    match Nanos::parse_or_seconds(text)? {
        every if every < Nanos::from_millis(10) => {
            Err(ParseError::new(text, "a time between PINGs of at least 10ms", "30s"))
        }
        every => Ok(every),
    }
}

/// More than any fleet sends: each request that is due and cannot be sent is counted.
const MOST_PER_S: f64 = 100e6;

/// A rate above zero, of which nothing but a rate is expected: a number without a unit is per second.
///
/// # Errors
/// It is no rate, or zero.
pub fn rate_per_s(text: &str, fix: &str) -> Result<Rate, ParseError> {
    match Rate::parse(&format!("{text}/s")) {
        Ok(rate) if rate.is_zero() => Err(ParseError::new(text, "a rate greater than 0", fix)),
        Ok(rate) if rate.per_s_f64() > MOST_PER_S => {
            Err(ParseError::new(text, "a rate of at most 100m/s", fix))
        }
        Ok(rate) => Ok(rate),
        Err(_) => a_rate(text, fix),
    }
}

/// A rate above zero; `fix` is one.
///
/// # Errors
/// It is no rate, or zero.
pub fn a_rate(text: &str, fix: &str) -> Result<Rate, ParseError> {
    let nothing = || ParseError::new(text, "a rate greater than 0", fix);
    match Rate::parse(text) {
        Ok(rate) if rate.is_zero() => Err(nothing()),
        // With a unit it would be no rate either.
        Err(_) if Count::parse(text).is_ok_and(|count| count.0 == 0) => Err(nothing()),
        read => read,
    }
}
