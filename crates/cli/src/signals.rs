//! External ends of a command. SIGINT and SIGTERM: the first requests a stop, the second ends it; where a run is under way, the second
//! ends that, and the third the command. Optionally, the end of standard input requests a stop too.

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

/// Calls `takes` on each signal; one that it does not take ends the process at once, with status 130. The handler is
/// installed even where the signal was inherited as ignored (a background job of a script).
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

/// Set on the first signal, and on the second of a run that is under way.
pub(crate) fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::telling(Arc::new(message));
    let order = interrupt.clone();
    on_signal(move || order.set())?;
    Ok(interrupt)
}

/// Becomes true on the first signal, or with the end of standard input, if that is waited for.
pub(crate) fn order_to_stop(until_stdin_ends: bool) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    // What goes on after an error in throng itself is not what was asked for.
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

/// How often the order to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Waits for the order to stop.
pub(crate) fn wait_for(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        std::thread::sleep(LOOK);
    }
}
