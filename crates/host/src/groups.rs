//! The control groups of a process (kernel document `admin-guide/cgroup-v2`).

use crate::Root;
use std::path::PathBuf;

/// The version of a control group hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// The groups of a process in which `controller` may limit it, relative to the mount point of their hierarchy. A line `0::/path` is
/// version 2, `4:memory:/path` version 1.
pub(crate) fn groups(root: &Root, process: &str, controller: &str) -> Vec<(Version, PathBuf)> {
    let text = root.read(format!("proc/{process}/cgroup")).unwrap_or_default();
    let group = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let version = match controllers {
            "" => Version::Two,
            list if list.split(',').any(|c| c == controller) => Version::One,
            _ => return None,
        };
        Some((version, path.trim_start_matches('/').into()))
    };
    text.lines().filter_map(group).collect()
}
