//! The help texts, word for word: a change of them is a change that users see. `UPDATE_GOLDEN=1` writes them anew.

use std::{fs, path::Path};

use crate::program::Program;

fn check(args: &[&str], name: &str) {
    let ended = Program::start(args).end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &ended.stdout).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(
        ended.stdout,
        expected,
        "{args:?} is not what {} has: UPDATE_GOLDEN=1 writes it",
        golden.display()
    );
}

#[test]
fn help_is_as_it_was() {
    check(&["--help"], "throng.txt");
    check(&["run", "--help"], "run.txt");
    check(&["serve", "--help"], "serve.txt");
    check(&["demo", "--help"], "demo.txt");
    check(&["doctor", "--help"], "doctor.txt");
    check(&["observe", "--help"], "observe.txt");
}

#[test]
fn version_is_the_packages() {
    let ended = Program::start(&["--version"]).end();
    assert_eq!((ended.status, ended.stdout), (Some(0), format!("throng {}\n", env!("CARGO_PKG_VERSION"))));
}
