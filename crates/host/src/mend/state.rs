//! The note of what was changed.
//!
//! ```text
//! throng.doctor.state/1
//! boot bfc5e1bf-ff91-48a0-8133-ea859d0d13be
//! namespace net:[4026531840]
//! setting net.core.somaxconn = 4096 was 16
//! address 10.77.0.1 lo
//! route 10.9.0.0/16
//! ```

use crate::{Repair, Root};
use plan::Network;
use std::path::Path;
use std::{fs, io};

const SCHEMA: &str = "throng.doctor.state/1";

/// What was changed, in one boot and one network namespace.
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
    /// What a setting was before; empty for the rest.
    pub(super) former: String,
}

impl Step {
    /// The change that takes it back, where it is a setting; else the change itself.
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
    /// Nothing changed yet, in this boot and namespace.
    pub(super) fn here(root: &Root) -> io::Result<State> {
        let boot = root.read("proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let namespace = fs::read_link(root.path("proc/self/ns/net"))?.display().to_string();
        Ok(State { boot, namespace, steps: Vec::new() })
    }

    /// `None` where there is no such file.
    pub(super) fn read(file: &Path) -> io::Result<Option<State>> {
        let text = match fs::read_to_string(file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|e| about(file, e))?,
        };
        let broken = || io::Error::other(format!("{}: it is not what doctor wrote", file.display()));
        State::parse(&text).map(Some).ok_or_else(broken)
    }

    /// In one step: a reader, also one after a crash, finds the old text or the new.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let fresh = file.with_extension("new");
        fs::create_dir_all(file.parent().unwrap_or(Path::new("/"))).map_err(|e| about(file, e))?;
        fs::write(&fresh, self.text()).map_err(|e| about(&fresh, e))?;
        fs::rename(&fresh, file).map_err(|e| about(file, e))
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

    fn parse(text: &str) -> Option<State> {
        let mut lines = text.lines();
        lines.next().filter(|first| *first == SCHEMA)?;
        Some(State {
            boot: lines.next()?.strip_prefix("boot ")?.to_owned(),
            namespace: lines.next()?.strip_prefix("namespace ")?.to_owned(),
            steps: lines.map(parse_step).collect::<Option<Vec<_>>>()?,
        })
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

fn about(file: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
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
        assert_eq!(State::parse(&state.text()), Some(state.clone()));
        let expected = "throng.doctor.state/1\nboot b-1\nnamespace net:[7]\n\
            setting net.ipv4.tcp_mem = 5 6 7 was 1 2 3\naddress fd00::1 eth0\nroute 10.9.0.0/16\n";
        assert_eq!(state.text(), expected);
        // Anything that is cut off or unknown is not acted upon.
        for broken in ["", "throng.doctor.state/2\nboot b\nnamespace n\n", "throng.doctor.state/1\nboot b\n"]
        {
            assert_eq!(State::parse(broken), None, "{broken:?}");
        }
        for step in ["setting a = 5", "address 10.0.0.300 lo", "route 10.0.0.5/8", "file x", "route"] {
            assert_eq!(State::parse(&format!("{expected}{step}\n")), None, "{step}");
        }
    }
}
