//! Lines for the user of an agent about its runs: one at the beginning and one at the end.

use std::collections::VecDeque;

use plan::flag;
use units::Count;

use super::{Agent, Machine};
use crate::message::{LEASE, Offer};

/// Maximum number of characters of a target to show.
const MOST_SHOWN: usize = 200;

/// Lines that wait to be shown.
#[derive(Default)]
pub(super) struct Notes {
    lines: VecDeque<String>,
    /// The last line, to suppress repetitions: a coordinator repeats its messages.
    last: String,
}

impl Notes {
    pub(super) fn begins(&mut self, run: &str, connections: u64, target: &str) {
        self.add(format!("run {run} begins: {} to {target}", Count(connections).of("connection")));
    }

    /// `why`: the reason for an early end.
    pub(super) fn ended(&mut self, run: &str, why: Option<&str>) {
        let how = why.map_or_else(|| "done".to_owned(), |why| format!("ended: {why}"));
        self.add(format!("run {run} {how}"));
    }

    pub(super) fn refused(&mut self, run: &str, why: &str) {
        self.add(format!("run {run} refused: {why}"));
    }

    fn add(&mut self, line: String) {
        if line != self.last {
            self.last.clone_from(&line);
            self.lines.push_back(line);
        }
    }
}

impl<M: Machine> Agent<M> {
    /// The next line for the user.
    pub(crate) fn poll_line(&mut self) -> Option<String> {
        self.notes.lines.pop_front()
    }
}

/// The reason when a part ends because its coordinator is silent.
pub(super) fn expired() -> String {
    format!("no message from its coordinator for {LEASE}")
}

/// The target of a run as typed, without user and password; long ones are cut.
pub(super) fn target_of(offer: &Offer) -> String {
    let is_target = |(name, _): &&(String, String)| name == flag::TARGET.name;
    let text = offer.flags.iter().find(is_target).map_or("", |(_, text)| text.as_str());
    plan::without_user(text).replacen("…@", "", 1).chars().take(MOST_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_line_as_it_begins_and_as_it_ends() {
        let mut notes = Notes::default();
        notes.refused("r0", "it is draining");
        notes.refused("r0", "it is draining");
        notes.begins("r1", 1_500, "http://h/");
        notes.ended("r1", None);
        notes.begins("r2", 1, "http://h/");
        notes.ended("r2", Some(&expired()));
        let expected = [
            "run r0 refused: it is draining",
            "run r1 begins: 1,500 connections to http://h/",
            "run r1 done",
            "run r2 begins: 1 connection to http://h/",
            "run r2 ended: no message from its coordinator for 10s",
        ];
        assert_eq!(Vec::from(notes.lines), expected);
    }

    #[test]
    fn a_target_is_shown_without_its_password() {
        let target = |text: &str| {
            let flags = plan::Flags::new(text).pairs();
            target_of(&Offer { flags, ..Offer::default() })
        };
        assert_eq!(target("http://me:p@w@h:80/a@b"), "http://h:80/a@b");
        assert_eq!(target("me:pw@h"), "h");
        assert_eq!(target("load.toml"), "load.toml");
        assert_eq!(target(&format!("http://h/{}", "é".repeat(900))).chars().count(), MOST_SHOWN);
        assert_eq!(target_of(&Offer::default()), "");
    }
}
