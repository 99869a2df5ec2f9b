//! The privileges of this process.

use crate::Root;

/// Whether the effective user of this process is root, possibly of a container only.
pub(crate) fn is_root(root: &Root) -> bool {
    let users: Option<String> = root.field("proc/self/status", "Uid:");
    users.is_some_and(|users| users.split_whitespace().nth(1) == Some("0"))
}

/// Whether this process has the capability with this number in its effective set (capabilities(7)).
pub(crate) fn has_capability(root: &Root, number: u32) -> bool {
    let effective: Option<String> = root.field("proc/self/status", "CapEff:");
    let bits = effective.and_then(|hex| u64::from_str_radix(&hex, 16).ok()).unwrap_or(0);
    bits >> number & 1 == 1
}
