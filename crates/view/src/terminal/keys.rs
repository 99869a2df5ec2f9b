//! The keys of the live view and the commands that they send.

use samples::{Command, Phase};
use units::Nanos;

/// Maximum time between the two presses of `d` or `q`, and the time for which the effect of a key is shown.
const WHILE: Nanos = Nanos::from_secs(3);

/// A key with a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// `p`
    Pause,
    /// `+`, also without Shift
    More,
    /// `-`
    Less,
    /// `d`
    Drain,
    /// `q` and Esc
    Quit,
    /// `?`
    Help,
    /// Ctrl-C, which in raw mode is a key like any other.
    Interrupt,
}

/// The keys in the bytes of one read.
pub(crate) fn read(bytes: &[u8]) -> Vec<Key> {
    match bytes {
        [ESCAPE] => vec![Key::Quit],
        // An escape sequence, as sent by an arrow or function key. Esc itself is sent alone.
        [ESCAPE, ..] => Vec::new(),
        _ => bytes.iter().copied().filter_map(key).collect(),
    }
}

const ESCAPE: u8 = 0x1b;
const CTRL_C: u8 = 0x03;

fn key(byte: u8) -> Option<Key> {
    match byte {
        b'p' | b'P' => Some(Key::Pause),
        b'+' | b'=' => Some(Key::More),
        b'-' => Some(Key::Less),
        b'd' | b'D' => Some(Key::Drain),
        b'q' | b'Q' => Some(Key::Quit),
        b'?' | b'h' | b'H' => Some(Key::Help),
        CTRL_C => Some(Key::Interrupt),
        _ => None,
    }
}

/// The effects of earlier keys on the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    is_paused: bool,
    is_ending: bool,
    is_stopping: bool,
    is_help: bool,
    /// A key that waits for its second press, and until when.
    armed: Option<(Key, Nanos)>,
    /// The last command, and until when it is shown.
    last: Option<(Command, Nanos)>,
}

impl Keys {
    /// Updates the state from the phase of the run: the run may end by itself, or be paused by others. The phase of a pause is
    /// ignored while the last command from here is shown, since it may not have been executed yet.
    pub(crate) fn see(&mut self, phase: Phase, now: Nanos) {
        self.is_ending |= phase == Phase::Drain;
        if self.last.is_none_or(|(_, until)| now >= until) {
            self.is_paused = phase == Phase::Pause;
        }
    }

