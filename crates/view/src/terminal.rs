//! The live view: a thread draws the latest second and reads keys. The run never waits for it.

mod charts;
mod compact;
pub(crate) mod curve;
mod distribution;
mod figures;
mod help;
mod history;
mod keys;
mod lists;
mod scene;
mod screen;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::{
    io::{self, BufWriter, Stderr, stderr},
    mem,
    sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel},
    thread,
    time::Duration,
};

use ratatui::backend::CrosstermBackend;
use samples::{Command, Header, Samples, Sink, Summary, Tick};
use units::{Clock, Count};

use crate::{line::Line, messages};
use figures::{Figures, Second};
use history::{History, Point};
use keys::Keys;
use scene::Scene;

pub use screen::{keep_for_later, restore_terminal};

/// Capacity of the queue of seconds to be drawn.
const WAITING: usize = 60;
/// Maximum number of queued commands: more than can be typed between two polls.
const MAX_COMMANDS: usize = 64;
/// Interval between checks for keys, seconds and a new size.
const GLANCE: Duration = Duration::from_millis(100);
/// Maximum wait for the end of the thread.
const PATIENCE: Duration = Duration::from_secs(1);
/// Size of the buffer with which a frame is written in one call.
const FRAME_BYTES: usize = 64 << 10;

/// The full-screen sink, which takes the terminal when the run begins. After the run, only its first and last plain lines and the
/// messages remain on the terminal.
#[derive(Default)]
pub struct Terminal {
    line: Line<Vec<u8>>,
    first_line: String,
    last_line: String,
    figures: Figures,
    thread: Option<Thread>,
    /// Number of seconds dropped because the queue was full.
    missed: u64,
}

struct Thread {
    seconds: SyncSender<Second>,
    commands: Receiver<Command>,
    done: Receiver<()>,
}

impl Terminal {
    /// Whether the terminal can be used for the view.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn can_be_shown() -> Result<(), String> {
        screen::can_be_drawn_on()
    }

    /// Whether the terminal can be used and has room for at least the compact view.
    pub fn has_room() -> bool {
        screen::can_be_drawn_on().is_ok() && view::has_room(screen::size())
    }

    fn start(header: &Header, first: Second) -> io::Result<Thread> {
        let (seconds, next_second) = sync_channel(WAITING);
        let (sender, commands) = sync_channel(MAX_COMMANDS);
        let (finished, done) = sync_channel(1);
        let header = header.clone();
        screen::enter()?;
        let work = move || {
            units::failpoint("terminal");
            // Earlier messages are printed first. Errors of the terminal do not affect the run.
            messages::flush_messages();
            let _ = Watching::new(header, first, sender).and_then(|watching| watching.watch(&next_second));
            let _ = finished.send(());
        };
        let started = thread::Builder::new().name("terminal".to_owned()).spawn(work);
        started.inspect_err(|_| restore_terminal())?;
        Ok(Thread { seconds, commands, done })
    }

    /// Ends the view; the plain lines remain.
    fn end(&mut self) {
        let Some(Thread { seconds, done, .. }) = self.thread.take() else { return };
        drop(seconds);
        // Does not wait for a blocked write.
        let _ = done.recv_timeout(PATIENCE);
        if self.missed > 0 {
            let seconds = Count(self.missed).of("second");
            let _ = keep_for_later(&format!("throng: the terminal was too slow: {seconds} not shown"));
        }
        screen::give_back(&[&self.first_line, &self.last_line]);
    }
}

impl Sink for Terminal {
    fn begin(&mut self, header: &Header) {
        self.line.begin(header);
        self.first_line = self.line.take();
        self.figures = Figures::of(header);
        let first = Second {
            wanted: header.connections,
            progress: Some(0.0),
            thresholds: self.figures.thresholds.clone(),
            ..Second::default()
        };
        match Terminal::start(header, first) {
            Ok(thread) => self.thread = Some(thread),
            Err(e) => {
                messages::message(&format!("throng: no live view: {e}\n{}", self.first_line.trim_end()));
            }
        }
    }

    fn tick(&mut self, tick: &Tick, samples: &Samples) {
        let second = self.figures.tick(tick, samples);
        self.line.tick(tick, samples);
        let line = self.line.take();
        let Some(thread) = &self.thread else {
            messages::write(line.into_bytes());
            return;
        };
        if let Some(second) = second {
            self.last_line = line;
            if let Err(TrySendError::Full(_)) = thread.seconds.try_send(second) {
                self.missed += 1;
            }
        }
    }

    fn ask(&mut self) -> Option<Command> {
        self.thread.as_ref()?.commands.try_recv().ok()
    }

    fn finish(&mut self, _summary: &Summary) {
        self.end();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

/// The state of the thread.
struct Watching {
    terminal: ratatui::Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    clock: Clock,
    header: Header,
    second: Second,
    history: History,
    keys: Keys,
    commands: SyncSender<Command>,
    size: (u16, u16),
}

impl Watching {
    fn new(header: Header, first: Second, commands: SyncSender<Command>) -> io::Result<Watching> {
        let out = BufWriter::with_capacity(FRAME_BYTES, stderr());
        Ok(Watching {
            terminal: ratatui::Terminal::new(CrosstermBackend::new(out))?,
            clock: Clock::start(),
            second: first,
            header,
            history: History::new(),
            keys: Keys::default(),
            commands,
            size: (0, 0),
        })
    }

    /// Draws whenever something has changed, until the channel of seconds is closed.
    fn watch(mut self, seconds: &Receiver<Second>) -> io::Result<()> {
        loop {
            let mut is_new = self.has_other_size() | self.hears_keys();
            loop {
                match seconds.try_recv() {
                    Ok(second) => is_new |= self.sees(second),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(()),
                }
            }
            if is_new {
                self.draw()?;
            }
        }
    }

    fn has_other_size(&mut self) -> bool {
        let now = screen::size();
        now != mem::replace(&mut self.size, now)
    }

    fn sees(&mut self, second: Second) -> bool {
        self.history.push(Point::of(&second));
        self.keys.see(second.phase, self.clock.now());
        self.second = second;
        true
    }

    /// Waits briefly for keys; returns whether there were any.
    fn hears_keys(&mut self) -> bool {
        let mut bytes = [0; 64];
        let Ok(n) = screen::typed(GLANCE, &mut bytes) else {
            // Standard input has ended.
            thread::sleep(GLANCE);
            return false;
        };
        let (keys, now) = (keys::read(&bytes[..n]), self.clock.now());
        for key in &keys {
            let before = self.keys.clone();
            if let Some(command) = self.keys.press(*key, now)
                && self.commands.try_send(command).is_err()
            {
                self.keys = before;
            }
        }
        !keys.is_empty()
    }

    fn draw(&mut self) -> io::Result<()> {
        let (message, terminal) = (self.keys.notice(self.clock.now()), &mut self.terminal);
        let (header, second, history, keys) = (&self.header, &self.second, &self.history, &self.keys);
        screen::with_pen(|held_messages| {
            let scene = Scene {
                header,
                second,
                history,
                message,
                held_messages: &held_messages.lines,
                is_paused: keys.is_paused(),
                is_ending: keys.is_ending(),
                is_help: keys.is_help(),
            };
            terminal.draw(|frame| view::draw(&scene, frame.buffer_mut()))?;
            Ok(())
        })
    }
}
