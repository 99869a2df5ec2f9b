//! The minimum duration of a run with a fixed number of messages.

use plan::{Activity, Plan};
use units::{Count, Nanos};

/// Minimum duration of a run for the notice to be printed.
const LONG: Nanos = Nanos::from_secs(10);

/// The notice that such a run will take long because of its message interval: 100 messages on 10 connections take ten intervals.
pub(crate) fn notice(plan: &Plan) -> Option<String> {
    let [only] = &plan.populations[..] else { return None };
    let Activity::Ping { every, .. } = &only.activity else { return None };
    let (all, connections) = (only.requests?, u64::from(only.load.connections()).max(1));
    // The first message of each connection comes after a random part of the interval.
    let rounds = all.div_ceil(connections).saturating_sub(1);
    let least = Nanos(every.0.saturating_mul(rounds));
    let ends_before = plan.hold().is_some_and(|hold| hold <= least);
    if only.load.rate().is_some() || least < LONG || ends_before {
        return None;
    }
    let [messages, on] = [Count(all).of("message"), Count(connections).of("connection")];
    Some(format!(
        "{messages} on {on}, {every} apart, take at least {least}; use a shorter --ping, or more connections"
    ))
}

#[cfg(test)]
mod tests {
    use plan::{Environment, Flags, flag};

    use super::*;

    #[test]
    fn a_long_run_of_a_number_is_announced() {
        let check = |target: &str, flags: &[(&'static flag::Flag, &str)], expected: Option<&str>| {
            let flags =
                flags.iter().fold(Flags::new(target), |flags, (flag, value)| flags.with(flag, *value));
            let resolve = |_: &str| Err("no names here".to_owned());
            let environment = Environment { cores: 1, seed: 1, resolve: &resolve };
            let plan = plan::from_flags(&flags, &environment).expect("it is right");
            assert_eq!(notice(&plan).as_deref(), expected, "{target} {flags:?}");
        };
        let ws = "ws://127.0.0.1:81/";
        let [n, c] = [(&flag::REQUESTS, "100"), (&flag::CONNECTIONS, "10")];
        let said = "100 messages on 10 connections, 30s apart, take at least 4m30s; use a shorter --ping, or more connections";
        check(ws, &[n, c], Some(said));
        check(ws, &[n, c, (&flag::PING, "1s")], None);
        check(ws, &[n, (&flag::CONNECTIONS, "100")], None);
        check(ws, &[c], None);
        check("http://127.0.0.1:81/", &[n, c], None);
    }
}
