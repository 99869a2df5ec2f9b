//! Changes applied and undone on a fake machine, with an ip(8) that only records its arguments.

use super::*;
use crate::fake::Machine;
use plan::Network;
use std::net::IpAddr;

const TRIE: &str = "Local:\n  |-- 127.0.0.0\n     /8 host LOCAL\n";

struct Scene {
    machine: Machine,
    /// The arguments of ip(8).
    commands: Vec<String>,
    /// ip(8) fails if this is among its arguments.
    refuses: &'static str,
}

impl Scene {
    fn new() -> Scene {
        let machine = Machine::with(&[
            ("proc/sys/kernel/random/boot_id", "boot-1\n"),
            ("proc/sys/net/core/somaxconn", "16\n"),
            ("proc/sys/net/ipv4/tcp_mem", "1\t2\t3\n"),
            ("proc/self/status", "CapEff:\t0000000000001000\n"),
            ("proc/net/fib_trie", TRIE),
        ]);
        machine.link("proc/self/ns/net", "net:[1]");
        Scene { machine, commands: Vec::new(), refuses: "nothing" }
    }

    fn file(&self) -> PathBuf {
        self.machine.root().path("state/throng/doctor.state")
    }

    /// The changes made, or the error.
    fn fix(&mut self, repairs: &[Repair]) -> Result<Vec<String>, String> {
        let (root, file) = (self.machine.root(), self.file());
        let mut done = Vec::new();
        let mut ip = |args: &[String]| run_ip(&mut self.commands, self.refuses, &self.machine, args);
        match fix(&root, &file, repairs, &mut ip, &mut |repair| done.push(repair.to_string())) {
            Ok(left) => {
                done.extend(left.iter().map(|repair| format!("left: {repair}")));
                Ok(done)
            }
            Err(why) => Err(why.to_string().replace(&file.display().to_string(), "FILE")),
        }
    }

    fn undo(&mut self) -> Result<Vec<String>, String> {
        let (root, file) = (self.machine.root(), self.file());
        let mut done = Vec::new();
        let mut ip = |args: &[String]| run_ip(&mut self.commands, self.refuses, &self.machine, args);
        match undo(&root, &file, &mut ip, &mut |undone| done.push(undone.to_string())) {
            Ok(()) => Ok(done),
            Err(why) => Err(why.to_string().replace(&file.display().to_string(), "FILE")),
        }
    }

    fn read(&self, file: &str) -> String {
        self.machine.root().read(file).unwrap().trim().to_owned()
    }
}

/// Records the arguments, and updates the list of local addresses and networks.
fn run_ip(commands: &mut Vec<String>, refuses: &str, machine: &Machine, args: &[String]) -> io::Result<()> {
    let text = args.join(" ");
    if text.contains(refuses) {
        return Err(io::Error::other("RTNETLINK answers: No"));
    }
    commands.push(text);
    let place = args.iter().find_map(|word| word.split_once('/')).unwrap();
    let entry = format!("  |-- {}\n     /{} host LOCAL\n", place.0, place.1);
    let trie = machine.root().read("proc/net/fib_trie").unwrap();
    machine
        .write("proc/net/fib_trie", &if args[1] == "add" { trie + &entry } else { trie.replace(&entry, "") });
    Ok(())
}

fn somaxconn(value: &str) -> Repair {
    Repair::Setting { name: "net.core.somaxconn".into(), value: value.into() }
}

fn address(text: &str) -> Repair {
    Repair::Address { address: text.parse::<IpAddr>().unwrap(), device: "lo".into() }
}

#[test]
fn fixes_are_undone_in_reverse() {
    let mut scene = Scene::new();
    let memory = Repair::Setting { name: "net.ipv4.tcp_mem".into(), value: "5 6 7".into() };
    let route = Repair::Route(Network::parse("10.9.0.0/16").unwrap());
    let repairs = [somaxconn("4096"), memory, address("10.77.0.1"), route];
    let done = scene.fix(&repairs).unwrap();
    assert_eq!(done, repairs.each_ref().map(ToString::to_string));
    assert_eq!(
        (scene.read("proc/sys/net/core/somaxconn"), scene.read("proc/sys/net/ipv4/tcp_mem")),
        ("4096".into(), "5 6 7".into())
    );
    // Applied again, each setting has its value, and the values recorded first are kept.
    assert_eq!(scene.fix(&[somaxconn("4096")]).unwrap(), Vec::<String>::new());
    assert_eq!(scene.fix(&[somaxconn("8192")]).unwrap(), ["sysctl -w net.core.somaxconn=8192"]);

    let undone = scene.undo().unwrap();
    let expected = [
        "sysctl -w net.core.somaxconn=4096",
        "ip route del local 10.9.0.0/16 dev lo",
        "ip addr del 10.77.0.1/32 dev lo",
        "sysctl -w net.ipv4.tcp_mem='1 2 3'",
        "sysctl -w net.core.somaxconn=16",
    ];
    assert_eq!(undone, expected);
    assert_eq!(
        (scene.read("proc/sys/net/core/somaxconn"), scene.read("proc/sys/net/ipv4/tcp_mem")),
        ("16".into(), "1 2 3".into())
    );
    assert_eq!(scene.commands.len(), 4, "{:?}", scene.commands);
    assert!(!scene.file().exists());
    assert_eq!(scene.undo().unwrap(), Vec::<String>::new(), "nothing is left to take back");
}

