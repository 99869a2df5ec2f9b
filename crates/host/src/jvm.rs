//! Performance counters of a Java virtual machine. HotSpot keeps them in a file that other processes can map, and that `jstat` reads too
//! (`hsperfdata`, OpenJDK's `perfMemory.hpp`, version 2).

use std::{
    fs::{File, Metadata},
    io::Read,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::fs::OFlags;
use samples::JvmSample;
use units::{Clock, Nanos};

use crate::Root;

/// The magic bytes, and the value of the next byte for little endian.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const LITTLE: u8 = 1;
/// The type `long`, as a JVM type descriptor.
const LONG: u8 = b'J';
/// Maximum number of bytes to read; files usually have 32 KiB.
const MOST: u64 = 1 << 20;
/// The garbage collector whose generations may each grow to the whole heap (G1).
const POLICY: &str = "sun.gc.policy.name";
const ONE_SPACE: &str = "GarbageFirst";

/// The counters of a process. `None`: not a JVM, started with `-XX:-UsePerfData`, or not readable for this user.
pub(crate) fn sample(root: &Root, pid: u32) -> Option<JvmSample> {
    counters(&file(root, pid)?).map(|counters| counters.sample())
}

/// Timeout of a full collection.
const COLLECTION: Nanos = Nanos::from_secs(60);

/// Live bytes in the heaps of these JVMs. Runs a full collection in each with the JDK's `jcmd`, as the same user or as root, and reads
/// the counters afterwards. The JVMs are stopped meanwhile.
///
/// # Errors
/// The error of `jcmd`; or no collection took place, as with `-XX:+DisableExplicitGC`.
pub fn live_heap(root: &Root, pids: &[u32]) -> Result<u64, String> {
    if pids.is_empty() {
        return Err("no Java virtual machine listens on that port".to_owned());
    }
    let mut live = 0;
    for pid in pids {
        let count =
            || sample(root, *pid).ok_or_else(|| format!("process {pid} has no counters (-XX:+UsePerfData)"));
        let before = count()?.gc_count;
        jcmd(root, *pid)?;
        let after = count()?;
        if after.gc_count == before {
            return Err(format!("process {pid} did not collect (try -XX:-DisableExplicitGC)"));
        }
        live += after.heap_used_bytes;
    }
    Ok(live)
}

/// Runs the `jcmd` of the process's JDK, otherwise the one on the path. The former only if no user but root and this one can have put it
/// there: a target must not choose what throng runs.
fn jcmd(root: &Root, pid: u32) -> Result<(), String> {
    let program = std::fs::read_link(root.path(format!("proc/{pid}/exe"))).ok();
    let own = program.and_then(|program| std::fs::canonicalize(program.parent()?.join("jcmd")).ok());
    let program = own.filter(|own| is_trusted(own)).unwrap_or_else(|| "jcmd".into());
    let failed = |e: std::io::Error| format!("{}: {e}", program.display());
    let mut command = Command::new(&program);
    command
        .args([&pid.to_string(), "GC.run"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let clock = Clock::start();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if clock.now() > COLLECTION => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{} {pid} GC.run took more than {COLLECTION}", program.display()));
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    let mut said = String::new();
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed").trim();
    if status.success() { Ok(()) } else { Err(format!("{} {pid} GC.run: {line}", program.display())) }
}

/// Whether a file and all folders above it are owned by root or this user, and no other user can write or replace it. In a sticky folder
/// like `/tmp` any user may create files, but only their owner may remove them.
fn is_trusted(file: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    let own = rustix::process::geteuid().as_raw();
    let is_safe =
        |about: &Metadata| about.mode() & 0o022 == 0 || about.is_dir() && about.mode() & STICKY != 0;
    let is_ours = |path: &Path| {
        let about = std::fs::symlink_metadata(path);
        about.is_ok_and(|about| [0, own].contains(&about.uid()) && is_safe(&about))
    };
    file.is_file() && file.ancestors().all(is_ours)
}

/// Reads the counters file. It is in `/tmp` as the process sees it, in a folder with the name of its user, and named by its pid in its
/// own namespace.
fn file(root: &Root, pid: u32) -> Option<Vec<u8>> {
    let numbers: String = root.field(format!("proc/{pid}/status"), "NSpid:")?;
    let own = numbers.split_whitespace().next_back()?;
    let folders = std::fs::read_dir(root.path(format!("proc/{pid}")).join("root").join("tmp")).ok()?;
    let of_java = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("hsperfdata_");
    let folders = folders.flatten().filter(|entry| of_java(&entry.file_name()));
    let owner = std::fs::metadata(root.path(format!("proc/{pid}"))).ok()?.uid();
    folders.map(|folder| folder.path().join(own)).find_map(|path| read(&path, owner))
}

/// Reads a regular file owned by the process's user. HotSpot itself requires this, because any user may write to `/tmp`.
fn read(path: &Path, owner: u32) -> Option<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    let mut bytes = Vec::new();
    (found.is_file() && found.uid() == owner).then_some(())?;
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The parsed header of a counters file.
struct Counters<'a> {
    bytes: &'a [u8],
    is_little: bool,
    first: usize,
    entries: usize,
}

fn counters(bytes: &[u8]) -> Option<Counters<'_>> {
    let [major, minor, accessible] = [bytes.get(5)?, bytes.get(6)?, bytes.get(7)?];
    // Not accessible: the JVM is still initialising it.
    if !bytes.starts_with(&MAGIC) || (*major, *minor) != (2, 0) || *accessible != 1 {
        return None;
    }
    let mut counters = Counters { bytes, is_little: bytes[4] == LITTLE, first: 0, entries: 0 };
    (counters.first, counters.entries) = (counters.int(24)?, counters.int(28)?);
    Some(counters)
}

impl Counters<'_> {
    fn int(&self, at: usize) -> Option<usize> {
        let four: [u8; 4] = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let int = if self.is_little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) };
        Some(int as usize)
    }

    fn long(&self, at: usize) -> Option<u64> {
        let eight: [u8; 8] = self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.is_little { u64::from_le_bytes(eight) } else { u64::from_be_bytes(eight) })
    }

    /// A zero-terminated string.
    fn text(&self, at: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes.get(at..)?.split(|byte| *byte == 0).next()?).ok()
    }

    /// Calls `see` for each entry with its name, its type and the position of its value.
    fn each(&self, mut see: impl FnMut(&str, u8, usize)) -> Option<()> {
        let mut at = self.first;
        for _ in 0..self.entries {
            let (len, name, data) = (self.int(at)?, at.checked_add(self.int(at + 4)?)?, self.int(at + 16)?);
            if let Some(name) = self.text(name) {
                see(name, *self.bytes.get(at + 12)?, at.checked_add(data)?);
            }
            // An entry of length zero would cause an endless loop.
            at = at.checked_add(len.max(20))?;
        }
        Some(())
    }

    fn sample(&self) -> JvmSample {
        let (mut sample, mut ticks, mut ticks_per_s) = (JvmSample::default(), 0, 0);
        let (mut most, mut is_one_space) = ([0; 2], false);
        // An incomplete entry is being written: it ends the list.
        let _ = self.each(|name, kind, at| {
            is_one_space |= name == POLICY && self.text(at) == Some(ONE_SPACE);
            let Some(value) = self.long(at).filter(|_| kind == LONG) else { return };
            // The young and the old generation. What older versions count as a third one is not heap.
            match name.split('.').collect::<Vec<_>>()[..] {
                ["sun", "os", "hrt", "frequency"] => ticks_per_s = value,
                ["sun", "gc", "generation", "0", "maxCapacity"] => most[0] = value,
                ["sun", "gc", "generation", "1", "maxCapacity"] => most[1] = value,
                ["sun", "gc", "generation", "0" | "1", "capacity"] => sample.heap_committed_bytes += value,
                ["sun", "gc", "generation", "0" | "1", "space", "0" | "1" | "2" | "3", "used"] => {
                    sample.heap_used_bytes += value;
                }
                ["sun", "gc", "collector", "0" | "1" | "2" | "3", "invocations"] => sample.gc_count += value,
                ["sun", "gc", "collector", "0" | "1" | "2" | "3", "time"] => ticks += value,
                _ => {}
            }
        });
        sample.heap_max_bytes =
            if is_one_space { most[1].min(most[0]) } else { most[0].saturating_add(most[1]) };
        sample.gc_pause_ns = (u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_s.max(1))) as u64;
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    /// A file with these counters, in this byte order.
    fn written(counters: &[(&str, u64)], is_little: bool) -> Vec<u8> {
        let int = |n: usize| if is_little { (n as u32).to_le_bytes() } else { (n as u32).to_be_bytes() };
        let long = |n: u64| if is_little { n.to_le_bytes() } else { n.to_be_bytes() };
        let mut bytes = vec![0xca, 0xfe, 0xc0, 0xc0, u8::from(is_little), 2, 0, 1];
        bytes.resize(24, 0);
        bytes.extend([int(32), int(counters.len())].concat());
        for (name, value) in counters {
            // The name after the header, padded to the alignment of a long.
            let data = (20 + name.len() + 1).next_multiple_of(8);
            let is_text = *name == POLICY;
            let value = if is_text { format!("{ONE_SPACE}\0\0\0\0").into() } else { long(*value).to_vec() };
            bytes.extend([int(data + value.len()), int(20), int(0)].concat());
            bytes.extend([if is_text { b'B' } else { LONG }, 0, 2, 3]);
            bytes.extend(int(data));
            bytes.extend(name.bytes());
            bytes.resize(bytes.len() + data - 20 - name.len(), 0);
            bytes.extend(value);
        }
        bytes
    }

    const COUNTERS: &[(&str, u64)] = &[
        ("sun.os.hrt.frequency", 1_000),
        ("sun.gc.generation.0.space.0.used", 5),
        ("sun.gc.generation.0.space.1.used", 70),
        ("sun.gc.generation.1.space.0.used", 900),
        ("sun.gc.generation.2.space.0.used", 10_000),
        ("sun.gc.generation.0.capacity", 1_000),
        ("sun.gc.generation.1.capacity", 20_000),
        ("sun.gc.generation.1.maxCapacity", 300_000),
        ("sun.gc.collector.0.invocations", 7),
        ("sun.gc.collector.2.invocations", 2),
        ("sun.gc.collector.0.time", 30),
        ("sun.gc.collector.2.time", 4),
        ("java.threads.live", 12),
    ];
    const EXPECTED: JvmSample = JvmSample {
        heap_used_bytes: 975,
        heap_committed_bytes: 21_000,
        heap_max_bytes: 300_000,
        gc_count: 9,
        gc_pause_ns: 34_000_000,
    };

    #[test]
    fn a_heap_grows_to_the_sum_of_its_generations_but_in_g1() {
        // G1 pads both by a few words.
        let each = [("sun.gc.generation.0.maxCapacity", 1_024), ("sun.gc.generation.1.maxCapacity", 1_008)];
        let most = |all: &[(&str, u64)]| counters(&written(all, true)).map(|all| all.sample().heap_max_bytes);
        assert_eq!(most(&each), Some(2_032));
        assert_eq!(most(&[&each[..], &[(POLICY, 0)]].concat()), Some(1_008));
        assert_eq!(most(&[(POLICY, 0)]), Some(0));
    }

    #[test]
    fn counters_are_read_in_either_byte_order() {
        for is_little in [true, false] {
            let machine = Machine::with(&[("proc/70/status", "Name:\tjava\nNSpid:\t70\t3\n")]);
            let folder = machine.root().path("proc/70").join("root").join("tmp/hsperfdata_play");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("3"), written(COUNTERS, is_little)).unwrap();
            assert_eq!(sample(&machine.root(), 70), Some(EXPECTED));
        }
    }

    #[test]
    fn a_file_of_another_kind_is_none() {
        let whole = written(COUNTERS, true);
        assert_eq!(counters(&whole).map(|counters| counters.sample()), Some(EXPECTED));
        for (at, byte) in [(0, 0), (5, 1), (7, 0)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert!(counters(&other).is_none(), "{at}");
        }
        // Truncated anywhere, or with any byte changed, it is read without a panic.
        for len in 0..whole.len() {
            counters(&whole[..len]).map(|counters| counters.sample());
        }
        for at in 8..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut other = whole.clone();
                other[at] = byte;
                counters(&other).map(|counters| counters.sample());
            }
        }
        let machine = Machine::with(&[("proc/70/status", "NSpid:\t70\n")]);
        assert_eq!(sample(&machine.root(), 70), None);
    }

    #[test]
    fn the_live_heap_is_read_after_a_collection() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let machine = Machine::with(&[("proc/70/status", "NSpid:\t70\n"), ("jdk/java", ""), ("tmp/x", "")]);
        let root = machine.root();
        let folder = root.path("proc/70").join("root").join("tmp/hsperfdata_x");
        std::fs::create_dir_all(&folder).unwrap();
        let counters = |used: u64, collections: u64| {
            let counters =
                [("sun.gc.generation.1.space.0.used", used), ("sun.gc.collector.1.invocations", collections)];
            written(&counters, true)
        };
        symlink(root.path("jdk/java"), root.path("proc/70/exe")).unwrap();
        let after = root.path("tmp/after");
        let jcmd = |then: &str| {
            let program = root.path("jdk/jcmd");
            std::fs::write(&program, format!("#!/bin/sh\n[ \"$*\" = '70 GC.run' ] && {then}\n")).unwrap();
            std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        std::fs::write(folder.join("70"), counters(9_000, 3)).unwrap();
        jcmd("true");
        let idle = live_heap(&root, &[70]).unwrap_err();
        assert!(idle.starts_with("process 70 did not collect"), "{idle}");
        jcmd("{ echo 70: no such process >&2; exit 1; }");
        let failed = live_heap(&root, &[70]).unwrap_err();
        assert!(failed.ends_with("jdk/jcmd 70 GC.run: 70: no such process"), "{failed}");
        std::fs::write(&after, counters(2_400, 4)).unwrap();
        jcmd(&format!("cp '{}' '{}'", after.display(), folder.join("70").display()));
        assert_eq!(live_heap(&root, &[70]), Ok(2_400));
        assert!(live_heap(&root, &[]).unwrap_err().starts_with("no Java virtual machine"));
    }

    #[test]
    fn only_a_plain_file_of_the_same_user_is_read() {
        let machine = Machine::with(&[("proc/70/status", "NSpid:\t70\n"), ("elsewhere", "")]);
        let folder = machine.root().path("proc/70").join("root").join("tmp/hsperfdata_x");
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("70")).unwrap();
        assert_eq!(sample(&machine.root(), 70), None);
        std::fs::remove_file(folder.join("70")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.join("70"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(sample(&machine.root(), 70), None, "nobody writes to it, and nobody waits");
    }
}
