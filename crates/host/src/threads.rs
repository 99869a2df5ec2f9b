//! Detects threads that end while their process continues: if an exception ends an accept thread, the process still looks healthy.

use std::collections::{BTreeMap, BTreeSet};

use samples::TargetSample;

use crate::{Root, listener::numbers};

/// Maximum number of processes, and of threads in total; each thread costs a small file per sample.
const MAX_PROCESSES: usize = 8;
const MAX_THREADS: usize = 128;
/// If a thread has ended: maximum number of remaining threads whose names are read.
const MAX_SUCCESSORS: usize = 1024;
/// Beginnings of the names of a runtime's own threads, which come and go at any time.
const OF_RUNTIMES: &[&str] = &[
    "C1 Compiler",
    "C2 Compiler",
    "GC Thread",
    "G1 ",
    "Attach Listener",
    "VM Periodic",
    "process reaper",
    "Sweeper",
];

/// The threads at the beginning, with their names.
#[derive(Debug)]
pub(crate) struct Threads(BTreeMap<(u32, u32), String>);

impl Threads {
    /// Notes the present threads of these processes.
    pub(crate) fn from_now_on(root: &Root, pids: impl Iterator<Item = u32>) -> Threads {
        let threads = pids.take(MAX_PROCESSES).flat_map(|pid| tasks(root, pid)).take(MAX_THREADS);
        Threads(threads.filter_map(|thread| Some((thread, name(root, thread)?))).collect())
    }

    /// Names of threads that have ended in a process that continues and has no other thread with the same name. Names that suggest
    /// accepting come first.
    pub(crate) fn gone(&self, root: &Root) -> Vec<String> {
        let lives = |thread: &(u32, u32)| is_alive(root, *thread);
        let (left, ended): (Vec<_>, Vec<_>) = self.0.iter().partition(|(thread, _)| lives(thread));
        let is_own = |name: &str| OF_RUNTIMES.iter().any(|own| name.starts_with(own));
        let mut gone = BTreeSet::new();
        for ((pid, _), name) in ended {
            if left.iter().any(|((other, _), _)| other == pid) && !is_own(name) {
                gone.insert((*pid, name.clone()));
            }
        }
        for pid in gone.iter().map(|(pid, _)| *pid).collect::<BTreeSet<u32>>() {
            let now =
                tasks(root, pid).into_iter().take(MAX_SUCCESSORS).filter_map(|thread| name(root, thread));
            for name in now {
                gone.remove(&(pid, name));
            }
        }
        let mut names: Vec<String> = gone.into_iter().map(|(_, name)| name).collect();
        names.sort_by_key(|name| !name.to_ascii_lowercase().contains("accept"));
        names.dedup();
        names.truncate(TargetSample::MAX_THREADS_GONE);
        names
    }
}

fn tasks(root: &Root, pid: u32) -> Vec<(u32, u32)> {
    let mut threads = numbers(root, &format!("proc/{pid}/task"));
    threads.sort_unstable();
    threads.into_iter().map(|tid| (pid, tid)).collect()
}

/// Whether the thread exists. The first thread of a process remains as a zombie (state `Z`) until the others have ended.
fn is_alive(root: &Root, (pid, tid): (u32, u32)) -> bool {
    if pid != tid {
        return root.path(format!("proc/{pid}/task/{tid}")).exists();
    }
    let stat = root.read(format!("proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X', 'x']))
}

/// The name of a thread that exists, at most 15 bytes as the kernel stores it.
fn name(root: &Root, (pid, tid): (u32, u32)) -> Option<String> {
    let name = root.read(format!("proc/{pid}/task/{tid}/comm")).ok()?;
    is_alive(root, (pid, tid)).then(|| name.trim_end_matches('\n').replace(char::is_control, "?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    fn thread(machine: &Machine, tid: u32, name: &str, state: char) {
        machine.write(&format!("proc/5/task/{tid}/comm"), &format!("{name}\n"));
        machine.write(&format!("proc/5/task/{tid}/stat"), &format!("{tid} ({name}) {state} 1 1 1\n"));
    }

    fn end(machine: &Machine, tid: u32) {
        std::fs::remove_dir_all(machine.root().path(format!("proc/5/task/{tid}"))).unwrap();
    }

    fn java() -> Machine {
        let machine = Machine::with(&[]);
        let names = ["java", "java", "GC Thread#0", "http-nio-8080-A", "pool-1-thread-1", "pool-1-thread-2"];
        (5..).zip(names).for_each(|(tid, name)| thread(&machine, tid, name, 'S'));
        machine
    }

    fn check(then: impl Fn(&Machine), expected: &[&str]) {
        let machine = java();
        let threads = Threads::from_now_on(&machine.root(), [5].into_iter());
        assert_eq!(threads.gone(&machine.root()), [""; 0]);
        then(&machine);
        assert_eq!(threads.gone(&machine.root()), expected);
    }

    #[test]
    fn a_thread_that_has_ended_is_named() {
        check(|machine| end(machine, 8), &["http-nio-8080-A"]);
        let both = |machine: &Machine| [8, 10].into_iter().for_each(|tid| end(machine, tid));
        check(both, &["http-nio-8080-A", "pool-1-thread-2"]);
        // The first thread of a process remains as a zombie.
        check(|machine| thread(machine, 5, "java", 'Z'), &[]);
        let both = |machine: &Machine| {
            thread(machine, 5, "java", 'Z');
            end(machine, 6);
        };
        check(both, &["java"]);
    }

    #[test]
    fn threads_that_a_runtime_ends_or_replaces_are_not_reported() {
        check(|machine| end(machine, 7), &[]);
        // Another thread has its name, or it was renamed.
        let replaced = |machine: &Machine| {
            end(machine, 9);
            thread(machine, 900, "pool-1-thread-1", 'S');
        };
        check(replaced, &[]);
        check(|machine| thread(machine, 9, "renamed", 'S'), &[]);
        // The end of a whole process is reported elsewhere.
        check(|machine| (5..11).for_each(|tid| end(machine, tid)), &[]);
    }

    #[test]
    fn those_that_accept_are_named_first_and_not_all() {
        let machine = java();
        (100..140).for_each(|tid| thread(&machine, tid, &format!("a-{tid}"), 'S'));
        thread(&machine, 140, "my-Acceptor", 'S');
        let threads = Threads::from_now_on(&machine.root(), [5].into_iter());
        (100..141).for_each(|tid| end(&machine, tid));
        let gone = threads.gone(&machine.root());
        assert_eq!((gone.len(), gone[0].as_str()), (TargetSample::MAX_THREADS_GONE, "my-Acceptor"));
    }
}
