//! Collects mistakes in a command's arguments, so that all are reported at once. Flags of a plan have their own parser.

use std::{fmt::Display, net::SocketAddr};

use crate::Failure;

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Mistakes(Vec<String>);

impl Mistakes {
    /// Parses the value of an argument; `None` if it is absent or wrong.
    pub(crate) fn read<T, E: Display>(
        &mut self,
        flag: &str,
        text: Option<&str>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        parse(text?).map_err(|why| self.add(format_args!("{flag}: {why}"))).ok()
    }

    /// Parses an address, or a port that is combined with the host of `usual`. If it is wrong, returns an address on loopback.
    pub(crate) fn address(&mut self, flag: &str, text: &str, usual: &str) -> SocketAddr {
        let wrong = |_| format!("{text:?} is not an address; use {usual}");
        let at_usual = |port: u16| usual.parse().map(|usual: SocketAddr| SocketAddr::new(usual.ip(), port));
        let parse = |text: &str| match text.parse::<u16>() {
            Ok(port) => at_usual(port),
            Err(_) => text.parse(),
        };
        let address = self.read(flag, Some(text), |text| parse(text).map_err(wrong));
        address.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Adds a mistake, unless the same message has been added before.
    pub(crate) fn add(&mut self, mistake: impl Display) {
        let mistake = mistake.to_string();
        if !self.0.contains(&mistake) {
            self.0.push(mistake);
        }
    }

    /// Returns `read` if there are no mistakes.
    ///
    /// # Errors
    /// The mistakes.
    pub(crate) fn end<T>(self, read: T) -> Result<T, Failure> {
        if self.0.is_empty() { Ok(read) } else { Err(Failure::usage(self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_at_the_usual_address() {
        for (text, usual, expected) in [
            ("9000", "127.0.0.1:8000", Ok("127.0.0.1:9000")),
            ("0", "127.0.0.1:8000", Ok("127.0.0.1:0")),
            ("4333", "0.0.0.0:4222", Ok("0.0.0.0:4333")),
            ("[::1]:9000", "127.0.0.1:8000", Ok("[::1]:9000")),
            ("70000", "127.0.0.1:8000", Err("--listen: \"70000\" is not an address; use 127.0.0.1:8000")),
            ("nowhere", "127.0.0.1:8000", Err("--listen: \"nowhere\" is not an address; use 127.0.0.1:8000")),
        ] {
            let mut mistakes = Mistakes::default();
            let address = mistakes.address("--listen", text, usual).to_string();
            let actual = if mistakes.0.is_empty() { Ok(address) } else { Err(mistakes.0.concat()) };
            assert_eq!(actual.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn the_same_mistake_is_reported_once() {
        let mut mistakes = Mistakes::default();
        ["a", "b", "a"].iter().for_each(|mistake| mistakes.add(mistake));
        assert_eq!(mistakes.0, ["a", "b"]);
    }
}
