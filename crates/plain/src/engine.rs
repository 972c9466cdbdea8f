//! The engine: one row per node or step as everywhere, and attention as a square matrix per graph or sequence,
//! as large as the largest needs.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Int, Tensor, TensorData, activation};
use gct_kernels::engine::{
    Attend, Axis, Columns, Connected, DecoderParameters, Engine, Extent, Linear, Norm, Reach, Recurrent,
};
use gct_kernels::loss::{counted, pair_of_groups, smoothed};
use gct_kernels::pairs::{Normalizer, Pairs};
use gct_kernels::rows::Activation;
use gct_kernels::weights::Vector;

use crate::tensor;

/// The score of a pair that is not allowed.
const FORBIDDEN: f64 = -1e30;

/// Logarithms are taken of no less than this.
const LEAST: f64 = 1e-12;

/// Rows of nodes, or of steps.
#[derive(Clone)]
pub(crate) struct Matrix {
    rows: Tensor<2>,
    /// Which they are; `None` if they were selected one by one.
    extent: Option<Extent>,
}

/// The engine.
pub(crate) struct Tensors<'a> {
    parameters: &'a BTreeMap<usize, Tensor<2>>,
    graphs: &'a [Pairs],
    sequences: &'a [Pairs],
    device: Device,
    precision: DType,
    objective: Option<Tensor<1>>,
    divergence: Option<Tensor<1>>,
}

impl<'a> Tensors<'a> {
    pub(crate) fn new(
        parameters: &'a BTreeMap<usize, Tensor<2>>,
        graphs: &'a [Pairs],
        device: Device,
        precision: DType,
    ) -> Self {
        Tensors { parameters, graphs, sequences: &[], device, precision, objective: None, divergence: None }
    }

    /// The same with sequences, whose nodes are their steps, the newest first.
    pub(crate) fn with_sequences(self, sequences: &'a [Pairs]) -> Self {
        Tensors { sequences, ..self }
    }

    /// What is minimised.
    pub(crate) fn objective(self) -> Option<Tensor<1>> {
        self.objective
    }

    fn minimize(&mut self, loss: &Tensor<1>, weight: f64) {
        let term = loss.clone() * weight;
        self.objective = Some(match self.objective.take() {
            Some(sum) => sum + term,
            None => term,
        });
    }

    fn constant<const D: usize>(&self, values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
        tensor(values, shape, &self.device, self.precision)
    }

    fn indices(&self, of: impl Iterator<Item = usize>) -> Tensor<1, Int> {
        let all: Vec<i32> = of.map(|at| i32::try_from(at).expect("a batch has fewer rows")).collect();
        let count = all.len();
        Tensor::from_data(TensorData::new(all, [count]), &self.device)
    }

