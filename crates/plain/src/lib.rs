//! The models of `gct` in plain tensor operations of Burn, for two purposes: to check the fast path against, values and
//! gradients, and to run on devices that Burn knows and we do not.
//!
//! ```no_run
//! # fn example(batch: &[gct::batch::Example], model: &gct::model::Model<f32>) {
//! let mut plain = gct_plain::Plain::new(model, &gct_plain::Device::flex());
//! let outcome = plain.step(batch, 1e-3, 0);
//! # }
//! ```
//!
//! Nothing is fused here, and attention is padded to the longest encounter of a batch: on a processor, the models' own path is
//! several times as fast.

use std::collections::BTreeMap;

use burn::tensor::{DType, Tensor, TensorData};
use gct::batch::Example;
use gct::model::{Model, Outcome, Pass};
use gct_kernels::Number;

pub use burn::tensor::Device;

mod engine;

use engine::Tensors;

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// A model on a device, with weights of its own.
pub struct Plain<'a, T> {
    model: &'a Model<T>,
    device: Device,
    parameters: BTreeMap<usize, Parameter>,
    steps: i32,
}

/// A parameter, by its place among all.
struct Parameter {
    value: Tensor<2>,
    mean: Tensor<2>,
    square: Tensor<2>,
}

impl<'a, T: Number> Plain<'a, T> {
    /// Takes a model's weights to a device, in single or double precision like the model.
    pub fn new(model: &'a Model<T>, device: &Device) -> Self {
        let device = device.clone().inner();
        let parameter = |(start, shape): (usize, [usize; 2])| {
            let len = shape[0] * shape[1];
            let values = model.weights().values()[start..start + len].iter().map(|x| x.f64()).collect();
            let value = tensor(values, shape, &device, precision::<T>());
            let zeros = value.zeros_like();
            (start, Parameter { value, mean: zeros.clone(), square: zeros })
        };
        let shapes = model.parameters().named().iter().map(|named| match named.shape[..] {
            [len] => (named.start, [1, len]),
            [rows, columns] => (named.start, [rows, columns]),
            _ => unreachable!("parameters are vectors and matrices"),
        });
        Plain { model, parameters: shapes.map(parameter).collect(), device, steps: 0 }
    }

    /// The loss of a batch and the gradient of every parameter, one after the other.
    pub fn gradients(&self, batch: &[Example], pass: Pass) -> (Outcome, Vec<f64>) {
        let (outcome, gradients) = self.backward(batch, pass);
        let all = self.parameters.iter().flat_map(|(start, parameter)| match gradients.get(start) {
            Some(gradient) => numbers(gradient.clone()),
            None => vec![0.0; parameter.value.shape().num_elements()],
        });
        (outcome, all.collect())
    }

    /// Learns from one batch and returns the loss that it had, as `gct::model::Trainer` does.
    pub fn step(&mut self, batch: &[Example], learning_rate: f64, dropout_key: u32) -> Outcome {
        let pass = Pass { dropout_key: Some(dropout_key), ..self.model.pass(batch, true) };
        let (outcome, gradients) = self.backward(batch, pass);
        self.steps += 1;
        let forgotten = |beta: f64| 1.0 - beta.powi(self.steps);
        for (start, gradient) in gradients {
            let Parameter { value, mean, square } =
                self.parameters.get_mut(&start).expect("only parameters have gradients");
            *mean = mean.clone() * BETA_1 + gradient.clone() * (1.0 - BETA_1);
            *square = square.clone() * BETA_2 + gradient.clone() * gradient * (1.0 - BETA_2);
            let root = (square.clone() / forgotten(BETA_2)).sqrt() + EPSILON;
            *value = value.clone() - mean.clone() / root * (learning_rate / forgotten(BETA_1));
        }
        outcome
    }

    /// All weights, as the model's own, for it to take back.
    pub fn weights(&self) -> Vec<T> {
        let all = self.parameters.values().flat_map(|parameter| numbers(parameter.value.clone()));
        all.map(T::of).collect()
    }

    /// The loss of a batch and the gradients of the parameters that it depends on, by their places.
    fn backward(&self, batch: &[Example], pass: Pass) -> (Outcome, BTreeMap<usize, Tensor<2>>) {
        let learned: BTreeMap<usize, Tensor<2>> = (self.parameters.iter())
            .map(|(start, parameter)| (*start, parameter.value.clone().autodiff().require_grad()))
            .collect();
        let graphs = self.model.graphs(batch);
        let mut engine = Tensors::new(&learned, &graphs, self.device.clone(), precision::<T>());
        let outcome = self.model.run(&mut engine, &graphs, batch, pass);
        let mut gradients = BTreeMap::new();
        if let Some(objective) = engine.objective() {
            let all = objective.backward();
            let of = |(start, value): (&usize, &Tensor<2>)| Some((*start, value.grad(&all)?));
            gradients.extend(learned.iter().filter_map(of));
        }
        (outcome, gradients)
    }
}

/// As precise as the model.
fn precision<T>() -> DType {
    if size_of::<T>() == size_of::<f64>() { DType::F64 } else { DType::F32 }
}

fn tensor<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
    precision: DType,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (device, precision))
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.try_into_vec_as::<f64>().expect("a device gives its numbers")
}
