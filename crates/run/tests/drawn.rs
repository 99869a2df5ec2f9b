//! The client's accounts compared with those of a server. Its behaviour, the load, the network and the time to accept are drawn from a
//! seed. A failure prints its seed: `SEED=17 cargo test -p run --test drawn over_http1` runs only that one, `SEEDS=9000` that many.

use stage::drawn::{Family, HARD, check, play};

/// Seeds per protocol, 2,000 in all: two thirds are ordinary ones, the others begin at [`HARD`]. `cargo xtask test sim` uses [`MANY`].
const SEEDS: u64 = 333;
const MANY: u64 = 17_000;

/// Checks `seeds` seeds, or as many as `SEEDS` says, or only `SEED`.
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

/// Some of these seeds use TLS, whose handshakes use the randomness of this machine.
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
