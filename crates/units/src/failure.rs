//! A failure of throng itself: the first panic of this process, in whichever thread.

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

/// The process ends this long after a failure, whatever still waits for a thread that is no more.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// What failed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The message of the panic, in one line.
    pub message: String,
    /// File, line and column of the source.
    pub place: String,
    /// The name of the thread.
    pub thread: String,
}

static FIRST: OnceLock<Failure> = OnceLock::new();
static IS_WATCHED: OnceLock<()> = OnceLock::new();
/// What ends commands that last until they are stopped.
static ORDERS: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

impl Failure {
    /// From now on a panic is a failure of this process, instead of one of its thread alone. `say` is called with the first, from a
    /// thread of its own: the one that fails may hold what `say` needs. If the process has not ended a minute later, `exit` ends it.
    /// With `RUST_BACKTRACE`, panics are printed as usual besides.
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
            // Without a further thread, the caller of `first` reports it.
            let _ = thread::Builder::new().name("failure".to_owned()).spawn(last);
        }));
    }

    /// The first since panics are watched.
    pub fn first() -> Option<&'static Failure> {
        FIRST.get()
    }

    /// Gives this order to stop, too.
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

/// Does what must not end its caller: none if it panics, which is then a [`Failure`]. Where panics are not watched, as in tests, they go
/// on.
pub fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    match IS_WATCHED.get() {
        // What a panic leaves half done is only reported, as far as it is there.
        Some(()) => panic::catch_unwind(AssertUnwindSafe(work)).ok(),
        None => Some(work()),
    }
}

/// Panics here if a test asks for it: `THRONG_FAIL=shard` at once, `shard:40` the fortieth time. Nothing in a release build.
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

    /// The place, and how often it is still passed.
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
