//! A population: connections with the same behaviour, their number, and what each of them does.

use units::{Nanos, Spans};

use crate::{
    Act, Body, Call, Content, Grpc, Load, Pushes, Request, Segment, Step, Target, Text, Think, Tls, Variable,
    text::Place,
};

/// A group of connections with the same behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    /// Letters, digits, `-` and `_`, starting with a letter. On the command line it is `main`.
    pub name: String,
    /// The target, and the default path of upgrades and requests.
    pub target: Target,
    /// TLS settings, for secured schemes.
    pub tls: Tls,
    /// HTTP/2: concurrent requests per connection; `None` means HTTP/1.1.
    pub streams: Option<u16>,
    /// gRPC: settings shared by its calls.
    pub grpc: Option<Grpc>,
    /// WebSocket: additional header fields of the upgrade. Requests have their own fields.
    pub headers: Vec<(String, Text)>,
    /// Number of connections, and the schedule.
    pub load: Load,
    /// Requests (or messages with an expected reply) per connection, after which it is closed; at least 1.
    pub calls: Option<u64>,
    /// Total of requests (or messages with an expected reply), after which the load ends; at least 1. They start at full load.
    pub requests: Option<u64>,
    /// Timeout for a dial, for a handshake and for a response; never zero.
    pub timeout: Nanos,
    /// When to redial a connection.
    pub reconnect: Reconnect,
    /// Whether each connection stores the cookies of its responses and sends them.
    pub cookies: bool,
    /// Names of the variables that its steps capture.
    pub variables: Vec<String>,
    /// What each connection does.
    pub activity: Activity,
    /// How to handle messages that the server sends unprompted.
    pub pushes: Pushes,
    /// HTTP/2: a connection that has received nothing for this long sends a PING, in addition to its activity.
    pub keep_alive: Option<Nanos>,
}

/// Default of `--timeout`.
pub(crate) const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(10);

impl Population {
    /// A population of one connection with this activity, and with defaults for everything else.
    pub(crate) fn new(name: &str, target: Target, tls: Tls, activity: Activity) -> Population {
        Population {
            name: name.to_owned(),
            target,
            tls,
            streams: None,
            grpc: None,
            headers: Vec::new(),
            load: Load::Held { connections: 1 },
            calls: None,
            requests: None,
            timeout: DEFAULT_TIMEOUT,
            reconnect: Reconnect::Planned,
            cookies: false,
            variables: Vec::new(),
            activity,
            pushes: Pushes::default(),
            keep_alive: None,
        }
    }
}

/// What each connection of a population does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It stays open.
    Idle,
    /// WebSocket, TCP: a message every `every`, the first after a random part of it; or at the load's rate.
    Ping {
        /// Interval between messages; zero is a closed loop.
        every: Nanos,
        /// The message, which must be echoed. Empty (WebSocket only): a control ping.
        text: Text,
    },
    /// Steps, in order.
    Steps {
        /// At least one, with distinct names.
        steps: Vec<Step>,
        /// What happens after the last step.
        then: Then,
    },
}

/// What follows the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The step with this index.
    Again(u16),
    /// Nothing; the connection stays open.
    Stay,
    /// The connection is closed.
    Close,
}

/// When to redial a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconnect {
    /// After a close by announcement, when the next request is due.
    Planned,
    /// Never.
    Never,
    /// As `Planned`, and after losses and failed dials: after a random part of a back-off that doubles with each failure, from
    /// [`Spans::min`] to [`Spans::max`].
    Backoff(Spans),
    /// For rates: like a client with a connection pool. A connection is dialled (for the first time, too) when a request is due and none is
    /// idle. A request that meets the close of an idle connection is sent again on another one.
    OnDemand {
        /// Maximum number of idle connections; further ones are closed after their response.
        idle: u32,
    },
}

impl Activity {
    /// One request, repeated.
    pub(crate) fn again(request: Request, think: Think) -> Activity {
        let step = Step::new("get", Act::Request { request, think });
        Activity::Steps { steps: vec![step], then: Then::Again(0) }
    }
}

impl Population {
    /// All texts that its connections send, with the place in which each is used.
    pub(crate) fn texts(&mut self) -> Vec<(&mut Text, Place)> {
        // Requests have paths of their own.
        let is_upgrade = !self.target.scheme.has_requests();
        let mut texts: Vec<_> =
            is_upgrade.then_some((&mut self.target.path, Place::Path)).into_iter().collect();
        texts.extend(self.headers.iter_mut().map(|(_, value)| (value, Place::Field)));
        match &mut self.activity {
            Activity::Idle => {}
            Activity::Ping { text, .. } => texts.push((text, Place::Content)),
            Activity::Steps { steps, .. } => {
                texts.extend(steps.iter_mut().flat_map(Step::texts));
            }
        }
        texts.extend(self.pushes.texts().map(|text| (text, Place::Content)));
        texts
    }

