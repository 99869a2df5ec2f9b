use super::*;
use proptest::prelude::*;

fn is_near(one: f64, other: f64, within: f64) -> bool {
    (one - other).abs() <= within
}

#[test]
fn a_curve_rises_from_luck_to_lapse_over_its_spread() {
    let [at, above, below, deviation] = [0.0, -10.0, 10.0, 0.08].map(pass_probabilities);
    for (spread, (_, _)) in SPREADS.iter().enumerate() {
        for (lapse, (rate, _)) in LAPSES.iter().enumerate() {
            let curve = spread * LAPSES.len() + lapse;
            assert!(is_near(at[curve], LUCK + (1.0 - LUCK - rate) / 2.0, 1e-12));
            assert!(is_near(above[curve], LUCK, 1e-6), "{}", above[curve]);
            assert!(is_near(below[curve], 1.0 - rate, 1e-6), "{}", below[curve]);
        }
    }
    // A standard deviation below the capacity a logistic curve is at 1 / (1 + exp(-pi / sqrt 3)) = 0.8598.
    assert!(is_near(deviation[4], 0.003 + 0.987 * 0.8598, 1e-4), "{}", deviation[4]);
}

#[test]
fn a_density_has_its_deviation() {
    let step = 1e-3;
    let all = || (-2_000..2_000).map(|n| f64::from(n) * step);
    let sum: f64 = all().map(|x| density(x, 0.1) * step).sum();
    let square: f64 = all().map(|x| x * x * density(x, 0.1) * step).sum();
    assert!(is_near(sum, 1.0, 1e-3) && is_near(square.sqrt(), 0.1, 1e-3), "{sum} {square}");
}

#[test]
fn entropy_is_in_nats() {
    for (p, expected) in [(0.0, 0.0), (1.0, 0.0), (0.5, 2f64.ln()), (0.25, 0.562_335)] {
        assert!(is_near(entropy(p), expected, 1e-6), "{p}");
    }
}

#[test]
fn a_result_counts_as_bayes_says() {
    // Two loads and three cells: below 10, exactly 10, and 11 or more.
    let mut posterior = Posterior::new(Grid::new(10, 11, 0.01));
    let p = posterior.marginal.clone();
    assert!(is_near(p[0], 0.05, 1e-9) && is_near(p[1], 0.85, 1e-9) && is_near(p[2], 0.1, 1e-9), "{p:?}");
    let likelihood = |cell: usize, load: f64| {
        let curves = pass_probabilities(posterior.grid.middles()[cell] - load.ln());
        let prior = SPREADS.iter().flat_map(|(_, spread)| LAPSES.map(|(_, lapse)| spread * lapse));
        prior.zip(curves).map(|(prior, pass)| prior * pass).sum::<f64>()
    };
    let passes: Vec<f64> = (0..3).map(|cell| p[cell] * likelihood(cell, 11.0)).collect();
    let all: f64 = passes.iter().sum();
    posterior.observe(11, true);
    for (cell, pass) in passes.iter().enumerate() {
        assert!(is_near(posterior.marginal[cell], pass / all, 1e-9), "{cell}");
    }
    assert!(is_near(posterior.at_least(11), passes[2] / all, 1e-9));
    assert!(is_near(posterior.at_least(10), (passes[1] + passes[2]) / all, 1e-9));
}

/// Expected loss of entropy over the cells, computed from both results.
fn information_by_results(posterior: &Posterior, load: u64) -> f64 {
    let entropy = |of: &Posterior| -> f64 {
        of.marginal.iter().map(|p| if *p > 0.0 { -p * p.ln() } else { 0.0 }).sum()
    };
    let pass: f64 = {
        let log = logarithm(load);
        let of_cell = |(cell, middle): (&Cell, &f64)| -> f64 {
            let curves = pass_probabilities(middle - log);
            cell.iter().enumerate().map(|(at, p)| p * curves[at % CURVES]).sum()
        };
        posterior.cells.iter().zip(posterior.grid.middles()).map(of_cell).sum()
    };
    let after = |passed| {
        let mut after = posterior.clone();
        after.observe(load, passed);
        entropy(&after)
    };
    entropy(posterior) - pass * after(true) - (1.0 - pass) * after(false)
}