    /// Whether the load is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused && !self.is_ending
    }

    /// Whether the load has ended, or its end was requested.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Whether the help is shown.
    pub(crate) fn is_help(&self) -> bool {
        self.is_help
    }

    /// The command that a key sends, if any.
    pub(crate) fn press(&mut self, key: Key, now: Nanos) -> Option<Command> {
        let is_second = self.armed.take().is_some_and(|(armed, until)| armed == key && now < until);
        if key == Key::Help || self.is_help && key == Key::Quit {
            self.is_help = !self.is_help;
            return None;
        }
        let command = match key {
            // Handled above.
            Key::Help => None,
            _ if self.is_stopping => None,
            Key::Interrupt if self.is_ending => Some(Command::Stop),
            Key::Interrupt => Some(Command::Drain),
            Key::Quit if is_second => Some(Command::Stop),
            Key::Quit => self.arm(key, now),
            _ if self.is_ending => None,
            Key::Drain if is_second => Some(Command::Drain),
            Key::Drain => self.arm(key, now),
            Key::Pause if self.is_paused => Some(Command::Resume),
            Key::Pause => Some(Command::Pause),
            Key::More => Some(Command::Up),
            Key::Less => Some(Command::Down),
        };
        if let Some(command) = command {
            self.is_paused = command == Command::Pause || self.is_paused && command != Command::Resume;
            self.is_ending |= matches!(command, Command::Drain | Command::Stop);
            self.is_stopping |= command == Command::Stop;
            self.last = Some((command, now + WHILE));
        }
        command
    }

    fn arm(&mut self, key: Key, now: Nanos) -> Option<Command> {
        self.armed = Some((key, now + WHILE));
        None
    }

    /// The text about the last key, for the screen.
    pub(crate) fn notice(&self, now: Nanos) -> Option<&'static str> {
        match (self.armed, self.last) {
            (Some((Key::Drain, until)), _) if now < until => Some("press d again to drain"),
            (Some((_, until)), _) if now < until => Some("press q again to stop immediately"),
            (_, Some((command, until))) if now < until => Some(match command {
                Command::Pause => "pausing: nothing new starts",
                Command::Resume => "resuming",
                Command::Up if self.is_paused => {
                    "increasing the load by a tenth, up to the plan, when resumed"
                }
                Command::Down if self.is_paused => "decreasing the load by a tenth when resumed",
                Command::Up => "increasing the load by a tenth, up to the plan",
                Command::Down => "decreasing the load by a tenth",
                Command::Drain => "draining: waiting for outstanding responses; Ctrl-C stops immediately",
                Command::Stop => "stopping",
                // No key sends these.
                Command::Load(_) | Command::Connections(_) => return None,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_keys() {
        for (bytes, expected) in [
            (&b"p"[..], &[Key::Pause][..]),
            (b"P", &[Key::Pause]),
            (b"+-=", &[Key::More, Key::Less, Key::More]),
            (b"dDqQ", &[Key::Drain, Key::Drain, Key::Quit, Key::Quit]),
            (b"\x03", &[Key::Interrupt]),
            (b"\x1b", &[Key::Quit]),
            (b"\x1b[A", &[]),
            (b"\x1bOP", &[]),
            (b"?hH", &[Key::Help, Key::Help, Key::Help]),
            (b"x\n \xff", &[]),
            (b"", &[]),
        ] {
            assert_eq!(read(bytes), expected, "{bytes:?}");
        }
    }

    /// Checks the command of each key; also given is the second in which it was pressed.
    fn check(pressed: &[(&[u8], u64, Option<Command>)]) -> Keys {
        let mut keys = Keys::default();
        for (nth, (bytes, second, expected)) in pressed.iter().enumerate() {
            let [key] = read(bytes)[..] else { panic!("one key: {bytes:?}") };
            assert_eq!(keys.press(key, Nanos::from_secs(*second)), *expected, "{nth} of {pressed:?}");
        }
        keys
    }

    #[test]
    fn p_pauses_and_resumes() {
        let keys = check(&[(b"p", 1, Some(Command::Pause))]);
        assert!(keys.is_paused());
        // A load step during a pause applies when the pause ends.
        let pressed: [(&[u8], _, _); 4] = [
            (b"p", 1, Some(Command::Pause)),
            (b"+", 1, Some(Command::Up)),
            (b"p", 2, Some(Command::Resume)),
            (b"p", 2, Some(Command::Pause)),
        ];
        check(&pressed);
    }

    #[test]
    fn plus_and_minus_step_the_load() {
        check(&[
            (b"-", 1, Some(Command::Down)),
            (b"-", 1, Some(Command::Down)),
            (b"+", 1, Some(Command::Up)),
        ]);
    }

    #[test]
    fn d_and_q_want_a_second_press() {
        check(&[(b"d", 1, None), (b"d", 3, Some(Command::Drain)), (b"d", 3, None), (b"-", 3, None)]);
        check(&[(b"q", 1, None), (b"q", 3, Some(Command::Stop)), (b"q", 3, None), (b"q", 3, None)]);
        check(&[(b"q", 1, None), (b"\x1b", 3, Some(Command::Stop))]);
        // A late second press, or another key in between, starts again.
        check(&[(b"d", 1, None), (b"d", 4, None), (b"d", 6, Some(Command::Drain))]);
        check(&[
            (b"d", 1, None),
            (b"q", 1, None),
            (b"d", 2, None),
            (b"p", 2, Some(Command::Pause)),
            (b"d", 2, None),
        ]);
    }

    #[test]
    fn help_opens_and_closes_and_is_no_command() {
        let keys = check(&[(b"?", 1, None)]);
        assert!(keys.is_help());
        assert!(!check(&[(b"?", 1, None), (b"?", 2, None)]).is_help());
        // A key that closes the help does not count as a first press.
        let keys =
            check(&[(b"?", 1, None), (b"\x1b", 2, None), (b"q", 2, None), (b"q", 2, Some(Command::Stop))]);
        assert!(!keys.is_help());
        // All other keys keep their function.
        let keys =
            check(&[(b"?", 1, None), (b"p", 2, Some(Command::Pause)), (b"\x03", 3, Some(Command::Drain))]);
        assert!(keys.is_help() && keys.is_ending());
    }

    #[test]
    fn ctrl_c_drains_and_then_stops() {
        check(&[(b"\x03", 1, Some(Command::Drain)), (b"\x03", 1, Some(Command::Stop)), (b"\x03", 1, None)]);
        check(&[
            (b"d", 1, None),
            (b"d", 1, Some(Command::Drain)),
            (b"q", 1, None),
            (b"q", 1, Some(Command::Stop)),
        ]);
    }

    #[test]
    fn a_run_that_ends_on_its_own_can_only_be_stopped() {
        let mut keys = Keys::default();
        keys.see(Phase::Hold, Nanos::ZERO);
        assert_eq!(keys.press(Key::Pause, Nanos::ZERO), Some(Command::Pause));
        keys.see(Phase::Drain, Nanos::ZERO);
        assert!(!keys.is_paused() && keys.is_ending());
        for key in [Key::Pause, Key::More, Key::Less, Key::Drain, Key::Drain] {
            assert_eq!(keys.press(key, Nanos::ZERO), None, "{key:?}");
        }
        assert_eq!(keys.press(Key::Interrupt, Nanos::ZERO), Some(Command::Stop));
    }

    #[test]
    fn a_key_press_is_shown_for_three_seconds() {
        let (mut keys, at) = (Keys::default(), Nanos::from_secs);
        assert_eq!(keys.notice(at(1)), None);
        keys.press(Key::Less, at(1));
        assert_eq!(keys.notice(at(3)), Some("decreasing the load by a tenth"));
        keys.press(Key::Pause, at(3));
        keys.press(Key::Less, at(3));
        assert_eq!(keys.notice(at(3)), Some("decreasing the load by a tenth when resumed"));
        keys.press(Key::Drain, at(3));
        assert_eq!(keys.notice(at(5)), Some("press d again to drain"));
        assert_eq!(keys.notice(at(6)), None);
        keys.press(Key::Quit, at(6));
        assert_eq!(keys.notice(at(6)), Some("press q again to stop immediately"));
        keys.press(Key::Quit, at(6));
        assert_eq!(keys.notice(at(6)), Some("stopping"));
    }

    #[test]
    fn others_may_pause_it_and_let_it_go_on() {
        let (mut keys, later) = (Keys::default(), Nanos::from_secs(60));
        keys.see(Phase::Pause, Nanos::ZERO);
        assert_eq!(keys.press(Key::Pause, Nanos::ZERO), Some(Command::Resume));
        // The figures still show the pause, but the key that was pressed counts.
        keys.see(Phase::Pause, Nanos::ZERO);
        assert!(!keys.is_paused());
        keys.see(Phase::Pause, later);
        assert!(keys.is_paused());
        keys.see(Phase::Hold, later);
        assert_eq!(keys.press(Key::More, later), Some(Command::Up));
    }
}
