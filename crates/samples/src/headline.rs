//! A run in one sentence.

use units::Count;

use crate::summary::{Limit, Summary, Verdict};

impl Summary {
    /// Verdict, and what stopped it: side, cause, at how many, cure. Worked out from what is in the summary already.
    pub fn sentence(&self) -> String {
        sentence(self)
    }
}

fn sentence(s: &Summary) -> String {
    let (c, verdict) = (&s.connections, s.verdict.name());
    let met = s.thresholds.iter().filter(|t| t.pass).count();
    let judged = match s.thresholds.len() {
        0 => String::new(),
        all => format!("{met} of {all} thresholds met"),
    };
    match (&s.limit, s.verdict) {
        (Some(limit), _) => {
            let judged = if judged.is_empty() { judged } else { judged + "; " };
            format!("{verdict}: {judged}{}", limited(limit))
        }
        (None, _) if !judged.is_empty() => format!("{verdict}: {judged}"),
        (None, Verdict::Pass) if c.finished > 0 => {
            format!(
                "pass: {} connections did what they came for, no fault, every answer right",
                Count(c.finished)
            )
        }
        (None, Verdict::Pass) if c.closed > 0 => format!(
            "pass: no fault, every answer right; the server closed {} connections by announcement, {} were open at the end",
            Count(c.closed),
            Count(c.held),
        ),
        (None, Verdict::Pass) => {
            format!("pass: all {} connections held, no fault, every answer right", Count(c.held))
        }
        (None, _) => verdict.to_owned(),
    }
}

/// `limited by the target's open files at 65,536: raise LimitNOFILE`
fn limited(limit: &Limit) -> String {
    let whose = match limit.side {
        "target" => "the target's ",
        "host" => "this machine's ",
        "path" => "the path's ",
        "plan" => "the plan's ",
        _ => "something ",
    };
    let cause = limit.cause.replace('-', " ");
    format!("limited by {whose}{cause} at {}: {}", Count(limit.at_connections), limit.cure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_one_sentence() {
        let check = |side, cause, expected: &str| {
            let cure = "raise LimitNOFILE".to_owned();
            let limit = Limit { side, cause, at_connections: 65_536, detail: String::new(), cure };
            assert_eq!(limited(&limit), expected);
        };
        check("target", "open-files", "limited by the target's open files at 65,536: raise LimitNOFILE");
        check("host", "ports", "limited by this machine's ports at 65,536: raise LimitNOFILE");
        check("unknown", "unknown", "limited by something unknown at 65,536: raise LimitNOFILE");
    }
}
