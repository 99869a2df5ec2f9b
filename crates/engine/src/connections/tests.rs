//! Property tests of the connection records: counters, sessions and chains of exchanges agree with a model.

use super::*;
use crate::protocol::{
    streams::{self, PLACES},
    tests::websocket,
};
use proptest::prelude::*;
use std::collections::HashMap;
use units::Nanos;

const ALL: [State; State::COUNT] = [
    State::None,
    State::Dialling,
    State::Securing,
    State::Upgrading,
    State::Busy,
    State::Idle,
    State::Disconnected,
];

fn exchange(first: bool) -> Exchange {
    Exchange { first, ..Exchange::new(Nanos::ZERO, Nanos::ZERO) }
}

/// One step in the life of a connection, if its state allows it.
fn step(conns: &mut Connections, index: u32, what: u8) {
    let state = if index < conns.len() { conns[index].state() } else { State::None };
    let to = match (state, what) {
        (State::None, 0 | 1) => {
            conns.insert(index, Conn::new(0, 0, State::Dialling));
            conns.begin(index, exchange(true), websocket);
            return;
        }
        (State::None, 2) => return conns.insert(index, Conn::new(0, 0, State::Disconnected)),
        (State::Disconnected, 0 | 1) => {
            conns.transition(index, State::Dialling);
            conns.begin(index, exchange(false), websocket);
            return;
        }
        (State::Dialling, 0) => State::Upgrading,
        (State::Dialling | State::Upgrading, 1) => State::Busy,
        (State::Dialling | State::Upgrading | State::Busy, 2 | 3) => State::Idle,
        (State::Idle, 0) if conns.is_between_messages(index) => {
            // An unsolicited message begins to arrive.
            conns.open_session(index, websocket);
            return assert!(conns.session(index).handle_bytes(b"\x01\x03abc", None).is_ok());
        }
        (State::Idle, 1) => {
            conns.begin(index, exchange(false), websocket);
            State::Busy
        }
        (State::Idle, 2) => State::Idle,
        (State::None, _) => return,
        _ => State::None,
    };
    conns.transition(index, to);
}

/// The counters agree with the records.
fn check(conns: &Connections) {
    let records = || (0..conns.len()).map(|index| &conns[index]);
    for state in ALL {
        let there = records().filter(|conn| conn.state() == state).count();
        assert_eq!(conns.in_state[state as usize] as usize, there, "{state:?}");
    }
    assert_eq!(
        conns.open(),
        (conns.iter_in(State::Busy).count() + conns.iter_in(State::Idle).count()) as u64
    );
    let of: Vec<u32> = (0..conns.len()).filter(|at| conns[*at].state().is_under_way()).collect();
    let partial = conns.iter_in(State::Idle).filter(|(index, _)| !conns.is_between_messages(*index)).count();
    assert_eq!((conns.exchanges.len(), conns.sessions.len()), (of.len(), of.len() + partial));
    let firsts = of.iter().filter(|index| conns.exchange(**index).first).count();
    assert_eq!(conns.outstanding() as usize, firsts);
}

proptest! {
    #[test]
    fn counters_sessions_and_exchanges_go_with_the_states(steps in proptest::collection::vec((0u32..6, 0u8..5), 0..300)) {
        let mut conns = Connections::new(6);
        let (mut first_dials, mut undecided, mut most_open) = (0, 0, 0);
        for (index, what) in steps {
            let is_new = |conns: &Connections| index >= conns.len() || conns[index].state() == State::None;
            first_dials += u64::from(is_new(&conns) && what < 2);
            step(&mut conns, index, what);
            check(&conns);
            most_open = most_open.max(conns.open());
            let opening = |index: &u32| conns[*index].state().is_opening() && conns.exchange(*index).first;
            undecided = (0..conns.len()).filter(opening).count() as u64;
        }
        prop_assert_eq!(conns.resolved(), first_dials - undecided);
        prop_assert_eq!([conns.take_most_open(), conns.take_most_open()], [most_open, conns.open()]);
    }
}

