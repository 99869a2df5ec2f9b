//! The state file, which records changes so that they can be undone.
//!
//! ```text
//! throng.doctor.state/1
//! boot bfc5e1bf-ff91-48a0-8133-ea859d0d13be
//! namespace net:[4026531840]
//! setting net.core.somaxconn = 4096 was 16
//! address 10.77.0.1 lo
//! route 10.9.0.0/16
//! ```

use super::{FixError, note};
use crate::repair::is_numbers;
use crate::{Repair, Root};
use plan::Network;
use std::path::Path;
use std::{fs, io};

const SCHEMA: &str = "throng.doctor.state/1";

/// The changes made in one boot and one network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) boot: String,
    pub(super) namespace: String,
    /// Oldest first.
    pub(super) steps: Vec<Step>,
}

/// One change, made or about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) repair: Repair,
    /// The previous value of a setting; empty for other changes.
    pub(super) former: String,
}

impl Step {
    /// For a setting, the change that restores its previous value; otherwise the change itself.
    pub(super) fn reversed(&self) -> Repair {
        match &self.repair {
            Repair::Setting { name, .. } => {
                Repair::Setting { name: name.clone(), value: self.former.clone() }
            }
            other => other.clone(),
        }
    }
}

impl State {
    /// A state without changes, for this boot and namespace.
    pub(super) fn here(root: &Root) -> io::Result<State> {
        let boot = root.read("proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let namespace = fs::read_link(root.path("proc/self/ns/net"))?.display().to_string();
        Ok(State { boot, namespace, steps: Vec::new() })
    }

    /// Reads a state file; `None` if it does not exist.
    pub(super) fn read(file: &Path) -> Result<Option<State>, FixError> {
        let Some(text) = note::read(file)? else { return Ok(None) };
        let state = State::parse(&text);
        state.map(Some).map_err(|why| FixError::Untrusted(file.to_owned(), why))
    }

    /// Writes atomically: even after a crash, a reader finds either the old text or the new one.
    pub(super) fn write(&self, file: &Path) -> Result<(), FixError> {
        note::write(file, &self.text())
    }

    fn text(&self) -> String {
        let step = |step: &Step| match &step.repair {
            Repair::Setting { name, value } => format!("setting {name} = {value} was {}\n", step.former),
            Repair::Address { address, device } => format!("address {address} {device}\n"),
            Repair::Route(network) => format!("route {network}\n"),
        };
        let steps: String = self.steps.iter().map(step).collect();
        format!("{SCHEMA}\nboot {}\nnamespace {}\n{steps}", self.boot, self.namespace)
    }

    /// Parses a state file. A single invalid line makes all of it invalid, so that nothing is undone.
    fn parse(text: &str) -> Result<State, String> {
        let mut lines = (1..).zip(text.lines());
        let mut head = |before: &str| {
            let line = lines.next().and_then(|(_, line)| line.strip_prefix(before));
            line.map(str::to_owned).ok_or_else(|| format!("the line {:?} is missing", before.trim_end()))
        };
        if !head(SCHEMA)?.is_empty() {
            return Err(format!("it does not have the schema {SCHEMA}"));
        }
        let (boot, namespace) = (head("boot ")?, head("namespace ")?);
        let step = |(nth, line): (usize, &str)| {
            let step = parse_step(line).filter(|step| {
                let is_setting = matches!(step.repair, Repair::Setting { .. });
                step.repair.is_known() && (!is_setting || is_numbers(&step.former))
            });
            step.ok_or_else(|| format!("line {nth} is not a change that doctor makes: {line:?}"))
        };
        Ok(State { boot, namespace, steps: lines.map(step).collect::<Result<_, _>>()? })
    }
}

fn parse_step(line: &str) -> Option<Step> {
    let (kind, rest) = line.split_once(' ')?;
    let (repair, former) = match kind {
        "setting" => {
            let (name, values) = rest.split_once(" = ")?;
            let (value, former) = values.split_once(" was ")?;
            (Repair::Setting { name: name.to_owned(), value: value.to_owned() }, former)
        }
        "address" => {
            let (address, device) = rest.split_once(' ')?;
            (Repair::Address { address: address.parse().ok()?, device: device.to_owned() }, "")
        }
        "route" => (Repair::Route(Network::parse(rest).ok()?), ""),
        _ => return None,
    };
    Some(Step { repair, former: former.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_streams_are_read() {
        let setting = Repair::Setting { name: "net.ipv4.tcp_mem".into(), value: "5 6 7".into() };
        let address = Repair::Address { address: "fd00::1".parse().unwrap(), device: "eth0".into() };
        let state = State {
            boot: "b-1".into(),
            namespace: "net:[7]".into(),
            steps: vec![
                Step { repair: setting, former: "1 2 3".into() },
                Step { repair: address, former: String::new() },
                Step { repair: Repair::Route(Network::parse("10.9.0.0/16").unwrap()), former: String::new() },
            ],
        };
        assert_eq!(State::parse(&state.text()), Ok(state.clone()));
        let expected = "throng.doctor.state/1\nboot b-1\nnamespace net:[7]\n\
            setting net.ipv4.tcp_mem = 5 6 7 was 1 2 3\naddress fd00::1 eth0\nroute 10.9.0.0/16\n";
        assert_eq!(state.text(), expected);
        // Truncated or unknown text is rejected.
        for broken in ["", "throng.doctor.state/2\nboot b\nnamespace n\n", "throng.doctor.state/1\nboot b\n"]
        {
            assert!(State::parse(broken).is_err(), "{broken:?}");
        }
        for step in [
            "setting a = 5",
            "address 10.0.0.300 lo",
            "address 10.0.0.3 -force",
            "address 10.0.0.3 ../x",
            "route 10.0.0.5/8",
            "file x",
            "route",
            "setting kernel.core_pattern = core was |/tmp/x",
            "setting kernel.core_pattern = 5 was 6",
            "setting kernel.modprobe = 1 was 2",
            "setting net.core.somaxconn/../../kernel/core_pattern = 1 was 2",
            "setting net.core.somaxconn = 5 was |/tmp/x",
            "setting net.core.somaxconn = 5 was ",
            "setting net.core.somaxconn = -5 was 6",
        ] {
            let why = State::parse(&format!("{expected}{step}\n")).unwrap_err();
            assert!(why.starts_with("line 7 is not a change that doctor makes: "), "{step}: {why}");
        }
    }
}
