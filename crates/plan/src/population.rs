//! A population: connections that do the same, how many there are, and what each of them does.

use units::{Nanos, Spans};

use crate::{
    Body, Call, Content, Expectation, Grpc, Load, Pushes, Request, Target, Text, Tls, Variable, text::Place,
};

/// Connections that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Population {
    /// Letters, digits, `-` and `_`; a letter first. The one of a command line is called `main`.
    pub name: String,
    /// The target, and the default path of handshakes and requests.
    pub target: Target,
    /// How its connections are secured, where they are.
    pub tls: Tls,
    /// HTTP/2: requests at once on a connection; none is HTTP/1.1.
    pub streams: Option<u16>,
    /// gRPC: what its calls share.
    pub grpc: Option<Grpc>,
    /// WebSocket: fields of the upgrade besides those that throng sets. Requests have their own.
    pub headers: Vec<(String, Text)>,
    /// How many, and when.
    pub load: Load,
    /// Requests, or messages with an expected reply, on each connection, after which it is closed; at least 1.
    pub calls: Option<u64>,
    /// Requests, or messages with an expected reply, in all, after which its load ends; at least 1. They begin at full load.
    pub requests: Option<u64>,
    /// Timeout of a dial, a handshake and a response, each; never zero.
    pub timeout: Nanos,
    /// When to dial a connection again.
    pub reconnect: Reconnect,
    /// Each connection keeps the cookies of its responses, and sends them.
    pub cookies: bool,
    /// The variables that its steps capture.
    pub variables: Vec<String>,
    /// What each connection does.
    pub activity: Activity,
    /// What it does about messages that the server sends by itself.
    pub pushes: Pushes,
    /// HTTP/2: a connection that has received nothing for this time sends a PING, beside what it does otherwise.
    pub keep_alive: Option<Nanos>,
}

/// What each connection of a population does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It is open.
    Idle,
    /// WebSocket, TCP: a message each `every`, the first after a random part of it; where there is a rate, at that.
    Ping {
        /// From one to the next; zero is a closed loop.
        every: Nanos,
        /// What must come back. Empty (WebSocket only): a control ping.
        text: Text,
    },
    /// These, in this order.
    Steps {
        /// At least one; no two of one name.
        steps: Vec<Step>,
        /// What follows the last.
        then: Then,
    },
}

/// What follows the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// This step, by its index.
    Again(u16),
    /// Nothing; the connection stays open.
    Stay,
    /// The connection's end.
    Close,
}

/// One thing that a connection does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// As a population's; given, or from what it does.
    pub name: String,
    /// What it does.
    pub act: Act,
    /// Of steps with a weight that follow each other, one is done each time; more likely the greater its weight.
    pub weight: Option<u32>,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// HTTP: a request and its complete response.
    Request {
        /// What goes out.
        request: Request,
        /// Think time after it.
        think: Think,
    },
    /// WebSocket: what opens it, after requests on the same connection.
    Upgrade {
        /// The path.
        path: Text,
        /// Fields of the request, besides those of any upgrade.
        headers: Vec<(String, Text)>,
        /// Think time after it.
        think: Think,
    },
    /// WebSocket, TCP: a message, and the reply that is expected, if any.
    Send {
        /// What goes out.
        message: Body,
        /// What must come back.
        expected: Option<Expectation>,
        /// Think time after it.
        think: Think,
    },
    /// WebSocket, TCP: an unsolicited message from the server.
    Expect {
        /// What it must be.
        expected: Expectation,
        /// Think time after it.
        think: Think,
    },
    /// A pause.
    Wait(Think),
    /// Close; the next step dials again.
    Close,
}

/// From the shortest to the longest idle time: [`Spans::min`], [`Spans::max`].
pub type Think = Spans;

/// When to dial a connection again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconnect {
    /// Dial again after a close with an announcement, when the next request is due.
    Planned,
    /// Not even that.
    Never,
    /// That, and what was lost or could not be dialled: after a random part of a time that doubles with each failure,
    /// from [`Spans::min`] to [`Spans::max`].
    Backoff(Spans),
    /// Of a rate: as a client with a connection pool. A connection is dialled, the first time too, when a request is due
    /// and none is idle. A request that meets the close of an idle connection is sent again on another one.
    OnDemand {
        /// Connections that stay open without a request; further ones are closed after their response.
        idle: u32,
    },
}

impl Activity {
    /// One request, again and again.
    pub(crate) fn again(request: Request, think: Think) -> Activity {
        let step = Step::new("get", Act::Request { request, think });
        Activity::Steps { steps: vec![step], then: Then::Again(0) }
    }
}