    /// The graphs, or the sequences.
    fn layouts(&self, axis: Axis) -> &'a [Pairs] {
        match axis {
            Axis::Nodes => self.graphs,
            Axis::Steps => self.sequences,
        }
    }

    /// How many rows each graph, or each sequence, has within reach.
    fn counts(&self, extent: Extent) -> Vec<usize> {
        self.layouts(extent.axis).iter().map(|pairs| pairs.count_within(extent.reach.hops())).collect()
    }

    /// Nodes of the largest graph, or steps of the longest sequence.
    fn most(&self, axis: Axis) -> usize {
        self.layouts(axis).iter().map(Pairs::nodes).max().unwrap_or(0)
    }

    /// Rows as [graphs, most, width], with zeros for nodes that are not there.
    fn spread(&self, x: &Matrix) -> Tensor<3> {
        let (counts, most) = (self.counts(known(x)), self.most(known(x).axis));
        let [rows, width] = x.rows.dims();
        let mut first = 0;
        let mut indices = Vec::new();
        for count in &counts {
            indices.extend((0..most).map(|node| if node < *count { first + node } else { rows }));
            first += count;
        }
        let zeros = self.constant(vec![0.0; width], [1, width]);
        let with_zeros = Tensor::cat(vec![x.rows.clone(), zeros], 0);
        with_zeros.select(0, self.indices(indices.into_iter())).reshape([counts.len(), most, width])
    }

    /// The rows of [graphs, most, width] that are there.
    fn gather(&self, x: Tensor<3>, extent: Extent) -> Matrix {
        let [graphs, most, width] = x.dims();
        let counts = self.counts(extent);
        let indices =
            counts.iter().enumerate().flat_map(|(graph, count)| (0..*count).map(move |i| graph * most + i));
        let rows = x.reshape([graphs * most, width]).select(0, self.indices(indices));
        Matrix { rows, extent: Some(extent) }
    }

    /// [sequences, most, 1], with 1 for each step that is there.
    fn are_steps(&self) -> Tensor<3> {
        let (counts, most) = (self.counts(Extent::steps(Reach::ALL)), self.most(Axis::Steps));
        let is_step = counts.iter().flat_map(|count| (0..most).map(move |step| f64::from(step < *count)));
        self.constant(is_step.collect(), [counts.len(), most, 1])
    }

    fn parameter(&self, vector: Vector) -> Tensor<2> {
        self.parameters[&vector.start].clone()
    }

    /// A square matrix per graph with the number that a vector has for each pair of nodes, by their groups;
    /// or the vector's one number.
    fn of_pairs(&self, vector: Vector, graphs: &[Connected<'_>]) -> Tensor<3> {
        let numbers = self.parameter(vector);
        if vector.len == 1 {
            return numbers.reshape([1, 1, 1]);
        }
        let most = self.most(Axis::Nodes);
        let group = |graph: &Connected<'_>, node: usize| {
            let mut end = 0;
            graph.sizes.iter().position(|size| {
                end += size;
                node < end
            })
        };
        let of_pair = |graph: &Connected<'_>, i: usize, j: usize| match (group(graph, i), group(graph, j)) {
            (Some(one), Some(other)) => pair_of_groups(one, other),
            // A node that is not there counts nowhere.
            _ => 0,
        };
        let indices = graphs
            .iter()
            .flat_map(|graph| (0..most * most).map(move |at| of_pair(graph, at / most, at % most)));
        let all = numbers.reshape([vector.len]).select(0, self.indices(indices));
        all.reshape([graphs.len(), most, most])
    }

    /// A square matrix per graph or sequence, with 1 where something is true of a pair of nodes.
    fn indicator(&self, axis: Axis, pairs: impl Iterator<Item = (usize, usize, usize)>) -> Tensor<3> {
        let (graphs, most) = (self.layouts(axis).len(), self.most(axis));
        let mut values = vec![0.0; graphs * most * most];
        pairs.for_each(|(graph, i, j)| values[(graph * most + i) * most + j] = 1.0);
        self.constant(values, [graphs, most, most])
    }

    /// The sum of cross entropies of logits and targets, where `counted` is 1.
    fn cross_entropy<const D: usize>(logits: Tensor<D>, targets: Tensor<D>, counted: Tensor<D>) -> Tensor<1> {
        let softplus = -activation::log_sigmoid(-logits.clone());
        ((softplus - logits * targets) * counted).sum()
    }
}

fn known(x: &Matrix) -> Extent {
    x.extent.expect("the rows of a matrix are those of its graphs")
}

fn columns(part: Columns<'_, Matrix>) -> Matrix {
    let rows = part.matrix.rows.clone().narrow(1, part.first, part.width);
    Matrix { rows, extent: part.matrix.extent }
}

fn scalar(loss: &Tensor<1>) -> f64 {
    loss.clone().into_scalar::<f64>()
}

