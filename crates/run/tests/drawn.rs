//! The client's books against those of a server whose behaviour is drawn from a seed, with the load, the network and the time it takes
//! to accept. A failure prints its seed: `SEED=17 cargo test -p run --test drawn over_http1` plays only that one, `SEEDS=9000` as many.

use stage::drawn::{Family, HARD, check, play};

/// Of each protocol, 2,000 together: two thirds are ordinary, and the others are from [`HARD`] on. `cargo xtask test sim` plays [`MANY`].
const SEEDS: u64 = 333;
const MANY: u64 = 17_000;

/// The seeds below `seeds`, or below the number that is wanted, or only the one that is.
fn check_all(family: Family, seeds: u64) {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    match number("SEED") {
        Some(seed) => check(family, seed),
        None => {
            let seeds = number("SEEDS").unwrap_or(seeds);
            let hard = HARD..HARD + seeds / 3;
            (0..seeds - seeds / 3).chain(hard).for_each(|seed| check(family, seed));
        }
    }
}

const FAMILIES: [Family; 6] =
    [Family::Http1, Family::WebSocket, Family::Tcp, Family::Http2, Family::Grpc, Family::Tunnels];

/// Of these seeds some are over TLS, whose handshakes draw from the randomness of this machine.
#[test]
fn a_seed_gives_the_same_run_each_time() {
    let seeds = || (0..24).chain(HARD..HARD + 8);
    for (family, seed) in FAMILIES.into_iter().flat_map(|family| seeds().map(move |seed| (family, seed))) {
        assert_eq!(play(family, seed), play(family, seed), "{family:?} {seed}");
    }
}

#[test]
fn over_http1() {
    check_all(Family::Http1, SEEDS);
}

#[test]
fn over_websocket() {
    check_all(Family::WebSocket, SEEDS);
}

#[test]
fn over_tcp() {
    check_all(Family::Tcp, SEEDS);
}

#[test]
fn over_http2() {
    check_all(Family::Http2, SEEDS);
}

#[test]
fn over_grpc() {
    check_all(Family::Grpc, SEEDS);
}

#[test]
fn over_websocket_over_http2() {
    check_all(Family::Tunnels, SEEDS);
}

#[test]
#[ignore = "minutes in a release build: cargo xtask test sim"]
fn from_a_hundred_thousand_seeds() {
    std::thread::scope(|scope| {
        for family in FAMILIES {
            scope.spawn(move || check_all(family, MANY));
        }
    });
}