#[test]
fn the_session_of_a_message_begun_outlives_the_request_beside_it() {
    let mut conns = Connections::new(1);
    conns.insert(0, Conn::new(0, 0, State::Dialling));
    conns.begin(0, exchange(true), websocket);
    conns.transition(0, State::Busy);
    assert_eq!((conns.waiting(), conns.outstanding(), conns.resolved()), (1, 1, 1));
    assert!(conns.session(0).handle_bytes(b"\x01\x03abc", None).is_ok());
    conns.transition(0, State::Idle);
    assert_eq!((conns.sessions.len(), conns.exchanges.len(), conns.is_between_messages(0)), (1, 0, false));
    assert_eq!((conns.waiting(), conns.outstanding(), conns.open()), (0, 0, 1));
    assert!(conns.session(0).handle_bytes(b"\x80\x00", None).is_ok());
    conns.transition(0, State::Idle);
    assert_eq!(conns.sessions.len(), 0, "an idle connection between messages has its record only");
}

#[test]
#[should_panic = "one connection an index: 0"]
fn a_record_in_use_is_not_written_over() {
    let mut conns = Connections::new(1);
    conns.insert(0, Conn::new(0, 0, State::Disconnected));
    conns.insert(0, Conn::new(0, 0, State::Disconnected));
}

/// Connections with concurrent requests, and a model: for each connection, its requests and their due times.
struct Several {
    conns: Connections,
    model: HashMap<u32, Vec<(u32, u64)>>,
    /// Number of requests so far: each has a different due time.
    begun: u64,
}

impl Several {
    fn streams(&mut self, index: u32) -> streams::Session {
        let Session::Streams(session) = *self.conns.session(index) else { panic!("a session of streams") };
        session
    }

    /// Begins a dial or, on an existing connection, another request, if there is a place.
    fn begin(&mut self, index: u32) {
        let is_new = index >= self.conns.len() || self.conns[index].state() == State::None;
        if is_new {
            self.conns.insert(index, Conn::new(0, 0, State::Dialling));
        } else if !self.conns.has_place(index) {
            return assert_eq!(self.model[&index].len(), PLACES, "a place is denied to no other one");
        }
        self.begun += 1;
        let due = Nanos(self.begun);
        let exchange = Exchange { first: is_new, ..Exchange::new(due, due) };
        let stream = self.conns.begin(index, exchange, || Session::Streams(streams::new()));
        self.streams(index).borrow_mut().begin(stream);
        self.conns.transition(index, State::Busy);
        self.model.entry(index).or_default().push((stream, due.0));
    }

    /// Ends the nth request of a connection.
    fn end(&mut self, index: u32, nth: usize) {
        let Some(requests) = self.model.get_mut(&index).filter(|requests| !requests.is_empty()) else {
            return;
        };
        let (stream, due) = requests.remove(nth % requests.len());
        self.streams(index).borrow_mut().end(stream);
        assert_eq!(self.conns.end_exchange(index, stream).due.0, due);
    }

    /// Ends the connection with all its requests.
    fn lose(&mut self, index: u32) {
        if self.model.remove(&index).is_some() {
            self.conns.transition(index, State::None);
        }
    }

    fn check(&self) {
        let Several { conns, model, .. } = self;
        for (index, requests) in model {
            let chain = conns.exchanges(*index).map(|(stream, exchange)| (stream, exchange.due.0));
            assert_eq!(&chain.collect::<Vec<_>>(), requests, "the oldest first");
            if let Some((latest, _)) = requests.last() {
                assert_eq!((conns.latest(*index), conns.has_several(*index)), (*latest, requests.len() > 1));
            }
            let state = if requests.is_empty() { State::Idle } else { State::Busy };
            assert_eq!((conns[*index].state(), conns.has_place(*index)), (state, requests.len() < PLACES));
        }
        let under_way: usize = model.values().map(Vec::len).sum();
        assert_eq!((conns.waiting(), conns.sessions.len()), (under_way as u64, model.len()));
        let firsts =
            model.keys().flat_map(|index| conns.exchanges(*index)).filter(|(_, exchange)| exchange.first);
        assert_eq!(conns.outstanding() as usize, firsts.count());
    }
}

proptest! {
    #[test]
    fn several_requests_of_a_connection_agree_with_a_model(
        steps in proptest::collection::vec((0u32..4, 0u8..8, any::<usize>()), 0..200)
    ) {
        let mut several = Several { conns: Connections::new(4), model: HashMap::new(), begun: 0 };
        for (index, what, nth) in steps {
            match what {
                0..=3 => several.begin(index),
                4..=6 => several.end(index, nth),
                _ => several.lose(index),
            }
            several.check();
        }
    }
}
