//! Cause: the target's managed heap is full.

use super::*;
use record::signs::FullHeap;
use units::{Bytes, percent};

/// The target's managed heap is full: its log says so (`OutOfMemoryError`, `heap out of memory`), or a JVM used 90 % of its maximum heap
/// and spent half of the time in collections.
pub(crate) struct Heap {
    pub(crate) at: u64,
    pub(crate) full: Option<FullHeap>,
}

impl Cause for Heap {
    const ID: &'static str = "heap";
    const OF: (Side, Name) = (Side::Target, Name::Heap);

    fn find(case: &Case) -> Option<Found<Heap>> {
        let full = case.evidence.heap.filter(|_| case.explains(Sign::Heap));
        let is_full = full.is_some() || case.logged(LogKind::Heap).is_some();
        if matches!(case.trouble, Trouble::Ours | Trouble::Path) || !is_full || case.evidence.target.is_none()
        {
            return None;
        }
        let at = case.served();
        Some(Found::seen(Heap { at, full }, at).began(Began::Seen(Sign::Heap)))
    }

    fn sentence(&self) -> String {
        match &self.full {
            None => format!("the target's heap was full at {}", connections(self.at)),
            Some(heap) => format!(
                "the target's heap was full: {} of {} used, {} of the time spent in garbage collections",
                Bytes(heap.used).brief(),
                Bytes(heap.limit).brief(),
                percent(heap.collecting),
            ),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let pid = case.pid();
        match &self.full {
            None => format!("the heap of process {pid} is full"),
            Some(heap) => format!(
                "process {pid} used {} of its maximum heap of {}, and spent {:.0} % of the time in garbage collections",
                Bytes(heap.used).brief(),
                Bytes(heap.limit).brief(),
                heap.collecting * 100.0
            ),
        }
    }

    fn fix(&self, case: &Case) -> String {
        let larger = "increase its heap (JVM -Xmx, Node.js --max-old-space-size, SBCL --dynamic-space-size)";
        case.or_less(larger, FEWER)
    }
}
