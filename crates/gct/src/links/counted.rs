//! Links by counts of codes alone: of a table of conditional probabilities, of a run's training split, or of
//! a dataset.

use std::path::Path;

use super::{Link, Links, Settings, Strength, sorted};
use crate::cells::is_told;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::infer::Unseen;
use crate::job::Job;
use crate::prior::{Cells, Conditional, Counter, Prior};
use crate::record::{PerKind, Vocabulary};

/// How many standard deviations a 95 % interval reaches.
const REACH: f64 = 1.96;

/// The links of all encounters of a dataset, counted. The job is told how many are read.
///
/// # Errors
/// If the dataset cannot be read, or the job is stopped.
pub fn of_dataset(dataset: &Dataset, by: Cells, settings: &Settings, job: &Job<'_, u64>) -> Result<Links> {
    let vocabulary = dataset.vocabulary();
    let mut counter = Counter::new(PerKind::from_fn(|kind| vocabulary[kind].len())).for_cells(by);
    for (read, encounter) in (1..).zip(dataset.encounters_with(false)?) {
        counter.add(&encounter?);
        if u64::is_multiple_of(read, 1024) {
            job.advance(read)?;
        }
    }
    Ok(of_counts(&counter.finish(), by, settings, vocabulary.clone()))
}

/// The links of a table of conditional probabilities, as [`Prior::write`] makes it.
///
/// # Errors
/// If the file cannot be read, or does not have what the strength is computed of.
pub fn of_file(path: &Path, by: Cells, settings: &Settings) -> Result<Links> {
    let vocabulary = Prior::codes_in(path)?;
    let (prior, _) = Prior::read(path, &vocabulary)?;
    let refused = match by {
        Cells::Conditional => None,
        Cells::Explained => Some("conditional or association: explanations are learned from encounters"),
        Cells::Association if prior.encounters() == 0 => {
            Some("conditional: the table, of an older version, does not say how many encounters there are")
        }
        Cells::Association => None,
        Cells::Posterior => Some("conditional or association: causes are learned from encounters"),
    };
    match refused {
        Some(allowed) => Err(Error::setting("by", Strength::from(by).name(), allowed)),
        None => Ok(of_counts(&prior, by, settings, vocabulary)),
    }
}

fn of_counts(prior: &Prior, by: Cells, settings: &Settings, vocabulary: Vocabulary) -> Links {
    Links {
        strength: by.into(),
        links: sorted(of_prior(prior, by, settings), settings.top),
        vocabulary,
        encounters: Some(prior.encounters()).filter(|all| *all > 0),
        left_out: 0,
        unseen: Unseen::default(),
    }
}

/// The links of counts, in no order. Pairs that are not together more often than by chance have no
/// association, and those without a strength that was learned have no explanation.
pub fn of_prior(prior: &Prior, by: Cells, settings: &Settings) -> Vec<Link> {
    let least = settings.min_support.max(settings.min_cell).max(1);
    let forward = prior.conditionals().filter(|of| of.given.0 < of.code.0);
    let seen = forward.filter(|of| u64::from(of.count) >= least);
    seen.filter_map(|of| link(prior, by, settings.min_cell, &of)).collect()
}

/// The link of a pair, if there is one and it is told.
fn link(prior: &Prior, by: Cells, min_cell: u64, of: &Conditional) -> Option<Link> {
    let (cause, effect, both) = (of.given, of.code, u64::from(of.count));
    let all = [cause, effect].map(|code| u64::from(prior.occurrences(code)));
    let is_shown = all.iter().all(|all| is_told(both, *all, min_cell));
    let (forward, backward, interval) = match by {
        Cells::Conditional => {
            let [there, back] = all.map(|all| both as f64 / all as f64);
            let ends = all.map(|all| wilson(both, all));
            let interval = [0, 1].map(|end: usize| (ends[0][end] + ends[1][end]) / 2.0);
            (there, Some(back), Some(interval))
        }
        Cells::Explained => (f64::from(prior.strength(cause, effect)?), None, None),
        // That is of each encounter, and not of the pair.
        Cells::Posterior => return None,
        Cells::Association => {
            let chi = prior.association(cause, effect);
            (chi, None, of_association(chi, prior.encounters()))
        }
    };
    let strength = backward.map_or(forward, |backward| (forward + backward) / 2.0);
    let link = Link {
        cause,
        effect,
        strength,
        interval,
        forward,
        backward,
        encounters: both,
        known: None,
        truly: None,
    };
    (is_shown && strength > 0.0).then_some(link)
}

