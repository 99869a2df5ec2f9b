//! A target that serves some connections, and never comes to the others as long as these send.

use samples::{Cause, Certainty::Inferred, Limit, Side};

use super::{Case, Sentence, Trouble, accept_queue::accept_queue, target::FEWER};

/// Those that had no response were silent when the load ended, or ran into their timeouts. Where they wait in the accept queue, that is seen.
pub(super) fn starved(case: &Case) -> Option<Limit> {
    let is_silence = matches!(case.trouble, Trouble::None | Trouble::Waiting);
    let most = case.evidence.starved.iter().max_by_key(|own| own.count).filter(|_| is_silence)?;
    if accept_queue(case).is_some() {
        return None;
    }
    let detail = format!("{most}: it probably has a worker or a thread for each connection that it serves");
    let fix = case.or_less("raise its number of workers or threads (check that none of them hangs)", FEWER);
    let sentence = Sentence::Starved { most: most.clone() };
    case.limit(Inferred, (Side::Target, Cause::ConnectionLimit), most.served, sentence, detail, fix)
}
