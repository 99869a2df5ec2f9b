//! Flags of a fleet that are refused without `--fleet`.

use super::{Flags, Mistake};
use crate::flag::{self, Role};

impl Flags {
    /// A mistake for each fleet flag without `--fleet`.
    pub fn refused_without_fleet(&self) -> Vec<Mistake> {
        if self.get(&flag::FLEET).is_some() {
            return Vec::new();
        }
        self.refused(|flag, _| match flag.role {
            Role::Place if flag.name.starts_with("nats-") => Some(NO_SERVER.to_owned()),
            Role::Place => Some("requires --fleet nats://HOST:PORT".to_owned()),
            _ => None,
        })
    }
}

/// Refusal of NATS log-in flags where there is no NATS server.
const NO_SERVER: &str = "requires --fleet nats://HOST:PORT or --observe nats://HOST:PORT";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_fleet_require_one() {
        let flags = Flags::new("http://127.0.0.1/")
            .with(&flag::CONNECTIONS, 5)
            .with(&flag::ON_LOST, "abort")
            .with(&flag::SHARE, "equal")
            .with(&flag::AGENTS, 3)
            .with(&flag::NATS_CREDS, "user.creds");
        let mistakes: Vec<String> = flags.refused_without_fleet().iter().map(Mistake::to_string).collect();
        assert_eq!(
            mistakes,
            [
                "--on-lost: requires --fleet nats://HOST:PORT: \"abort\"",
                "--share: requires --fleet nats://HOST:PORT: \"equal\"",
                "--agents: requires --fleet nats://HOST:PORT: \"3\"",
                "--nats-creds: requires --fleet nats://HOST:PORT or --observe nats://HOST:PORT: \"user.creds\"",
            ]
        );
        assert!(flags.with(&flag::FLEET, "nats://127.0.0.1:4222").refused_without_fleet().is_empty());
    }
}