impl Engine for Tensors<'_> {
    type Matrix = Matrix;
    type Attention = Tensor<3>;

    fn embed(&mut self, table: Vector, _: usize, ids: &[u32]) -> Matrix {
        let ids = self.indices(ids.iter().map(|id| *id as usize));
        Matrix { rows: self.parameter(table).select(0, ids), extent: Some(Extent::nodes(Reach::ALL)) }
    }

    fn linear(&mut self, x: &Matrix, layer: Linear) -> Matrix {
        let mut rows = x.rows.clone().matmul(self.parameters[&layer.weight.start].clone());
        if let Some((bias, activation)) = layer.bias {
            rows = rows + self.parameter(bias);
            if activation == Activation::Relu {
                rows = activation::relu(rows);
            }
            if let Some(dropout) = layer.dropout {
                let [count, width] = rows.dims();
                let factors = (0..count * width).map(|index| dropout.factor(index)).collect();
                rows = rows * self.constant(factors, [count, width]);
            }
        }
        Matrix { rows, extent: x.extent }
    }

    fn add_norm(&mut self, a: &Matrix, b: &Matrix, norm: Norm) -> Matrix {
        let sum = a.rows.clone() + b.rows.clone();
        let centred = sum.clone() - sum.mean_dim(1);
        let variance = (centred.clone() * centred.clone()).mean_dim(1);
        let normal = centred / (variance + norm.epsilon).sqrt();
        Matrix { rows: normal * self.parameter(norm.gain) + self.parameter(norm.bias), extent: a.extent }
    }

    fn relu(&mut self, x: &Matrix) -> Matrix {
        Matrix { rows: activation::relu(x.rows.clone()), extent: x.extent }
    }

    fn add(&mut self, a: &Matrix, b: &Matrix) -> Matrix {
        Matrix { rows: a.rows.clone() + b.rows.clone(), extent: a.extent }
    }

    fn multiply(&mut self, a: &Matrix, b: &Matrix) -> Matrix {
        Matrix { rows: a.rows.clone() * b.rows.clone(), extent: a.extent }
    }

    fn side_by_side(&mut self, parts: &[Matrix]) -> Matrix {
        let rows = Tensor::cat(parts.iter().map(|part| part.rows.clone()).collect(), 1);
        Matrix { rows, extent: parts[0].extent }
    }

    fn given(&mut self, pairs: &[f32]) -> Tensor<3> {
        let (graphs, most) = (self.graphs.len(), self.most(Axis::Nodes));
        let (mut values, mut first) = (vec![0.0; graphs * most * most], 0);
        for (graph, of_graph) in self.graphs.iter().enumerate() {
            for (i, j, cell) in of_graph.cells() {
                values[(graph * most + i) * most + j] = f64::from(pairs[first + cell]);
            }
            first += of_graph.len();
        }
        self.constant(values, [graphs, most, most])
    }

    fn attend(
        &mut self,
        query: Columns<'_, Matrix>,
        key: Columns<'_, Matrix>,
        how: Attend<'_, Tensor<3>>,
    ) -> Tensor<3> {
        let extent = known(query.matrix).within(how.reach);
        let layouts = self.layouts(extent.axis).iter().enumerate();
        let pairs = layouts.zip(self.counts(extent)).flat_map(|((graph, pairs), count)| {
            pairs.cells().filter(move |(i, _, _)| *i < count).map(move |(i, j, _)| (graph, i, j))
        });
        let allowed = self.indicator(extent.axis, pairs);
        let [query, key] = [query, key].map(|part| self.spread(&columns(part)));
        let mut scores = query.matmul(key.swap_dims(1, 2)) * how.scale;
        if let Some(bias) = how.bias {
            scores = scores + bias.clone();
        }
        let weights = match how.normalizer {
            Normalizer::Softmax => {
                let forbidden = (allowed.clone() * -1.0 + 1.0) * FORBIDDEN;
                activation::softmax(scores * allowed.clone() + forbidden, 2) * allowed
            }
            Normalizer::Sigmoid => activation::sigmoid(scores) * allowed,
        };
        if let Some(term) = how.divergence {
            let logs = |of: &Tensor<3>| of.clone().clamp_min(LEAST).log();
            let divergence = (term.before.clone() * (logs(term.before) - logs(&weights))).sum();
            self.minimize(&divergence, term.weight);
            self.divergence = Some(match self.divergence.take() {
                Some(sum) => sum + divergence,
                None => divergence,
            });
        }
        weights
    }

    fn mix(&mut self, attention: &Tensor<3>, x: Columns<'_, Matrix>, reach: Reach) -> Matrix {
        let values = self.spread(&columns(x));
        self.gather(attention.clone().matmul(values), known(x.matrix).within(reach))
    }

    fn within(&mut self, x: &Matrix, reach: Reach) -> Matrix {
        self.gather(self.spread(x), known(x).within(reach))
    }

    fn sum(&mut self, x: &Matrix) -> Matrix {
        let sums = self.spread(x).sum_dim(1);
        let [graphs, _, width] = sums.dims();
        Matrix { rows: sums.reshape([graphs, width]), extent: Some(known(x).within(Reach::FIRST)) }
    }

    fn select(&mut self, x: &Matrix, nodes: &[(usize, usize)]) -> Matrix {
        let counts = self.counts(known(x));
        let indices = nodes.iter().map(|(graph, node)| counts[..*graph].iter().sum::<usize>() + node);
        Matrix { rows: x.rows.clone().select(0, self.indices(indices)), extent: None }
    }

    fn steps(&mut self, x: &Matrix, graphs: &[usize]) -> Matrix {
        let rows = x.rows.clone().select(0, self.indices(graphs.iter().copied()));
        Matrix { rows, extent: Some(Extent::steps(Reach::ALL)) }
    }

    fn gru(&mut self, x: &Matrix, layer: Recurrent) -> Matrix {
        let (x, are_steps, width) = (self.spread(x), self.are_steps(), layer.weight.inputs);
        let [sequences, most, _] = x.dims();
        let (weight, bias) = (self.parameters[&layer.weight.start].clone(), self.parameter(layer.bias));
        let mut state = self.constant(vec![0.0; sequences * width], [sequences, width]);
        for step in (0..most).rev() {
            let of_x = x.clone().narrow(1, step, 1).reshape([sequences, 3 * width]);
            let of_state = state.clone().matmul(weight.clone()) + bias.clone();
            let part = |of: &Tensor<2>, part: usize| of.clone().narrow(1, part * width, width);
            let gate = |number| activation::sigmoid(part(&of_x, number) + part(&of_state, number));
            let (reset, update) = (gate(0), gate(1));
            let new = (part(&of_x, 2) + reset * part(&of_state, 2)).tanh();
            let after = (update.clone() * -1.0 + 1.0) * new + update * state;
            // Before its oldest step, the state of a sequence stays zero.
            state = after * are_steps.clone().narrow(1, step, 1).reshape([sequences, 1]);
        }
        Matrix { rows: state, extent: Some(Extent::steps(Reach::FIRST)) }
    }

    fn windows(&mut self, x: &Matrix, size: usize) -> Matrix {
        let x = self.spread(x);
        let [sequences, most, width] = x.dims();
        let zeros = self.constant(vec![0.0; sequences * size * width], [sequences, size, width]);
        let with_zeros = Tensor::cat(vec![x, zeros], 1);
        let shifted = (0..size).map(|by| with_zeros.clone().narrow(1, by, most)).collect();
        self.gather(Tensor::cat(shifted, 2), Extent::steps(Reach::ALL))
    }

    fn largest(&mut self, x: &Matrix) -> Matrix {
        let x = self.spread(x) + (self.are_steps() - 1.0) * -FORBIDDEN;
        let [sequences, _, width] = x.dims();
        Matrix { rows: x.max_dim(1).reshape([sequences, width]), extent: Some(Extent::steps(Reach::FIRST)) }
    }

    fn edge_loss(
        &mut self,
        z: &Matrix,
        decoder: Option<DecoderParameters>,
        graphs: &[Connected<'_>],
        weight: f64,
    ) -> f64 {
        let nodes = self.spread(z);
        let mut logits = nodes.clone().matmul(nodes.swap_dims(1, 2));
        if let Some(DecoderParameters { scale, bias }) = decoder {
            let [scale, bias] = [scale, bias].map(|vector| self.of_pairs(vector, graphs));
            logits = logits * scale + bias;
        }
        let both = |graph: usize, &(i, j): &(u32, u32)| {
            let (i, j) = (i as usize, j as usize);
            [(graph, i, j), (graph, j, i)]
        };
        let edges = graphs.iter().enumerate();
        let targets = self.indicator(
            Axis::Nodes,
            edges.flat_map(|(at, graph)| graph.edges.iter().flat_map(move |edge| both(at, edge))),
        );
        let pairs = self.graphs.iter().enumerate().flat_map(|(graph, pairs)| {
            let nodes = pairs.nodes();
            (0..nodes * nodes).map(move |at| (graph, at / nodes, at % nodes)).filter(|(_, i, j)| i != j)
        });
        let counted = self.indicator(Axis::Nodes, pairs);
        let loss = Self::cross_entropy(logits, targets, counted);
        self.minimize(&loss, weight);
        scalar(&loss)
    }

    fn label_loss(
        &mut self,
        logits: &Matrix,
        labels: impl Iterator<Item = Option<bool>>,
        smoothing: f64,
        positives: &[f64],
        weight: f64,
    ) -> f64 {
        let target = |label: Option<bool>| smoothed(label == Some(true), smoothing);
        let (targets, counted): (Vec<f64>, Vec<f64>) = (labels.enumerate())
            .map(|(number, label)| (target(label), counted(label, number, positives)))
            .unzip();
        let shape = logits.rows.dims();
        let [targets, counted] = [targets, counted].map(|values| self.constant(values, shape));
        let loss = Self::cross_entropy(logits.rows.clone(), targets, counted);
        self.minimize(&loss, weight);
        scalar(&loss)
    }

    fn class_loss(
        &mut self,
        logits: &Matrix,
        classes: impl Iterator<Item = usize>,
        smoothing: f64,
        weight: f64,
    ) -> f64 {
        let [rows, columns] = logits.rows.dims();
        let mut chosen = vec![smoothing / columns as f64; rows * columns];
        classes.enumerate().for_each(|(row, class)| chosen[row * columns + class] += 1.0 - smoothing);
        let logs = activation::log_softmax(logits.rows.clone(), 1);
        let loss = -(logs * self.constant(chosen, [rows, columns])).sum();
        self.minimize(&loss, weight);
        scalar(&loss)
    }

    fn divergence(&mut self) -> f64 {
        self.divergence.as_ref().map_or(0.0, scalar)
    }
}

