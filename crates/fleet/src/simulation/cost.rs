//! The cost of a coordinator with 1,000 agents, for `bench/coordinator`. Each second it reads an entry and a report of each agent, sends
//! each a message, and the run's conductor ends a line. Prints CPU time and memory as JSON.

#![allow(clippy::print_stdout, reason = "what it measured is all that it is for")]

use plan::{Role, Slice};
use run::{Conductor, Workers};
use samples::{Phase, Tick};
use units::{Nanos, Random};

use crate::{
    coordinator::{Change, Coordinator, Terms},
    message::{Assign, Author, Began, Entry, Incarnation, Ready, Record, Report, Running, Up},
    outbox::{decode, encode},
};

const AGENTS: u32 = 1_000;
const CONNECTIONS: u64 = 100_000;
/// Responses of an agent per second; all together have 20,000,000.
const RESPONSES: u64 = 20_000;
/// Number of different ticks, used in turn; together they exceed any cache.
const DIFFERENT: usize = 100;
const SECONDS: u64 = 20;

fn who(nth: u32) -> Incarnation {
    Incarnation { id: format!("a{nth}"), nonce: nth }
}

/// A second at full load: most latencies within a factor of four of 2 ms, one in a hundred ten times as long.
fn tick(random: &mut Random) -> Tick {
    let mut tick = Tick { open: CONNECTIONS, phase: Phase::Hold, ..Tick::default() };
    (tick.counts.sent, tick.counts.answered, tick.status[200]) = (RESPONSES, RESPONSES, RESPONSES);
    tick.counts.due = RESPONSES;
    for _ in 0..RESPONSES {
        let slow = if random.below(100) == 0 { 10 } else { 1 };
        // The product of two random numbers is more often small than large.
        let us = 500 + random.below(80) * random.below(80);
        tick.latency.record(Nanos::from_micros(us * slow));
        tick.first_byte.record(Nanos::from_micros(us * slow * 3 / 4));
        tick.lag.record(Nanos::from_micros(5 + random.below(40)));
    }
    tick
}

/// The minimum that a conductor requires.
struct Roles(Vec<Role>, Nanos);

impl Workers for Roles {
    fn role(&self) -> Vec<Role> {
        self.0.clone()
    }

    fn notice(&self) -> Nanos {
        Nanos::from_millis(400)
    }

    fn period(&self) -> Nanos {
        Nanos::from_secs(1)
    }

    fn now(&self) -> Nanos {
        self.1
    }

    fn order(&mut self, _: run::Order) {}

    fn next(&mut self, _: Nanos) -> run::Update<'_> {
        run::Update::Nothing
    }
}

#[test]
#[ignore = "a measurement, made by bench/coordinator"]
fn a_thousand_agents_cost() {
    let mut random = Random::new(7);
    let ticks: Vec<Tick> = (0..DIFFERENT).map(|_| tick(&mut random)).collect();
    let role = vec![Role::Population(0)];
    let ready = Ready {
        roles: role.clone(),
        wanted: CONNECTIONS,
        threads: vec![8],
        cores: 8,
        io: "uring".to_owned(),
    };
    let part = |nth| Assign {
        slices: vec![Slice { from: nth, width: 1, of: AGENTS }],
        tuples: plan::Slice::WHOLE,
        ..Assign::default()
    };
    let members = (0..AGENTS).map(|nth| (who(nth), ready.clone(), part(nth), None)).collect();
    let began = Began { seed: 7, after: Nanos::ZERO, members };
    let mut coordinator = Coordinator::taking_up("run".to_owned(), 1, began, Terms::default());
    coordinator.lead_from(Nanos::ZERO, Nanos::ZERO);
    let plan = super::plan(AGENTS * CONNECTIONS as u32, 7);
    let mut conductor =
        Conductor::new(&plan, &Roles(coordinator.roles(), Nanos::ZERO), Nanos::ZERO, Nanos::ZERO);
    let (mut cpu, mut bytes, mut lines) = (Nanos::ZERO, 0, 0);
    for second in 0..SECONDS {
        let now = Nanos::from_secs(second + 1);
        // The agents' work is not the coordinator's cost.
        let arrive: Vec<(Vec<u8>, Vec<u8>)> = (0..AGENTS)
            .map(|nth| {
                let tick = Tick {
                    from: Nanos::from_secs(second),
                    until: now,
                    ..ticks[(nth as usize + second as usize) % DIFFERENT].clone()
                };
                let (author, record) = (Author::Agent(who(nth)), Record::Ticks(vec![tick]));
                let report = Report::Running(Running { cores: 8, ..Running::default() });
                let up = Up { who: who(nth), term: 1, echo: Some(now), at: now, report };
                (encode(&Entry { author, sequence: second, record }), serde_json::to_vec(&up).unwrap())
            })
            .collect();
        bytes += arrive.iter().map(|(entry, _)| entry.len()).sum::<usize>();
        let before = host::own_cpu_time();
        for (entry, up) in &arrive {
            coordinator.handle(now, serde_json::from_slice(up).unwrap());
            coordinator.take(now, decode(entry).unwrap());
            while let Some(change) = coordinator.poll_change() {
                if let Change::Tick(worker, tick) = change {
                    conductor.handle_tick(worker, &tick);
                }
            }
        }
        coordinator.poll(now);
        while let Some((_, down)) = coordinator.poll_message() {
            std::hint::black_box(serde_json::to_vec(&down).unwrap());
        }
        conductor.step(now);
        lines += u64::from(conductor.poll_line(now).is_some());
        cpu = cpu + host::own_cpu_time().since(before);
    }
    let (_, record) = conductor.finish();
    let answered = run::judge(&plan, &record).requests.answered;
    assert_eq!((lines, answered), (SECONDS, SECONDS * u64::from(AGENTS) * RESPONSES));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    let of_a_core = cpu.secs_f64() / SECONDS as f64;
    let entry = bytes as u64 / SECONDS / u64::from(AGENTS);
    println!(
        "{{\"agents\":{AGENTS},\"cores\":{of_a_core:.3},\"entry_bytes\":{entry},\"peak_mib\":{}}}",
        peak_kib / 1024
    );
}
