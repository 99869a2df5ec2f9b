//! The strategy of a search for a target's capacity, the largest load that it sustains, as a pure machine: [`Search::propose`] returns
//! the next step, [`Search::learn`] takes its result, and [`Search::answer`] says at any time what is known. No clock, no socket,
//! no randomness: the same results lead to the same steps.
//!
//! If the target reports what it sustained of a load far above its capacity, one such climb measures the capacity, unless the report
//! misleads. Steps slightly below and above the value confirm it. To cope with noise, the strategy maintains a posterior distribution over
//! the capacity and the kind of target, and proposes the step with the largest expected information: the psi method (Kontsevich and Tyler
//! 1999). `docs/decisions/0055` compares it with probabilistic bisection and has its measured coverage.
//!
//! ```text
//! use search::{Answer, Outcome, Range, Search, SeenLimit};
//!
//! // A server with 1,024 open files.
//! let mut search = Search::new(Range { least: 1, most: 50_000 }, 0.02).with_baseline(5);
//! while let Some(step) = search.propose() {
//!     let failed = Outcome::Failed { sustained: Some(1_020), limit: SeenLimit::None, is_certain: false };
//!     search.learn(step.load, if step.load <= 1_020 { Outcome::Passed } else { failed });
//! }
//! assert!(matches!(search.answer(), Answer::Found { max: 1_000..=1_020, .. }));
//! ```

mod answer;
mod grid;
mod posterior;
mod search;

pub use answer::{Answer, Interval};
pub use search::{Outcome, Proposal, Purpose, Range, Search, SeenLimit};
