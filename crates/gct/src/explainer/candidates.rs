//! Which diagnosis is hidden: what speaks for each candidate.
//!
//! | clue | |
//! |---|---|
//! | frequency | the logarithm of the training encounters with it |
//! | company | how much more often than by chance it is beside each other diagnosis, in logarithms |
//! | friends | the same, without those that it avoids, and quicker to believe |
//! | treatments | how much likelier the treatments are if it ordered some of them |
//! | labs | how much likelier labs make that |
//!
//! How many treatments it ordered is not known. A loop that goes on with the same chance draws a Poisson
//! number whose rate is exponential, so the likelihood is an integral over the rate: Gauss and Laguerre's, at
//! a few nodes. Beside it stand the other diagnoses and the leak, which order as much as their posterior
//! says.

use super::Account;
use super::posterior::{Local, Posterior, fill_labs};
use crate::record::PerKind;

/// How many clues there are.
pub(crate) const CLUES: usize = 5;

/// Encounters that say nothing, beside those in which a diagnosis was seen with others: for its company, and
/// for its friends.
const COMPANY: f64 = 100.0;
const FRIENDS: f64 = 30.0;

/// A candidate that orders a treatment so much less than all others has no part in its labs.
const NEGLIGIBLE: f64 = 1e-3;

/// The clues of a diagnosis that the encounter has anyway: it is not the hidden one.
const VISIBLE: [f32; CLUES] = [-1e4, 0.0, 0.0, 0.0, 0.0];

/// A likelihood above this is as good as any.
const MOST: f64 = 1e300;

/// Nodes and weights of the integral of e^-t f(t).
const NODES: [(f64, f64); 6] = [
    (0.222_846_604_179_260_7, 0.458_964_673_949_963_6),
    (1.188_932_101_672_623, 0.417_000_830_772_120_8),
    (2.992_736_326_059_314, 0.113_373_382_074_045),
    (5.775_143_569_104_511, 0.010_399_197_453_149_1),
    (9.837_467_418_382_59, 0.000_261_017_202_814_932),
    (15.982_873_980_601_7, 0.000_000_898_547_906_429_621),
];

impl Account {
    /// What speaks for each diagnosis of the vocabulary as the hidden one of an encounter, whose codes are
    /// the others: [`CLUES`] numbers for each.
    pub(super) fn clues(&self, codes: &PerKind<Vec<u32>>, local: &Local, posterior: &Posterior) -> Vec<f32> {
        let mut clues = vec![0.0f32; self.counts.leak() * CLUES];
        for (row, there) in clues.chunks_exact_mut(CLUES).zip(&self.counts.diagnoses) {
            row[0] = (there + 0.5).ln();
            let alone = COMPANY / (f64::from(*there) + COMPANY);
            row[1] = (codes.diagnosis.len() as f64 * alone.ln()) as f32;
        }
        self.add_company(&codes.diagnosis, &mut clues);
        self.add_likelihoods(codes, local, posterior, &mut clues);
        for other in &codes.diagnosis {
            clues[*other as usize * CLUES..][..CLUES].copy_from_slice(&VISIBLE);
        }
        clues
    }

    fn add_company(&self, others: &[u32], clues: &mut [f32]) {
        let all = (self.counts.encounters as f64).max(1.0);
        for &other in others {
            let share = f64::from(self.counts.diagnoses[other as usize]).max(0.5) / all;
            let (candidates, together) = self.company.of(other);
            for (candidate, together) in candidates.iter().zip(together) {
                let there = f64::from(self.counts.diagnoses[*candidate as usize]);
                let friend = (f64::from(*together) + FRIENDS * share) / (there + FRIENDS) / share;
                let row = &mut clues[*candidate as usize * CLUES..][..CLUES];
                row[1] += (1.0 + f64::from(*together) / (COMPANY * share)).ln() as f32;
                row[2] += friend.ln().max(0.0) as f32;
            }
        }
    }

    fn add_likelihoods(
        &self,
        codes: &PerKind<Vec<u32>>,
        local: &Local,
        posterior: &Posterior,
        clues: &mut [f32],
    ) {
        let treatments = codes.treatment.len();
        let mut adds = vec![[0.0f64; 2]; self.counts.leak() * treatments];
        for treatment in 0..treatments {
            self.add_treatment(codes, treatment, posterior, posterior.demand(local, treatment), &mut adds);
        }
        for (candidate, row) in clues.chunks_exact_mut(CLUES).enumerate() {
            let adds = &adds[candidate * treatments..][..treatments];
            let enough = (1.0 - self.rates.more[candidate]).ln();
            let [orders, with_labs] = integrals(adds).map(|integral| enough + integral.ln());
            row[3] = orders as f32;
            row[4] = (with_labs - orders) as f32;
        }
    }

    /// How much each candidate adds to what the others order of a treatment, without labs and with them.
    fn add_treatment(
        &self,
        codes: &PerKind<Vec<u32>>,
        treatment: usize,
        posterior: &Posterior,
        [orders, with_labs]: [f64; 2],
        adds: &mut [[f64; 2]],
    ) {
        let (code, treatments) = (codes.treatment[treatment], codes.treatment.len());
        let mut labs = vec![0.0; codes.lab.len()];
        let mut fit = |counted, orders: f64, more: f64| {
            fill_labs(&mut labs, &self.rates, &codes.lab, counted, (orders, more), &[]);
            posterior.sources.fit(treatment, more, &labs)
        };
        let unseen = fit(None, 0.0, self.rates.more_labs(0.0, 0.0));
        let own = adds.iter_mut().skip(treatment).step_by(treatments);
        own.zip(self.rates.unseen(code)).for_each(|(add, order)| {
            *add = [f64::from(order) / orders, f64::from(order) * unseen / with_labs];
        });
        for &(candidate, pair) in self.by_treatment.of(code) {
            let order = f64::from(self.orders[pair as usize]);
            let pair = pair as usize;
            let is_negligible = order < NEGLIGIBLE * orders;
            let fit = if is_negligible {
                unseen
            } else {
                let counted = f64::from(self.counts.orders[pair]);
                let more = self.rates.more_labs(counted, f64::from(self.counts.labs_after[pair]));
                fit(Some(self.counts.results_of(pair)), counted, more)
            };
            adds[candidate as usize * treatments + treatment] = [order / orders, order * fit / with_labs];
        }
    }
}

/// The integrals over the rate of a candidate, without labs and with them.
fn integrals(adds: &[[f64; 2]]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for (node, weight) in NODES {
        let start = [weight; 2];
        let products = adds.iter().fold(start, |[without, with], add| {
            [without * (1.0 + node * add[0]), with * (1.0 + node * add[1])]
        });
        sums = [sums[0] + products[0], sums[1] + products[1]];
    }
    // Of very many treatments it could be more than a number can hold.
    sums.map(|sum: f64| sum.min(MOST))
}
