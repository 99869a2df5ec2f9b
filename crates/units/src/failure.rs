//! Failures of throng itself: the first panic of any thread of this process. The other threads store what was measured before the process
//! ends.

use std::{
    env, fmt,
    panic::{self, AssertUnwindSafe, PanicHookInfo},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

#[cfg(not(panic = "unwind"))]
compile_error!("a panic ends one thread, and the others store what was measured: use panic = \"unwind\"");

/// Maximum time until the process ends after a failure, even if something still waits for the ended thread.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// A failure and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The panic message, on one line.
    pub message: String,
    /// File, line and column of the source.
    pub place: String,
    /// The name of the thread.
    pub thread: String,
}

static FIRST: OnceLock<Failure> = OnceLock::new();
static IS_WATCHED: OnceLock<()> = OnceLock::new();
/// Flags that stop commands which would otherwise run until stopped.
static ORDERS: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

impl Failure {
    /// From now on a panic in any thread is a failure of the process. `say` is called with the first one, from a new thread, because the
    /// failing thread may hold locks that `say` needs. If the process has not ended a minute later, `exit` is called. With
    /// `RUST_BACKTRACE`, panics are also printed as usual.
    pub fn watch(say: fn(&Failure), exit: fn()) {
        if IS_WATCHED.set(()).is_err() {
            return;
        }
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            if env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
                usual(what);
            }
            if FIRST.set(Failure::of(what)).is_err() {
                return;
            }
            let orders = ORDERS.lock().unwrap_or_else(PoisonError::into_inner);
            orders.iter().for_each(|order| order.store(true, Relaxed));
            let last = move || {
                Failure::first().iter().for_each(|failure| say(failure));
                thread::sleep(ENDS_WITHIN);
                exit();
            };
            // If no thread can be started, the caller of `first` reports the failure.
            let _ = thread::Builder::new().name("failure".to_owned()).spawn(last);
        }));
    }

    /// The first failure since `watch` was called.
    pub fn first() -> Option<&'static Failure> {
        FIRST.get()
    }

    /// Registers a flag that is set when throng fails.
    pub fn orders(stop: &Arc<AtomicBool>) {
        ORDERS.lock().unwrap_or_else(PoisonError::into_inner).push(stop.clone());
    }

    fn of(what: &PanicHookInfo) -> Failure {
        let message = what.payload_as_str().unwrap_or("an error without a message");
        Failure {
            message: message.split_whitespace().collect::<Vec<&str>>().join(" "),
            place: what.location().map(ToString::to_string).unwrap_or_default(),
            thread: thread::current().name().unwrap_or("unnamed").to_owned(),
        }
    }
}

/// `index out of bounds (crates/run/src/conduct.rs:12:5, thread run-0)`
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Failure { message, place, thread } = self;
        write!(f, "{message} ({place}, thread {thread})")
    }
}

/// Runs `work`, whose panic must not end the caller: returns `None` if it panics, which is recorded as a [`Failure`]. If panics are not
/// watched, as in tests, they propagate.
pub fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    match IS_WATCHED.get() {
        // State that a panic leaves inconsistent is only reported.
        Some(()) => panic::catch_unwind(AssertUnwindSafe(work)).ok(),
        None => Some(work()),
    }
}

/// Panics here if a test requests it: `THRONG_FAIL=shard` at the first call, `shard:40` at the fortieth. Does nothing in release builds.
#[inline(always)]
pub fn failpoint(place: &str) {
    if cfg!(debug_assertions) {
        failpoint::reach(place);
    }
}

mod failpoint {
    use std::{
        env,
        sync::{
            OnceLock,
            atomic::{AtomicU64, Ordering::Relaxed},
        },
    };

    /// The place, and the number of calls until it fails.
    static WANTED: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();

    pub(super) fn reach(place: &str) {
        let read = || {
            let wanted = env::var("THRONG_FAIL").ok()?;
            let (place, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
            Some((place.to_owned(), AtomicU64::new(nth.parse().unwrap_or(1))))
        };
        if let Some((wanted, left)) = WANTED.get_or_init(read)
            && wanted == place
            && left.fetch_sub(1, Relaxed) == 1
        {
            panic!("injected in {place}");
        }
    }
}