impl Step {
    /// One without a weight.
    pub(crate) fn new(name: &str, act: Act) -> Step {
        Step { name: name.to_owned(), act, weight: None }
    }
}

impl Act {
    pub(crate) fn texts(&mut self) -> Vec<(&mut Text, Place)> {
        match self {
            Act::Request { request, .. } => request.texts(),
            Act::Upgrade { path, headers, .. } => {
                let fields = headers.iter_mut().map(|(_, value)| (value, Place::Field));
                [(path, Place::Path)].into_iter().chain(fields).collect()
            }
            Act::Send { message: Body::Text(text), .. } => vec![(text, Place::Content)],
            Act::Send { .. } => Vec::new(),
            Act::Expect { .. } | Act::Wait(_) | Act::Close => Vec::new(),
        }
    }

    /// Leaves out the idle time after it.
    pub(crate) fn take_think(&mut self) {
        self.think_mut().into_iter().for_each(|think| *think = Think::default());
    }

    /// Has this idle time after it, if it has any.
    pub(crate) fn set_think(&mut self, new: Think) {
        self.think_mut().filter(|think| think.max > Nanos::ZERO).into_iter().for_each(|think| *think = new);
    }

    fn think_mut(&mut self) -> Option<&mut Think> {
        match self {
            Act::Request { think, .. }
            | Act::Upgrade { think, .. }
            | Act::Send { think, .. }
            | Act::Expect { think, .. } => Some(think),
            Act::Wait(_) | Act::Close => None,
        }
    }

    /// How many operations a client makes of it: a reply and a think time are one each.
    fn operations(&self) -> usize {
        let (awaits, idle) = self.awaits_and_idles();
        let has_reply = awaits && matches!(self, Act::Send { .. });
        let thinks = idle > Nanos::ZERO && !matches!(self, Act::Wait(_));
        1 + usize::from(has_reply) + usize::from(thinks)
    }

    /// Whether it is one of a number of requests.
    pub(crate) fn is_request(&self) -> bool {
        self.awaits_and_idles().0 && !matches!(self, Act::Expect { .. })
    }

    /// Whether it waits for anything.
    pub(crate) fn takes_time(&self) -> bool {
        let (awaits, idle) = self.awaits_and_idles();
        awaits || idle > Nanos::ZERO
    }

    /// Whether it has a think time, or is a pause.
    pub(crate) fn pauses(&self) -> bool {
        self.awaits_and_idles().1 > Nanos::ZERO
    }

    /// Whether a response is awaited, and the maximum think time after it.
    fn awaits_and_idles(&self) -> (bool, Nanos) {
        let awaits = match self {
            Act::Request { .. } | Act::Upgrade { .. } | Act::Expect { .. } => true,
            Act::Send { expected, .. } => expected.is_some(),
            Act::Wait(_) | Act::Close => false,
        };
        (awaits, self.think().max)
    }

    /// For how long a connection does nothing after it, or while it lasts if it is a pause.
    pub fn think(&self) -> Think {
        match self {
            Act::Request { think, .. }
            | Act::Upgrade { think, .. }
            | Act::Send { think, .. }
            | Act::Expect { think, .. }
            | Act::Wait(think) => *think,
            Act::Close => Think::default(),
        }
    }
}

