//! The engine: one row per node as everywhere, and attention as a square matrix per graph, as large as the
//! largest needs.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Int, Tensor, TensorData, activation};
use gct_kernels::engine::{Attend, Columns, Connected, DecoderParameters, Engine, Linear, Norm, Reach};
use gct_kernels::loss::{counted, pair_of_groups, smoothed};
use gct_kernels::pairs::{Normalizer, Pairs};
use gct_kernels::rows::Activation;
use gct_kernels::weights::Vector;

use crate::tensor;

/// The score of a pair that is not allowed.
const FORBIDDEN: f64 = -1e30;

/// Logarithms are taken of no less than this.
const LEAST: f64 = 1e-12;

/// Rows of nodes.
#[derive(Clone)]
pub(crate) struct Matrix {
    rows: Tensor<2>,
    /// Which nodes they are; `None` if they were selected one by one.
    reach: Option<Reach>,
}

/// The engine.
pub(crate) struct Tensors<'a> {
    parameters: &'a BTreeMap<usize, Tensor<2>>,
    graphs: &'a [Pairs],
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
        Tensors { parameters, graphs, device, precision, objective: None, divergence: None }
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

    /// How many rows each graph has within reach.
    fn counts(&self, reach: Reach) -> Vec<usize> {
        self.graphs.iter().map(|pairs| pairs.count_within(reach.steps())).collect()
    }

    /// Nodes of the largest graph.
    fn most(&self) -> usize {
        self.graphs.iter().map(Pairs::nodes).max().unwrap_or(0)
    }

    /// Rows of nodes as [graphs, most, width], with zeros for nodes that are not there.
    fn spread(&self, x: &Matrix) -> Tensor<3> {
        let (counts, most) = (self.counts(known(x)), self.most());
        let [rows, width] = x.rows.dims();
        let mut first = 0;
        let mut indices = Vec::new();
        for count in counts {
            indices.extend((0..most).map(|node| if node < count { first + node } else { rows }));
            first += count;
        }
        let zeros = self.constant(vec![0.0; width], [1, width]);
        let with_zeros = Tensor::cat(vec![x.rows.clone(), zeros], 0);
        with_zeros.select(0, self.indices(indices.into_iter())).reshape([self.graphs.len(), most, width])
    }

    /// The rows within reach of [graphs, most, width].
    fn gather(&self, x: Tensor<3>, reach: Reach) -> Matrix {
        let [graphs, most, width] = x.dims();
        let counts = self.counts(reach);
        let indices =
            counts.iter().enumerate().flat_map(|(graph, count)| (0..*count).map(move |i| graph * most + i));
        let rows = x.reshape([graphs * most, width]).select(0, self.indices(indices));
        Matrix { rows, reach: Some(reach) }
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
        let most = self.most();
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

    /// A square matrix per graph, with 1 where something is true of a pair of nodes.
    fn indicator(&self, pairs: impl Iterator<Item = (usize, usize, usize)>) -> Tensor<3> {
        let (graphs, most) = (self.graphs.len(), self.most());
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

fn known(x: &Matrix) -> Reach {
    x.reach.expect("the rows of a matrix are those of its graphs")
}

fn columns(part: Columns<'_, Matrix>) -> Matrix {
    let rows = part.matrix.rows.clone().narrow(1, part.first, part.width);
    Matrix { rows, reach: part.matrix.reach }
}

fn scalar(loss: &Tensor<1>) -> f64 {
    loss.clone().into_scalar::<f64>()
}

impl Engine for Tensors<'_> {
    type Matrix = Matrix;
    type Attention = Tensor<3>;

    fn embed(&mut self, table: Vector, _: usize, ids: &[u32]) -> Matrix {
        let ids = self.indices(ids.iter().map(|id| *id as usize));
        Matrix { rows: self.parameter(table).select(0, ids), reach: Some(Reach::ALL) }
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
        Matrix { rows, reach: x.reach }
    }

    fn add_norm(&mut self, a: &Matrix, b: &Matrix, norm: Norm) -> Matrix {
        let sum = a.rows.clone() + b.rows.clone();
        let centred = sum.clone() - sum.mean_dim(1);
        let variance = (centred.clone() * centred.clone()).mean_dim(1);
        let normal = centred / (variance + norm.epsilon).sqrt();
        Matrix { rows: normal * self.parameter(norm.gain) + self.parameter(norm.bias), reach: a.reach }
    }

    fn relu(&mut self, x: &Matrix) -> Matrix {
        Matrix { rows: activation::relu(x.rows.clone()), reach: x.reach }
    }

    fn add(&mut self, a: &Matrix, b: &Matrix) -> Matrix {
        Matrix { rows: a.rows.clone() + b.rows.clone(), reach: a.reach }
    }

    fn multiply(&mut self, a: &Matrix, b: &Matrix) -> Matrix {
        Matrix { rows: a.rows.clone() * b.rows.clone(), reach: a.reach }
    }

    fn side_by_side(&mut self, parts: &[Matrix]) -> Matrix {
        let rows = Tensor::cat(parts.iter().map(|part| part.rows.clone()).collect(), 1);
        Matrix { rows, reach: parts[0].reach }
    }

    fn given(&mut self, pairs: &[f32]) -> Tensor<3> {
        let (graphs, most) = (self.graphs.len(), self.most());
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
        let counts = self.counts(how.reach);
        let pairs = self.graphs.iter().enumerate().zip(counts).flat_map(|((graph, pairs), count)| {
            pairs.cells().filter(move |(i, _, _)| *i < count).map(move |(i, j, _)| (graph, i, j))
        });
        let allowed = self.indicator(pairs);
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
        self.gather(attention.clone().matmul(values), reach)
    }

    fn within(&mut self, x: &Matrix, reach: Reach) -> Matrix {
        self.gather(self.spread(x), reach)
    }

    fn sum(&mut self, x: &Matrix) -> Matrix {
        let sums = self.spread(x).sum_dim(1);
        let [graphs, _, width] = sums.dims();
        Matrix { rows: sums.reshape([graphs, width]), reach: Some(Reach::FIRST) }
    }

    fn select(&mut self, x: &Matrix, nodes: &[(usize, usize)]) -> Matrix {
        let counts = self.counts(known(x));
        let indices = nodes.iter().map(|(graph, node)| counts[..*graph].iter().sum::<usize>() + node);
        Matrix { rows: x.rows.clone().select(0, self.indices(indices)), reach: None }
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
        let targets = self
            .indicator(edges.flat_map(|(at, graph)| graph.edges.iter().flat_map(move |edge| both(at, edge))));
        let pairs = self.graphs.iter().enumerate().flat_map(|(graph, pairs)| {
            let nodes = pairs.nodes();
            (0..nodes * nodes).map(move |at| (graph, at / nodes, at % nodes)).filter(|(_, i, j)| i != j)
        });
        let counted = self.indicator(pairs);
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