    /// All requests that its connections send.
    pub fn requests(&mut self) -> impl Iterator<Item = &mut Request> {
        let steps = match &mut self.activity {
            Activity::Steps { steps, .. } => &mut steps[..],
            Activity::Idle | Activity::Ping { .. } => &mut [],
        };
        steps.iter_mut().filter_map(|step| match &mut step.act {
            Act::Request { request, .. } => Some(request),
            _ => None,
        })
    }

    /// Replaces the think times of steps that have one.
    pub fn set_think(&mut self, think: Think) {
        if let Activity::Steps { steps, .. } = &mut self.activity {
            steps.iter_mut().for_each(|step| step.act.set_think(think));
        }
    }

    /// Environment variables, and what is computed from them, as texts of their own.
    pub fn of_environment(&mut self) -> Vec<Text> {
        let mut found = Vec::new();
        for (text, _) in self.texts() {
            for segment in text.segments.iter().chain(text.all()) {
                let text = Text { segments: vec![segment.clone()] };
                if text.all().iter().any(|segment| matches!(segment, Segment::Env(_)))
                    && !found.contains(&text)
                {
                    found.push(text);
                }
            }
        }
        found
    }

    /// The environment variables in its texts.
    pub fn env(&mut self) -> impl Iterator<Item = &mut Variable> {
        self.texts().into_iter().flat_map(|(text, _)| text.env_mut())
    }

    /// For each request and message whose content is not in the plan's text: its gRPC call, or its file.
    pub(crate) fn sent(&mut self) -> Vec<(Option<&mut Call>, Option<&mut Content>)> {
        let Activity::Steps { steps, .. } = &mut self.activity else { return Vec::new() };
        let sent = steps.iter_mut().filter_map(|step| match &mut step.act {
            Act::Request { request: Request { call: Some(call), .. }, .. } => Some((Some(call), None)),
            Act::Request { request: Request { body: Some(Body::File(content)), .. }, .. }
            | Act::Send { message: Body::File(content), .. } => Some((None, Some(content))),
            _ => None,
        });
        sent.collect()
    }

    /// All files that determine what is sent, with the flag that names each.
    pub fn contents(&mut self) -> Vec<(&'static str, &mut Content)> {
        let Population { grpc, activity, .. } = self;
        let protoset = grpc.iter_mut().filter_map(|grpc| grpc.protoset.as_mut());
        let mut all: Vec<_> = protoset.map(|content| ("--protoset", content)).collect();
        if let Activity::Steps { steps, .. } = activity {
            all.extend(steps.iter_mut().filter_map(|step| match &mut step.act {
                Act::Request { request: Request { body: Some(Body::File(content)), .. }, .. } => {
                    Some(("--body-file", content))
                }
                Act::Send { message: Body::File(content), .. } => Some(("send-file", content)),
                _ => None,
            }));
        }
        all
    }

    /// Whether its connections arrive at a rate, complete their steps, and leave.
    pub fn comes_and_goes(&self) -> bool {
        self.load.arrival_rate().is_some()
    }

    /// Whether its load ends by itself: it has a total of requests, or of connections that leave.
    pub(crate) fn ends(&self) -> bool {
        let leaves =
            self.calls.is_some() || matches!(self.activity, Activity::Steps { then: Then::Close, .. });
        let is_counted = matches!(self.load, Load::Arrivals { total: Some(_), .. });
        self.requests.is_some() || is_counted && leaves
    }

    /// Whether it closes connections by itself, so that the number open at a time is random.
    pub(crate) fn closes_its_connections(&self) -> bool {
        let closes = |step: &Step| matches!(step.act, Act::Close);
        let has_close = matches!(&self.activity, Activity::Steps { steps, .. } if steps.iter().any(closes));
        self.comes_and_goes() || self.calls.is_some() || has_close
    }

    /// Whether each response is immediately followed by the next request on the connection.
    pub fn is_closed_loop(&self) -> bool {
        if !self.load.is_closed_loop() {
            return false;
        }
        match &self.activity {
            Activity::Idle => false,
            Activity::Ping { every, .. } => *every == Nanos::ZERO,
            Activity::Steps { steps, then } => {
                let never_waits = steps.iter().all(|step| step.act.awaits_and_idles() == (true, Nanos::ZERO));
                never_waits && matches!(then, Then::Again(_))
            }
        }
    }

