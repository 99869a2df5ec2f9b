//! Types for numbers that people type and read, with parsing and printing; time, and seeded randomness.
//!
//! Each number type has `parse`, whose [`ParseError`] names the text and a valid alternative, and a `Display` that `parse` reads back
//! exactly. `brief` prints a rounded value for reading.

mod bytes;
mod clock;
mod count;
mod cpu_list;
mod date;
mod decimal;
mod failure;
mod file_error;
mod fixed;
mod login;
mod parse_error;
mod percent;
mod printable;
mod random;
mod rate;
mod shell;
mod span;
mod status;
mod unit;

pub use bytes::Bytes;
pub use clock::{Clock, Nanos, date, since_1970};
pub use count::Count;
pub use cpu_list::cpu_list;
pub use date::{Date, rfc3339};
pub use failure::{Failure, caught, failpoint};
pub use file_error::file_error;
pub use fixed::{fixed, signed};
pub use login::without_login;
pub use parse_error::ParseError;
pub use percent::percent;
pub use printable::printable;
pub use random::{Random, nth_seed, system_random};
pub use rate::Rate;
pub use shell::shell_word;
pub use span::Spans;
pub use status::Status;
pub use unit::Unit;
