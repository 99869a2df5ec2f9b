//! Names received over NATS that become part of subjects and file names. A `/`, a blank or a wildcard in one would lead elsewhere, and an
//! overlong one ends the connection.

/// Maximum length of an agent's name, in bytes.
pub(crate) const LONGEST: usize = 64;
/// Maximum length of a run's name, in bytes; throng's own have eight characters.
const LONGEST_RUN: usize = 32;

/// Whether this is a valid name of an agent: letters, digits, `-` and `_`.
pub(crate) fn is_agent(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=LONGEST).contains(&text.len()) && text.chars().all(is_plain)
}

/// Whether this is a valid name of a run: digits and small letters.
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
