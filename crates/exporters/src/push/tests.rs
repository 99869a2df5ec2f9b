//! Pushes to a server that accepts and rejects as configured.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc::sync_channel,
    },
    thread::JoinHandle,
};

use fixtures::{header, seen};
use samples::{RunRecord, Sink, Summary};
use store::StoreWriter;
use units::Date;

use super::*;
use crate::{Exporters, metrics::made_up::two_seconds};

/// A server that accepts points or responds with the configured status. Keeps the heads, and the points that it accepted.
#[derive(Default)]
struct State {
    status: AtomicUsize,
    is_over: AtomicBool,
    heads: Mutex<Vec<String>>,
    taken: Mutex<String>,
}

struct Server {
    state: Arc<State>,
    at: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

/// Whether a request has been received completely.
fn is_whole(bytes: &[u8]) -> bool {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    end.is_some_and(|end| bytes.len() >= end + 4 + length(std::str::from_utf8(&bytes[..end + 4]).unwrap()))
}

impl Server {
    fn new(status: usize) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, state) = (listener.local_addr().unwrap(), Arc::new(State::default()));
        state.status.store(status, SeqCst);
        let own = state.clone();
        let serve = move || {
            while let (Ok((mut stream, _)), false) = (listener.accept(), own.is_over.load(SeqCst)) {
                let (mut bytes, mut piece) = (Vec::new(), [0; 1 << 16]);
                while !is_whole(&bytes) {
                    match stream.read(&mut piece) {
                        Ok(n @ 1..) => bytes.extend_from_slice(&piece[..n]),
                        _ => break,
                    }
                }
                let text = String::from_utf8(bytes).unwrap();
                let status = own.status.load(SeqCst);
                let response = format!("HTTP/1.1 {status} So\r\nContent-Length: 4\r\n\r\nwhy\n");
                stream.write_all(response.as_bytes()).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                own.heads.lock().push(head.to_owned());
                if status == 204 {
                    own.taken.lock().push_str(body);
                }
            }
        };
        Server { state, at, thread: Some(std::thread::spawn(serve)) }
    }

    fn server(&self) -> PushServer {
        server(self.at)
    }

    fn requests(&self) -> usize {
        self.state.heads.lock().len()
    }

    /// The accepted points: the last value of each series and time.
    fn points(&self) -> BTreeMap<String, String> {
        let taken = self.state.taken.lock();
        let points = taken.lines().map(|line| {
            let (rest, time) = line.rsplit_once(' ').unwrap();
            let (series, fields) = rest.rsplit_once(' ').unwrap();
            (format!("{series} {time}"), fields.to_owned())
        });
        points.collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.is_over.store(true, SeqCst);
        let _ = TcpStream::connect(self.at);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn length(text: &str) -> usize {
    let field = text.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    field.parse().unwrap()
}

fn server(at: SocketAddr) -> PushServer {
    let token = Some("secret".to_owned());
    PushServer { form: Form::Influx, at, host: "influx:1".to_owned(), path: "/write?db=t".to_owned(), token }
}

/// The discard port, on which nothing listens.
const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

/// Collects reported messages.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Messages {
    fn sink(&self) -> Tell {
        let messages = self.0.clone();
        Arc::new(move |line: &str| messages.lock().push(line.to_owned()))
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

const BEGAN: Date = Date(1_700_000_000_000);

fn exporters(server: PushServer, messages: &Messages) -> Exporters {
    let mut exporters = Exporters::new(BEGAN);
    exporters.push(server, messages.sink());
    exporters
}

fn run(sinks: &mut [&mut dyn Sink], seconds: u64) {
    sinks.iter_mut().for_each(|sink| sink.begin(&header()));
    for second in 1..=seconds {
        let (tick, samples) = seen(second);
        sinks.iter_mut().for_each(|sink| sink.tick(&tick, &samples));
    }
    sinks.iter_mut().for_each(|sink| sink.finish(&Summary::default()));
}

#[test]
fn all_seconds_arrive_where_it_takes_them() {
    let (server, messages) = (Server::new(204), Messages::default());
    let mut exporters = exporters(server.server(), &messages);
    run(&mut [&mut exporters], 5);
    let remains = exporters.end();
    assert!(
        remains.behind.is_empty() && remains.troubles.is_empty() && messages.lines().is_empty(),
        "{:?}",
        messages.lines()
    );
    let points = server.points();
    let opens = points.keys().filter(|series| series.starts_with("throng_connections_wanted,"));
    assert_eq!(opens.count(), 10, "two populations, five seconds: {points:?}");
    let heads = server.state.heads.lock();
    let head = &heads[0];
    assert!(
        head.starts_with("POST /write?db=t HTTP/1.1\r\nHost: influx:1\r\nAuthorization: Token secret\r\n"),
        "{head}"
    );
}

#[test]
fn points_rejected_temporarily_are_retried() {
    let (server, messages) = (Server::new(503), Messages::default());
    let (give, rows) = sync_channel::<Arc<Snapshot>>(9);
    let (to, own, missing) = (server.server(), messages.sink(), Missing::default());
    let count = missing.clone();
    let pushing = std::thread::spawn(move || push(&to, &header(), &rows, &count, &own));
    let (_, [first, last]) = two_seconds();
    give.send(Arc::new(first)).unwrap();
    while server.requests() == 0 {
        std::thread::yield_now();
    }
    server.state.status.store(204, SeqCst);
    give.send(Arc::new(last)).unwrap();
    drop(give);
    pushing.join().unwrap();
    assert_eq!(*missing.lock(), Missed::default());
    assert_eq!(messages.lines(), ["--influx influx:1: retrying, the run continues: rejected: 503 why"]);
    let times = server.points().into_keys().filter(|series| series.starts_with("throng_run_info,"));
    assert_eq!(times.count(), 2, "both seconds");
}

#[test]
fn an_unreachable_one_costs_a_line_and_never_the_run() {
    let messages = Messages::default();
    let mut exporters = exporters(server(NOBODY), &messages);
    run(&mut [&mut exporters], 100);
    let remains = exporters.end();
    assert!(remains.troubles.is_empty(), "{:?}", remains.troubles);
    let behind = remains.behind.into_iter().next().expect("it has nothing");
    // Each dropped second is counted, either by the queue or by the thread.
    assert_eq!(behind.missed.seconds, 100);
    assert_eq!(behind.missed.range, Some((Nanos::from_secs(1), Nanos::from_secs(100))));
    assert_eq!(messages.lines().len(), 1, "{:?}", messages.lines());
    let why = behind.make_up(None);
    assert!(why.starts_with("--influx influx:1: 100 seconds of the run are missing: "), "{why}");
}

#[test]
fn points_that_it_will_never_take_are_not_sent_for_ever() {
    let (server, messages) = (Server::new(400), Messages::default());
    let mut exporters = exporters(server.server(), &messages);
    run(&mut [&mut exporters], 3);
    assert_eq!(exporters.end().behind.iter().map(|behind| behind.missed.seconds).sum::<u64>(), 3);
}

#[test]
fn missed_points_come_from_the_store() {
    let file = std::env::temp_dir().join(format!("throng-influx-{}.db", std::process::id()));
    let (server, messages) = (Server::new(503), Messages::default());
    let mut exporters = exporters(server.server(), &messages);
    let record = RunRecord { began_ms: BEGAN, ..RunRecord::default() };
    let mut writer = StoreWriter::new(file.clone(), record, messages.sink());
    run(&mut [&mut writer, &mut exporters], 5);
    let kept = writer.end().unwrap();
    let behind = exporters.end().behind.into_iter().next().expect("it took nothing");
    let store = Store::open(&file).unwrap();
    let stored = store.run(&kept.id).unwrap().unwrap();
    let again = Backlog { server: behind.server.clone(), missed: behind.missed.clone() };
    let refused = again.make_up(Some((&store, &stored)));
    let cure = format!(
        "5 seconds of the run are missing; send them with `throng replay {} --influx URL`: ",
        kept.id
    );
    assert!(refused.contains(&cure), "{refused}");
    server.state.status.store(204, SeqCst);
    let sent = behind.make_up(Some((&store, &stored)));
    assert_eq!(sent, "--influx influx:1: 5 seconds of the run were delivered late");
    let late = server.points();
    drop((store, server));
    for name in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{name}", file.display()));
    }
    let in_time = Server::new(204);
    let mut exporters = self::exporters(in_time.server(), &messages);
    run(&mut [&mut exporters], 5);
    exporters.end();
    assert_eq!(late, in_time.points(), "the same points, whenever they were sent");
}
