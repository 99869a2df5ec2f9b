//! A panic is a failure of the process once panics are watched; tested in a process of its own.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
};

use units::{Failure, caught};

static SAID: AtomicU32 = AtomicU32::new(0);

#[test]
fn the_first_panic_of_any_thread_is_known_and_the_others_go_on() {
    Failure::watch(|_| assert!(SAID.fetch_add(1, SeqCst) == 0), || unreachable!("this process ends in time"));
    let stop = Arc::new(AtomicBool::new(false));
    Failure::orders(&stop);
    assert_eq!((caught(|| 3), Failure::first()), (Some(3), None));
    assert!(!stop.load(SeqCst));
    let thread = std::thread::Builder::new().name("worker".to_owned());
    assert!(thread.spawn(|| panic!("it\nbroke {}", 7)).unwrap().join().is_err());
    let first = Failure::first().unwrap();
    assert_eq!((first.message.as_str(), first.thread.as_str()), ("it broke 7", "worker"));
    assert!(first.place.starts_with("crates/units/tests/failure.rs:"), "{first}");
    assert!(stop.load(SeqCst), "what waits for an order to stop stops");
    assert_eq!(caught(|| panic!("another one")), None::<()>);
    assert_eq!(Failure::first().unwrap().message, "it broke 7");
    while SAID.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(SAID.load(SeqCst), 1);
}