/// Both engines against PyTorch on sequences: `nn.GRU`, a causal `nn.Conv1d` and causal attention.
#[cfg(test)]
mod tests {
    use gct_kernels::Number;
    use gct_kernels::rows::Activation;
    use gct_kernels::tape::{Pool, Tape};
    use gct_kernels::weights::{Dense, Plan, Weights};
    use serde::Deserialize;

    use super::*;
    use crate::{numbers, precision};

    /// What `reference/sequences_torch.py` wrote.
    #[derive(Deserialize)]
    struct Golden {
        inputs: usize,
        width: usize,
        channels: usize,
        size: usize,
        sequences: Vec<Vec<usize>>,
        loss: f64,
        parameters: BTreeMap<String, Parameter>,
        results: BTreeMap<String, Vec<f64>>,
    }

    #[derive(Deserialize)]
    struct Parameter {
        values: Vec<f64>,
        gradient: Vec<f64>,
    }

    struct Model {
        plan: Plan,
        table: Vector,
        input: (Dense, Vector),
        recurrent: Recurrent,
        window: (Dense, Vector),
        projection: Dense,
    }

    impl Model {
        fn new(golden: &Golden) -> Self {
            let &Golden { inputs, width, channels, size, .. } = golden;
            let mut plan = Plan::default();
            let table = plan.vector(golden.parameters["table"].values.len());
            let input = (plan.dense(inputs, 3 * width), plan.vector(3 * width));
            let recurrent = Recurrent { weight: plan.dense(width, 3 * width), bias: plan.vector(3 * width) };
            let window = (plan.dense(size * inputs, channels), plan.vector(channels));
            let projection = plan.dense(inputs, 3 * width);
            Model { plan, table, input, recurrent, window, projection }
        }

