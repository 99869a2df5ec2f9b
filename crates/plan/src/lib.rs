//! The plan of a run: parses flags or a scenario file, reports all mistakes at once, and resolves defaults to a [`Plan`]. Splits the plan
//! into [`Part`]s that add up to it, and computes the 4-tuples to dial from. Pure: no clock, socket or file; facts about the machine are
//! arguments.

mod addresses;
mod alone;
mod body;
mod capture;
mod condition;
mod connect_to;
mod csv;
mod env;
mod expect;
pub mod flag;
mod flags;
mod handshakes;
mod header;
mod key;
mod load;
mod login;
mod nearest;
mod observe;
mod one_user;
mod outputs;
mod part;
mod phases;
mod plan;
mod population;
mod ports;
mod print;
mod probe;
mod pushes;
mod quota;
mod request;
mod routes;
mod rows;
mod scaled;
pub mod scenario;
mod scheme;
mod secrets;
mod share;
mod slice;
mod sources;
mod stage;
mod step;
mod target;
mod text;
mod think;
mod threshold;
mod tls;
mod tolerance;
mod value;

pub use addresses::{SourcePool, Tuple, Tuples};
pub use alone::Alone;
pub use body::{Body, Call, Content, Grpc, LONGEST_BODY};
pub use capture::{Capture, Captured, From, LONGEST_JAR, LONGEST_VALUE, compile};
pub use condition::{Bound, Condition, Repeat};
pub use csv::{Column, Csv, Source, TableHead};
pub use expect::{Expectation, ExpectedLength};
pub use flag::Flag;
pub use flags::{Environment, Flags, Mistake, load_args};
pub use handshakes::{Handshakes, Http2Requests};
pub use load::{Load, LoadKeys};
pub use nearest::nearest;
pub use observe::Observe;
pub use one_user::{LONGEST_PAUSE, MOST_ROUNDS};
pub use outputs::{Dashboard, Format, Influx, Live, Outputs, PostUrl, Tool, tag, tags};
pub use part::{Part, Role, TupleShare, split};
pub use plan::{IoChoice, Plan};
pub use population::{Activity, Population, Reconnect, Then};
pub use ports::{PortFacts, Ports, capacity, usable_ports};
pub use probe::{Probe, ProbeKind};
pub use pushes::{Heartbeat, Matches, Pushes, Receivers, Rule, Sought};
pub use quota::Quota;
pub use request::Request;
pub use routes::{Dials, Route};
pub use rows::Rows;
pub use scenario::from_flags;
pub use scheme::Scheme;
pub use secrets::{args_without_secrets, is_public, without_user};
pub use share::Share;
pub use slice::{Slice, Turn};
pub use sources::{Network, Sources};
pub use stage::{Hold, Ramp, Stage};
pub use step::{Act, Step};
pub use target::{Target, addresses_meant};
pub use text::{Cookies, Derived, MAX_NUMBERS, Segment, Text, Values, Variable, forms};
pub use think::Think;
pub use threshold::{Comparison, Threshold};
pub use tls::{Pem, Tls, TlsVersions};
pub use tolerance::Tolerance;
pub use value::{DEFAULT_MAX_LAG, a_rate, rate_per_s, threads};

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    /// A plan for http://127.0.0.1:1/ with these flags and values.
    pub(crate) fn plan(pairs: &[(&str, &str)]) -> Plan {
        let named = |name: &str| Flag::named(name).unwrap_or_else(|| panic!("no flag {name}"));
        let target = Flags::new("http://127.0.0.1:1/");
        let flags = pairs.iter().fold(target, |flags, (name, value)| flags.with(named(name), value));
        let resolve = |_: &str| unreachable!("the target is an address");
        from_flags(&flags, &Environment { cores: 2, seed: 1, resolve: &resolve }).unwrap()
    }

    #[test]
    fn places_are_for_all_that_may_be_there_at_once() {
        let held = plan(&[("-c", "100k")]);
        assert_eq!((held.places(), held.pairs_needed()), (100_000, 100_000));
        let probed = plan(&[("-c", "100"), ("--probe", "10/s"), ("--timeout", "3s")]);
        assert_eq!((probed.populations[0].most_open(), probed.places()), (100, 100 + 2 + 60));
        assert_eq!(plan(&[("-c", "1"), ("--probe", "0.001/s")]).places(), 1 + 3);
        assert_eq!(plan(&[("-c", "1"), ("--probe", "10k/s")]).places(), 1 + 2 + 1_024);

        // A dial and two responses of one second each, and half a second between the responses.
        let visits = [("--arrive", "100/s"), ("--total", "1m"), ("--calls", "2"), ("--timeout", "1s")];
        let visits = plan(&[&visits[..], &[("--think", "500ms")]].concat());
        assert_eq!(visits.places(), 351);
        assert_eq!(visits.pairs_needed(), 6_000 + 351);
        // A target that takes 100 ms for each of these: 300 ms, and the pause.
        let usual = |plan: &Plan| plan.usually_open(Nanos::from_millis(100));
        assert_eq!(usual(&visits), 81);
        assert_eq!((usual(&held), usual(&probed)), (100_000, 100 + 2 + 3));
        assert_eq!(usual(&plan(&[("-c", "1"), ("--probe", "10k/s")])), 1 + 2 + 1_024);
        let few = plan(&[("--arrive", "100/s"), ("--total", "7")]);
        assert_eq!(usual(&few), 7);
        assert_eq!((few.places(), few.pairs_needed()), (7, 7));
        // As many as arrive in the time.
        let timed = plan(&[("--arrive", "100/s"), ("-d", "5s")]);
        assert!(matches!(timed.populations[0].load, crate::Load::Arrivals { total: None, .. }));
    }
}
