//! Tests the messages about arguments that clap refuses.

use super::*;
use crate::args::{command_with, shared::Help};

fn mistakes(line: &str) -> (Vec<String>, bool) {
    let args: Vec<OsString> = line.split(' ').skip(1).map(OsString::from).collect();
    let read = read(&command_with(Help::Full), &args).expect("no help");
    (read.mistakes, read.matches.is_some())
}

/// The only mistake, with what was meant.
fn check(line: &str, expected: Option<&str>) {
    let (mistakes, _) = mistakes(line);
    let [mistake] = &mistakes[..] else { panic!("{line}: {mistakes:?}") };
    let (what, meant) =
        mistake.split_once("; ").map_or((mistake.as_str(), None), |(what, meant)| (what, Some(meant)));
    assert!(what.ends_with(": unknown option") || what.ends_with(": unknown command"), "{line}: {mistake}");
    match (meant, expected) {
        (Some(meant), Some(expected)) => assert!(meant.contains(expected), "{line}: {mistake}"),
        (meant, expected) => assert_eq!(meant, expected, "{line}"),
    }
}

#[test]
fn the_near_one_is_suggested() {
    check("throng run h --conections 5", Some("use --connections"));
    check("throng run h --connection=5", Some("use --connections"));
    check("throng run h --hots x", Some("use --host"));
    check("throng run h --thresold x", Some("use --threshold"));
    check("throng run h --headers x", Some("use --header"));
    check("throng run h --body_file x", Some("use --body-file"));
    check("throng run h --conn 5", Some("use --connections"));
    check("throng run h --colour x", None);
    check("throng serve --port 5", Some("use --listen"));
    check("throng serve --lisen x", Some("use --listen"));
    check("throng serve --conections 5", None);
}

#[test]
fn what_other_tools_call_it_is_known() {
    check("throng run h --concurrency 5", Some("use --connections"));
    check("throng run h --data x", Some("use --body"));
    check("throng run h --request PUT", Some("use --method"));
    check("throng run h -z 5s", Some("use --duration"));
    check("throng run h -z5s", Some("use --duration"));
    check("throng serve --data x", None);
    check("throng run h -L", Some("redirects = 5"));
    check("throng find h --latency", Some("always printed"));
    check("throng run -a a:b h", Some("use --user"));
    check("throng run h -i 100", Some("use --requests"));
    check("throng run h -R 100", Some("use --rate"));
    check("throng run h -R100", Some("use --rate"));
    check("throng run h --http1.1", Some("HTTP/1.1 is the default"));
    check("throng run h -T text/html", Some("-H 'Content-Type: TYPE'"));
    check("throng serve -v", None);
    for (_, ours) in SYNONYMS.iter().filter(|(_, ours)| *ours != "--listen") {
        let name = ours.trim_start_matches("--");
        assert!(plan::flag::FLAGS.iter().any(|flag| flag.name == name), "{ours}");
    }
    for (other, _) in INSTEAD {
        let is_ours = plan::flag::Flag::named(other).is_some();
        assert!(!is_ours && SYNONYMS.iter().all(|(known, _)| *known != other), "{other}");
    }
}

#[test]
fn the_near_verb_is_suggested() {
    check("throng rnu http://h/", Some("use run"));
    check("throng compair a b", Some("use compare"));
    check("throng fleet drian a", Some("use drain"));
    check("throng xyz", None);
    check("throng localhost:8000 -c 5", Some("throng run localhost:8000"));
    check("throng http://h/?a=b", Some("throng run 'http://h/?a=b'"));
}

