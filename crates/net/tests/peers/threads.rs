//! Real peers: a thread with blocking sockets on loopback.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::net::sockopt;

use crate::script::{Case, Order, Reader, Step, Way, salt, stream};

/// The timeout of every operation here, generous for slow machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A peer's receive buffer: small, so that a slow reader blocks the sender.
const RECEIVE_BUFFER: usize = 32 * 1024;
const BACKLOG: i32 = 4096;

pub(crate) fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A listener on a port chosen by the kernel.
pub(crate) fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(local()).expect("the loopback has a free port");
    sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BUFFER).expect("a buffer may be made smaller");
    // The standard library's backlog is too short for thousands of dials at once.
    rustix::net::listen(&listener, BACKLOG).expect("a listener may be given another queue");
    let at = listener.local_addr().expect("a bound socket has an address");
    (listener, at)
}

/// Plays the peers of a case, each with its own salt: they dial `at` if given no listener, otherwise accept from it.
pub(crate) fn play(case: Case, at: SocketAddr, listener: Option<TcpListener>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut peers: Vec<Peer> = (0..case.count)
            .map(|number| {
                let stream = match (&listener, case.way) {
                    (Some(listener), Way::WeDial) => accept(listener),
                    _ => TcpStream::connect_timeout(&at, PATIENCE).expect("our shard listens"),
                };
                Peer::new(stream, number)
            })
            .collect();
        match case.order {
            Order::Together => {
                for &step in case.peer {
                    // The thread pauses once, not once per connection.
                    match step {
                        Step::Pause(ms) => thread::sleep(Duration::from_millis(ms)),
                        step => peers.iter_mut().for_each(|p| p.play(step)),
                    }
                }
            }
            Order::OneByOne => peers.iter_mut().for_each(|p| case.peer.iter().for_each(|step| p.play(*step))),
        }
    })
}

/// Accepts a connection, with a timeout.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    let ts = rustix::time::Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let mut fds = [rustix::event::PollFd::new(listener, rustix::event::PollFlags::IN)];
    let ready = rustix::event::poll(&mut fds, Some(&ts)).expect("a listener can be polled");
    assert!(ready > 0, "nobody dialled within {PATIENCE:?}");
    listener.accept().expect("a connection waits").0
}

struct Peer {
    number: usize,
    /// `None` once it has been closed.
    stream: Option<TcpStream>,
    sent: usize,
    reader: Reader,
    posts: Vec<JoinHandle<()>>,
}

impl Peer {
    fn new(stream: TcpStream, number: usize) -> Peer {
        stream.set_nodelay(true).expect("TCP has this option");
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        stream.set_write_timeout(Some(PATIENCE)).expect("not zero");
        Peer { number, stream: Some(stream), sent: 0, reader: Reader::default(), posts: Vec::new() }
    }

    fn play(&mut self, step: Step) {
        let number = self.number;
        let salt = salt(number);
        let stream_now = self.stream.as_mut().expect("no step follows the close");
        let mut send = |stream_now: &mut TcpStream, len| {
            let bytes = stream(salt, self.sent, len);
            self.sent += len;
            stream_now.write_all(&bytes).unwrap_or_else(|e| panic!("peer {number}, {step:?}: {e}"));
        };
        match step {
            Step::Send(len) => send(stream_now, len),
            Step::Trickle(pieces, len) => (0..pieces).for_each(|_| send(stream_now, len)),
            Step::Post(len) => {
                let bytes = stream(salt, self.sent, len);
                self.sent += len;
                let mut copy = stream_now.try_clone().expect("a descriptor is free");
                self.posts.push(thread::spawn(move || copy.write_all(&bytes).expect("our program takes it")));
            }
            Step::Expect(len) => self.expect(len),
            Step::Pause(ms) => thread::sleep(Duration::from_millis(ms)),
            Step::End | Step::Cut => {
                let end = stream_now.read(&mut [0; 100]);
                let right = match &end {
                    Ok(0) => matches!(step, Step::End),
                    Err(e) if e.kind() == ErrorKind::ConnectionReset => matches!(step, Step::Cut),
                    _ => false,
                };
                assert!(right, "peer {number}, {step:?}: {end:?}");
            }
            Step::Close | Step::Reset => {
                self.posts.drain(..).for_each(|post| post.join().expect("the post is out"));
                if matches!(step, Step::Reset) {
                    sockopt::set_socket_linger(&*stream_now, Some(Duration::ZERO))
                        .expect("TCP has this option");
                }
                self.stream = None;
            }
        }
    }

    fn expect(&mut self, len: usize) {
        let number = self.number;
        let mut input = vec![0; len.min(64 * 1024)];
        let mut left = len;
        while left > 0 {
            let at_most = left.min(input.len());
            let stream = self.stream.as_mut().expect("no step follows the close");
            let got = stream
                .read(&mut input[..at_most])
                .unwrap_or_else(|e| panic!("peer {number}, {left} to come: {e}"));
            assert!(got > 0, "peer {number}: an end, {left} to come");
            self.reader.read(&input[..got]).unwrap_or_else(|at| panic!("peer {number}: garbled at {at}"));
            left -= got;
        }
    }
}
