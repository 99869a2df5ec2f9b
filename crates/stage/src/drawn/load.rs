//! A drawn load: a command line, or a scenario with stages and steps.

use plan::{Plan, Population};
use units::{Nanos, Random};

use crate::{plan, scenario};

/// A load.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) flags: String,
    /// The tables of a scenario; `None` for a command line.
    pub(super) tables: Option<Tables>,
    pub(super) timeout_ms: u64,
    /// The duration of a command line.
    pub(super) duration: Nanos,
    pub(super) shards: u32,
    pub(super) streams: u64,
    /// Size of each request's body, in octets.
    pub(super) body: usize,
    /// Pushed messages have numbers.
    pub(super) has_numbers: bool,
    /// How long responses are awaited after the load, if not for the longest timeout.
    pub(super) patience: Option<Nanos>,
    /// Connections are held, and none is dialled for a request.
    pub(super) is_held: bool,
}

/// Time within which every shard has reported the end of the load: no drain is shorter.
const REPORTS: Nanos = Nanos::from_millis(400);

/// A longer body is put into a file.
const IN_A_FLAG: usize = 60_000;
/// Where to find the number of a message.
const NUMBERED: &str = "expect = { number = \"after:n=\" }\n";

/// What the protocol carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carries {
    /// Requests, with bodies of any length.
    Requests,
    /// gRPC calls.
    Calls,
    /// Messages that are echoed.
    Messages,
}

/// The properties of a protocol that shape its loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit {
    pub(super) carries: Carries,
    pub(super) has_streams: bool,
    /// Flags that all its loads have.
    pub(super) flags: &'static str,
}

impl Habit {
    /// Whether it is HTTP/1.1.
    pub(super) fn is_http1(self) -> bool {
        self.carries == Carries::Requests && !self.has_streams
    }

    /// Whether it sends messages instead of requests.
    pub(super) fn is_echo(self) -> bool {
        self.carries == Carries::Messages
    }
}

impl Load {
    /// Whether requests may have bodies.
    pub(super) fn has_bodies(&self) -> bool {
        self.body > 0 || self.tables.is_some()
    }

    /// The plan of this load, with this threshold unless it is empty.
    pub(super) fn plan(&self, target: &str, threshold: &str, seed: u64) -> Plan {
        let mut flags = self.flags.clone();
        let is_in_file = self.body > IN_A_FLAG;
        match self.body {
            0 => {}
            _ if is_in_file => flags += " method=POST body-file=body",
            octets => flags += &format!(" method=POST body={}", "x".repeat(octets)),
        }
        if !threshold.is_empty() {
            flags += &format!(" threshold={threshold}");
        }
        let mut plan = match &self.tables {
            Some(tables) => scenario(&tables.text(target, &flags, ""), seed),
            None if self.has_numbers => scenario(&Tables::default().text(target, &flags, NUMBERED), seed),
            None => plan(target, &flags, seed),
        };
        let contents = plan.all_populations_mut().flat_map(Population::contents).filter(|_| is_in_file);
        contents.for_each(|(_, content)| content.bytes = vec![b'x'; self.body]);
        plan
    }

    pub(super) fn draw(random: &mut Random, habit: Habit) -> Load {
        let timeout_ms = [300, 500, 700, 2_500][random.below(4) as usize];
        let duration = random.between(600, 2_500);
        let connections = random.between(2, 12);
        let mut flags = format!("{} timeout={timeout_ms}ms duration={duration}ms ", habit.flags);
        let model = random.below(7);
        let pause = match (habit.is_echo(), random.below(3)) {
            (false, 0) => "think=0s",
            (false, 1) => "think=20ms..200ms",
            (false, _) => "think=300ms..1500ms",
            (true, 0) => "ping=0",
            (true, _) => "ping=100ms",
        };
        let rate = random.between(20, 200);
        let held = format!("connections={connections} ramp={}ms", random.below(2) * 300);
        flags += &match model {
            0..=2 => format!("{held} {pause}"),
            3 => format!("{held} rate={rate}/s"),
            4 => format!("{held} requests={rate} {pause}"),
            5 => format!("{held} requests={rate} rate={rate}/s"),
            _ if habit.is_echo() => format!("{held} {pause}"),
            _ => format!("arrive={rate}/s total={} calls={}", 2 * rate, 1 + random.below(4)),
        };
        let is_held = model < 6 || habit.is_echo();
        let reconnect = ["", "", " reconnect=never", " reconnect=20ms..100ms"][random.below(4) as usize];
        flags += if is_held { reconnect } else { "" };
        // With think times there is one request at a time.
        let has_several = habit.has_streams && (flags.contains("think=0s") || !flags.contains("think="));
        let streams = if has_several { 1 + random.below(4) } else { 1 };
        if has_several {
            flags += &format!(" streams={streams}");
        }
        let body = [0, 0, 0, 1, 300, 5_000, 20_000, 50_000][random.below(8) as usize];
        let body = if habit.carries == Carries::Requests { body } else { 0 };
        if random.below(8) == 0 && !habit.is_echo() {
            flags += &format!(" probe={rate}/s");
        }
        let shards = 1 + random.below(2) as u32;
        let tables = Tables::draw(random, habit, is_held, streams == 1 && !flags.contains("rate="));
        let patience = REPORTS + Nanos::from_millis(random.below(timeout_ms));
        let patience = (random.below(6) == 0).then_some(patience);
        let duration = Nanos::from_millis(duration);
        Load {
            flags,
            tables,
            timeout_ms,
            duration,
            shards,
            streams,
            body,
            has_numbers: false,
            patience,
            is_held,
        }
    }
}

