//! Comparisons of sequence numbers: 32 bits that wrap (RFC 9293, section 3.4). The two numbers must be less than 2^31 apart.

/// Whether `a` comes before `b`.
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` comes after `b`.
pub(crate) fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

/// The later of the two.
pub(crate) fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        for (a, b) in [(0, 1), (u32::MAX, 0), (u32::MAX - 5, 70_000), (0x7fff_ffff, 0x8000_0000)] {
            assert!(before(a, b) && !before(b, a) && after(b, a) && !after(a, b), "{a} {b}");
            assert_eq!((later(a, b), later(b, a)), (b, b));
            assert!(!before(a, a) && !after(b, b));
        }
    }
}