impl Population {
    /// All texts that its connections send, each with the place where it is used.
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
                texts.extend(steps.iter_mut().flat_map(|step| step.act.texts()));
            }
        }
        texts.extend(self.pushes.texts().map(|text| (text, Place::Content)));
        texts
    }

    /// Each request that its connections send.
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

    /// Idle times after requests and messages, where there are any, are these.
    pub fn set_think(&mut self, think: Think) {
        if let Activity::Steps { steps, .. } = &mut self.activity {
            steps.iter_mut().for_each(|step| step.act.set_think(think));
        }
    }

    /// Each environment variable in its texts, which have the place where it is used.
    pub fn env(&mut self) -> impl Iterator<Item = &mut Variable> {
        self.texts().into_iter().flat_map(|(text, _)| text.env_mut())
    }

    /// What each request and each message sends that is not in the text of the plan: the call that it is, and its file.
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

    /// Each file that says what is sent, with the flag that names it.
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

    /// Whether its connections come, do what they came for, and go.
    pub fn comes_and_goes(&self) -> bool {
        self.load.arrival_rate().is_some()
    }

    /// Whether its load ends by itself: it has a number of requests, or of connections that leave after theirs.
    pub(crate) fn ends(&self) -> bool {
        let leaves =
            self.calls.is_some() || matches!(self.activity, Activity::Steps { then: Then::Close, .. });
        let is_counted = matches!(self.load, Load::Arrivals { total: Some(_), .. });
        self.requests.is_some() || is_counted && leaves
    }

    /// Whether it closes connections by itself after some requests: how many are open at a time is chance.
    pub(crate) fn closes_its_connections(&self) -> bool {
        let closes = |step: &Step| matches!(step.act, Act::Close);
        let has_close = matches!(&self.activity, Activity::Steps { steps, .. } if steps.iter().any(closes));
        self.comes_and_goes() || self.calls.is_some() || has_close
    }

    /// Whether a connection always sends the next request right after the response.
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

    /// The names of its steps; without steps of its own it has one.
    pub fn step_names(&self) -> Vec<&str> {
        match &self.activity {
            Activity::Steps { steps, .. } => steps.iter().map(|step| step.name.as_str()).collect(),
            Activity::Idle => vec!["hold"],
            Activity::Ping { .. } => vec!["ping"],
        }
    }

    /// How many operations its steps are for a client, with what follows the last.
    pub(crate) fn operations(&self) -> usize {
        match &self.activity {
            Activity::Steps { steps, .. } => {
                // Of one with a weight: the choice, and what leads on from it.
                let of = |step: &Step| step.act.operations() + if step.weight.is_some() { 2 } else { 0 };
                steps.iter().map(of).sum::<usize>() + 1
            }
            Activity::Idle | Activity::Ping { .. } => 1,
        }
    }

    /// The most connections that are open or being dialled at one time.
    pub fn most_open(&self) -> u32 {
        let Some(rate) = self.load.arrival_rate() else { return self.load.connections() };
        if rate.is_zero() {
            return 0;
        }
        let at_once = rate.due(self.longest_stay()).saturating_add(1);
        u32::try_from(at_once).unwrap_or(u32::MAX).min(self.load.connections())
    }

    /// The same where the target takes `response` to accept, and for each response: without those that are kept for slow ones.
    pub fn usually_open(&self, response: Nanos) -> u32 {
        let Some(rate) = self.load.arrival_rate() else { return self.most_open() };
        let (awaited, idles) = self.stay().unwrap_or((0, Nanos::NEVER.0));
        let stay = response.0.saturating_mul(awaited.saturating_add(1)).saturating_add(idles);
        let at_once = rate.due(Nanos(stay)).saturating_add(1);
        u32::try_from(at_once).unwrap_or(u32::MAX).min(self.most_open())
    }

    /// Connections between the same two hosts that it may leave in TIME_WAIT, or have open, at once: how many pairs of
    /// address and port it needs.
    pub fn pairs_needed(&self) -> u64 {
        let Some(rate) = self.load.arrival_rate() else { return self.most_open().into() };
        // TIME_WAIT lasts 60 s (linux/include/net/tcp.h, TCP_TIMEWAIT_LEN).
        let waiting = rate.due(Nanos::from_secs(60)).saturating_add(u64::from(self.most_open()));
        waiting.min(u64::from(self.load.connections()))
    }

    /// The maximum lifetime of an arriving connection: each dial and each response is limited by the timeout, and timers
    /// are up to a millisecond late.
    fn longest_stay(&self) -> Nanos {
        let Some((awaited, idles)) = self.stay() else { return Nanos::NEVER };
        let waits = (self.timeout.0 + Nanos::from_millis(1).0).saturating_mul(awaited.saturating_add(1));
        Nanos(waits.saturating_add(idles))
    }

    /// How many responses an arriving connection awaits, and for how long it is idle at most, nanoseconds; none where it has no end.
    fn stay(&self) -> Option<(u64, u64)> {
        let Activity::Steps { steps, then } = &self.activity else { return None };
        let awaits_and_idles = longest_of_each(steps);
        let awaited = awaits_and_idles.iter().filter(|(awaits, _)| *awaits).count() as u64;
        let idle = |awaits_and_idles: &[(bool, Nanos)]| {
            awaits_and_idles.iter().map(|(_, idle)| idle.0).fold(0, u64::saturating_add)
        };
        match (self.calls, then) {
            (Some(calls), _) if awaited > 0 => {
                // Round after round; in the last one not beyond the last call.
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

/// Whether each step awaits a response, and its maximum think time; of steps of which one is chosen, the most of any.
fn longest_of_each(steps: &[Step]) -> Vec<(bool, Nanos)> {
    let mut all: Vec<(bool, Nanos)> = Vec::new();
    let mut is_choice = false;
    for step in steps {
        let (awaits, idle) = step.act.awaits_and_idles();
        match all.last_mut() {
            Some(last) if is_choice && step.weight.is_some() => *last = (last.0 || awaits, last.1.max(idle)),
            _ => all.push((awaits, idle)),
        }
        is_choice = step.weight.is_some();
    }
    all
}
