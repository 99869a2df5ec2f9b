//! Live bytes in the target's managed heap, measured after full collections that the user has allowed (`--target-gc`): before the first
//! dial, at parts of the ramp, and at full load. Collections run on their own thread, so that the run continues.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, TryRecvError, channel},
    },
    thread,
    time::Duration,
};

use host::Root;

/// Timeout of a collection in progress at the end of the run.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of parts of the ramp; a measurement follows each part.
const PARTS: u64 = 4;
/// Consecutive collections at full load; their difference shows the precision.
const AT_FULL_LOAD: u32 = 2;
/// Minimum number of connections per part: below it, a collection shows unrelated garbage.
const MIN_OF_PART: u64 = 250;

type Live = Result<u64, Unmeasured>;

/// Why the live bytes are unknown, for the user.
#[derive(Clone, Debug)]
pub(super) struct Unmeasured(pub(super) String);

/// Open connections, with the live bytes in the heap at that time.
pub(super) type Points = Vec<(u64, u64)>;

/// The collections of a run.
pub(super) struct Heap {
    collect: fn(&Root, &[u32]) -> Live,
    points: Result<Points, Unmeasured>,
    under_way: Option<Receiver<(u64, Live)>>,
    /// Connections open now. Read when a collection ends, since that is when it takes effect.
    open: Arc<AtomicU64>,
    /// Connections per part of the ramp, and the number at which the next collection is due.
    part: u64,
    next: u64,
    /// Collections still to be made at full load; `None` before full load.
    left: Option<u32>,
}

impl Heap {
    /// Makes a first collection and waits for it. `wanted`: connections to be held.
    pub(super) fn without_load(root: &Root, pids: &[u32], wanted: u64) -> Heap {
        Heap::with(|root, pids| host::live_heap(root, pids).map_err(Unmeasured), root, pids, wanted)
    }

    fn with(collect: fn(&Root, &[u32]) -> Live, root: &Root, pids: &[u32], wanted: u64) -> Heap {
        let part = if wanted >= PARTS * MIN_OF_PART { wanted / PARTS } else { u64::MAX };
        let points = collect(root, pids).map(|live| vec![(0, live)]);
        let open = Arc::default();
        Heap { collect, points, under_way: None, open, part, next: part, left: None }
    }

    /// Notes that full load has begun.
    pub(super) fn at_full_load(&mut self) {
        self.left.get_or_insert(AT_FULL_LOAD);
    }

    /// Takes the result of a finished collection, and starts one that is due.
    pub(super) fn mind(&mut self, root: &Root, pids: &[u32], open: u64) {
        self.open.store(open, Relaxed);
        if let Some(under_way) = &self.under_way {
            let ended = match under_way.try_recv() {
                Ok(ended) => ended,
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    (open, Err(Unmeasured("the collection did not end".to_owned())))
                }
            };
            self.under_way = None;
            self.take(ended);
        }
        let is_due = match &mut self.left {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Some(_) => false,
            None => open >= self.next,
        };
        if self.points.is_ok() && is_due {
            self.next = (open / self.part + 1).saturating_mul(self.part);
            self.begin(root, pids);
        }
    }

    fn take(&mut self, (open, live): (u64, Live)) {
        match (live, &mut self.points) {
            (Ok(live), Ok(points)) => points.push((open, live)),
            (Err(why), _) => self.points = Err(why),
            (Ok(_), Err(_)) => {}
        }
    }

    fn begin(&mut self, root: &Root, pids: &[u32]) {
        let (collect, open, (sender, under_way)) = (self.collect, self.open.clone(), channel());
        let (root, pids) = (root.clone(), pids.to_vec());
        let begun = thread::Builder::new().name("target-gc".to_owned()).spawn(move || {
            let live = collect(&root, &pids);
            let _ = sender.send((open.load(Relaxed), live));
        });
        match begun {
            Ok(_) => self.under_way = Some(under_way),
            Err(e) => self.points = Err(Unmeasured(e.to_string())),
        }
    }

    /// Notes that connections are being closed: a collection that ends later does not count.
    pub(super) fn load_ends(&mut self) {
        if let Some(Ok(ended)) = self.under_way.take().map(|under_way| under_way.try_recv()) {
            self.take(ended);
        }
        self.left = Some(0);
    }

    /// All points, the first one without connections; or the reason why there are none.
    pub(super) fn finish(mut self) -> Result<Points, Unmeasured> {
        if let Some(under_way) = self.under_way.take() {
            let late = (0, Err(Unmeasured("the collection at full load did not end".to_owned())));
            self.take(under_way.recv_timeout(PATIENCE).unwrap_or(late));
        }
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_2_000_bytes(_: &Root, pids: &[u32]) -> Live {
        if pids.is_empty() {
            Err(Unmeasured("no Java virtual machine listens on that port".to_owned()))
        } else {
            Ok(2_000)
        }
    }

    fn points(wanted: u64, ramp: &[u64]) -> Points {
        let (root, pids) = (Root::at("/nowhere"), [7]);
        let mut heap = Heap::with(of_2_000_bytes, &root, &pids, wanted);
        // In this test a collection ends at once, but its thread needs a moment.
        let mind = |heap: &mut Heap, open| {
            heap.mind(&root, &pids, open);
            while heap.under_way.is_some() {
                heap.mind(&root, &pids, open);
            }
        };
        ramp.iter().for_each(|open| mind(&mut heap, *open));
        heap.at_full_load();
        mind(&mut heap, wanted);
        heap.finish().expect("points")
    }

    #[test]
    fn a_ramp_is_measured_at_its_quarters_and_full_load_twice() {
        let at = |points: Points| points.into_iter().map(|(open, _)| open).collect::<Vec<_>>();
        let ramp = [100, 900, 1_000, 1_100, 1_900, 2_050, 3_950];
        assert_eq!(at(points(4_000, &ramp)), [0, 1_000, 2_050, 3_950, 4_000, 4_000]);
        // Too few connections for parts.
        assert_eq!(at(points(900, &[300, 600])), [0, 900, 900]);
    }

    #[test]
    fn a_collection_that_fails_is_the_last() {
        let root = Root::at("/nowhere");
        let mut heap = Heap::with(of_2_000_bytes, &root, &[], 4_000);
        heap.mind(&root, &[], 3_000);
        heap.at_full_load();
        heap.mind(&root, &[], 4_000);
        assert!(heap.under_way.is_none());
        assert!(heap.finish().is_err_and(|why| why.0.starts_with("no Java")));
    }
}