#[test]
fn all_that_are_unknown_are_mistakes_and_the_rest_is_read() {
    let check = |line: &str, expected: &[&str], is_read: bool| {
        let (mistakes, has_rest) = mistakes(line);
        assert_eq!(mistakes, expected, "{line}");
        assert_eq!(has_rest, is_read, "{line}");
    };
    let connections = "--conections: unknown option; use --connections";
    check("throng run h -c 5", &[], true);
    check(
        "throng run --conections 5 h --thnik 1s",
        &[connections, "--thnik: unknown option; use --think"],
        true,
    );
    check("throng rnu --conections=5 h", &["rnu: unknown command; use run", connections], true);
    // Nobody knows whether the next one is its value: no more is said of what may follow from it.
    check("throng run --colour red h --conections 5", &["--colour: unknown option", connections], false);
    check("throng run --colour h:1 h --conections 5", &["--colour: unknown option", connections], false);
    check("throng run h --colour=red", &["--colour: unknown option"], true);
    check("throng report --colour", &["--colour: unknown option"], true);
    check("throng run h --colour --rate abc", &["--colour: unknown option"], true);
    let second = "unexpected argument \"http://…@h/\"; give one target, or a range: http://10.0.0.{1..3}/";
    check("throng run h http://u:p@h/ --conections 5", &[second, connections], true);
    // The unit is taken for the target, or for a second one.
    for (words, joined) in
        [("-d 10 s", "-d 10s"), ("--rate 10 /s", "--rate 10/s"), ("--think .5 min", "--think .5min")]
    {
        let apart = format!("{words}: a number and its unit are one argument; use {joined}");
        for line in [
            format!("throng run h:1 {words} --conections 5"),
            format!("throng run {words} h:1 --conections 5"),
        ] {
            check(&line, &[&apart, connections], true);
        }
    }
    let missing = "--connections: requires a value; use --connections 500k";
    check("throng run h --thnik 1s -c", &["--thnik: unknown option; use --think", missing], true);
    check("throng run h --connections --thnik 1s", &["--thnik: unknown option; use --think", missing], true);
    let rate = "--rate: requires a value; use --rate 20k/s";
    check("throng run -c --rate", &[missing, rate], true);
    let file = "--json: requires a value; use --json FILE";
    check("throng run h --json", &[file], true);
    let many: String = (0..100).map(|n| format!(" --colour-{n}=x")).collect();
    assert_eq!(mistakes(&format!("throng run h{many}")).0.len(), MOST);
}

#[test]
fn all_that_exclude_each_other_are_mistakes() {
    let check = |line: &str, expected: &[&str]| assert_eq!(mistakes(line).0, expected, "{line}");
    let with_run = |option: &str| format!("{option}: cannot be used with RUN; remove one of them");
    let [target, verdict] = ["--target", "--verdict"].map(with_run);
    check("throng runs 5 --target x --verdict fail", &[target.as_str(), verdict.as_str()]);
    check("throng runs 5 --target x --colour=red", &["--colour: unknown option", target.as_str()]);
    let [tag, json] =
        ["--tag", "--json"].map(|with| format!("--delete: cannot be used with {with}; remove one of them"));
    check("throng runs 5 --tag a --delete --json", &[tag.as_str(), json.as_str()]);
    // Beside what is missing.
    let (beside, _) = mistakes("throng runs --tag a --delete --json");
    assert!(beside[0].contains("required arguments") && beside[1..] == [tag, json], "{beside:?}");
    let [connections, fix] = ["--connections", "--fix"]
        .map(|with| format!("--undo: cannot be used with {with}; remove one of them"));
    check("throng doctor --undo -c 5 --fix", &[connections.as_str(), fix.as_str()]);
    check("throng fleet drain a --all", &["--all: cannot be used with AGENT; remove one of them"]);
    check("throng doctor --undo", &[]);
    check("throng runs latest --json", &[]);
}

#[test]
fn a_flag_that_is_given_again_is_a_mistake_beside_the_others() {
    let again = |name: &str| format!("{name}: given more than once; remove all but one");
    let check = |line: &str, expected: &[&str]| {
        let expected: Vec<String> = expected.iter().map(|name| again(name)).collect();
        assert_eq!(mistakes(line), (expected, true), "{line}");
    };
    check("throng run h -c 5 --connections 6 -d 1s -d2s", &["--connections", "--duration"]);
    check("throng run h -c 5 -c 6 -c -7 --rate=1 --rate=2", &["--connections", "--rate"]);
    check("throng run h -k -k --probe --probe --probe 5", &["--insecure", "--probe"]);
    check("throng run h -H a:b -H c:d", &[]);
    let line = "throng run h -c 5 -c 6 --thnik 1s";
    assert_eq!(mistakes(line).0, ["--thnik: unknown option; use --think", again("--connections").as_str()]);
}

#[test]
fn a_negative_number_is_a_value_and_no_option() {
    let args = ["run", "h", "-c", "-5"].map(OsString::from);
    let read = read(&command_with(Help::Full), &args).expect("no help");
    assert!(read.mistakes.is_empty() && read.matches.is_some(), "{:?}", read.mistakes);
}

#[test]
fn help_is_that_of_the_command() {
    let help = |line: &str| {
        let args: Vec<OsString> = line.split(' ').skip(1).map(OsString::from).collect();
        help_of(&command_with(Help::Full), &args)
    };
    assert_eq!(help("throng run h --colour"), "`throng run --help` lists all options");
    assert_eq!(help("throng fleet set --colour"), "`throng fleet set --help` lists all options");
    assert_eq!(help("throng xyz"), "`throng --help` lists all options");
}

#[test]
fn help_and_version_are_no_mistakes() {
    for line in ["--help", "run --help", "--version", "fleet"] {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        assert!(read(&command_with(Help::Full), &args).is_err(), "{line}");
    }
}
