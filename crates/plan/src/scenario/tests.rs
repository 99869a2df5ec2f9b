//! Whole files: valid ones and their plans, and invalid ones and their messages.

mod files;
mod graphql;
mod grpc;
mod headers;
mod logins;
mod missteps;
mod mistakes;
mod models;
mod outgoing;
mod overrides;
mod programs;
mod repeats;
mod round;
mod rounds;
mod schemas;
mod tables;
mod written;

use super::*;
use crate::{
    Activity, Environment, Flags, Hold, IoChoice, Load, Mistake, Plan, Ramp, Reconnect, Share, Source,
    Sources, Stage, Values,
};
use units::{Nanos, Random, Rate};

/// The machine of these tests: two cores, the seed 77, one name, and one file of values.
fn scenario(text: &str) -> Result<Plan, Vec<Mistake>> {
    let resolve = |name: &str| match name {
        "localhost" => Ok(vec!["127.0.0.1".parse().unwrap()]),
        _ => Err("no such host".to_owned()),
    };
    let open = |file: &str| match file {
        "users.csv" => Ok(Source::Text("id,mail,word\n7,a@x,open sesame\n12,b@x,swordfish\n".to_owned())),
        "empty.csv" => Ok(Source::Text("id\n".to_owned())),
        _ => Err("no such file".to_owned()),
    };
    let around = Environment { cores: 2, seed: 77, resolve: &resolve };
    read("load.toml", text, &Flags::default(), &around, &open)
}

/// The scenario of a file without mistakes.
fn right(text: &str) -> Plan {
    scenario(text).unwrap_or_else(|mistakes| panic!("{}\n{text}", listed(&mistakes).join("\n")))
}

fn listed(mistakes: &[Mistake]) -> Vec<String> {
    mistakes.iter().map(Mistake::to_string).collect()
}

/// A file with something of everything.
const EVERYTHING: &str = r#"
target = "http://127.0.0.{1..2}:8000/?length={rand 1 4096}"
seed = 42
threads = 3
io = "epoll"
sources = "127.1.0.0/16"
timeout = "3s"
max-lag = "50ms"
thresholds = ["held >= 99.9%", "latency.p99 < 200ms", "users.login.latency.p99 < 50ms"]

[[stage]]
name = "idle first"
of = ["idle"]
ramp = "20k/s"

[[stage]]
of = ["users", "guests", "open", "chat", "raw"]
ramp = "10s"
for = "5m"

[[stage]]
to = "12.5%"
for = "forever"

[[population]]
name = "idle"
target = "ws://localhost:9000/ws/echo?id={seq}"
connections = "500k"
ping = "30s"
message = "hello {rand 1 9}"
reconnect = "never"

[[population]]
name = "users"
connections = 2_000
think = "1s..5s"
loop = "look"

[[population.step]]
name = "login"
request = "POST /login?u={seq}"
headers = { Content-Type = "application/json", X-User = "{csv users.id}" }
body = '{"user": {csv users.id}, "pass": "{csv users.word}", "x": [{choice 1 2}]}'
expect = { status = 302, headers = { Location = "/home" }, body = "welcome", length = "1k" }
think = 0

[[population.step]]
name = "look"
request = "GET"
expect = "status=200,length=$1"

[[population.step]]
request = "/home"

[[population.step]]
request = "/home"

[[population]]
name = "guests"
target = "http://localhost"
arrive = "6000/s"
total = "40k"
calls = 10
timeout = "1 sec"

[[population]]
name = "open"
rate = "20k/s"
connections = 1e3
expect = { length = "$1" }

[[population]]
name = "chat"
target = "ws://127.0.0.1:9000/chat"
loop = false
[[population.step]]
send = "join {seq} {csv users.mail}"
expect = { body = "joined" }
[[population.step]]
expect = { length = 5 }
[[population.step]]
wait = "1s..2s"
[[population.step]]
close = true

[[population]]
name = "raw"
target = "tcp://127.0.0.1:9009"

[probe]
rate = "10/s"

[csv.users]
file = "users.csv"
"#;

#[test]
fn everything_is_read() {
    let scenario = right(EVERYTHING);
    assert_eq!((scenario.seed, scenario.threads, scenario.io), (42, 3, IoChoice::Epoll));
    assert_eq!(scenario.max_lag, Nanos::from_millis(50));
    assert_eq!(scenario.sources, Sources::parse("127.1.0.0/16").unwrap());
    let names: Vec<&str> = scenario.populations.iter().map(|population| population.name.as_str()).collect();
    assert_eq!(names, ["idle", "users", "guests", "open", "chat", "raw"]);
    let written: Vec<_> = scenario.thresholds.iter().map(|t| t.text.as_str()).collect();
    assert_eq!(written, ["held >= 99.9%", "latency.p99 < 200ms", "users.login.latency.p99 < 50ms"]);
    let [idle, users, guests, open, chat, raw] = &scenario.populations[..] else { panic!("six") };
    assert_eq!(idle.load, Load::Held { connections: 500_000 });
    assert_eq!((idle.timeout, idle.reconnect), (Nanos::from_secs(3), Reconnect::Never));
    assert_eq!(
        (idle.target.host.as_str(), idle.target.path.to_string().as_str()),
        ("localhost", "/ws/echo?id={seq}")
    );
    assert_eq!(users.load, Load::Held { connections: 2_000 });
    assert_eq!((users.target.destinations.len(), users.reconnect), (2, Reconnect::Planned));
    assert_eq!(guests.load, Load::Arrivals { rate: Rate::per_s(6_000), total: Some(40_000) });
    assert_eq!((guests.calls, guests.timeout, users.calls), (Some(10), Nanos::from_secs(1), None));
    assert_eq!(open.load, Load::Rate { connections: 1_000, rate: Rate::per_s(20_000) });
    assert_eq!((chat.load, &raw.activity), (Load::Held { connections: 50 }, &Activity::Idle));
    let probe = scenario.probe.unwrap();
    assert_eq!(
        (probe.rate, probe.target().path.to_string().as_str()),
        (Rate::per_s(10), "/?length={rand 1 4096}")
    );
    assert_eq!(scenario.tables.len(), 1);
}
