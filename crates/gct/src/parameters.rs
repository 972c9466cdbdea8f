//! Names, shapes and first values of a model's parameters. A name is the path of the field that holds it.

use gct_kernels::Number;
use gct_kernels::weights::{Dense, Plan, Vector};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Its name in a checkpoint.
    pub name: String,
    /// Its shape; a matrix is [inputs, outputs].
    pub shape: Vec<usize>,
    /// Where it begins among all parameters.
    pub start: usize,
    initial: Initial,
}

impl Named {
    /// How many numbers it has.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How much smaller than elsewhere the last matrix of a branch begins.
const BRANCH: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Initial {
    /// Uniform between minus and plus this.
    Uniform(f64),
    /// This value.
    Constant(f64),
}

/// All parameters of a model.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    plan: Plan,
    named: Vec<Named>,
}

impl Parameters {
    /// A matrix, with Glorot's uniform distribution.
    pub(crate) fn matrix(&mut self, name: &str, inputs: usize, outputs: usize) -> Dense {
        self.scaled_matrix(name, inputs, outputs, 1.0)
    }

    /// The last matrix of a feed-forward branch that is added to what passes it by. It begins small, so that
    /// a model of many layers begins as one of few, and what is learned reaches the embedding: see
    /// docs/decisions/0012-first-weights.md.
    pub(crate) fn last_of_branch(&mut self, name: &str, inputs: usize, outputs: usize) -> Dense {
        self.scaled_matrix(name, inputs, outputs, BRANCH)
    }

    fn scaled_matrix(&mut self, name: &str, inputs: usize, outputs: usize, scale: f64) -> Dense {
        let dense = self.plan.dense(inputs, outputs);
        let bound = scale * (6.0 / (inputs + outputs) as f64).sqrt();
        self.name(name, vec![inputs, outputs], dense.start, Initial::Uniform(bound));
        dense
    }

    /// A table of vectors, with variance 1 / width.
    pub(crate) fn table(&mut self, name: &str, rows: usize, width: usize) -> Vector {
        let vector = self.plan.vector(rows * width);
        let bound = (3.0 / width as f64).sqrt();
        self.name(name, vec![rows, width], vector.start, Initial::Uniform(bound));
        vector
    }

    /// A table of vectors of zeros.
    pub(crate) fn zeros(&mut self, name: &str, rows: usize, width: usize) -> Vector {
        let vector = self.plan.vector(rows * width);
        self.name(name, vec![rows, width], vector.start, Initial::Constant(0.0));
        vector
    }

    /// A vector of equal numbers.
    pub(crate) fn vector(&mut self, name: &str, len: usize, value: f64) -> Vector {
        let vector = self.plan.vector(len);
        self.name(name, vec![len], vector.start, Initial::Constant(value));
        vector
    }

    fn name(&mut self, name: &str, shape: Vec<usize>, start: usize, initial: Initial) {
        self.named.push(Named { name: name.into(), shape, start, initial });
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Every parameter, in order.
    pub fn named(&self) -> &[Named] {
        &self.named
    }

    /// How many numbers all of them have.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.plan.len()
    }

    /// First values, by the seed.
    pub(crate) fn initialize<T: Number>(&self, seed: u64) -> Vec<T> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut values = Vec::with_capacity(self.len());
        for parameter in &self.named {
            values.extend((0..parameter.len()).map(|_| match parameter.initial {
                Initial::Uniform(bound) => T::of(bound * (2.0 * rng.random::<f64>() - 1.0)),
                Initial::Constant(value) => T::of(value),
            }));
        }
        values
    }
}
