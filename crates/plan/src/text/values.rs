//! The values of a request's variables.

use super::Text;
use super::curve::Curve;
use crate::capture::Captured;
use crate::csv::{Column, Take};
use std::fmt;
use units::{Nanos, Random};

/// A part of a request that a header can sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// The request target.
    Path,
    /// The content.
    Body,
}

/// Values for the variables of one request, and the random numbers that it drew.
#[derive(Debug)]
pub struct Values<'r> {
    pub(super) random: &'r mut Random,
    pub(super) seq: u64,
    pub(super) row: u64,
    pub(super) now: Nanos,
    /// What random rows depend on, besides the request's number: it selects the same rows again after a redirect.
    seed: u64,
    numbers: [u64; MAX_NUMBERS],
    drawn: usize,
    pub(super) captured: Option<(&'r Captured, usize)>,
    cookies: Option<(&'r dyn Cookies, Nanos)>,
    /// The request's path and content, if a header signs them.
    path: Vec<u8>,
    body: Option<Vec<u8>>,
}

/// The cookies of a connection.
pub trait Cookies: fmt::Debug {
    /// Writes the unexpired cookies for a path with query to the start of `out`, as the value of a Cookie field. Returns the length; 0
    /// without cookies.
    fn write(&self, now: Nanos, path: &[u8], out: &mut [u8]) -> usize;
}

/// Maximum number of random numbers that an expectation can refer to: `$1` to `$8`.
pub const MAX_NUMBERS: usize = 8;

impl<'r> Values<'r> {
    /// `seq`: value of `{seq}`; `row`: the connection's row of each table, modulo its number of rows.
    pub fn new(random: &'r mut Random, seq: u64, row: u64) -> Values<'r> {
        let (now, numbers) = (Nanos::ZERO, [0; MAX_NUMBERS]);
        let (captured, cookies, path, body) = (None, None, Vec::new(), None);
        Values { random, seq, row, now, seed: 0, numbers, drawn: 0, captured, cookies, path, body }
    }

    /// Sets the time of `{now}`, since 1970, and what random rows depend on besides the request's number.
    pub fn at(self, now: Nanos, seed: u64) -> Values<'r> {
        Values { now, seed, ..self }
    }

    /// Adds the values that the connection has captured; `variables`: number of variables.
    pub fn with_captured(self, captured: &'r Captured, variables: usize) -> Values<'r> {
        Values { captured: Some((captured, variables)), ..self }
    }

    /// Adds the connection's cookies.
    pub fn with_cookies(self, cookies: &'r dyn Cookies, now: Nanos) -> Values<'r> {
        Values { cookies: Some((cookies, now)), ..self }
    }

    /// Whether the connection stores cookies.
    pub fn has_cookies(&self) -> bool {
        self.cookies.is_some()
    }

    /// Writes the connection's cookies for a path.
    pub fn write_cookies(&self, path: &[u8], out: &mut [u8]) -> usize {
        self.cookies.map_or(0, |(cookies, now)| cookies.write(now, path, out))
    }

    /// Keeps the path of the request, if this field signs it.
    pub fn set_path(&mut self, path: &[u8], field: &Text) {
        if field.signs(RequestPart::Path) {
            self.path = path.to_vec();
        }
    }

    /// Sets the content that headers sign.
    pub(crate) fn set_body(&mut self, body: Vec<u8>) {
        self.body = Some(body);
    }

    /// Takes out the content, if it was written for the headers.
    pub(crate) fn take_body(&mut self) -> Option<Vec<u8>> {
        self.body.take()
    }

    /// A part of the request; empty if no header signs it.
    pub(super) fn part(&self, part: RequestPart) -> &[u8] {
        match part {
            RequestPart::Path => &self.path,
            RequestPart::Body => self.body.as_deref().unwrap_or_default(),
        }
    }

    /// The random numbers drawn so far, in the order of writing; only the first [`MAX_NUMBERS`].
    pub fn numbers(&self) -> &[u64] {
        &self.numbers[..self.drawn.min(MAX_NUMBERS)]
    }

    /// The row of the table of this column.
    pub(super) fn row_of(&mut self, column: &Column) -> u64 {
        match column.take() {
            Take::Connection => self.row,
            Take::Request => self.seq,
            Take::Random => {
                // Columns of one table have the same row, and tables are independent.
                let mixed = |key: u64, part: u64| Random::new(key ^ part).bits();
                let of_request = mixed(Random::new(self.seed).bits(), self.seq);
                let key = column.table().bytes().map(u64::from).fold(of_request, mixed);
                Random::new(key).below(column.rows().into())
            }
        }
    }

    /// A random number, to which an expectation can refer.
    pub(super) fn draw(&mut self, low: u64, high: u64, curve: Curve) -> u64 {
        let number = curve.draw(self.random, low, high);
        if let Some(slot) = self.numbers.get_mut(self.drawn) {
            *slot = number;
        }
        self.drawn += 1;
        number
    }
}
