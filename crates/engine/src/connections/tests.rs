use super::*;
use crate::protocol::tests::websocket;
use proptest::prelude::*;
use units::Nanos;

const ALL: [State; State::COUNT] =
    [State::None, State::Dialling, State::Upgrading, State::Busy, State::Idle, State::Resting, State::Probe];

fn exchange(first: bool) -> Exchange {
    Exchange { first, ..Exchange::new(Nanos::ZERO, Nanos::ZERO) }
}

/// One step of a connection's life, where its state allows it.
fn step(conns: &mut Connections, index: u32, what: u8) {
    let state = if index < conns.len() { conns[index].state() } else { State::None };
    let to = match (state, what) {
        (State::None, 0 | 1) => {
            conns.insert(index, Conn::new(0, 0, State::Dialling));
            return conns.begin(index, exchange(true), websocket);
        }
        (State::None, 2) => return conns.insert(index, Conn::new(0, 0, State::Resting)),
        (State::None, 3) => return conns.insert(index, Conn::of_probe(0, index)),
        (State::Resting, 0 | 1) => {
            conns.transition(index, State::Dialling);
            return conns.begin(index, exchange(false), websocket);
        }
        (State::Dialling, 0) => State::Upgrading,
        (State::Dialling | State::Upgrading, 1) => State::Busy,
        (State::Dialling | State::Upgrading | State::Busy, 2 | 3) => State::Idle,
        (State::Idle, 0) if conns.is_at_rest(index) => {
            // A message of the server's own begins to come.
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

/// What the counters say is what the records say.
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
    let partial = conns.iter_in(State::Idle).filter(|(index, _)| !conns.is_at_rest(*index)).count();
    assert_eq!((conns.exchanges.len(), conns.sessions.len()), (of.len(), of.len() + partial));
    let firsts = of.iter().filter(|index| conns.exchange(**index).first).count();
    assert_eq!(conns.outstanding() as usize, firsts);
}

proptest! {
    #[test]
    fn counters_sessions_and_exchanges_go_with_the_states(steps in proptest::collection::vec((0u32..6, 0u8..5), 0..300)) {
        let mut conns = Connections::new(6);
        let (mut first_dials, mut undecided) = (0, 0);
        for (index, what) in steps {
            let is_new = |conns: &Connections| index >= conns.len() || conns[index].state() == State::None;
            first_dials += u64::from(is_new(&conns) && what < 2);
            step(&mut conns, index, what);
            check(&conns);
            let opening = |index: &u32| conns[*index].state().is_opening() && conns.exchange(*index).first;
            undecided = (0..conns.len()).filter(opening).count() as u64;
        }
        prop_assert_eq!(conns.resolved(), first_dials - undecided);
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
    assert_eq!((conns.sessions.len(), conns.exchanges.len(), conns.is_at_rest(0)), (1, 0, false));
    assert_eq!((conns.waiting(), conns.outstanding(), conns.open()), (0, 0, 1));
    assert!(conns.session(0).handle_bytes(b"\x80\x00", None).is_ok());
    conns.transition(0, State::Idle);
    assert_eq!(conns.sessions.len(), 0, "an idle connection between messages has its record only");
}

#[test]
#[should_panic = "one connection an index: 0"]
fn a_record_in_use_is_not_written_over() {
    let mut conns = Connections::new(1);
    conns.insert(0, Conn::new(0, 0, State::Resting));
    conns.insert(0, Conn::new(0, 0, State::Resting));
}