impl Carries {
    fn step(self) -> &'static str {
        match self {
            Carries::Requests => "request = \"GET /path\"\n",
            Carries::Calls => "request = \"/a.B/D\"\n",
            Carries::Messages => "send = \"hello\"\nexpect = { echo = true }\n",
        }
    }
}

/// Stages in which the load rises and falls.
fn draw_stages(random: &mut Random) -> String {
    let (mut stages, mut at) = (String::new(), 0);
    for _ in 0..1 + random.below(4) {
        let to = [0, 30, 50, 100, 100][random.below(5) as usize];
        let hold = 50 + random.below(800);
        stages += &format!("[[stage]]\nfor = \"{hold}ms\"\n");
        if to != at {
            let ramp = random.below(4) * 100;
            stages += &format!("to = \"{to}%\"\nramp = \"{ramp}ms\"\n");
        } else if at == 0 {
            // A first stage without a share has the whole load.
            stages += "to = \"70%\"\n";
        }
        at = if to == 0 && at == 0 { 70 } else { to };
    }
    stages
}

/// Stages, and steps of the only population.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    stages: String,
    steps: String,
}

impl Tables {
    fn draw(random: &mut Random, habit: Habit, is_held: bool, has_pauses: bool) -> Option<Tables> {
        let (has_stages, has_steps) = (random.below(4) == 0, random.below(4) == 0);
        let stages = if has_stages { draw_stages(random) } else { String::new() };
        let mut steps = String::new();
        for _ in 0..if has_steps { random.below(4) } else { 0 } {
            steps += "[[population.step]]\n";
            steps += match (random.below(6), habit.carries) {
                (0, _) if has_pauses => "wait = \"20ms..200ms\"\n",
                (1, _) if is_held => "close = true\n",
                (2, Carries::Requests) => "request = \"POST /longer/path\"\nbody = \"some text\"\n",
                (3, Carries::Requests) if has_pauses => "request = \"GET /\"\nthink = \"0s\"\n",
                (_, carries) => carries.step(),
            };
        }
        if has_steps {
            // At least one step awaits a response.
            steps += &format!("[[population.step]]\n{}", habit.carries.step());
        }
        (has_stages || has_steps).then_some(Tables { stages, steps })
    }

    /// The scenario file; `more`: additional lines of its population.
    fn text(&self, target: &str, flags: &str, more: &str) -> String {
        let (mut top, mut own) = (format!("target = \"{target}\"\n"), "name = \"main\"\n".to_owned());
        for flag in flags.split_whitespace() {
            let (name, value) = flag.split_once('=').expect("NAME=VALUE");
            match name {
                "duration" | "ramp" if !self.stages.is_empty() => {}
                // Steps have their own; messages of steps use one WebSocket.
                "streams" if target.starts_with("ws") && !self.steps.is_empty() => {}
                "method" | "body" | "message" | "ping" if !self.steps.is_empty() => {}
                "threshold" => top += &format!("thresholds = [\"{value}\"]\n"),
                "timeout" | "duration" | "ramp" | "probe" => top += &format!("{name} = \"{value}\"\n"),
                "connections" | "total" | "requests" | "calls" | "streams" => {
                    own += &format!("{name} = {value}\n");
                }
                _ if value.is_empty() => own += &format!("{name} = true\n"),
                _ => own += &format!("{name} = \"{value}\"\n"),
            }
        }
        format!("{top}[[population]]\n{own}{more}{}{}", self.steps, self.stages)
    }
}
