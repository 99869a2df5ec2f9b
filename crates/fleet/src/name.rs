//! Names that come over NATS and become part of subjects and of the names of files: one with a `/`, a blank or a wildcard would
//! lead elsewhere, and a long one ends the connection.

/// The longest name of an agent.
pub(crate) const LONGEST: usize = 64;
/// The longest name of a run; ours have eight characters.
const LONGEST_RUN: usize = 32;

/// Whether this can be the name of an agent: letters, digits, `-` and `_`.
pub(crate) fn is_agent(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=LONGEST).contains(&text.len()) && text.chars().all(is_plain)
}

/// Whether this can be the name of a run: digits and small letters.
pub(crate) fn is_run(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase();
    (1..=LONGEST_RUN).contains(&text.len()) && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for good in ["r", "ebb01862", &"z".repeat(LONGEST_RUN)] {
            assert!(is_run(good) && is_agent(good), "{good}");
        }
        for agents_only in ["vm17-3f2a", "web_1", "A", &"x".repeat(LONGEST)] {
            assert!(is_agent(agents_only) && !is_run(agents_only), "{agents_only}");
        }
        for bad in
            ["", "/tmp/x/deep/x y", "..", "a/b", "a b", "a.b", "*", ">", "a\r\nPUB", "é", &"x".repeat(65)]
        {
            assert!(!is_agent(bad) && !is_run(bad), "{bad}");
        }
    }
}
