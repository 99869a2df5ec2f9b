//! SIGINT and SIGTERM: the first asks, the second ends.

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};

/// Calls `first` on the first signal; the second ends the process at once, with status 130. The handler is
/// installed even where the signal was inherited as ignored (a background job of a script).
pub(crate) fn on_signal(mut first: impl FnMut() + Send + 'static) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut waiting = signals.forever();
        if waiting.next().is_some() {
            first();
        }
        if waiting.next().is_some() {
            std::process::exit(130);
        }
    })?;
    Ok(())
}
