//! Ends a command on SIGINT, SIGTERM or, optionally, at the end of standard input. The first signal requests a stop and the second
//! ends the process; during a run, the second ends the run and the third the process.

use std::{
    sync::{Arc, atomic::AtomicBool, atomic::Ordering::Relaxed},
    time::Duration,
};

use run::Interrupt;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::{EXIT_INTERRUPTED, Failure, message};

/// Calls `takes` for each signal. If it returns false, the process ends at once with status 130. The handler is installed even if the
/// signal was inherited as ignored, as for background jobs of a script.
fn on_signal(takes: impl Fn() -> bool + Send + 'static) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::machine)?;
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        units::failpoint("signals");
        if signals.forever().any(|_| !takes()) {
            view::restore_terminal();
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
    });
    thread.map(|_| ()).map_err(Failure::machine)
}

/// An interrupt that is set by the first signal, and by the second during a run.
pub(crate) fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::telling(Arc::new(message));
    let order = interrupt.clone();
    on_signal(move || order.set())?;
    Ok(interrupt)
}

/// A flag that is set by the first signal, or at the end of standard input if `until_stdin_ends`.
pub(crate) fn order_to_stop(until_stdin_ends: bool) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    // After an internal error of throng, the command must not continue.
    units::Failure::orders(&stop);
    let order = stop.clone();
    on_signal(move || !order.swap(true, Relaxed))?;
    if until_stdin_ends {
        let order = stop.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            order.store(true, Relaxed);
        });
    }
    Ok(stop)
}

/// Interval between checks of the flag.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until the flag is set.
pub(crate) fn wait_for(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        std::thread::sleep(LOOK);
    }
}
