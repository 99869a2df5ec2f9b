//! What makes runs of this machine comparable with each other.

use samples::HostFacts;

use crate::{Root, memory, processors::processors};

/// Kernel, processors and memory; empty or zero where it cannot be read.
pub fn facts(root: &Root) -> HostFacts {
    HostFacts {
        kernel: root.read("proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        cores: processors(root).unwrap_or_default(),
        memory_bytes: memory(root).map_or(0, |memory| memory.total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    #[test]
    fn facts_are_those_of_the_machine() {
        let machine = Machine::with(&[
            ("proc/sys/kernel/osrelease", "6.12.1-amd64\n"),
            ("proc/self/status", "Cpus_allowed_list:\t0-3,8\n"),
            ("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\n"),
        ]);
        let expected = HostFacts { kernel: "6.12.1-amd64".to_owned(), cores: 5, memory_bytes: 1_024_000 };
        assert_eq!(facts(&machine.root()), expected);
        assert_eq!(facts(&Machine::with(&[]).root()), HostFacts::default());
    }
}