/// The record precedes the change: however far that got, it can be undone.
#[test]
fn a_crash_between_note_and_change_is_survived() {
    let mut scene = Scene::new();
    scene.refuses = "10.77.0.2";
    let error = scene.fix(&[somaxconn("4096"), address("10.77.0.1"), address("10.77.0.2")]).unwrap_err();
    assert_eq!(error, "ip addr add 10.77.0.2/32 dev lo: RTNETLINK answers: No");
    let noted = std::fs::read_to_string(scene.file()).unwrap();
    assert!(
        noted.ends_with(
            "setting net.core.somaxconn = 4096 was 16\naddress 10.77.0.1 lo\naddress 10.77.0.2 lo\n"
        )
    );
    // A setting that was recorded but not changed yet.
    std::fs::write(scene.file(), noted + "setting net.ipv4.tcp_mem = 5 6 7 was 1 2 3\n").unwrap();

    // Undoing is interrupted too, and continues when repeated.
    scene.refuses = "del 10.77.0.1";
    assert!(scene.undo().unwrap_err().contains("No"));
    assert_eq!(scene.read("proc/sys/net/core/somaxconn"), "4096");
    let left = std::fs::read_to_string(scene.file()).unwrap();
    assert!(left.ends_with("4096 was 16\naddress 10.77.0.1 lo\n"), "what is taken back is forgotten: {left}");
    scene.refuses = "nothing";
    let undone = scene.undo().unwrap();
    assert_eq!(undone, ["ip addr del 10.77.0.1/32 dev lo", "sysctl -w net.core.somaxconn=16"]);
    assert_eq!(scene.read("proc/sys/net/ipv4/tcp_mem"), "1\t2\t3", "never touched");
    assert!(!scene.file().exists());
}

#[test]
fn later_changes_by_others_are_left() {
    let mut scene = Scene::new();
    scene.fix(&[somaxconn("4096")]).unwrap();
    scene.machine.write("proc/sys/net/core/somaxconn", "9000\n");
    let undone = scene.undo().unwrap();
    let left = "not undone, changed by something else since: sysctl -w net.core.somaxconn=4096 is 9000 now";
    assert_eq!(undone, [left]);
    assert_eq!(scene.read("proc/sys/net/core/somaxconn"), "9000");
    assert!(!scene.file().exists());
}

#[test]
fn a_state_file_of_another_place_or_time_is_refused() {
    let mut scene = Scene::new();
    scene.fix(&[somaxconn("4096")]).unwrap();
    let link = scene.machine.root().path("proc/self/ns/net");
    std::fs::remove_file(&link).unwrap();
    scene.machine.link("proc/self/ns/net", "net:[2]");
    let elsewhere = "nothing was changed: FILE records changes in another network namespace, net:[1]; undo them there, or remove the file";
    assert_eq!(scene.undo().unwrap_err(), elsewhere);
    assert_eq!(scene.fix(&[somaxconn("8192")]).unwrap_err(), elsewhere);
    assert_eq!(scene.read("proc/sys/net/core/somaxconn"), "4096");

    scene.machine.write("proc/sys/kernel/random/boot_id", "boot-2\n");
    let earlier =
        "nothing was changed: FILE is from an earlier boot, and its changes ended with that; remove the file";
    assert_eq!(scene.undo().unwrap_err(), earlier);
    assert_eq!(scene.read("proc/sys/net/core/somaxconn"), "4096");
    // A new change starts a new file, without the old content.
    scene.fix(&[somaxconn("8192")]).unwrap();
    assert_eq!(scene.undo().unwrap(), ["sysctl -w net.core.somaxconn=4096"]);

    std::fs::write(scene.file(), "something else\n").unwrap();
    let strange = "nothing was changed: FILE is not trusted: the line \"throng.doctor.state/1\" is missing";
    assert_eq!(scene.undo().unwrap_err(), strange);
}

