use super::*;
use plan::Sources;
use record::fixture::scenario;
use samples::{
    Took,
    breakdown::{Buckets, Outcome},
};
use units::Random;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// A request of the model.
#[derive(Clone, Copy)]
struct One {
    connection: u64,
    destination: u64,
    number: u64,
    /// Number of its tick.
    tick: u64,
    step: u64,
    size: u64,
}

/// How a request ends: after this time, or badly.
type End = Result<Nanos, Bad>;

/// Decides how each request of a run ends.
type Ends = Box<dyn FnMut(One, &mut Random) -> End>;

const QUICK: End = Ok(Nanos::from_millis(2));
const SLOW: End = Ok(Nanos::from_millis(301));

/// A run of 10 s in ticks of 200 ms, with connections to three destinations.
struct Model {
    connections: u64,
    /// Requests of each connection per tick.
    each: u64,
    /// Time to the first byte, as a percentage of the response time.
    first_byte: u64,
    /// Number of octaves of response sizes.
    sizes: u64,
    /// Requests after which a connection is replaced by another.
    calls: u64,
    random: Random,
}

impl Model {
    fn new(connections: u64, seed: u64) -> Model {
        Model { connections, each: 4, first_byte: 100, sizes: 8, calls: u64::MAX, random: Random::new(seed) }
    }

    fn run(&mut self, mut ends: impl FnMut(One, &mut Random) -> End) -> (Shares, Tick) {
        let (mut shares, mut totals) = (Shares::default(), Tick::default());
        for nth in 0..50 {
            let mut ended = Outcomes::default();
            for connection in 0..self.connections {
                for own in 0..self.each {
                    let sent = nth * self.each + own;
                    let number =
                        if self.calls == u64::MAX { sent } else { (sent + 5 * connection) % self.calls } + 1;
                    let step = own % 2;
                    let size = 64 << self.random.below(self.sizes);
                    let one = One { connection, destination: connection % 3, number, tick: nth, step, size };
                    let end = ends(one, &mut self.random);
                    let outcome = self.count(&mut shares, &mut totals, one, end);
                    ended.count(outcome);
                }
            }
            shares.bins.add(MS(200 * nth + 100), &ended);
        }
        (shares, totals)
    }

    fn count(&self, shares: &mut Shares, totals: &mut Tick, one: One, end: End) -> Outcome {
        let mut buckets = Buckets::NONE;
        let mut set = |dimension, bucket: u64| buckets.set(dimension, bucket as usize);
        if one.connection < 64 {
            set(Dimension::Connection, one.connection);
        }
        set(Dimension::Group, one.connection.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58);
        set(Dimension::Destination, one.destination);
        set(Dimension::Number, u64::from(one.number.next_power_of_two().ilog2()));
        set(Dimension::Step, one.step);
        set(Dimension::Open, one.tick % 8);
        set(Dimension::Source, 2 + one.connection % 5);
        let outcome = match end {
            Ok(took) => {
                let first = Nanos(took.0 * self.first_byte / 100);
                set(Dimension::FirstByte, breakdown::cell(first) as u64);
                set(Dimension::Size, u64::from((one.size / 64).ilog2()));
                totals.latency.record_seen(Took { time: took, stalled: Nanos::ZERO });
                totals.first_byte.record(first);
                Outcome::Took(took)
            }
            Err(Bad::Missing) => Outcome::Missing,
            Err(_) => Outcome::Wrong,
        };
        shares.all.count(buckets, outcome);
        outcome
    }
}

fn plan() -> Plan {
    let step = |path| format!("[[population.step]]\nrequest = \"GET {path}\"\n");
    let destinations = "[[population]]\nname = \"users\"\nconnections = 64\n";
    let mut plan = scenario(&format!("duration = \"10s\"\n{destinations}{}{}", step("/a"), step("/b")));
    let to = |nth: u8| std::net::SocketAddr::from(([127, 0, 0, nth], 80));
    plan.populations[0].target.destinations = vec![to(1), to(2), to(3)];
    plan
}

fn found((shares, totals): &(Shares, Tick)) -> Vec<InCommon> {
    in_common(&plan(), shares, totals, Nanos::ZERO)
}

/// `expected`: for each finding, what is bad, then its dimension and sentence.
fn check(connections: u64, ends: impl FnMut(One, &mut Random) -> End, expected: &[(&str, &str)]) {
    let run = Model::new(connections, 7).run(ends);
    let all = found(&run);
    let said: Vec<(&str, &str)> =
        all.iter().map(|one| (one.dimension.as_str(), one.sentence.as_str())).collect();
    assert_eq!(said, expected);
}

