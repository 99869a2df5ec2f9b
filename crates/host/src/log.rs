//! Error messages in the target's logs during the run: its standard output and error, and the files that it appends to. Only regular
//! files are read, and at most a few KiB of each per sample.

mod reader;

use std::{
    collections::HashSet,
    fs::{File, Metadata},
    io::{Read, Seek, SeekFrom},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::PathBuf,
};

use rustix::fs::OFlags;
use samples::{LogKind, LogLine};

use crate::Root;
pub(crate) use reader::LogReader;

/// Maximum descriptor number to check: a server opens its logs early.
const MAX_DESCRIPTORS: u32 = 128;
/// Maximum number of processes, and of files in total.
const MAX_PROCESSES: usize = 8;
const MAX_FILES: usize = 16;
/// Maximum bytes of a file per sample: this much after the end of the last sample, and this much before the end of the file.
const PIECE: u64 = 4 << 10;
/// Maximum length of a quoted line, in characters.
const MAX_LETTERS: usize = 200;

/// The patterns of each kind of line, in lower case; the first match wins. The comparison ignores case.
const SAID: &[(&str, LogKind)] = &[
    ("unable to create native thread", LogKind::Threads),
    ("unable to create new native thread", LogKind::Threads),
    ("can't start new thread", LogKind::Threads),
    // In a JVM, but outside its heap.
    ("direct buffer memory", LogKind::Memory),
    ("outofdirectmemoryerror", LogKind::Memory),
    ("outofmemoryerror: metaspace", LogKind::Memory),
    ("outofmemoryerror", LogKind::Heap),
    ("javascript heap out of memory", LogKind::Heap),
    ("heap exhausted", LogKind::Heap),
    ("too many open files", LogKind::OpenFiles),
    ("no file descriptors available", LogKind::OpenFiles),
    ("emfile", LogKind::OpenFiles),
    ("cannot allocate memory", LogKind::Memory),
    ("out of memory", LogKind::Memory),
    ("memoryerror", LogKind::Memory),
    ("enomem", LogKind::Memory),
    ("cannot assign requested address", LogKind::Ports),
    ("eaddrnotavail", LogKind::Ports),
    // HAProxy.
    ("no free ports", LogKind::Ports),
    ("worker_connections are not enough", LogKind::Connections),
    ("limiting connections", LogKind::Connections),
    // Apache and PHP-FPM.
    ("reached maxrequestworkers", LogKind::Connections),
    ("reached pm.max_children", LogKind::Connections),
    ("limiting requests", LogKind::Error),
    // gunicorn: a worker that did not respond to its master.
    ("worker timeout", LogKind::Error),
    ("exception in thread", LogKind::Error),
    ("panicked at", LogKind::Error),
    ("panic:", LogKind::Error),
    ("fatal error", LogKind::Error),
    ("segmentation fault", LogKind::Error),
    ("uncaught exception", LogKind::Error),
    ("unhandled", LogKind::Error),
    ("traceback (most recent call last)", LogKind::Error),
];

/// Patterns for an address that could not be assigned although ports are free: that of a listener, or a source address, that the host does
/// not have; and loopback of IPv6 where IPv6 is turned off, to which `localhost` may resolve.
const HAS_PORTS: [&str; 5] = ["bind", "listen", "[::1]", " ::1:", "[0:0:0:0:0:0:0:1]"];
/// What Java calls the error of a dial, too.
const OF_JAVA: &str = "bindexception";

/// Patterns for a client that has disconnected, as throng does after a timeout and at the end of a run. Errors that follow from it are
/// not the cause.
const CLIENT_GONE: [&str; 13] = [
    "broken pipe",
    "brokenpipe",
    "epipe",
    "connection reset",
    "connectionreset",
    "econnreset",
    "connection aborted",
    "connectionaborted",
    "client disconnect",
    "clientdisconnect",
    "client closed",
    "closed by client",
    "context canceled",
];

/// A regular file that a process writes to.
#[derive(Debug)]
struct Open {
    /// `/proc/PID/fd/N`: the name that it was opened with, even if it was renamed.
    link: PathBuf,
    /// Its path at that time; used after the process has ended.
    path: PathBuf,
    name: String,
    /// Device and inode, to recognise a replaced file.
    is: (u64, u64),
    read: u64,
}

/// The logs of some processes from a point in time on.
#[derive(Debug)]
struct Logs {
    root: Root,
    files: Vec<Open>,
    found: Vec<LogLine>,
}

impl Logs {
    /// Skips the present content of the logs.
    fn from_now_on(root: &Root, pids: impl Iterator<Item = u32>) -> Logs {
        let mut logs = Logs { root: root.clone(), files: Vec::new(), found: Vec::new() };
        logs.open(pids);
        logs
    }

