//! Connection slots: a maximum in total, and per address.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Peers at once.
pub(super) const MAX_PEERS: usize = 64;
/// Those of one address among them: some pages, each with what it follows.
pub(super) const MAX_OF_ONE: usize = 16;

/// All places.
#[derive(Default)]
pub(super) struct Places {
    taken: Mutex<Vec<Taken>>,
    /// The number of the next one.
    next: AtomicU64,
}

struct Taken {
    from: IpAddr,
    /// Those that came earlier have smaller ones.
    number: u64,
    /// Whether it had a response that secures its slot.
    secured: Arc<AtomicBool>,
    /// Dropped, it lets its owner go.
    _stays: oneshot::Sender<()>,
}

/// One's place: given back when this is dropped.
pub(super) struct Place {
    all: Arc<Places>,
    number: u64,
    /// Set by a response that secures the slot.
    pub(super) secured: Arc<AtomicBool>,
    goes: oneshot::Receiver<()>,
}

impl Places {
    /// A slot for a peer of this address. If there is none, the first peer without a request is evicted, of this address if
    /// it has its share, else of the one with most; none, if all of those have requests.
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
        // Never an earlier one: an evicted peer returns its own.
        let (number, secured) = (self.next.fetch_add(1, Relaxed), Arc::<AtomicBool>::default());
        taken.push(Taken { from, number, secured: secured.clone(), _stays });
        Some(Place { all: self.clone(), number, secured, goes })
    }
}

impl Place {
    /// Completes when another peer needs the slot.
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