#[test]
fn what_they_have_in_common_is_said() {
    let third = |one: One, _: &mut Random| if one.destination == 2 { SLOW } else { QUICK };
    check(64, third, &[("destination", "all of the 33 % that took 301 ms went to 127.0.0.3:80")]);
    let half_of_a_third = |one: One, random: &mut Random| {
        if one.destination == 2 && random.between(0, 1) == 0 { Err(Bad::Wrong) } else { QUICK }
    };
    check(
        64,
        half_of_a_third,
        &[("destination", "all of the 16 % that failed went to 127.0.0.3:80, as did 20 % of the others")],
    );
    let eighth = |one: One, _: &mut Random| if one.connection % 8 == 5 { SLOW } else { QUICK };
    check(
        64,
        eighth,
        &[("connection", "all of the 12 % that took 301 ms were on the same 8 of 64 connections each time")],
    );
    check(
        1_000,
        eighth,
        &[(
            "connection",
            "all of the 12 % that took 301 ms were on the same 8 of 64 sampled connections each time",
        )],
    );
    let pause =
        |one: One, _: &mut Random| if one.tick % 10 == 7 && one.number % 4 == 1 { SLOW } else { QUICK };
    check(
        40,
        pause,
        &[(
            "moment",
            "all of the 2.5 % that took 301 ms came at 5 moments, one each 2.0 s, on every connection at once",
        )],
    );
    let once =
        |one: One, _: &mut Random| if (21..23).contains(&one.tick) { Err(Bad::Missing) } else { QUICK };
    check(
        40,
        once,
        &[(
            "moment",
            "all of the 4.0 % that had no response came between 4.2 s and 4.6 s, on every connection at once",
        )],
    );
    let step = |one: One, _: &mut Random| if one.step == 1 { SLOW } else { QUICK };
    check(40, step, &[("step", "all of the 50 % that took 301 ms were step get-b")]);
    let large = |one: One, _: &mut Random| if one.size > 2_048 { SLOW } else { QUICK };
    check(40, large, &[("size", "all of the 25 % that took 301 ms had a response of more than 2.0 KiB")]);
}

#[test]
fn connections_that_are_open_and_local_addresses_are_named() {
    let full = |one: One, _: &mut Random| if one.tick % 8 > 5 { SLOW } else { QUICK };
    let open = "all of the 24 % that took 301 ms ended with more than 6/8 of the connections open";
    check(40, full, &[("open", open)]);
    // A source address belongs to certain connections: only if there are enough of them can it be distinguished from chance.
    let one_of_five =
        |one: One, _: &mut Random| if one.connection % 5 == 3 { Err(Bad::Wrong) } else { QUICK };
    let source = "all of the 20 % that failed came from local addresses whose last byte is 5 modulo 16";
    check(200, one_of_five, &[("source", source)]);
    let listed = Plan { sources: Sources::parse("127.0.0.2,127.0.1.4/30").unwrap(), ..plan() };
    let (shares, totals) = Model::new(200, 7).run(one_of_five);
    let said = in_common(&listed, &shares, &totals, Nanos::ZERO);
    assert_eq!(said[0].sentence, "all of the 20 % that failed came from 127.0.1.5");
    let rows: Vec<&str> = said[0].rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(rows[..3], ["127.0.1.5", "127.0.0.2", "local addresses whose last byte is 3 modulo 16"]);
}

#[test]
fn of_two_dimensions_that_are_equally_clear_the_first_is_said() {
    // Each destination is dialled from a different local address, so both explain the same.
    let third = |one: One, _: &mut Random| if one.destination == 2 { SLOW } else { QUICK };
    let (mut shares, totals) = Model::new(60, 7).run(third);
    let said = |shares: &Shares| in_common(&plan(), shares, &totals, Nanos::ZERO)[0].dimension.clone();
    assert_eq!(said(&shares), "destination");
    shares.all = only(&shares.all, &[Dimension::Connection, Dimension::Group]);
    assert_eq!(said(&shares), "connection");
}

/// The breakdown with only these dimensions.
fn only(all: &Breakdown, dimensions: &[Dimension]) -> Breakdown {
    let mut written = serde_json::to_value(all).unwrap();
    written.as_object_mut().unwrap().retain(|name, _| dimensions.iter().any(|one| one.name() == name));
    serde_json::from_value(written).unwrap()
}

#[test]
fn slow_ones_need_not_take_the_same_time() {
    // Slow responses take 130 ms to 900 ms, and a few others fall in between.
    let spread = |one: One, random: &mut Random| match one.destination {
        2 => Ok(MS(random.between(130, 900))),
        _ if random.below(200) == 0 => Ok(MS(random.between(5, 60))),
        _ => QUICK,
    };
    let sentence = "all of the 33 % that took 135 ms to 900 ms went to 127.0.0.3:80";
    check(64, spread, &[("destination", sentence)]);
    // If slow responses occur in every octave, they cannot be distinguished.
    let even =
        |one: One, random: &mut Random| Ok(MS(if one.destination == 2 { 2 << random.below(9) } else { 2 }));
    check(64, even, &[]);
}

#[test]
fn first_requests_are_those_of_connections_and_not_of_the_run() {
    // Each connection sends 32 requests and is then replaced; connections begin one after the other.
    let mut model = Model { calls: 32, ..Model::new(64, 7) };
    let run = model.run(|one, _| if one.number == 1 { SLOW } else { QUICK });
    let said: Vec<String> = found(&run).into_iter().map(|one| one.sentence).collect();
    assert_eq!(said, ["all of the 3.1 % that took 301 ms were the first request on their connection"]);
}

