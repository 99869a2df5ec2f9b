//! A request head in pieces, written anew for each request where something in it changes.

use plan::{Expect, ExpectedLength, Random, Template};

/// The request to each destination, with what differs between two of them.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    target: Template,
    /// For each destination, what stands before and behind the target.
    around: Vec<(Vec<u8>, Vec<u8>)>,
    /// For each destination, the whole request where it is always the same.
    fixed: Vec<Option<&'static [u8]>>,
}

/// Stands for the target in a head that is taken apart.
pub(super) const PLACEHOLDER: &str = "/";

impl Request {
    /// From the head to each destination, written for the target [`PLACEHOLDER`].
    pub(super) fn new(target: Template, heads: impl Iterator<Item = Vec<u8>>) -> Request {
        let around: Vec<(Vec<u8>, Vec<u8>)> = heads.map(|head| around(&head)).collect();
        Request { target, fixed: vec![None; around.len()], around }
    }

    /// Writes what never changes once, and keeps it for the life of the process.
    pub(super) fn fixed_where_it_can_be(mut self) -> Request {
        if self.target.is_fixed() {
            for destination in 0..self.around.len() {
                let mut bytes = vec![0; self.max_len(destination)];
                self.write(destination, &mut Random::new(0), &mut bytes, Expect::default());
                self.fixed[destination] = Some(bytes.leak());
            }
        }
        self
    }

    /// The request to a destination, where it never changes.
    pub(super) fn fixed(&self, destination: usize) -> Option<&'static [u8]> {
        self.fixed[destination]
    }

    /// Bytes that a request may take.
    pub(super) fn max_len(&self, destination: usize) -> usize {
        let (before, behind) = &self.around[destination];
        before.len() + self.target.max_len() + behind.len()
    }

    /// Bytes that stand behind the target.
    pub(super) fn behind(&self, destination: usize) -> &[u8] {
        &self.around[destination].1
    }

    /// Writes a request; returns its length, and the length that its answer is expected to have.
    pub(super) fn write(
        &self,
        destination: usize,
        random: &mut Random,
        out: &mut [u8],
        expect: Expect,
    ) -> (usize, Option<u64>) {
        let (before, behind) = &self.around[destination];
        let mut expected = expect.length.and_then(|l| match l {
            ExpectedLength::Fixed(length) => Some(length),
            ExpectedLength::Drawn(_) => None,
        });
        out[..before.len()].copy_from_slice(before);
        let mut len = before.len();
        len += self.target.write(random, &mut out[len..], |i, number| {
            if expect.length == Some(ExpectedLength::Drawn(i)) {
                expected = Some(number);
            }
        });
        out[len..len + behind.len()].copy_from_slice(behind);
        (len + behind.len(), expected)
    }
}

/// What stands before and behind the target.
fn around(head: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let at = head.iter().position(|&b| b == b' ').expect("a blank stands before the target") + 1;
    (head[..at].to_vec(), head[at + PLACEHOLDER.len()..].to_vec())
}
