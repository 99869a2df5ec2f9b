//! When requests are sent: after the think time, never before it, and at once without one.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use crate::{
    scripted::{Scripted, ok},
    summary::run,
};

/// A server that logs, for each connection, the time from a response to the next request.
fn watching() -> Scripted {
    Scripted::start(|peer| {
        while peer.request().is_some() {
            // Before the response is sent: so the time is a little longer than the client's, never shorter.
            let answered = Instant::now();
            peer.send(&ok("x"));
            if peer.wait_for_more() {
                peer.log.times.lock().unwrap().push(answered.elapsed());
            }
        }
    })
}

#[test]
fn think_time_is_kept() {
    let server = watching();
    let (ended, s) = run(&server.url("/"), &["-c", "20", "-d", "2s", "--think", "200ms"]);
    let gaps = server.log.times.lock().unwrap().clone();
    let least = gaps.iter().min().expect("second requests");
    assert!(*least >= Duration::from_millis(200), "never early: {least:?}");
    let whole_s = s.number("ramp_s") + s.number("duration_s");
    let sent = s.count("requests.sent");
    // Each: one at once, then one per 200 ms at most; and no slower than a response's time allows.
    let most = 20 * (1 + ((whole_s + 0.2) / 0.2) as u64);
    let each_s = 0.2 + s.number("latency_us.mean") / 1e6 + s.number("lag_us.mean") / 1e6 + 0.005;
    let fewest = (20.0 * s.number("duration_s") / each_s * 0.9) as u64;
    assert!((fewest..=most).contains(&sent), "{fewest} to {most} expected, sent {sent}: {}", ended.stderr);
    assert_eq!(sent, server.log.requests());
    ended.assert_status(0);
}

#[test]
fn think_time_is_drawn_from_its_range() {
    let server = watching();
    let (_, s) =
        run(&server.url("/"), &["-c", "40", "-d", "1500ms", "--think", "50ms..250ms", "--seed", "5"]);
    let gaps = server.log.times.lock().unwrap().clone();
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    let (least, mean) =
        (ms(gaps.iter().min().unwrap()), gaps.iter().map(ms).sum::<f64>() / gaps.len() as f64);
    assert!(gaps.len() > 100 && least >= 50.0, "{} gaps, the least {least} ms", gaps.len());
    // Uniform: a mean of 150 ms, and each fifth has its share of a fifth; the run's end cuts long ones off.
    // What a busy machine adds is counted: how late throng was, and how long a response was under way.
    let late = (s.number("lag_us.mean") + s.number("latency_us.mean")) / 1e3;
    assert!((130.0..170.0 + 2.0 * late).contains(&mean), "{mean} ms, {late} ms late");
    let within = |from: f64, to: f64| gaps.iter().filter(|gap| (from..to).contains(&ms(gap))).count();
    let (first, last) = (within(50.0, 90.0 + late), within(210.0, 250.0 + 10.0 * late));
    assert!(first > gaps.len() / 12 && last > gaps.len() / 12, "{first} and {last} of {}", gaps.len());
    assert_eq!(s.count("requests.sent"), server.log.requests());
}

#[test]
fn without_think_time_the_loop_is_closed() {
    let server = watching();
    let (_, s) = run(&server.url("/"), &["-c", "2", "-n", "1000", "--think", "0"]);
    let gaps = server.log.times.lock().unwrap().clone();
    // As soon as both ends get a processor.
    let at_once = gaps.iter().filter(|gap| **gap < Duration::from_millis(5)).count();
    assert_eq!((s.count("requests.sent"), gaps.len()), (1_000, 998), "all but the last of each: {:#}", s.0);
    assert!(at_once > gaps.len() / 2, "{at_once} at once");
}

#[test]
fn latency_counts_from_the_end_of_the_think_time() {
    // The server takes 100 ms, the client thinks for 300: neither counts as the other.
    let server = Scripted::start(|peer| {
        while peer.request().is_some() {
            std::thread::sleep(Duration::from_millis(100));
            peer.send(&ok("x"));
        }
    });
    let (ended, s) = run(&server.url("/"), &["-c", "10", "-d", "1500ms", "--think", "300ms"]);
    // Where throng itself stalled, a time is a lower bound.
    let (min, stalled) = (s.number("latency_us.min"), s.at("latency_us.stalled")["most"].as_f64());
    let least = 99_000.0 - stalled.unwrap_or(0.0);
    assert!((least..200_000.0).contains(&min), "{min}: {}", ended.stderr);
    assert!(s.count("latency_us.count") >= 10, "{:#}", s.0);
}

#[test]
fn the_first_request_comes_with_the_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/first", listener.local_addr().unwrap());
    let run = crate::program::Program::start(&["run", &url, "-c", "1", "-d", "0", "--think", "1h"]);
    let (mut peer, _) = listener.accept().unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut line = [0; 20];
    peer.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"GET /first HTTP/1.1\r");
    drop((peer, run));
}
