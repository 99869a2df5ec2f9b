//! Tests whether a share is equal in several groups when observations may be clustered: Pearson's test of homogeneity as a
//! quasi-likelihood F test (P. McCullagh, J. A. Nelder, Generalized Linear Models, 1989, section 4.5). The statistic is divided by
//! the dispersion: the factor by which it is larger for clustered observations than for independent ones.

use statrs::function::beta::beta_reg;

/// Pearson's statistic for groups, each given as (number of observations with the property, number of others).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Homogeneity {
    /// Pearson's X².
    pub statistic: f64,
    /// Number of non-empty groups minus one.
    pub freedom: f64,
    /// Sum of the excess kurtosis of the groups' binomial distributions.
    excess: f64,
}

/// The dispersion: how much observations are clustered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion {
    /// Variance divided by that of independent observations; at least 1.
    pub factor: f64,
    /// Degrees of freedom of this estimate.
    pub freedom: f64,
}

impl Dispersion {
    /// For observations known to be independent.
    pub const INDEPENDENT: Dispersion = Dispersion { factor: 1.0, freedom: 1e4 };

    /// The larger of the two.
    #[must_use]
    pub fn or(self, other: Dispersion) -> Dispersion {
        if other.factor > self.factor { other } else { self }
    }
}

impl Homogeneity {
    /// The statistic of these groups; `None` with fewer than two non-empty groups, or if all observations or none have the property.
    pub fn of(groups: &[(u64, u64)]) -> Option<Homogeneity> {
        let all = groups.iter().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
        if all.0 == 0 || all.1 == 0 {
            return None;
        }
        let share = all.0 as f64 / (all.0 + all.1) as f64;
        let each = share * (1.0 - share);
        let (mut statistic, mut excess, mut freedom) = (0.0, 0.0, -1.0);
        for (own, others) in groups.iter().copied().filter(|(own, others)| own + others > 0) {
            let n = (own + others) as f64;
            statistic += (own as f64 - n * share).powi(2) / (n * each);
            excess += (1.0 - 6.0 * each) / (n * each);
            freedom += 1.0;
        }
        (freedom > 0.0).then_some(Homogeneity { statistic, freedom, excess })
    }

    /// Estimates the dispersion of observations from these groups, which are clusters or consist of complete clusters at random.
    pub fn dispersion(&self) -> Dispersion {
        Dispersion { factor: (self.statistic / self.freedom).max(1.0), freedom: self.freedom }
    }

    /// The p-value: the probability that groups with equal shares differ by this much, given the dispersion of observations. If groups are
    /// small, the statistic varies more than chi-squared: the numerator's degrees of freedom are chosen to match its variance (J. B. S.
    /// Haldane, The mean and variance of χ² when used as a test of homogeneity, Biometrika 31, 1940).
    pub fn p(&self, dispersion: Dispersion) -> f64 {
        let variance = 2.0 * self.freedom + (self.excess * dispersion.factor).max(0.0);
        let (above, below) = (2.0 * self.freedom.powi(2) / variance, dispersion.freedom);
        let f = self.statistic / dispersion.factor / self.freedom;
        // The upper tail of F, computed directly to be exact where it is small.
        beta_reg(below / 2.0, above / 2.0, below / (above * f + below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(groups: &[(u64, u64)]) -> Homogeneity {
        Homogeneity::of(groups).unwrap()
    }

    #[test]
    fn large_groups_have_the_statistic_and_the_p_value_of_pearson() {
        let groups = of(&[(3_000, 7_000), (3_150, 6_850), (3_050, 6_950)]);
        assert!((groups.statistic - 5.4870).abs() < 1e-3, "{groups:?}");
        assert_eq!(groups.freedom, 2.0);
        // Chi-squared with 2 degrees of freedom: exp(-x / 2).
        let p = groups.p(Dispersion::INDEPENDENT);
        assert!((p / (-groups.statistic / 2.0).exp() - 1.0).abs() < 0.01, "{p}");
        // F with 2 and n degrees of freedom: (1 + 2 f / n)^(-n / 2).
        let p = groups.p(Dispersion { factor: 2.0, freedom: 6.0 });
        assert!((p / (1.0 + groups.statistic / 2.0 / 6.0).powi(-3) - 1.0).abs() < 0.01, "{p}");
    }

    #[test]
    fn clusters_that_all_differ_have_no_p_value_of_note() {
        // 8 of 64 connections are always slow, so the 100 requests of each amount to one observation.
        let connections: Vec<(u64, u64)> =
            (0..64).map(|n| if n % 8 == 0 { (100, 0) } else { (0, 100) }).collect();
        let dispersion = of(&connections).dispersion();
        assert!((dispersion.factor / 101.6 - 1.0).abs() < 0.01, "{dispersion:?}");
        let destinations = of(&[(500, 1_600), (100, 2_000), (200, 2_000)]);
        assert!(destinations.p(Dispersion::INDEPENDENT) < 1e-50);
        assert!(destinations.p(dispersion) > 0.05, "{}", destinations.p(dispersion));
        let all = of(&[(800, 1_300), (0, 2_100), (0, 2_200)]);
        assert!(all.p(dispersion) < 1e-3, "all of the 8 are among 21: {}", all.p(dispersion));
    }

    #[test]
    fn there_is_nothing_to_test_in_one_group_or_without_any_difference() {
        for groups in [&[][..], &[(1, 2)], &[(1, 2), (0, 0)], &[(3, 0), (5, 0)], &[(0, 3), (0, 5)]] {
            assert_eq!(Homogeneity::of(groups), None, "{groups:?}");
        }
        assert_eq!(of(&[(1, 1), (2, 2)]).statistic, 0.0);
        assert_eq!(of(&[(1, 1), (2, 2)]).p(Dispersion::INDEPENDENT), 1.0);
    }
}
