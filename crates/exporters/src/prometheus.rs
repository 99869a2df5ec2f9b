//! An endpoint for Prometheus, in its text format 0.0.4.

use std::{fmt::Write as _, future, io, net::SocketAddr, sync::Arc};

use axum::{Router, extract::State, http::header::CONTENT_TYPE, response::IntoResponse, routing::get};
use parking_lot::Mutex;
use samples::{Header, Samples, Tick};
use units::Date;
use webserver::Web;

use crate::metrics::{BOUNDS, MetricsState, Sample, Snapshot, Times, Value, plain, series};

/// The snapshot that the next scrape gets.
type Latest = Arc<Mutex<Arc<Snapshot>>>;

/// An endpoint that listens from its creation and serves the latest snapshot.
pub(super) struct Endpoint {
    latest: Latest,
    _web: Web,
}

impl Endpoint {
    /// Listens, and serves the snapshot that was last [shown](Endpoint::show). Also returns the actual address, with its port.
    ///
    /// # Errors
    /// The error of bind, or of starting the thread.
    pub(super) fn bind(address: SocketAddr) -> io::Result<(Endpoint, SocketAddr)> {
        let latest = Latest::default();
        let routes = Router::new().route("/metrics", get(metrics)).with_state(latest.clone());
        let (web, at) = Web::start(address, routes, future::ready(()))?;
        Ok((Endpoint { latest, _web: web }, at))
    }

    /// Sets the snapshot that the next scrape gets.
    pub(super) fn show(&self, snapshot: &Arc<Snapshot>) {
        // The lock is only held while a pointer is copied, here and in the handler.
        *self.latest.lock() = snapshot.clone();
    }
}

async fn metrics(State(latest): State<Latest>) -> impl IntoResponse {
    let snapshot = latest.lock().clone();
    ([(CONTENT_TYPE, FORMAT)], text(&snapshot))
}

/// The media type of the text.
pub const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The exposition of accumulated counts, for programs that have no run.
pub fn exposition(header: &Header, total: &Tick) -> String {
    let mut state = MetricsState::new(Date(0));
    state.begin(header);
    text(&state.tick(total, &Samples::default()))
}

/// A snapshot in the text format ("Exposition formats", text-based format).
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let mut named = None;
    for sample in snapshot.samples.iter().filter(|sample| sample.value != Value::Unknown) {
        let metric = sample.metric();
        if named.replace(sample.row) != Some(sample.row) {
            let (name, kind) = (metric.name, metric.kind.name());
            line(&mut text, format_args!("# HELP {name} {}\n# TYPE {name} {kind}", metric.help));
        }
        match &sample.value {
            Value::Number(n) => line(&mut text, format_args!("{} {}", sample.series(""), plain(*n))),
            Value::Times(times) => histogram(&mut text, sample, times),
            Value::Unknown => {}
        }
    }
    text
}

fn histogram(text: &mut String, sample: &Sample, times: &Times) {
    let bounds = BOUNDS.iter().map(|bound| bound.secs_f64().to_string()).chain(["+Inf".to_owned()]);
    for (bound, n) in bounds.zip(times.up_to.iter().chain([&times.count])) {
        let labels = sample.labels.iter().map(|(name, says)| (*name, says.as_str())).chain([("le", &*bound)]);
        line(text, format_args!("{} {n}", series(sample.metric().name, "_bucket", labels)));
    }
    line(text, format_args!("{} {}", sample.series("_sum"), plain(times.sum)));
    line(text, format_args!("{} {}", sample.series("_count"), times.count));
}

fn line(text: &mut String, what: std::fmt::Arguments) {
    writeln!(text, "{what}").expect("a String takes it");
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{Shutdown, TcpStream},
    };

    use super::*;
    use crate::metrics::made_up::two_seconds;
    use fixtures::check_golden;
    use units::{Clock, Nanos};

    #[test]
    fn the_text_is_as_it_was() {
        let (_, [_, last]) = two_seconds();
        check_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/metrics.txt"), &text(&last));
    }

    #[test]
    fn agents_are_values_of_a_label() {
        let (_, [_, last]) = two_seconds();
        let text = text(&last);
        let of = |name: &str| {
            let own = text.lines().filter(|line| line.starts_with(&format!("throng_agent_{name}{{")));
            own.map(|line| line.split_once('{').unwrap().1).collect::<Vec<_>>()
        };
        assert_eq!(of("up"), ["agent=\"a\"} 0", "agent=\"b\"} 1"]);
        assert_eq!(of("connections_open"), ["agent=\"a\"} 0", "agent=\"b\"} 2"]);
        assert_eq!(of("cpu_seconds_total"), ["agent=\"a\"} 1.5", "agent=\"b\"} 0.75"]);
        assert_eq!(of("lag_p99_seconds"), ["agent=\"b\"} 0.004"], "for a nothing was due");
    }

    #[test]
    fn nothing_is_an_empty_text() {
        assert_eq!(text(&Snapshot::default()), "");
    }

    /// Sends a request and returns the response as far as it was received.
    fn fetch(at: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        // The server may respond before the whole request is sent.
        let _ = stream.write_all(request);
        let mut response = String::new();
        let _ = stream.read_to_string(&mut response);
        response
    }

    #[test]
    fn only_a_scrape_gets_the_metrics() {
        let (endpoint, at) = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (_, [first, last]) = two_seconds();
        for snapshot in [first, last].map(Arc::new) {
            endpoint.show(&snapshot);
            for target in ["/metrics", "/metrics?format=text"] {
                let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                let response = fetch(at, request.as_bytes());
                let (head, body) = response.split_once("\r\n\r\n").unwrap();
                let head = head.to_lowercase();
                assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
                assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
                assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
                assert_eq!(body, text(&snapshot));
            }
        }
        let check = |request: &[u8], status: &str| {
            let response = fetch(at, request);
            assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {response}");
        };
        check(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "404 ");
        check(b"POST /metrics HTTP/1.1\r\nConnection: close\r\n\r\n", "405 ");
        check(b"\xff\0\r\n\r\n", "400 ");
    }

    #[test]
    fn a_silent_client_does_not_block_the_next_one() {
        let (_endpoint, at) = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let clock = Clock::start();
        // More connections than there are slots; half of them have sent part of a head.
        let mut silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(at).unwrap()).collect();
        for stream in silent.iter_mut().step_by(2) {
            let _ = stream.write_all(b"GET /met");
        }
        for _ in 0..5 {
            assert!(fetch(at, b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 "));
        }
        // If a scrape had to wait for a silent client, it would take 5 s, the timeout of a head.
        assert!(clock.now() < Nanos::from_secs(5), "five scrapes took {}", clock.now());
        // Connections that were not evicted end at the timeout.
        silent[199].set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let mut rest = String::new();
        assert!(
            silent[199].read_to_string(&mut rest).is_ok() && clock.now() < Nanos::from_secs(15),
            "{rest}"
        );
    }

    #[test]
    fn a_closed_client_does_not_block_the_next_one() {
        let (endpoint, at) = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        for _ in 0..100 {
            TcpStream::connect(at).unwrap().shutdown(Shutdown::Both).unwrap();
        }
        assert!(fetch(at, b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 "));
        drop(endpoint);
        // The listener ends with the thread.
        let clock = Clock::start();
        while TcpStream::connect(at).is_ok() {
            assert!(clock.now() < Nanos::from_secs(10), "still listening");
        }
    }
}