/// Wilson's interval of a share.
fn wilson(some: u64, all: u64) -> [f64; 2] {
    let (n, p, z2) = (all as f64, some as f64 / all as f64, REACH * REACH);
    let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let reach = REACH / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    [(middle - reach).max(0.0), (middle + reach).min(1.0)]
}

/// The interval of an association by Fisher's transformation of the correlation of the two codes, as if
/// encounters were independent.
fn of_association(chi: f64, encounters: u64) -> Option<[f64; 2]> {
    let n = encounters as f64;
    let (root, correlation) = (n.sqrt(), (chi / n.sqrt()).clamp(-1.0, 1.0));
    let reach = REACH / (n - 3.0).sqrt();
    (encounters > 3).then(|| [-reach, reach].map(|by| root * (correlation.atanh() + by).tanh()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CodeKind, Encounter};

    /// Twenty encounters: diagnosis 0 in eight, treatment 0 in five, both in four; diagnosis 1 with all.
    fn prior() -> Prior {
        let mut counter = Counter::new(PerKind { diagnosis: 2, treatment: 1, lab: 0, ..PerKind::default() });
        for (diagnosis, treatment, times) in
            [(vec![0, 1], vec![0], 4), (vec![0, 1], vec![], 4), (vec![1], vec![0], 1), (vec![1], vec![], 11)]
        {
            let codes =
                PerKind { diagnosis: diagnosis.clone(), treatment: treatment.clone(), ..PerKind::default() };
            (0..times).for_each(|_| counter.add(&Encounter::new(codes.clone())));
        }
        counter.finish()
    }

    fn links(by: Cells, min_support: u64, min_cell: u64) -> Vec<Link> {
        let settings = Settings { min_support, min_cell, top: None };
        sorted(of_prior(&prior(), by, &settings), None)
    }

    #[test]
    fn conditional_links_have_both_directions() {
        let [second, first] = &links(Cells::Conditional, 1, 0)[..] else { panic!("there are two pairs") };
        assert_eq!((first.cause, first.effect), ((CodeKind::Diagnosis, 1), (CodeKind::Treatment, 0)));
        assert_eq!((first.forward, first.backward, first.encounters), (0.25, Some(1.0), 5));
        assert_eq!((second.forward, second.backward, second.strength), (0.5, Some(0.8), 0.65));
        let [low, high] = second.interval.expect("counts have one");
        // Wilson's of 4 of 8 (0.2152 to 0.7848) and of 4 of 5 (0.3755 to 0.9638).
        assert!((low - (0.2152 + 0.3755) / 2.0).abs() < 1e-4, "{low}");
        assert!((high - (0.7848 + 0.9638) / 2.0).abs() < 1e-4, "{high}");
    }

    #[test]
    fn what_all_have_is_associated_with_nothing() {
        let links = links(Cells::Association, 1, 0);
        let [only] = &links[..] else { panic!("diagnosis 1 is in every encounter: {links:?}") };
        // The chi-squared of this table: 4/2 + 4/6 + 4/3 + 4/9.
        assert!((only.strength.powi(2) - 40.0 / 9.0).abs() < 1e-9, "{}", only.strength);
        let [low, high] = only.interval.expect("there are twenty");
        // The correlation 0.4714 by Fisher: 0.0360 to 0.7566.
        assert!((low - 0.0363 * 20f64.sqrt()).abs() < 2e-3 * 20f64.sqrt(), "{low}");
        assert!((high - 0.7566 * 20f64.sqrt()).abs() < 2e-3 * 20f64.sqrt(), "{high}");
    }

    #[test]
    fn few_encounters_are_no_link_and_no_cell() {
        assert_eq!(links(Cells::Conditional, 5, 0).len(), 1);
        // 4 of 5 with the treatment tells of one, and 4 are few themselves.
        assert_eq!(links(Cells::Conditional, 1, 3).len(), 1);
        assert_eq!(links(Cells::Conditional, 1, 6).len(), 0);
    }
}