        /// The name of each parameter in the file, its start and its shape.
        fn parameters(&self, inputs: usize) -> [(&'static str, usize, [usize; 2]); 8] {
            let vector = |name, vector: Vector| (name, vector.start, [1, vector.len]);
            let dense = |name, dense: Dense| (name, dense.start, [dense.inputs, dense.outputs]);
            [
                ("table", self.table.start, [self.table.len / inputs, inputs]),
                dense("input", self.input.0),
                vector("input_bias", self.input.1),
                dense("hidden", self.recurrent.weight),
                vector("hidden_bias", self.recurrent.bias),
                dense("window", self.window.0),
                vector("window_bias", self.window.1),
                dense("projection", self.projection),
            ]
        }

        /// The results of all sequences by name, and the loss.
        fn play<E: Engine>(&self, engine: &mut E, golden: &Golden) -> ([(&'static str, E::Matrix); 3], f64) {
            let &Golden { inputs, width, size, .. } = golden;
            let layer =
                |(weight, bias), activation| Linear { weight, bias: Some((bias, activation)), dropout: None };
            let ids: Vec<u32> = (0..(self.table.len / inputs) as u32).collect();
            let rows = engine.embed(self.table, inputs, &ids);
            let x = engine.steps(&rows, &golden.sequences.concat());

            let of_input = engine.linear(&x, layer(self.input, Activation::Identity));
            let states = engine.gru(&of_input, self.recurrent);

            let windows = engine.windows(&x, size);
            let convolved = engine.linear(&windows, layer(self.window, Activation::Relu));
            let maxima = engine.largest(&convolved);

            let projected = engine.linear(&x, Linear::plain(self.projection));
            let part = |part: usize| Columns { matrix: &projected, first: part * width, width };
            let scale = 1.0 / (width as f64).sqrt();
            let (normalizer, reach) = (Normalizer::Softmax, Reach::ALL);
            let how = Attend { scale, bias: None, normalizer, divergence: None, reach };
            let attention = engine.attend(part(0), part(1), how);
            let mixed = engine.mix(&attention, part(2), Reach::ALL);
            let attended = engine.sum(&mixed);

            let results = [("states", states), ("maxima", maxima), ("attended", attended)];
            let losses = results.iter().map(|(name, rows)| {
                let labels = (0..golden.results[*name].len()).map(|index| Some(index % 3 == 0));
                engine.label_loss(rows, labels, 0.0, &[], 1.0)
            });
            let loss = losses.sum();
            (results, loss)
        }
    }

    /// What one engine makes of it.
    struct Found {
        loss: f64,
        results: Vec<(&'static str, Vec<f64>)>,
        gradient: Vec<f64>,
    }

    /// The largest difference from the file, relative to the largest number of its kind.
    fn deviation(found: &Found, golden: &Golden, model: &Model) -> f64 {
        let of = |got: &[f64], expected: &[f64]| {
            assert_eq!(got.len(), expected.len());
            let scale = expected.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            got.iter().zip(expected).map(|(got, expected)| (got - expected).abs() / scale).fold(0.0, f64::max)
        };
        let results = found.results.iter().map(|(name, rows)| of(rows, &golden.results[*name]));
        let parameters = model.parameters(golden.inputs);
        let gradients = parameters.iter().map(|(name, start, [rows, columns])| {
            of(&found.gradient[*start..][..rows * columns], &golden.parameters[*name].gradient)
        });
        results.chain(gradients).fold(of(&[found.loss], &[golden.loss]), f64::max)
    }

    /// Each step looks at itself and at older ones.
    fn sequences(golden: &Golden) -> Vec<Pairs> {
        golden.sequences.iter().map(|steps| Pairs::full(steps.len()).directed()).collect()
    }

    fn on_tape<T: Number>(golden: &Golden, model: &Model) -> Found {
        let parameters = model.parameters(golden.inputs);
        let values = parameters.iter().flat_map(|(name, ..)| &golden.parameters[*name].values);
        let weights = Weights::new(model.plan.clone(), values.map(|x| T::of(*x)).collect());
        let (sequences, mut pool) = (sequences(golden), Pool::default());
        let mut tape = Tape::new(&weights, &[], &mut pool, true).with_sequences(&sequences);
        let (results, loss) = model.play(&mut tape, golden);
        let double = |of: &[T]| of.iter().map(|x| x.f64()).collect::<Vec<f64>>();
        let results = results.iter().map(|(name, rows)| (*name, double(tape.data(rows)))).collect();
        let mut gradients = vec![T::ZERO; model.plan.len()];
        tape.back(&mut gradients);
        Found { loss, results, gradient: double(&gradients) }
    }

    fn on_burn<T: Number>(golden: &Golden, model: &Model) -> Found {
        let (device, sequences) = (Device::flex().inner(), sequences(golden));
        let parameter = |(name, start, shape): (&str, usize, [usize; 2])| {
            let values = golden.parameters[name].values.clone();
            (start, tensor(values, shape, &device, precision::<T>()).autodiff().require_grad())
        };
        let parameters: BTreeMap<usize, Tensor<2>> =
            model.parameters(golden.inputs).map(parameter).into_iter().collect();
        let engine = Tensors::new(&parameters, &[], device.clone(), precision::<T>());
        let mut engine = engine.with_sequences(&sequences);
        let (results, loss) = model.play(&mut engine, golden);
        let results = results.into_iter().map(|(name, of)| (name, numbers(of.rows))).collect();
        let gradients = engine.objective().expect("there are losses").backward();
        let gradient = |of: &Tensor<2>| numbers(of.grad(&gradients).expect("every parameter is used"));
        Found { loss, results, gradient: parameters.values().flat_map(gradient).collect() }
    }

    fn check<T: Number>(tolerance: f64) {
        let golden = include_str!("../tests/golden/sequences.json");
        let golden: Golden = serde_json::from_str(golden).expect("what the script wrote");
        let model = Model::new(&golden);
        for found in [on_tape::<T>(&golden, &model), on_burn::<T>(&golden, &model)] {
            let deviation = deviation(&found, &golden, &model);
            assert!(deviation < tolerance, "{deviation:.1e}");
        }
    }

    #[test]
    fn sequences_are_those_of_pytorch_on_both_engines() {
        check::<f64>(1e-10);
        check::<f32>(1e-5);
    }
}
