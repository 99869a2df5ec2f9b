//! Finds the local processes that listen on a port: the target, if it runs on this machine.

use crate::{Listener, Root};
use std::fs;
use std::path::Path;

/// The processes among `holders` that serve the connections: the workers, if a master and its workers share the socket, otherwise all. A
/// worker is a holder whose parent is one too.
pub(crate) fn carriers(root: &Root, holders: &[u32]) -> Vec<u32> {
    let is_worker = |pid: &u32| parent(root, *pid).is_some_and(|parent| holders.contains(&parent));
    let workers: Vec<u32> = holders.iter().copied().filter(is_worker).collect();
    if workers.is_empty() { holders.to_vec() } else { workers }
}

/// All processes that hold one of these sockets, in ascending order. Processes of other users are visible only to an administrator; a
/// listener in a ring's table of direct descriptors is not visible at all.
///
/// Threads with their own file tables are searched only if no process has a socket in its main table.
pub(crate) fn listener_pids(root: &Root, listeners: &[Listener]) -> Vec<u32> {
    let sockets: Vec<String> = listeners.iter().map(|l| format!("socket:[{}]", l.inode)).collect();
    if sockets.is_empty() {
        return Vec::new();
    }
    let processes = numbers(root, "proc");
    let mut holders: Vec<u32> =
        processes.iter().copied().filter(|pid| holds_any(root, &main_table(*pid), &sockets)).collect();
    if holders.is_empty() {
        let thread_holds = |pid: &u32| {
            let tasks = format!("proc/{pid}/task");
            numbers(root, &tasks).iter().any(|tid| holds_any(root, &format!("{tasks}/{tid}/fd"), &sockets))
        };
        holders = processes.into_iter().filter(thread_holds).collect();
    }
    holders.sort_unstable();
    holders
}

/// Whether the process has one of the sockets in its main thread's file table. A holder without one there has given its threads their own
/// tables.
pub(crate) fn holds_in_main_table(root: &Root, pid: u32, listeners: &[Listener]) -> bool {
    let sockets: Vec<String> = listeners.iter().map(|l| format!("socket:[{}]", l.inode)).collect();
    holds_any(root, &main_table(pid), &sockets)
}

/// The name of a process, at most 15 bytes; empty if it cannot be read.
pub(crate) fn program(root: &Root, pid: u32) -> String {
    root.read(format!("proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn main_table(pid: u32) -> String {
    format!("proc/{pid}/fd")
}

/// The numeric entries of a directory: processes or threads.
pub(crate) fn numbers(root: &Root, directory: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(root.path(directory)) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a file table contains one of the sockets. Servers open listeners early, so that a match is found before the connections in the
/// table are searched.
fn holds_any(root: &Root, table: &str, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(root.path(table)) else { return false };
    let mut links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.any(|link| sockets.iter().any(|socket| link == Path::new(socket)))
}

/// The parent process: field 4 of proc_pid_stat(5), counted from the end of the command's name.
fn parent(root: &Root, pid: u32) -> Option<u32> {
    let stat = root.read(format!("proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    const HEAD: &str = "sl local_address rem_address st\n";

    /// A machine on which inodes 70 and 71 listen on port 8080 and 80, 72 on 8080 of IPv6, held as given:
    /// process, its parent, its descriptors.
    fn machine(processes: &[(u32, u32, &[&str])]) -> Machine {
        let row = |address: &str, inode: u32| format!("0: {address} 0:0 0A 0:0 0:0 0 0 0 {inode} 1\n");
        let machine = Machine::with(&[
            ("proc/net/tcp", &[HEAD, &row("00000000:1F90", 70), &row("0100007F:0050", 71)].concat()),
            ("proc/net/tcp6", &[HEAD, &row("00000000000000000000000000000000:1F90", 72)].concat()),
            ("proc/uptime", "1 1\n"),
        ]);
        for (pid, parent, links) in processes {
            machine.write(&format!("proc/{pid}/stat"), &format!("{pid} (a server) S {parent} 1 1\n"));
            for (fd, link) in links.iter().enumerate() {
                machine.link(&format!("proc/{pid}/fd/{fd}"), link);
            }
        }
        machine
    }

    fn check(port: u16, processes: &[(u32, u32, &[&str])], all: &[u32], one: Option<u32>) {
        let machine = machine(processes);
        let root = machine.root();
        let listeners = crate::listeners(&root);
        let here: Vec<Listener> = listeners.iter().filter(|l| l.port == port).copied().collect();
        assert_eq!(listener_pids(&root, &here), all, "{processes:?}");
        assert_eq!(carriers(&root, all).first().copied(), one, "{processes:?}");
    }

    #[test]
    fn the_holder_of_the_socket_is_found() {
        let plain: &[(u32, u32, &[&str])] =
            &[(5, 1, &["/dev/null", "socket:[71]"]), (9, 1, &["socket:[70]"])];
        check(8080, plain, &[9], Some(9));
        check(80, plain, &[5], Some(5));
        check(443, plain, &[], None);
        check(8080, &[(9, 1, &["socket:[72]"])], &[9], Some(9));
        check(8080, &[(9, 1, &["socket:[7]", "socket:[701]", "pipe:[70]"])], &[], None);
        check(8080, &[], &[], None);
    }

    #[test]
    fn a_worker_goes_before_its_master() {
        let socket: &[&str] = &["socket:[70]"];
        check(8080, &[(10, 1, socket), (11, 10, socket), (12, 10, socket)], &[10, 11, 12], Some(11));
        // Pids wrap around: a worker may have the lower number.
        check(8080, &[(900, 1, socket), (3, 900, socket)], &[3, 900], Some(3));
        // Independent servers, such as with one listener each on a shared port.
        check(8080, &[(20, 1, socket), (21, 1, &["socket:[72]"])], &[20, 21], Some(20));
    }

    #[test]
    fn a_listener_in_a_threads_own_table_is_found() {
        let machine = machine(&[(9, 1, &["/dev/null"]), (12, 1, &["socket:[71]"])]);
        machine.link("proc/9/task/9/fd/0", "/dev/null");
        machine.link("proc/9/task/10/fd/3", "socket:[70]");
        machine.link("proc/12/task/13/fd/3", "socket:[70]");
        let root = machine.root();
        let on = |port: u16| -> Vec<Listener> {
            crate::listeners(&root).into_iter().filter(|l| l.port == port).collect()
        };
        assert_eq!(listener_pids(&root, &on(8080)), [9, 12]);
        assert_eq!(listener_pids(&root, &on(80)), [12], "a main table goes before");
        let main = |pid, port| holds_in_main_table(&root, pid, &on(port));
        assert!(main(12, 80) && !main(9, 8080) && !main(12, 8080));
    }

    #[test]
    fn our_own_listener_is_ours() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ours: Vec<Listener> =
            crate::listeners(&Root::real()).into_iter().filter(|l| l.port == port).collect();
        assert_eq!(listener_pids(&Root::real(), &ours), [std::process::id()]);
    }
}