#[test]
fn the_part_that_is_late_is_said() {
    // The first byte comes after 2 % of 301 ms: 6 ms.
    let late = |first_byte: u64| {
        let mut model = Model { first_byte, ..Model::new(64, 7) };
        let run = model.run(|_, random| if random.below(10) == 0 { SLOW } else { QUICK });
        found(&run).into_iter().map(|one| (one.dimension, one.sentence)).collect::<Vec<_>>()
    };
    let part =
        "all of the 10 % that took 301 ms had their first byte in time, within 8.4 ms, and the rest late";
    assert_eq!(late(2), [("part".to_owned(), part.to_owned())]);
    assert_eq!(late(100), []);
}

#[test]
fn of_responses_that_are_all_alike_the_rest_may_be_late() {
    let all = |took: u64, first_byte: u64, sizes: u64| {
        let mut model = Model { first_byte, sizes, ..Model::new(64, 7) };
        found(&model.run(|_, _| Ok(MS(took))))
            .into_iter()
            .map(|one| (one.share, one.sentence))
            .collect::<Vec<_>>()
    };
    let delayed = "the first byte of all responses came after 440 µs, the rest 44 ms later, as with Nagle's algorithm and delayed ACK";
    assert_eq!(all(44, 1, 8), [(1.0, delayed.to_owned())]);
    let other = "the first byte of all responses came after 1.0 ms, the rest 99 ms later";
    assert_eq!(all(100, 1, 8), [(1.0, other.to_owned())]);
    assert_eq!(all(44, 1, 14), [], "large responses take their time");
    assert_eq!(all(44, 50, 8), [], "half of the time each");
    assert_eq!(all(2, 1, 8), [], "nothing is slow");
}

/// Number of random draws. At most `MOST` of them may show a significant difference in a dimension that is not the cause: the stated error
/// rate.
const DRAWS: u64 = 1_000;
const MOST: usize = 1;

fn draw(what: &str, ends: impl Fn(u64, &mut Random) -> Ends, allowed: &[&str]) {
    let mut by_chance = Vec::new();
    for seed in 0..DRAWS {
        let mut random = Random::new(seed);
        let connections = [12, 24, 40, 100][random.below(4) as usize];
        let own = ends(connections, &mut random);
        let (shares, totals) = Model { each: 2, ..Model::new(connections, seed) }.run(own);
        let differ = significant(&bad_shares(&shares.all.all(), &totals), &shares);
        let others = differ.into_iter().filter(|one| !allowed.contains(&one.by.name()));
        by_chance.extend(others.map(|one| (seed, one.by, one.p)));
    }
    assert!(by_chance.len() <= MOST, "{what}: {by_chance:#?}");
}

/// A response that is slow, wrong or missing.
fn bad(random: &mut Random) -> End {
    [SLOW, Err(Bad::Wrong), Err(Bad::Missing)][random.below(3) as usize]
}

#[test]
fn nothing_is_said_of_what_is_bad_at_random() {
    let at_random = |_: u64, random: &mut Random| -> Ends {
        let (bad, percent) = (bad(random), 1 + random.below(40));
        Box::new(move |_, random| if random.below(100) < percent { bad } else { QUICK })
    };
    draw("at random", at_random, &[]);
}

#[test]
fn of_a_few_bad_connections_only_these_are_said() {
    let connections = |all: u64, random: &mut Random| -> Ends {
        let (bad, share) = (bad(random), 50 + random.below(51));
        let own: Vec<u64> = (0..1 + random.below(all / 3)).map(|_| random.below(all)).collect();
        Box::new(
            move |one, random| {
                if own.contains(&one.connection) && random.below(100) < share { bad } else { QUICK }
            },
        )
    };
    draw("connections", connections, &["connection"]);
}

#[test]
fn of_bad_moments_only_these_are_said() {
    let moments = |_: u64, random: &mut Random| -> Ends {
        let (bad, share) = (bad(random), 20 + random.below(81));
        let own: Vec<u64> = (0..1 + random.below(8)).map(|_| random.below(50)).collect();
        Box::new(
            move |one, random| if own.contains(&one.tick) && random.below(100) < share { bad } else { QUICK },
        )
    };
    draw("moments", moments, &["moment"]);
}

#[test]
fn of_connections_that_are_bad_for_a_while_only_that_is_said() {
    let whiles = |all: u64, random: &mut Random| -> Ends {
        let bad = bad(random);
        let own: Vec<(u64, u64)> =
            (0..1 + random.below(all / 2)).map(|_| (random.below(all), random.below(50))).collect();
        let length = 1 + random.below(15);
        let is_in = move |one: One, own: &(u64, u64)| {
            own.0 == one.connection && (own.1..own.1 + length).contains(&one.tick)
        };
        Box::new(move |one, _| if own.iter().any(|own| is_in(one, own)) { bad } else { QUICK })
    };
    draw("whiles", whiles, &["connection", "moment"]);
}