    /// Adds the files that these processes have opened meanwhile.
    fn open(&mut self, pids: impl Iterator<Item = u32>) {
        let mut known: HashSet<(u64, u64)> = self.files.iter().map(|open| open.is).collect();
        for pid in pids.take(MAX_PROCESSES) {
            for fd in 0..MAX_DESCRIPTORS {
                let link = self.root.path(format!("proc/{pid}/fd/{fd}"));
                let Some(found) = std::fs::metadata(&link).ok().filter(Metadata::is_file) else { continue };
                let is = (found.dev(), found.ino());
                let is_log = fd > 0 && self.is_written(pid, fd);
                if self.files.len() < MAX_FILES && is_log && known.insert(is) {
                    let path = std::fs::read_link(&link).unwrap_or_default();
                    let name = plain(&path.to_string_lossy());
                    self.files.push(Open { link, path, name, is, read: found.size() });
                }
            }
        }
    }

    /// Whether it was opened for writing only. A database, for example, is read too.
    fn is_written(&self, pid: u32, fd: u32) -> bool {
        let octal: Option<String> = self.root.field(format!("proc/{pid}/fdinfo/{fd}"), "flags:");
        let flags = octal.and_then(|octal| u32::from_str_radix(&octal, 8).ok());
        // Standard streams may be open for both, if a shell redirected a terminal.
        flags.is_some_and(|flags| flags & 0b11 == OFlags::WRONLY.bits() || fd <= 2 && flags & 0b11 != 0)
    }

    /// The first line of each kind written since the start.
    fn sample(&mut self) -> &[LogLine] {
        for open in &mut self.files {
            let Some(text) = open.written() else { continue };
            let lines: Vec<&str> = text.lines().collect();
            for (at, line) in lines.iter().enumerate() {
                let kind = kind(line).filter(|kind| self.found.iter().all(|known| known.kind != *kind));
                let kind = kind.filter(|kind| *kind != LogKind::Error || !is_of_client(&lines[at..]));
                let line = kind.map(|kind| LogLine { kind, file: open.name.clone(), line: plain(line) });
                self.found.extend(line);
            }
        }
        &self.found
    }
}

