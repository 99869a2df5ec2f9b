//! What the target said in words, with most of what went wrong.

use samples::{Limit, Side};

use super::Case;
use crate::words::Words;

impl Case<'_> {
    /// These words, where there are any.
    pub(super) fn words(&self) -> Option<&Words> {
        Words::find(&self.evidence.words, self.stage?, self.kind?)
    }
}

/// The limit with these words before its fix, unless it has them already.
pub(super) fn quoted(case: &Case, mut limit: Limit) -> Limit {
    let words = case.words().filter(|words| limit.side != Side::Host && !limit.fix.contains(&words.text));
    if let Some(sentence) = words.and_then(|words| words.sentence(case.detail)) {
        limit.fix = format!("{sentence}; {}", limit.fix);
    }
    limit
}
