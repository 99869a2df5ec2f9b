//! Connection slots of the web server, limited in total and per client address.
//!
//! When the slots are used up, the oldest connection that has not received an authorised response is evicted. Clients that only
//! connect therefore cannot lock out those that use the server.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Maximum number of connections.
pub(super) const MAX_PEERS: usize = 64;
/// Maximum number of connections from one address: a few pages, each with its event stream.
pub(super) const MAX_OF_ONE: usize = 16;

/// All connection slots.
#[derive(Default)]
pub(super) struct Places {
    taken: Mutex<Vec<Taken>>,
    /// The number of the next connection.
    next: AtomicU64,
}

struct Taken {
    from: IpAddr,
    /// Number of the connection, in the order of arrival.
    number: u64,
    /// Whether a response has secured the slot against eviction.
    secured: Arc<AtomicBool>,
    /// Dropping this sender evicts the connection.
    _stays: oneshot::Sender<()>,
}

/// The slot of a connection, released when this is dropped.
pub(super) struct Place {
    all: Arc<Places>,
    number: u64,
    /// Set when a response has secured the slot.
    pub(super) secured: Arc<AtomicBool>,
    goes: oneshot::Receiver<()>,
}

impl Places {
    /// A slot for a connection from this address. If none is free, the oldest connection that is not secured is evicted: one of this
    /// address if it has used up its share, else one of an address with the most connections. `None` if all of these are secured.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr) -> Option<Place> {
        let mut taken = self.taken.lock();
        let of = |from: IpAddr| taken.iter().filter(|one| one.from == from).count();
        let least = match of(from) {
            n if n >= MAX_OF_ONE => Some(None),
            _ if taken.len() >= MAX_PEERS => Some(taken.iter().map(|one| of(one.from)).max()),
            _ => None,
        };
        if let Some(least) = least {
            let may_go = |one: &Taken| match least {
                None => one.from == from,
                Some(most) => of(one.from) == most,
            };
            let goes = taken.iter().position(|one| !one.secured.load(Relaxed) && may_go(one))?;
            taken.remove(goes);
        }
        let (_stays, goes) = oneshot::channel();
        // Numbers are never reused, since an evicted connection releases its slot later.
        let (number, secured) = (self.next.fetch_add(1, Relaxed), Arc::<AtomicBool>::default());
        taken.push(Taken { from, number, secured: secured.clone(), _stays });
        Some(Place { all: self.clone(), number, secured, goes })
    }
}

impl Place {
    /// Completes when the connection is evicted.
    pub(super) async fn must_go(&mut self) {
        let _ = (&mut self.goes).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.taken.lock().retain(|one| one.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn has_to_go(place: &mut Place) -> bool {
        place.goes.try_recv().is_err_and(|e| e == oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn clients_with_requests_stay_and_the_first_silent_one_is_evicted() {
        let places = Arc::new(Places::default());
        let mut own: Vec<Place> = (0..MAX_OF_ONE).map(|_| places.take(ip(1)).unwrap()).collect();
        own[0].secured.store(true, Relaxed);
        let mut newest = places.take(ip(1)).unwrap();
        let gone: Vec<usize> = (0..own.len()).filter(|nth| has_to_go(&mut own[*nth])).collect();
        assert_eq!((gone, has_to_go(&mut newest)), (vec![1], false));
        // Another address has its own share.
        assert!(places.take(ip(2)).is_some());
        own.iter().chain([&newest]).for_each(|place| place.secured.store(true, Relaxed));
        assert!(places.take(ip(1)).is_none(), "all of them are secured");
        drop(newest);
        assert!(places.take(ip(1)).is_some(), "a place that is given back is there again");
    }

    #[test]
    fn an_evicted_client_takes_no_slot_from_its_successor() {
        let places = Arc::new(Places::default());
        let mut own: Vec<Place> = (0..MAX_OF_ONE).map(|_| places.take(ip(1)).unwrap()).collect();
        own[..MAX_OF_ONE - 1].iter().for_each(|place| place.secured.store(true, Relaxed));
        let mut newest = places.take(ip(1)).unwrap();
        let mut evicted = own.pop().unwrap();
        assert!(has_to_go(&mut evicted));
        drop(evicted);
        assert!(!has_to_go(&mut newest));
        assert_eq!(places.taken.lock().len(), MAX_OF_ONE);
    }

    #[test]
    fn where_all_is_full_the_address_with_most_makes_room() {
        let places = Arc::new(Places::default());
        let take =
            |last: u8, n: usize| -> Vec<Place> { (0..n).map(|_| places.take(ip(last)).unwrap()).collect() };
        let (mut few, mut many) = (take(1, 10), take(2, MAX_OF_ONE));
        let others: Vec<Vec<Place>> = (3..)
            .map_while(|last: u8| {
                let room = MAX_PEERS - places.taken.lock().len();
                (room > 0).then(|| take(last, room.min(10)))
            })
            .collect();
        assert!(!others.is_empty());
        let _new = places.take(ip(99)).unwrap();
        assert_eq!(places.taken.lock().len(), MAX_PEERS);
        assert!(has_to_go(&mut many[0]) && !few.iter_mut().any(has_to_go));
    }
}
