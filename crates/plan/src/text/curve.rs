//! The distributions of random numbers in texts.

use units::Random;

/// How the numbers of `{rand A B}` are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curve {
    /// Each equally often.
    #[default]
    Even,
    /// `normal`: the mean is in the middle, and the ends are three standard deviations from it.
    Normal,
    /// `zipf`: the n-th number 1/n as often as the first one.
    Zipf,
}

/// Draws of a number that may be rejected; more than seven in ten are accepted.
const MOST_DRAWS: u32 = 100;

impl Curve {
    /// The curves that have a name.
    pub(super) const NAMED: [(&str, Curve); 2] = [("normal", Curve::Normal), ("zipf", Curve::Zipf)];

    /// A number from `low` to `high`, both included.
    pub(super) fn draw(self, random: &mut Random, low: u64, high: u64) -> u64 {
        let n = (high - low) as f64 + 1.0;
        let nth = match self {
            Curve::Even => return random.between(low, high),
            Curve::Normal => {
                let mut draws = (0..MOST_DRAWS).map(|_| n / 2.0 + random.normal() * n / 6.0);
                draws.find(|at| (0.0..n).contains(at)).unwrap_or(n / 2.0)
            }
            // Rejection from the continuous distribution with density 1/x (Devroye, Non-Uniform Random Variate Generation, 1986, X.6): the
            // number k has the share ln(1 + 1/k) of it, and should have 1/k.
            Curve::Zipf => {
                let mut draws =
                    (0..MOST_DRAWS).map(|_| ((n + 1.0).powf(random.unit()).floor(), random.unit()));
                let is_kept = |k: f64, chance: f64| chance < std::f64::consts::LN_2 / (k * (1.0 / k).ln_1p());
                draws.find(|(k, chance)| is_kept(*k, *chance)).map_or(0.0, |(k, _)| k - 1.0)
            }
        };
        low.saturating_add(nth as u64).min(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each of 10 numbers is drawn, in thousandths.
    fn shares(curve: Curve) -> Vec<f64> {
        let (mut random, mut counts) = (Random::new(3), [0u32; 10]);
        (0..200_000).for_each(|_| counts[curve.draw(&mut random, 5, 14) as usize - 5] += 1);
        counts.iter().map(|n| f64::from(*n) / 200.0).collect()
    }

    #[test]
    fn the_numbers_are_as_often_as_the_curve_says() {
        // The standard deviation of a share is below 1.1 thousandths.
        let check = |curve, expected: [f64; 10]| {
            let shares = shares(curve);
            let is_near = shares.iter().zip(expected).all(|(share, expected)| (share - expected).abs() < 4.5);
            assert!(is_near, "{curve:?}: {shares:?}");
        };
        check(Curve::Even, [100.0; 10]);
        // 1/n, and the sum of the first ten is 2.929.
        check(Curve::Zipf, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|n| 1000.0 / 2.928_968 / f64::from(n)));
        // The normal distribution between -3 and 3, in steps of 0.6: from its table.
        let half = [7.0, 27.8, 79.5, 159.7, 226.0];
        check(Curve::Normal, std::array::from_fn(|n| half[n.min(9 - n)]));
    }

    #[test]
    fn stays_within_its_bounds() {
        let mut random = Random::new(5);
        for curve in [Curve::Even, Curve::Normal, Curve::Zipf] {
            assert_eq!(curve.draw(&mut random, 7, 7), 7);
            for (low, high) in [(0, 1), (0, u64::MAX), (u64::MAX - 2, u64::MAX)] {
                (0..1000).for_each(|_| assert!((low..=high).contains(&curve.draw(&mut random, low, high))));
            }
        }
    }
}