/// What a caller of `sudo throng doctor --undo` may have placed below a HOME that sudo keeps.
#[test]
fn a_state_file_that_others_could_have_made_is_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let mut scene = Scene::new();
    scene.fix(&[somaxconn("4096")]).unwrap();
    let (file, note) = (scene.file(), std::fs::read_to_string(scene.file()).unwrap());
    let check = |scene: &mut Scene, why: &str| {
        let error = scene.undo().unwrap_err();
        assert!(error.starts_with("nothing was changed: FILE is not trusted: "), "{error}");
        assert!(error.contains(why), "{why}: {error}");
        assert_eq!(scene.read("proc/sys/net/core/somaxconn"), "4096", "{why}");
    };
    // A setting that doctor never changes, besides one that it does.
    std::fs::write(&file, format!("{note}setting kernel.core_pattern = core was |/tmp/x\n")).unwrap();
    scene.machine.write("proc/sys/kernel/core_pattern", "core\n");
    check(
        &mut scene,
        "line 5 is not a change that doctor makes: \"setting kernel.core_pattern = core was |/tmp/x\"",
    );
    assert_eq!(scene.read("proc/sys/kernel/core_pattern"), "core");
    std::fs::write(&file, &note).unwrap();

    let mode = |mode: u32| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o622);
    check(&mut scene, "other users can write it: mode 0622");
    mode(0o600);
    let (aside, second) = (file.with_extension("aside"), file.with_extension("second"));
    std::fs::hard_link(&file, &second).unwrap();
    check(&mut scene, "2 names");
    std::fs::remove_file(&second).unwrap();
    std::fs::rename(&file, &aside).unwrap();
    symlink(&aside, &file).unwrap();
    check(&mut scene, "it is a symbolic link");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    check(&mut scene, "it is not a regular file");
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&aside, &file).unwrap();
    let folder = file.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    check(&mut scene, "can replace it");
    assert!(scene.fix(&[somaxconn("8192")]).unwrap_err().contains("can replace it"));
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    if std::fs::metadata(&file).unwrap().uid() == 0 {
        // As root: owned by another user, and in another user's folder.
        std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
        check(&mut scene, "it is owned by user 12345, but throng runs as user 0");
        std::os::unix::fs::chown(&file, Some(0), None).unwrap();
        std::os::unix::fs::chown(folder, Some(12345), None).unwrap();
        check(&mut scene, "user 12345 can replace it");
        std::os::unix::fs::chown(folder, Some(0), None).unwrap();
    }
    assert_eq!(scene.undo().unwrap(), ["sysctl -w net.core.somaxconn=16"], "as it was it is doctor's");
}

/// Writing does not follow links created by others.
#[test]
fn a_state_file_is_not_written_through_a_link() {
    let mut scene = Scene::new();
    let (file, victim) = (scene.file(), scene.machine.root().path("victim"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, file.with_extension("new")).unwrap();
    scene.fix(&[somaxconn("4096")]).unwrap();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(scene.undo().unwrap(), ["sysctl -w net.core.somaxconn=16"]);
}

#[test]
fn without_rights_nothing_is_changed_or_noted() {
    let mut scene = Scene::new();
    scene.machine.write("proc/self/status", "CapEff:\t0000000000000000\n");
    let missing = Repair::Setting { name: "net.core.none".into(), value: "1".into() };
    let error = scene.fix(&[somaxconn("4096"), address("10.77.0.1"), missing]).unwrap_err();
    let expected = "nothing was changed; these require root:\n  ip addr add 10.77.0.1/32 dev lo\n  \
        sysctl -w net.core.none=1";
    assert_eq!(error, expected);
    let error_of_one = "nothing was changed; these require root:\n  ip addr add 10.77.0.1/32 dev lo";
    assert_eq!(scene.read("proc/sys/net/core/somaxconn"), "16");
    assert!(!scene.file().exists() && scene.commands.is_empty());
    // Whether the state file could be written does not matter either.
    scene.machine.write("state", "not a folder");
    assert_eq!(scene.fix(&[address("10.77.0.1")]).unwrap_err(), error_of_one);
}

/// In a container root may make some changes but not all; the permitted ones are made.
#[test]
fn changes_that_root_may_not_make_are_left() {
    let mut scene = Scene::new();
    scene.machine.write("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n");
    let done = scene.fix(&[address("10.77.0.1"), somaxconn("4096")]).unwrap();
    assert_eq!(done, ["sysctl -w net.core.somaxconn=4096", "left: ip addr add 10.77.0.1/32 dev lo"]);
    assert_eq!(scene.undo().unwrap(), ["sysctl -w net.core.somaxconn=16"]);
    // The real user is root, the effective one is not.
    scene.machine.write("proc/self/status", "Uid:\t0\t1000\t0\t0\nCapEff:\t0000000000000000\n");
    assert!(scene.fix(&[address("10.77.0.1"), somaxconn("4096")]).is_err());
    assert_eq!(scene.read("proc/sys/net/core/somaxconn"), "16");
}

/// An address that was removed, in a network made local by something else, does not count as present.
#[test]
fn only_existing_settings_are_undone() {
    let mut scene = Scene::new();
    scene.fix(&[address("10.77.0.1"), Repair::Route(Network::parse("10.9.8.0/22").unwrap())]).unwrap();
    scene.machine.write("proc/net/fib_trie", "Local:\n  |-- 10.0.0.0\n     /8 host LOCAL\n");
    assert_eq!(scene.undo().unwrap(), Vec::<String>::new());
    assert_eq!(scene.commands.len(), 2, "{:?}", scene.commands);
}
