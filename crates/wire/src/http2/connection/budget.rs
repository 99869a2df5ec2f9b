//! Rate limits for frames of the peer that carry no message.

use crate::http2::{Code, MAX_CONTROLS, MAX_RESETS};

/// The counts of the current second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// The low bits of the current second.
    second: u16,
    controls: u16,
    resets: u16,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self { second: 0, controls: 0, resets: 0 }
    }

    /// Counts one of [`MAX_CONTROLS`].
    pub(super) fn control(&mut self, second: u32) -> Result<(), Code> {
        self.begin(second);
        self.controls += 1;
        if self.controls > MAX_CONTROLS { Err(Code::ENHANCE_YOUR_CALM) } else { Ok(()) }
    }

    /// Counts one of [`MAX_RESETS`].
    pub(super) fn reset(&mut self, second: u32) -> Result<(), Code> {
        self.begin(second);
        self.resets += 1;
        if self.resets > MAX_RESETS { Err(Code::ENHANCE_YOUR_CALM) } else { Ok(()) }
    }

    fn begin(&mut self, second: u32) {
        if self.second != second as u16 {
            *self = Self { second: second as u16, ..Self::new() };
        }
    }
}