impl Open {
    /// The text written since the last sample, without the middle if it is long. `None` if there is none.
    fn written(&mut self) -> Option<String> {
        // A process that has ended has no descriptors, but its last lines matter most.
        let place = if self.link.exists() { &self.link } else { &self.path };
        let size = std::fs::metadata(place).ok()?.size();
        if size < self.read {
            // The file was truncated.
            self.read = 0;
        }
        if size == self.read {
            return None;
        }
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let mut file = File::options().read(true).custom_flags(flags).open(place).ok()?;
        let found = file.metadata().ok().filter(Metadata::is_file)?;
        (found.dev(), found.ino()).eq(&self.is).then_some(())?;
        let begin = std::mem::replace(&mut self.read, size);
        let mut bytes = Vec::new();
        let first = (size - begin).min(PIECE);
        let last = (size - begin - first).min(PIECE);
        for (from, len) in [(begin, first), (size - last, last)] {
            file.seek(SeekFrom::Start(from)).ok()?;
            file.by_ref().take(len).read_to_end(&mut bytes).ok()?;
            bytes.push(b'\n');
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn kind(line: &str) -> Option<LogKind> {
    let line = line.to_ascii_lowercase();
    let kind = SAID.iter().find(|(said, _)| line.contains(said)).map(|(_, kind)| *kind);
    kind.filter(|kind| *kind != LogKind::Ports || !has_ports(&line))
}

/// Whether a line in lower case names another reason than a lack of ports.
fn has_ports(line: &str) -> bool {
    let line = line.replace(OF_JAVA, "");
    HAS_PORTS.iter().any(|said| line.contains(said))
}

/// Whether the error in the first of these lines is about a client that has disconnected: that line, the indented ones after it, or the
/// next one contains a pattern. Python and Node.js name the error there.
fn is_of_client(lines: &[&str]) -> bool {
    let is_inner = |line: &&&str| line.is_empty() || line.starts_with([' ', '\t']);
    let inner = lines.iter().skip(1).take_while(is_inner).count();
    lines.iter().take(inner + 2).any(|line| {
        let line = line.to_ascii_lowercase();
        CLIENT_GONE.iter().any(|said| line.contains(said))
    })
}

/// Makes a line safe for a terminal: truncated, with control and bidirectional characters escaped.
fn plain(line: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let line = line.trim();
    let mut shown = String::new();
    for c in line.chars().take(MAX_LETTERS) {
        if steers(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    if line.chars().count() > MAX_LETTERS {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    /// A process whose descriptors 1 and 2 are these files.
    fn machine(files: &[(u32, &str, &str)]) -> Machine {
        let machine = Machine::with(&[]);
        for (fd, name, flags) in files {
            machine.write(name, "OutOfMemoryError of yesterday\n");
            machine.link(&format!("proc/7/fd/{fd}"), machine.root().path(name).to_str().unwrap());
            machine
                .write(&format!("proc/7/fdinfo/{fd}"), &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t29\n"));
        }
        machine
    }

    fn append(machine: &Machine, name: &str, text: &str) {
        let path = machine.root().path(name);
        let old = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, old + text).unwrap();
    }

    fn said(logs: &mut Logs) -> Vec<(LogKind, String)> {
        logs.sample().iter().map(|found| (found.kind, found.line.clone())).collect()
    }

    #[test]
    fn an_error_of_a_client_that_has_gone_is_no_cause() {
        let machine = machine(&[(2, "err", "0100001")]);
        let mut logs = Logs::from_now_on(&machine.root(), [7].into_iter());
        let python = |error: &str| {
            let of_handler = "  File \"server.py\", line 9, in respond\n    self.wfile.write(body)\n";
            format!("Traceback (most recent call last):\n{of_handler}{error}\n")
        };
        for text in [
            "Exception in thread \"http-3\" java.io.IOException: Broken pipe\n\tat a.b(C.java:1)\n"
                .to_owned(),
            "      throw er; // Unhandled 'error' event\n      ^\n\nError: write EPIPE\n    at x\n"
                .to_owned(),
            python("BrokenPipeError: [Errno 32] Broken pipe"),
            python("ConnectionResetError: [Errno 104] Connection reset by peer"),
        ] {
            append(&machine, "err", &text);
            assert_eq!(said(&mut logs), [], "{text}");
        }
        append(&machine, "err", &python("KeyError: 'id'"));
        let expected = (LogKind::Error, "Traceback (most recent call last):".to_owned());
        assert_eq!(said(&mut logs), [expected]);
    }

    #[test]
    fn errors_written_since_are_quoted_the_first_of_each_kind() {
        let machine = machine(&[(1, "out", "0100001"), (5, "error.log", "0102001")]);
        let mut logs = Logs::from_now_on(&machine.root(), [7].into_iter());
        assert_eq!(said(&mut logs), [], "what was there before is not of this run");
        append(
            &machine,
            "out",
            "all is well\nException in thread \"a\" java.lang.OutOfMemoryError: Java heap\n",
        );
        append(&machine, "out", "\tat Main.main(Main.java:3)\njava.lang.OutOfMemoryError again\n");
        append(&machine, "error.log", "accept4() failed (24: Too many open files)\n");
        let heap =
            (LogKind::Heap, "Exception in thread \"a\" java.lang.OutOfMemoryError: Java heap".to_owned());
        let files = (LogKind::OpenFiles, "accept4() failed (24: Too many open files)".to_owned());
        assert_eq!(said(&mut logs), [heap.clone(), files.clone()]);
        assert!(logs.sample()[1].file.ends_with("/error.log"), "{:?}", logs.found);
        assert_eq!(said(&mut logs), [heap, files], "they stay");
    }

    #[test]
    fn the_last_words_of_a_process_are_read_after_its_end() {
        let machine = machine(&[(2, "err", "0100001")]);
        let mut logs = Logs::from_now_on(&machine.root(), [7].into_iter());
        append(&machine, "err", "FATAL ERROR: JavaScript heap out of memory\n");
        let descriptor = machine.root().path("proc/7/fd/2");
        std::fs::remove_file(&descriptor).unwrap();
        let heap = (LogKind::Heap, "FATAL ERROR: JavaScript heap out of memory".to_owned());
        assert_eq!(said(&mut logs), std::slice::from_ref(&heap));
        // Another file with the same name is ignored.
        let path = machine.root().path("err");
        std::fs::rename(&path, machine.root().path("err.1")).unwrap();
        machine.write(
            "err",
            "Cannot allocate memory, and this is longer than what was there before, whatever that was\n",
        );
        assert_eq!(said(&mut logs), [heap]);
    }

    #[test]
    fn a_line_can_steer_no_terminal_and_has_an_end() {
        let machine = machine(&[(2, "err", "0100002")]);
        let mut logs = Logs::from_now_on(&machine.root(), [7].into_iter());
        append(&machine, "err", &format!("panic: \u{1b}[2J\u{202e}x{}\n", "y".repeat(900)));
        let [(LogKind::Error, line)] = &said(&mut logs)[..] else { panic!("{:?}", logs.found) };
        assert!(line.starts_with("panic: \\u{1b}[2J\\u{202e}xyyy") && line.ends_with("y…"), "{line}");
        assert!(line.chars().count() < MAX_LETTERS + 20, "{line}");
    }

    #[test]
    fn limits_of_nginx_are_known() {
        let check = |line: &str, expected| assert_eq!(kind(line), expected, "{line}");
        check("2026/01/02 [error] 7#7: *9 limiting requests, excess: 5.4 by zone", Some(LogKind::Error));
        check("2026/01/02 [error] 7#7: *9 limiting connections by zone \"a\"", Some(LogKind::Connections));
        check("2026/01/02 [warn] 7#7: *9 delaying request, excess: 1.0", None);
    }

    #[test]
    fn a_lack_of_ports_is_known_by_the_dial_that_failed() {
        let check = |expected, line: &str| assert_eq!(kind(line), expected, "{line}");
        let ports = Some(LogKind::Ports);
        check(
            ports,
            "2026/01/02 [crit] 7#7: *9 connect() to 127.0.0.1:9000 failed (99: Cannot assign requested address) while connecting to upstream",
        );
        check(ports, "Connect() failed for backend nodes: no free ports.");
        check(ports, "dial tcp 127.0.0.1:9000: connect: cannot assign requested address");
        check(ports, "Error: connect EADDRNOTAVAIL 10.0.0.1:9000 - Local (0.0.0.0:0)");
        check(ports, "Exception in thread \"a\" java.net.BindException: Cannot assign requested address");
        check(ports, "java.net.NoRouteToHostException: Cannot assign requested address");
        check(ports, "connect() to [2001:db8::1]:9000 failed (99: Cannot assign requested address)");
        // A listener, a source address, and IPv6 that is turned off.
        check(None, "bind() to 10.0.0.9:80 failed (99: Cannot assign requested address)");
        check(None, "listen tcp 10.0.0.9:80: bind: cannot assign requested address");
        check(None, "Error: listen EADDRNOTAVAIL: address not available 10.0.0.9:80");
        check(None, "dial tcp 10.0.0.9:0->10.0.0.1:80: bind: cannot assign requested address");
        check(
            None,
            "connect() to [::1]:9000 failed (99: Cannot assign requested address) while connecting to upstream",
        );
        check(None, "Error: connect EADDRNOTAVAIL ::1:9000 - Local (:::0)");
    }

    #[test]
    fn limits_of_process_pools_are_known() {
        let check = |line: &str, expected| assert_eq!(kind(line), Some(expected), "{line}");
        let apache =
            "[mpm_prefork:error] [pid 9] AH00161: server reached MaxRequestWorkers setting, consider raising";
        check(apache, LogKind::Connections);
        check("WARNING: [pool www] server reached pm.max_children setting (5)", LogKind::Connections);
        check("[2026-01-02] [7] [CRITICAL] WORKER TIMEOUT (pid:9)", LogKind::Error);
    }

    #[test]
    fn only_plain_files_that_are_written_are_read_and_little_of_them() {
        let machine = machine(&[(1, "out", "0100001"), (4, "data", "0100002"), (6, "read", "0100000")]);
        machine.link("proc/7/fd/2", "socket:[70]");
        machine.link("proc/7/fd/3", "/dev/zero");
        machine.write("proc/7/fdinfo/3", "flags:\t0100001\n");
        let mut logs = Logs::from_now_on(&machine.root(), [7].into_iter());
        assert_eq!(logs.files.iter().map(|open| open.read).collect::<Vec<_>>(), [30]);
        append(&machine, "data", "too many open files\n");
        append(&machine, "read", "too many open files\n");
        // A busy access log: the beginning and the end of new text are read.
        let noise = "GET / 200\n".repeat(20_000);
        append(
            &machine,
            "out",
            &format!("out of memory\n{noise}EMFILE\n{noise}MemoryError: no\nheap exhausted\n"),
        );
        let kinds: Vec<LogKind> = said(&mut logs).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [LogKind::Memory, LogKind::Heap]);
        // Truncated, and written to again.
        machine.write("out", "emfile\n");
        assert_eq!(said(&mut logs).len(), 3);
    }

    #[test]
    fn a_log_opened_later_is_read_from_there() {
        let machine = machine(&[(1, "out", "0100001")]);
        let mut logs = Logs::from_now_on(&machine.root(), [7].into_iter());
        machine.write("new", "");
        machine.link("proc/7/fd/9", machine.root().path("new").to_str().unwrap());
        machine.write("proc/7/fdinfo/9", "flags:\t02000001\n");
        logs.open([7].into_iter());
        logs.open([7].into_iter());
        append(&machine, "new", "unable to create native thread: possibly out of memory\n");
        assert_eq!(said(&mut logs)[0].0, LogKind::Threads);
        assert_eq!(logs.files.len(), 2);
    }
}
