//! Memory per connection of a population, in addition to what every connection takes. The preflight compares it with the machine.

use plan::{Act, Activity, Expectation, Population};
use units::Nanos;

use crate::{captures, pushes};

/// Octets assumed for a captured value, and for the cookies of a connection, whose lengths are unknown before the run: a session
/// identifier has 20 to 100, a JSON Web Token 200 to 1,000.
const VALUE: u64 = 256;
/// Tables indexed by connection grow by doubling.
const GROWTH: u64 = 2;

/// Octets per connection, besides its record and its layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// For captures: the table entry, values and cookies.
    pub captures: u64,
    /// For unsolicited messages of the server.
    pub messages: u64,
    /// For heartbeats, and for keep-alive PINGs.
    pub beats: u64,
}

impl Memory {
    /// The memory of a connection of this population.
    pub fn of(population: &Population) -> Memory {
        let variables = population.variables.len() as u64;
        let values = variables * (VALUE + 2) + if population.cookies { VALUE } else { 0 };
        let captures = if has_table(population) { captures::PLACE as u64 + values } else { 0 };
        let (messages, beats) = (GROWTH * of_messages(population), GROWTH * of_beats(population));
        Memory { captures, messages, beats }
    }
}

/// Whether responses are watched, so that each connection has a table entry.
fn has_table(population: &Population) -> bool {
    let takes = |expected: &Expectation| {
        !(expected.json.is_empty() && expected.absent.is_empty() && expected.captures.is_empty())
    };
    let watched = |act: &Act| match act {
        Act::Request { request, .. } => {
            let decodes = request.asks_for_codings() && request.expect.body.is_some();
            request.redirects > 0 || decodes || takes(&request.expect)
        }
        Act::Send { expected: Some(expected), .. } | Act::Expect { expected, .. } => takes(expected),
        _ => false,
    };
    population.cookies || !population.variables.is_empty() || acts(population).any(watched)
}

fn each(is_kept: bool, size: usize) -> u64 {
    if is_kept { size as u64 } else { 0 }
}

fn of_messages(population: &Population) -> u64 {
    let pushes = &population.pushes;
    let is_awaited = acts(population).any(|act| matches!(act, Act::Expect { .. }));
    let heard = pushes.time.is_some() || pushes.number.is_some() || !pushes.rules.is_empty() || is_awaited;
    let of_one = each(heard, pushes::PLACE) + each(pushes.number.is_some(), size_of::<pushes::Sequence>());
    of_one * u64::from(population.streams.unwrap_or(1))
}

fn of_beats(population: &Population) -> u64 {
    // Time of the last input, time of the PING, and when the client itself is due.
    let keeps_alive = each(population.keep_alive.is_some(), 3 * size_of::<Nanos>());
    keeps_alive + each(population.pushes.heartbeat.is_some(), size_of::<Nanos>())
}

/// What the steps of a population do.
pub(crate) fn acts(population: &Population) -> impl Iterator<Item = &Act> {
    let steps = match &population.activity {
        Activity::Steps { steps, .. } => &steps[..],
        Activity::Idle | Activity::Ping { .. } => &[],
    };
    steps.iter().map(|step| &step.act)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;
    use plan::{Environment, Flags, Role, scenario};

    /// `keys`: keys of the only population, and its tables.
    fn check(keys: &str, captures: u64, messages: u64) {
        check_all(keys, Memory { captures, messages, beats: 0 });
    }

    fn check_all(keys: &str, expected: Memory) {
        let text = format!("duration = \"1s\"\n[[population]]\nname = \"a\"\nconnections = 5\n{keys}");
        let resolve = |_: &str| Err("no names here".to_owned());
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let open = |_: &str| Err("no files here".to_owned());
        let plan = scenario::read("load.toml", &text, &Flags::default(), &around, &open).expect(keys);
        let population = &plan.populations[0];
        assert_eq!(Memory::of(population), expected, "{keys}");
        // A shard has a table exactly if one is counted.
        let has_table = Job::new(&plan, Role::Population(0)).captures(5).is_some();
        assert_eq!(has_table, expected.captures > 0, "{keys}");
    }

    #[test]
    fn what_captures_takes_a_table_its_values_and_its_cookies() {
        let http = |keys: &str| {
            format!(
                "target = \"http://127.0.0.1:1/\"\n{keys}\n[[population.step]]\nrequest = \"POST /login\"\n"
            )
        };
        check(&http(""), 0, 0);
        check(&http("cookies = true"), 56 + 256, 0);
        check(&(http("") + "expect = { json = { \"/ok\" = true } }\n"), 56, 0);
        check(&(http("") + "redirects = 2\n"), 56, 0);
        let two = "capture = { a = { json = \"/a\" }, b = { header = \"B\" } }\n";
        check(&(http("cookies = true") + two), 56 + 2 * (2 + 256) + 256, 0);
    }

    #[test]
    fn messages_of_the_server_take_memory_for_each_websocket() {
        let ws = |keys: &str| format!("target = \"ws://127.0.0.1:1/\"\n{keys}\n");
        check(&ws(""), 0, 0);
        check(&ws("expect = { time = \"json:/ts\" }"), 0, 2 * 16);
        check(&ws("expect = { number = \"json:/n\" }"), 0, 2 * (16 + 40));
        check(&ws("http2 = true\nstreams = 8\nexpect = { number = \"json:/n\" }"), 0, 2 * 8 * (16 + 40));
        check(&ws("[[population.step]]\nexpect = { body = \"x\" }\n"), 0, 2 * 16);
        check(&ws("[[population.on]]\nis = \"2\"\nsend = \"3\"\n"), 0, 2 * 16);
    }

    #[test]
    fn heartbeats_and_pings_take_memory_for_each_connection() {
        let beats = |keys: &str, beats| check_all(keys, Memory { beats, ..Memory::default() });
        beats("target = \"ws://127.0.0.1:1/\"\n[[population.on]]\nevery = \"25s\"\nsend = \"2\"\n", 2 * 8);
        let http2 = "target = \"http://127.0.0.1:1/\"\nhttp2 = true\nthink = \"9s\"\n";
        beats(http2, 0);
        beats(&format!("{http2}ping = \"30s\"\n"), 2 * 3 * 8);
    }
}