#[test]
fn information_is_the_expected_loss_of_entropy() {
    let mut posterior = Posterior::new(Grid::new(100, 200, 0.05));
    for (load, passed) in [(120, true), (180, false), (150, true)] {
        for probed in [100, 150, 165, 200] {
            let expected = information_by_results(&posterior, probed);
            let information = posterior.information(probed);
            assert!(is_near(information, expected, 2e-3), "{probed}: {information} and not {expected}");
        }
        posterior.observe(load, passed);
    }
}

#[test]
fn what_was_sustained_is_where_the_capacity_is() {
    let mut posterior = Posterior::new(Grid::new(1, 1_000_000, 0.01));
    posterior.observe_sustained(5_000, 1_020, None, MEASUREMENT);
    let near = posterior.at_least(970) - posterior.at_least(1_080);
    assert!((0.6..0.9).contains(&near), "{near}");
    // The report may mislead. That becomes more probable if a smaller load fails or a larger one passes.
    posterior.observe(2_000, true);
    posterior.observe(2_000, true);
    assert!(posterior.at_least(2_000) > 0.9, "{}", posterior.at_least(2_000));
}

#[test]
fn much_the_same_once_more_is_little_evidence_if_it_misleads() {
    let misleads =
        |posterior: &Posterior| -> f64 { posterior.cells.iter().flat_map(|cell| &cell[CURVES..]).sum() };
    let mut posterior = Posterior::new(Grid::new(1, 1_000_000, 0.01));
    posterior.observe_sustained(5_000, 1_020, None, MEASUREMENT);
    let mut independent = posterior.clone();
    let once = misleads(&posterior);
    posterior.observe_sustained(5_000, 1_021, Some(1_020), MEASUREMENT);
    independent.observe_sustained(5_000, 1_021, None, MEASUREMENT);
    assert!(misleads(&independent) < 0.1 * once && misleads(&posterior) > 0.2 * once);
}

#[test]
fn age_returns_a_share_to_the_prior_and_moves_a_share_by_a_cell() {
    let mut posterior = Posterior::new(Grid::new(100, 200, 0.05));
    let (prior, kinds) = (posterior.prior.clone(), posterior.cells[3].map(|p| p / posterior.marginal[3]));
    let at = 5;
    posterior.cells.iter_mut().for_each(|cell| *cell = [0.0; 2 * CURVES]);
    posterior.cells[at] = kinds;
    posterior.age();
    posterior.normalise();
    let p = &posterior.marginal;
    assert!(is_near(p.iter().sum(), 1.0, 1e-12));
    // Cells of width 5 %; the capacity drifts by one cell.
    let middles = posterior.grid.middles();
    let [below, above] =
        [(at - 1, at), (at, at + 1)].map(|(low, high)| DRIFT * 0.01 / (middles[high] - middles[low]));
    let shares = [(at, 1.0 - below - above), (at - 1, below), (at + 1, above), (at + 2, 0.0), (0, 0.0)];
    for (cell, share) in shares {
        let expected = (1.0 - CHANGE) * share + CHANGE * prior[cell];
        assert!(is_near(p[cell], expected, 1e-12), "{cell}: {} and not {expected}", p[cell]);
    }
}

#[test]
fn a_quantile_is_the_cell_that_reaches_it() {
    let mut posterior = Posterior::new(Grid::new(10, 12, 0.01));
    posterior.marginal = vec![0.1, 0.2, 0.3, 0.4];
    for (share, expected) in [(0.0, 0), (0.05, 0), (0.15, 1), (0.5, 2), (0.7, 3), (1.0, 3), (2.0, 3)] {
        assert_eq!(posterior.quantile(share), expected, "{share}");
    }
}

proptest! {
    /// Whatever was observed before, a pass at a load never makes a capacity of at least this load less probable, and a failure never
    /// more.
    #[test]
    fn evidence_moves_the_capacity_its_way(
        steps in proptest::collection::vec((90u64..210, any::<bool>()), 0..20),
        load in 100u64..200,
    ) {
        let mut posterior = Posterior::new(Grid::new(100, 200, 0.02));
        for (load, passed) in steps {
            posterior.age();
            posterior.observe(load, passed);
        }
        let edges = posterior.grid().edges();
        let load = edges[edges.partition_point(|edge| *edge < load)];
        let at_least = |passed| {
            let mut after = posterior.clone();
            after.observe(load, passed);
            after.at_least(load)
        };
        let (less, now, more) = (at_least(false), posterior.at_least(load), at_least(true));
        prop_assert!(less <= now + 1e-9 && now <= more + 1e-9, "{} {} {}", less, now, more);
    }
}