    /// The names of its steps; a population without steps has one name.
    pub fn step_names(&self) -> Vec<&str> {
        match &self.activity {
            Activity::Steps { steps, .. } => steps.iter().map(|step| step.name.as_str()).collect(),
            Activity::Idle => vec!["hold"],
            Activity::Ping { .. } => vec!["ping"],
        }
    }

    /// Number of operations of the engine's client for its steps, including what follows the last.
    pub(crate) fn operations(&self) -> usize {
        match &self.activity {
            Activity::Steps { steps, .. } => steps.iter().map(Step::operations).sum::<usize>() + 1,
            Activity::Idle | Activity::Ping { .. } => 1,
        }
    }

    /// Maximum number of connections open or being dialled at one time.
    pub fn most_open(&self) -> u32 {
        let Some(rate) = self.load.arrival_rate() else { return self.load.connections() };
        if rate.is_zero() {
            return 0;
        }
        let at_once = rate.due(self.longest_stay()).saturating_add(1);
        u32::try_from(at_once).unwrap_or(u32::MAX).min(self.load.connections())
    }

    /// As `most_open`, assuming that accepting and each response take `response`: without room for slow responses.
    pub fn usually_open(&self, response: Nanos) -> u32 {
        let Some(rate) = self.load.arrival_rate() else { return self.most_open() };
        let (awaited, idles) = self.stay().unwrap_or((0, Nanos::NEVER.0));
        let stay = response.0.saturating_mul(awaited.saturating_add(1)).saturating_add(idles);
        let at_once = rate.due(Nanos(stay)).saturating_add(1);
        u32::try_from(at_once).unwrap_or(u32::MAX).min(self.most_open())
    }

    /// Number of (address, port) pairs that it needs between the same two hosts: connections that are open or in TIME_WAIT at the same
    /// time.
    pub fn pairs_needed(&self) -> u64 {
        let Some(rate) = self.load.arrival_rate() else { return self.most_open().into() };
        // TIME_WAIT lasts 60 s (linux/include/net/tcp.h, TCP_TIMEWAIT_LEN).
        let waiting = rate.due(Nanos::from_secs(60)).saturating_add(u64::from(self.most_open()));
        waiting.min(u64::from(self.load.connections()))
    }

    /// Maximum lifetime of an arriving connection: each dial and response is limited by the timeout, and timers are up to a millisecond
    /// late.
    fn longest_stay(&self) -> Nanos {
        let Some((awaited, idles)) = self.stay() else { return Nanos::NEVER };
        let waits = (self.timeout.0 + Nanos::from_millis(1).0).saturating_mul(awaited.saturating_add(1));
        Nanos(waits.saturating_add(idles))
    }

    /// Number of responses that an arriving connection awaits, and its maximum idle time in nanoseconds; `None` if it has no end.
    fn stay(&self) -> Option<(u64, u64)> {
        let Activity::Steps { steps, then } = &self.activity else { return None };
        let awaits_and_idles = longest_of_each(steps);
        let awaited = awaits_and_idles.iter().filter(|(awaits, _)| *awaits).count() as u64;
        let idle = |awaits_and_idles: &[(bool, Nanos)]| {
            awaits_and_idles.iter().map(|(_, idle)| idle.0).fold(0, u64::saturating_add)
        };
        match (self.calls, then) {
            (Some(calls), _) if awaited > 0 => {
                // Full rounds; the last round ends with the last call.
                let rounds = (calls - 1) / awaited;
                let mut left = calls - rounds * awaited;
                let is_before_last = |(awaits, _): &&(bool, Nanos)| {
                    left -= u64::from(*awaits);
                    left > 0
                };
                let last = awaits_and_idles.iter().take_while(is_before_last).copied().collect::<Vec<_>>();
                Some((calls, idle(&awaits_and_idles).saturating_mul(rounds).saturating_add(idle(&last))))
            }
            (_, Then::Close) => Some((awaited, idle(&awaits_and_idles))),
            _ => None,
        }
    }
}

/// Whether each step awaits a response, and its maximum think time; of alternatives, the maximum of all.
fn longest_of_each(steps: &[Step]) -> Vec<(bool, Nanos)> {
    let mut all: Vec<(bool, Nanos)> = Vec::new();
    let mut is_choice = false;
    for step in steps {
        let (awaits, idle) = step.act.awaits_and_idles();
        match all.last_mut() {
            Some(last) if is_choice && step.weight.is_some() => *last = (last.0 || awaits, last.1.max(idle)),
            _ => all.extend(std::iter::repeat_n((awaits, idle), step.times().into())),
        }
        is_choice = step.weight.is_some();
    }
    all
}
