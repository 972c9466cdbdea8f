//! All parameters of a model in one vector, with the matrices among them also in the form that
//! [`gemm`](crate::gemm) likes.

use crate::Number;
use crate::gemm::{pack, pack_transposed, packed_len};

/// A matrix among the parameters: `inputs` rows of `outputs` numbers, so that y = x W.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dense {
    /// Where it begins.
    pub start: usize,
    /// Its rows.
    pub inputs: usize,
    /// Its columns.
    pub outputs: usize,
    forward: usize,
    backward: usize,
}

/// A vector among the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vector {
    /// Where it begins.
    pub start: usize,
    /// How long it is.
    pub len: usize,
}

impl Vector {
    /// It, out of all parameters (or gradients).
    pub fn of<T>(self, all: &[T]) -> &[T] {
        &all[self.start..self.start + self.len]
    }

    /// It, out of all gradients.
    pub fn of_mut<T>(self, all: &mut [T]) -> &mut [T] {
        &mut all[self.start..self.start + self.len]
    }
}

/// Where each parameter is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    len: usize,
    dense: Vec<Dense>,
    forward: usize,
    backward: usize,
}

impl Plan {
    /// Makes room for a matrix.
    pub fn dense(&mut self, inputs: usize, outputs: usize) -> Dense {
        let (start, forward, backward) = (self.len, self.forward, self.backward);
        let dense = Dense { start, inputs, outputs, forward, backward };
        self.len += inputs * outputs;
        self.forward += packed_len(inputs, outputs);
        self.backward += packed_len(outputs, inputs);
        self.dense.push(dense);
        dense
    }

    /// Makes room for a vector, or for anything that is no matrix of a linear layer.
    pub fn vector(&mut self, len: usize) -> Vector {
        let vector = Vector { start: self.len, len };
        self.len += len;
        vector
    }

    /// How many parameters there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }
}

/// The parameters.
#[derive(Debug, Clone)]
pub struct Weights<T> {
    values: Vec<T>,
    plan: Plan,
    forward: Vec<T>,
    backward: Vec<T>,
}

impl<T: Number> Weights<T> {
    /// Takes the values of all parameters.
    ///
    /// # Panics
    /// If there are more or fewer than planned.
    pub fn new(plan: Plan, values: Vec<T>) -> Self {
        assert_eq!(values.len(), plan.len, "values for parameters");
        let (forward, backward) = (vec![T::ZERO; plan.forward], vec![T::ZERO; plan.backward]);
        let mut weights = Weights { values, plan, forward, backward };
        weights.pack();
        weights
    }

    /// The values of all parameters.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Changes the values of the parameters.
    pub fn update(&mut self, change: impl FnOnce(&mut [T])) {
        change(&mut self.values);
        self.pack();
    }

    fn pack(&mut self) {
        for dense in &self.plan.dense {
            let &Dense { start, inputs, outputs, forward, backward } = dense;
            let values = &self.values[start..start + inputs * outputs];
            pack(values, inputs, outputs, &mut self.forward[forward..]);
            pack_transposed(values, inputs, outputs, &mut self.backward[backward..]);
        }
    }

    /// A matrix, packed for x W.
    pub(crate) fn forward(&self, dense: Dense) -> &[T] {
        &self.forward[dense.forward..][..packed_len(dense.inputs, dense.outputs)]
    }

    /// A matrix, packed for dy W'.
    pub(crate) fn backward(&self, dense: Dense) -> &[T] {
        &self.backward[dense.backward..][..packed_len(dense.outputs, dense.inputs)]
    }
}
