//! Arguments of a command that are no flags of a plan: all mistakes in them at once.

use std::{fmt::Display, net::SocketAddr};

use crate::Failure;

/// What is wrong with the arguments read so far.
#[derive(Default)]
pub(crate) struct Mistakes(Vec<String>);

impl Mistakes {
    /// The value of an argument; none where it is absent or a mistake.
    pub(crate) fn read<T, E: Display>(
        &mut self,
        flag: &str,
        text: Option<&str>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        parse(text?).map_err(|why| self.add(format_args!("{flag}: {why}"))).ok()
    }

    /// An address with its port; where it is a mistake, one on loopback.
    pub(crate) fn address(&mut self, flag: &str, text: &str, fix: &str) -> SocketAddr {
        let wrong = |_| format!("{text:?} is not an address; use {fix}");
        let address = self.read(flag, Some(text), |text| text.parse().map_err(wrong));
        address.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// One more.
    pub(crate) fn add(&mut self, mistake: impl Display) {
        self.0.push(mistake.to_string());
    }

    /// What was read.
    ///
    /// # Errors
    /// There are mistakes in it.
    pub(crate) fn end<T>(self, read: T) -> Result<T, Failure> {
        if self.0.is_empty() { Ok(read) } else { Err(Failure::usage(self.0)) }
    }
}
