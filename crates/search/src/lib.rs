//! The strategy of a search for a target's capacity, the largest load that it sustains, as a pure machine: [`Search::propose`] returns
//! the next step, [`Search::learn`] takes its result, and [`Search::answer`] says at any time what is known. No clock, no socket,
//! no randomness: the same results lead to the same steps.
//!
//! One climb says most: what was sustained of a load far too large is a measurement of the capacity, unless it misleads. Steps just below
//! and just above confirm it. For noise, the strategy has a posterior distribution over the capacity and the kind of target, and makes the
//! step from which it expects most information: the psi method (Kontsevich and Tyler 1999). `docs/decisions/0055` compares it with
//! probabilistic bisection and has its measured coverage.
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
