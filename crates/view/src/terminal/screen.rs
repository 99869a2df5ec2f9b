//! Ownership of the terminal. The live view owns it from [`enter`] to [`restore_terminal`], which any code may call, such as a signal
//! handler.

use std::{
    env,
    io::{self, IsTerminal, Write, stderr, stdin},
    time::Duration,
};

use parking_lot::Mutex;
use ratatui::crossterm::{
    cursor::{Hide, Show},
    execute, terminal,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::getpgrp,
    termios::{tcgetpgrp, tcgetwinsize},
};
use units::Count;

use crate::messages;

/// Maximum number of held messages; further ones are only counted.
const MAX_HELD_MESSAGES: usize = 100;
/// Maximum wait for a frame in progress before the terminal is restored.
const FRAME: Duration = Duration::from_millis(200);

/// Messages that are held back while the view owns the terminal.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldMessages {
    pub(crate) lines: Vec<String>,
    /// Number of further messages.
    more: u64,
}

impl HeldMessages {
    fn add(&mut self, line: &str) {
        match self.lines.len() < MAX_HELD_MESSAGES {
            true => self.lines.push(line.to_owned()),
            false => self.more += 1,
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        let more = Count(self.more);
        if more.0 > 0 { writeln!(out, "throng: and {} more", more.of("line")) } else { Ok(()) }
    }
}

/// `Some` while the view owns the terminal.
static HELD_MESSAGES: Mutex<Option<HeldMessages>> = Mutex::new(None);
/// Held while a frame is written to the terminal.
static PEN: Mutex<()> = Mutex::new(());

/// Whether a view can use the terminal.
///
/// # Errors
/// The reason why it cannot.
pub(crate) fn can_be_drawn_on() -> Result<(), String> {
    if !stderr().is_terminal() {
        return Err("standard error is not a terminal".to_owned());
    }
    if !stdin().is_terminal() {
        return Err("standard input is not a terminal".to_owned());
    }
    if env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
        return Err("this terminal is not supported (TERM)".to_owned());
    }
    // The kernel stops a background process that changes or reads a terminal.
    if tcgetpgrp(stdin()).ok() != Some(getpgrp()) {
        return Err("throng is running in the background".to_owned());
    }
    Ok(())
}

/// The size of the terminal in columns and rows; (0, 0) if unknown.
pub(crate) fn size() -> (u16, u16) {
    tcgetwinsize(stderr()).map_or((0, 0), |size| (size.ws_col, size.ws_row))
}

/// Takes ownership of the terminal until [`restore_terminal`].
pub(crate) fn enter() -> io::Result<()> {
    terminal::enable_raw_mode()?;
    *HELD_MESSAGES.lock() = Some(HeldMessages::default());
    messages::write(sequence(|out| execute!(out, terminal::EnterAlternateScreen, Hide)));
    Ok(())
}

/// Restores the terminal if the live view owns it, and prints the held messages. Must be called before the process exits early.
pub fn restore_terminal() {
    give_back(&[]);
}

/// Collects terminal sequences in a buffer, so that they are written at once.
fn sequence(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
    let mut out = Vec::new();
    let _ = write(&mut out);
    out
}

/// As [`restore_terminal`], but prints the lines of `first` before the messages. Does not wait for a blocked terminal.
pub(crate) fn give_back(first: &[&str]) {
    // Does nothing on a second call.
    let Some(kept) = HELD_MESSAGES.lock().take() else { return };
    let pen = PEN.try_lock_for(FRAME);
    let _ = terminal::disable_raw_mode();
    messages::write(sequence(|out| {
        execute!(out, terminal::LeaveAlternateScreen, Show)?;
        first.iter().try_for_each(|line| writeln!(out, "{}", line.trim_end()))?;
        kept.write(out)
    }));
    messages::flush(FRAME);
    drop(pen);
}

/// Holds a message back while the live view owns the terminal; otherwise returns false, and the caller must print it.
#[must_use]
pub fn keep_for_later(line: &str) -> bool {
    let mut held_messages = HELD_MESSAGES.lock();
    held_messages.as_mut().map(|held_messages| held_messages.add(line)).is_some()
}

/// Draws a frame with the held messages, if the view owns the terminal.
pub(crate) fn with_pen(draw: impl FnOnce(&HeldMessages) -> io::Result<()>) -> io::Result<()> {
    let _pen = PEN.lock();
    let said = HELD_MESSAGES.lock().clone();
    said.map_or(Ok(()), |said| draw(&said))
}

/// Reads typed bytes; waits at most `within`. After an error no more input can follow. crossterm's reader is not used, because it
/// loops at the end of input, and blocks within escape sequences.
pub(crate) fn typed(within: Duration, bytes: &mut [u8]) -> io::Result<usize> {
    let (stdin, wait) = (stdin(), Timespec { tv_sec: 0, tv_nsec: i64::from(within.subsec_nanos()) });
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut ready, Some(&wait)) {
        Ok(0) => return Ok(0),
        Ok(_) => {}
        // A signal, which is handled elsewhere.
        Err(rustix::io::Errno::INTR) => return Ok(0),
        Err(e) => return Err(e.into()),
    }
    match rustix::io::read(&stdin, bytes)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        n => Ok(n),
    }
}
