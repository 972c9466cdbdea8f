//! The models of `gct` in plain tensor operations of Burn, for two purposes: to check the fast path against,
//! values and gradients, and to train on devices that Burn knows and we do not.
//!
//! ```no_run
//! # use gct::{dataset::Dataset, job::Job, train::{self, Execution}};
//! # fn example(folder: &std::path::Path, dataset: &Dataset) -> gct::Result<()> {
//! let burn = gct_plain::learner_on(gct_plain::Device::flex());
//! let execution = Execution { learner: &burn, ..Execution::default() };
//! train::resume(folder, dataset, None, execution, &Job::silent())?;
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is fused here, and attention is padded to the longest encounter of a batch: on a processor, the
//! models' own path is several times as fast.

use std::collections::BTreeMap;

use burn::tensor::{DType, Tensor, TensorData};
use gct::batch::Example;
use gct::model::{Gradient, Learner, Learning, Model, Moments, Outcome, Pass};
use gct_kernels::Number;

pub use burn::tensor::Device;

mod engine;

use engine::Tensors;

/// A model in training on a device of Burn, in single or double precision like the model.
pub struct Plain<T> {
    model: Model<T>,
    moments: Moments<T>,
    device: Device,
    /// The weights on the device: every parameter by its first index among all.
    parameters: BTreeMap<usize, Tensor<2>>,
}

/// Makes learners on a device, for `gct::train::Execution`.
pub fn learner_on(device: Device) -> impl Fn(Model<f32>, Moments<f32>) -> Box<dyn Learner<f32>> {
    move |model, moments| Box::new(Plain::resume(model, moments, &device))
}

impl<T: Number> Plain<T> {
    /// Takes a model to train from the beginning.
    pub fn new(model: Model<T>, device: &Device) -> Self {
        let moments = Moments::zeros(model.parameters().len());
        Plain::resume(model, moments, device)
    }

    /// Takes a model to train from where another learner stood.
    pub fn resume(model: Model<T>, moments: Moments<T>, device: &Device) -> Self {
        let device = device.clone().inner();
        Plain { parameters: on_device(&model, &device), model, moments, device }
    }

    /// The loss of a batch and the gradient of every parameter, one after the other.
    pub fn gradients(&self, batch: &[Example], pass: Pass<'_>) -> (Outcome, Vec<f64>) {
        let learned: BTreeMap<usize, Tensor<2>> = (self.parameters.iter())
            .map(|(start, value)| (*start, value.clone().autodiff().require_grad()))
            .collect();
        let layout = self.model.layout(batch);
        let mut engine = Tensors::new(&learned, layout.graphs(), self.device.clone(), precision::<T>())
            .with_sequences(layout.sequences());
        let outcome = self.model.run(&mut engine, &layout, batch, pass);
        let gradients = engine.objective().map(|objective| objective.backward());
        let all = learned.values().flat_map(|value| {
            match gradients.as_ref().and_then(|gradients| value.grad(gradients)) {
                Some(gradient) => numbers(gradient),
                None => vec![0.0; value.shape().num_elements()],
            }
        });
        (outcome, all.collect())
    }
}

impl<T: Number> Learner<T> for Plain<T> {
    fn step(&mut self, batch: &[Example], learning: Learning<'_>) -> Outcome {
        let (outcome, gradients) = self.gradients(batch, learning.pass(&self.model, batch));
        // Weights and moments are kept on the host, where the one Adam of all learners is: the gradient comes
        // from the device and the new weights go back. Where these copies cost too much, Adam can move to the
        // device behind the same trait.
        let mut gradient = [Gradient::new(gradients.into_iter().map(T::of).collect())];
        self.model.step(&mut self.moments, &mut gradient, learning);
        self.parameters = on_device(&self.model, &self.device);
        outcome
    }

    fn model(&self) -> &Model<T> {
        &self.model
    }

    fn moments(&self) -> &Moments<T> {
        &self.moments
    }
}

/// A copy of a model's weights on a device, every parameter by its first index among all.
fn on_device<T: Number>(model: &Model<T>, device: &Device) -> BTreeMap<usize, Tensor<2>> {
    let parameter = |(start, shape): (usize, [usize; 2])| {
        let values = &model.weights().values()[start..start + shape[0] * shape[1]];
        (start, tensor(values.iter().map(|x| x.f64()).collect(), shape, device, precision::<T>()))
    };
    let shapes = model.parameters().named().iter().map(|named| match named.shape[..] {
        [len] => (named.start, [1, len]),
        [rows, columns] => (named.start, [rows, columns]),
        _ => unreachable!("parameters are vectors and matrices"),
    });
    shapes.map(parameter).collect()
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
