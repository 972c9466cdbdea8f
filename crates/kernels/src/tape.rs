//! A tape is made for a chunk of graphs small enough that all it holds stays in the processor's cache, played forward as it
//! is written and then backward, and thrown away; its memory goes back to a `Pool` for the next chunk. Forward and
//! backward of one chunk together beat forward of the whole batch and then backward of it, because what was
//! computed is still in the cache when its gradient is.

use std::ops::Range;
use std::rc::Rc;

use crate::Number;
use crate::gemm::{Into, Left, Right, gemm};
use crate::loss::{self, Decoder};
use crate::pairs::{self, Chain, Pairs, Rows};
use crate::rows::{self, Activation, Dropout};
use crate::weights::{Dense, Vector, Weights};

/// Memory that has been used and will be again.
#[derive(Debug)]
pub struct Pool<T> {
    free: Vec<Vec<T>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Pool { free: Vec::new() }
    }
}

impl<T: Number> Pool<T> {
    /// `len` numbers, whatever they are: out of the smallest buffer that is large enough.
    fn take(&mut self, len: usize) -> Vec<T> {
        let fitting = self.free.iter().enumerate().filter(|(_, buffer)| buffer.capacity() >= len);
        let mut buffer = match fitting.min_by_key(|(_, buffer)| buffer.capacity()) {
            Some((place, _)) => self.free.swap_remove(place),
            // Rounded up, so that chunks of like size can use it.
            None => Vec::with_capacity(len.next_power_of_two()),
        };
        buffer.resize(len, T::ZERO);
        buffer
    }

    /// `len` zeros.
    fn zeros(&mut self, len: usize) -> Vec<T> {
        let mut buffer = self.take(len);
        buffer.fill(T::ZERO);
        buffer
    }

    fn give(&mut self, buffer: Vec<T>) {
        self.free.push(buffer);
    }

    /// How many buffers wait to be used again.
    pub fn buffers(&self) -> usize {
        self.free.len()
    }
}

/// A matrix on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix(usize);

/// Weights between the nodes of each graph on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention(usize);

/// Some columns of a matrix. An attention or a mixing may use each column once.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    /// Which matrix.
    pub matrix: Matrix,
    /// The first column.
    pub first: usize,
    /// How many.
    pub width: usize,
}

/// A linear layer with what follows it.
#[derive(Debug, Clone, Copy)]
pub struct Linear<T> {
    /// The matrix.
    pub weight: Dense,
    /// What is added, and what is done with the sum.
    pub bias: Option<(Vector, Activation)>,
    /// What is dropped of that; only with a bias.
    pub dropout: Option<Dropout<T>>,
}

/// A LayerNorm.
#[derive(Debug, Clone, Copy)]
pub struct Norm {
    /// Its gain.
    pub gain: Vector,
    /// Its bias.
    pub bias: Vector,
    /// What keeps its quotient finite.
    pub epsilon: f64,
}

/// How far an attention may stray from the one before it.
#[derive(Debug, Clone, Copy)]
pub struct Leash {
    /// The one before it.
    pub before: Attention,
    /// The weight, in the loss, of the sum over rows of the divergence between the two. The same along a chain.
    pub weight: f64,
}

struct Value<T> {
    data: Vec<T>,
    width: usize,
    /// The gradient of the loss, once something has contributed to it. Shared while two matrices have the same one.
    gradient: Option<Rc<Vec<T>>>,
}

/// Pair numbers of all graphs, one after the other.
struct Weighting<T> {
    p: Rc<Vec<T>>,
    /// Their logarithms, if they were computed here.
    log_p: Option<Rc<Vec<T>>>,
    d_p: Option<Vec<T>>,
    leash: Option<Leash>,
    after: Option<Attention>,
}

enum Operation<T> {
    Embed { table: Vector, ids: Vec<u32>, out: Matrix },
    Linear { x: Matrix, layer: Linear<T>, out: Matrix },
    AddNorm { a: Matrix, b: Matrix, norm: Norm, normal: Vec<T>, inverse_sd: Vec<T>, out: Matrix },
    Attend { query: Columns, key: Columns, scale: f64, out: Attention },
    Mix { attention: Attention, x: Columns, out: Matrix },
    Sum { x: Matrix, out: Matrix },
    Select { x: Matrix, rows: Vec<usize>, out: Matrix },
}

/// The record.
pub struct Tape<'a, T> {
    weights: &'a Weights<T>,
    graphs: &'a [Pairs],
    pool: &'a mut Pool<T>,
    values: Vec<Value<T>>,
    attentions: Vec<Weighting<T>>,
    operations: Vec<Operation<T>>,
    divergence: f64,
}

/// One graph: its pairs, its rows, and the places of its pair numbers.
type Span<'a> = (&'a Pairs, Range<usize>, Range<usize>);

impl<'a, T: Number> Tape<'a, T> {
    /// An empty record for these graphs.
    pub fn new(weights: &'a Weights<T>, graphs: &'a [Pairs], pool: &'a mut Pool<T>) -> Self {
        Tape {
            weights,
            graphs,
            pool,
            values: Vec::new(),
            attentions: Vec::new(),
            operations: Vec::new(),
            divergence: 0.0,
        }
    }

    /// The graphs, each with its rows and its pair numbers.
    fn spans(&self) -> impl Iterator<Item = Span<'a>> + use<'a, T> {
        self.graphs.iter().scan((0, 0), |(row, place), pairs| {
            let (rows, places) = (*row..*row + pairs.nodes(), *place..*place + pairs.len());
            (*row, *place) = (rows.end, places.end);
            Some((pairs, rows, places))
        })
    }

    fn push(&mut self, data: Vec<T>, width: usize) -> Matrix {
        self.values.push(Value { data, width, gradient: None });
        Matrix(self.values.len() - 1)
    }

    fn width(&self, matrix: Matrix) -> usize {
        self.values[matrix.0].width
    }

    /// Room for the largest graph in [`pairs::dots`].
    fn scratch(&mut self, width: usize) -> Vec<T> {
        let room = self.graphs.iter().map(|pairs| pairs.scratch(width)).max().unwrap_or(0);
        self.pool.take(room)
    }

    fn rows_of(&self, columns: Columns, rows: &Range<usize>) -> Rows<'_, T> {
        let value = &self.values[columns.matrix.0];
        Rows { data: &value.data[rows.start * value.width + columns.first..], stride: value.width }
    }

    /// The numbers of a matrix, row after row.
    pub fn data(&self, matrix: Matrix) -> &[T] {
        &self.values[matrix.0].data
    }

    /// The weights of an attention, graph after graph.
    pub fn attention(&self, attention: Attention) -> &[T] {
        &self.attentions[attention.0].p
    }

    /// The sum of all divergences between attentions and those before them, not weighted.
    pub fn divergence(&self) -> f64 {
        self.divergence
    }

    /// The first row of each graph.
    pub fn first_rows(&self) -> Vec<usize> {
        self.spans().map(|(_, rows, _)| rows.start).collect()
    }

    /// A row of the table for every id.
    pub fn embed(&mut self, table: Vector, width: usize, ids: Vec<u32>) -> Matrix {
        let mut data = self.pool.take(ids.len() * width);
        let table_rows = table.of(self.weights.values());
        for (id, out) in ids.iter().zip(data.chunks_exact_mut(width)) {
            out.copy_from_slice(&table_rows[*id as usize * width..][..width]);
        }
        let out = self.push(data, width);
        self.operations.push(Operation::Embed { table, ids, out });
        out
    }

    /// x W, with bias, activation and dropout.
    pub fn linear(&mut self, x: Matrix, layer: Linear<T>) -> Matrix {
        let Dense { inputs, outputs, .. } = layer.weight;
        let rows = self.data(x).len() / inputs;
        let mut data = self.pool.take(rows * outputs);
        let weight = Right::packed(self.weights.forward(layer.weight), inputs);
        gemm(
            [rows, outputs, inputs],
            Left::rows(self.data(x), inputs),
            weight,
            &mut data,
            outputs,
            Into::Set,
        );
        if let Some((bias, activation)) = layer.bias {
            let bias = bias.of(self.weights.values());
            rows::bias_activation(outputs, activation, layer.dropout, bias, &mut data);
        }
        let out = self.push(data, outputs);
        self.operations.push(Operation::Linear { x, layer, out });
        out
    }

    /// LayerNorm(a + b).
    pub fn add_norm(&mut self, a: Matrix, b: Matrix, norm: Norm) -> Matrix {
        let (width, len) = (self.width(a), self.data(a).len());
        let [mut normal, mut inverse_sd, mut data] = [len, len / width, len].map(|len| self.pool.take(len));
        let [gain, bias] = [norm.gain, norm.bias].map(|vector| vector.of(self.weights.values()));
        let (x, y) = (self.data(a), self.data(b));
        rows::add_norm(width, norm.epsilon, x, y, gain, bias, &mut normal, &mut inverse_sd, &mut data);
        let out = self.push(data, width);
        self.operations.push(Operation::AddNorm { a, b, norm, normal, inverse_sd, out });
        out
    }

    /// An attention that is given: the pair numbers of all graphs, one after the other.
    pub fn given(&mut self, p: Rc<Vec<T>>) -> Attention {
        self.attentions.push(Weighting { p, log_p: None, d_p: None, leash: None, after: None });
        Attention(self.attentions.len() - 1)
    }

    /// softmax(scale * query . key) over the allowed pairs of each row.
    pub fn attend(&mut self, query: Columns, key: Columns, scale: f64, leash: Option<Leash>) -> Attention {
        let len = self.graphs.iter().map(Pairs::len).sum();
        let (mut log_p, mut p) = (self.pool.take(len), self.pool.take(len));
        let mut scratch = self.scratch(query.width);
        let out = Attention(self.attentions.len());
        let before = leash.map(|leash| {
            let before = &mut self.attentions[leash.before.0];
            before.after = Some(out);
            (Rc::clone(&before.p), before.log_p.clone())
        });
        for (pairs, rows, places) in self.spans() {
            let (s, p) = (&mut log_p[places.clone()], &mut p[places.clone()]);
            let [x, y] = [query, key].map(|columns| self.rows_of(columns, &rows));
            pairs::dots(pairs, query.width, x, y, s, &mut scratch);
            pairs::softmax(pairs, scale, s, p);
            if let Some((before, log_before)) = &before {
                let log_before = log_before.as_ref().map(|log| &log[places.clone()]);
                self.divergence += pairs::divergence(pairs, &before[places], log_before, s);
            }
        }
        self.pool.give(scratch);
        let (p, log_p) = (Rc::new(p), Some(Rc::new(log_p)));
        self.attentions.push(Weighting { p, log_p, d_p: None, leash, after: None });
        self.operations.push(Operation::Attend { query, key, scale, out });
        out
    }

    /// Every node takes the weighted sum of those it attends to.
    pub fn mix(&mut self, attention: Attention, x: Columns) -> Matrix {
        let rows = self.data(x.matrix).len() / self.width(x.matrix);
        let mut data = self.pool.take(rows * x.width);
        let p = Rc::clone(&self.attentions[attention.0].p);
        for (pairs, rows, places) in self.spans() {
            let out = &mut data[rows.start * x.width..];
            pairs::mix(pairs, x.width, &p[places], self.rows_of(x, &rows), out, x.width);
        }
        let out = self.push(data, x.width);
        self.operations.push(Operation::Mix { attention, x, out });
        out
    }

    /// One row per graph: the sum over its nodes.
    pub fn sum(&mut self, x: Matrix) -> Matrix {
        let width = self.width(x);
        let mut data = self.pool.zeros(self.graphs.len() * width);
        for ((_, rows, _), out) in self.spans().zip(data.chunks_exact_mut(width)) {
            for row in rows {
                rows::add(&self.data(x)[row * width..][..width], out);
            }
        }
        let out = self.push(data, width);
        self.operations.push(Operation::Sum { x, out });
        out
    }

    /// Some of the rows.
    pub fn select(&mut self, x: Matrix, rows: Vec<usize>) -> Matrix {
        let width = self.width(x);
        let mut data = self.pool.take(rows.len() * width);
        for (row, out) in rows.iter().zip(data.chunks_exact_mut(width)) {
            out.copy_from_slice(&self.data(x)[row * width..][..width]);
        }
        let out = self.push(data, width);
        self.operations.push(Operation::Select { x, rows, out });
        out
    }

    /// Edge reconstruction: the sum of losses over all ordered pairs of different nodes. `edges` has one list per graph;
    /// `decoder` is scale and bias among the parameters, without which inner products are logits. With `gradients`, the gradient of `weight` times the loss is
    /// left on `z` and added to the decoder's.
    pub fn edge_loss(
        &mut self,
        z: Matrix,
        decoder: Option<Vector>,
        edges: &[&[(u32, u32)]],
        weight: f64,
        gradients: Option<&mut [T]>,
    ) -> f64 {
        let width = self.width(z);
        let most = self.graphs.iter().map(Pairs::nodes).max().unwrap_or(0).next_multiple_of(16);
        let (mut logits, mut turned) = (self.pool.take(most * most), self.pool.take(width * most));
        let mut d_z = gradients.is_some().then(|| self.pool.take(self.data(z).len()));
        let (mut loss, mut d_scale, mut d_bias) = (0.0, 0.0, 0.0);
        for ((pairs, rows, _), edges) in self.spans().zip(edges) {
            let range = rows.start * width..rows.end * width;
            let (one, gradient) = loss::edges(
                [pairs.nodes(), width],
                self.decoder(decoder),
                &self.data(z)[range.clone()],
                edges,
                weight,
                &mut logits,
                &mut turned,
                d_z.as_mut().map(|d_z| &mut d_z[range]),
            );
            loss += one;
            d_scale += gradient.scale;
            d_bias += gradient.bias;
        }
        self.pool.give(logits);
        self.pool.give(turned);
        if let (Some(gradients), Some(d_z)) = (gradients, d_z) {
            if let Some(decoder) = decoder {
                let of_decoder = decoder.of_mut(gradients);
                of_decoder[0] += T::of(d_scale);
                of_decoder[1] += T::of(d_bias);
            }
            self.seed(z, d_z);
        }
        loss
    }

    fn decoder(&self, decoder: Option<Vector>) -> Decoder<T> {
        let Some(decoder) = decoder else { return Decoder { scale: T::ONE, bias: T::ZERO } };
        let &[scale, bias] = decoder.of(self.weights.values()) else { panic!("a decoder is scale and bias") };
        Decoder { scale, bias }
    }

    /// Room for a gradient to [`Tape::seed`]: `len` numbers, whatever they are.
    pub fn room(&mut self, len: usize) -> Vec<T> {
        self.pool.take(len)
    }

    /// Leaves the gradient of the loss on a matrix, for [`Tape::back`] to begin with. Its memory comes from [`Tape::room`].
    ///
    /// # Panics
    /// If it is not as large as the matrix.
    pub fn seed(&mut self, matrix: Matrix, gradient: Vec<T>) {
        assert_eq!(gradient.len(), self.data(matrix).len(), "the gradient of a matrix is as large as it");
        self.contribute(matrix, &Rc::new(gradient));
    }

    /// Adds to the gradient of a matrix. The first contribution is shared, not copied.
    fn contribute(&mut self, matrix: Matrix, gradient: &Rc<Vec<T>>) {
        let sum = match self.values[matrix.0].gradient.take() {
            None => Rc::clone(gradient),
            Some(sum) => {
                let mut sum = self.own(sum);
                rows::add(gradient, &mut sum);
                Rc::new(sum)
            }
        };
        self.values[matrix.0].gradient = Some(sum);
    }

    /// The numbers of a buffer, to be changed: itself if nobody else has it, else a copy out of the pool.
    fn own(&mut self, buffer: Rc<Vec<T>>) -> Vec<T> {
        Rc::try_unwrap(buffer).unwrap_or_else(|shared| {
            let mut copy = self.pool.take(shared.len());
            copy.copy_from_slice(&shared);
            copy
        })
    }

    /// Takes the gradient of a matrix to add to it; zero at first. Nobody else has it then.
    fn take_gradient(&mut self, matrix: Matrix) -> Vec<T> {
        match self.values[matrix.0].gradient.take() {
            Some(gradient) => self.own(gradient),
            None => self.pool.zeros(self.values[matrix.0].data.len()),
        }
    }

    /// Gives back the memory of something that nobody else has.
    fn release(&mut self, buffer: Rc<Vec<T>>) {
        if let Ok(buffer) = Rc::try_unwrap(buffer) {
            self.pool.give(buffer);
        }
    }

    /// Plays the record backward from the seeded gradients, adding to those of the parameters.
    pub fn back(mut self, gradients: &mut [T]) {
        while let Some(operation) = self.operations.pop() {
            match operation {
                Operation::Embed { table, ids, out } => self.back_embed(table, &ids, out, gradients),
                Operation::Linear { x, layer, out } => self.back_linear(x, layer, out, gradients),
                Operation::AddNorm { a, b, norm, normal, inverse_sd, out } => {
                    self.back_add_norm([a, b], norm, (normal, inverse_sd), out, gradients);
                }
                Operation::Attend { query, key, scale, out } => self.back_attend(query, key, scale, out),
                Operation::Mix { attention, x, out } => self.back_mix(attention, x, out),
                Operation::Sum { x, out } => self.back_sum(x, out),
                Operation::Select { x, rows, out } => self.back_select(x, &rows, out),
            }
        }
        self.finish();
    }

    /// Throws the record away and keeps its memory.
    pub fn finish(mut self) {
        for value in std::mem::take(&mut self.values) {
            self.pool.give(value.data);
            if let Some(gradient) = value.gradient {
                self.release(gradient);
            }
        }
        for weighting in std::mem::take(&mut self.attentions) {
            // What was given is not ours to keep: the pool would grow with every tape.
            if let Some(log_p) = weighting.log_p {
                self.release(log_p);
                self.release(weighting.p);
            }
        }
        for operation in std::mem::take(&mut self.operations) {
            if let Operation::AddNorm { normal, inverse_sd, .. } = operation {
                self.pool.give(normal);
                self.pool.give(inverse_sd);
            }
        }
    }

    fn back_embed(&mut self, table: Vector, ids: &[u32], out: Matrix, gradients: &mut [T]) {
        let Some(d) = self.values[out.0].gradient.take() else { return };
        let width = self.width(out);
        let d_table = table.of_mut(gradients);
        for (id, d) in ids.iter().zip(d.chunks_exact(width)) {
            rows::add(d, &mut d_table[*id as usize * width..][..width]);
        }
        self.release(d);
    }

    fn back_linear(&mut self, x: Matrix, layer: Linear<T>, out: Matrix, gradients: &mut [T]) {
        let Some(d) = self.values[out.0].gradient.take() else { return };
        let Dense { start, inputs, outputs, .. } = layer.weight;
        let rows = d.len() / outputs;
        let d = match layer.bias {
            Some((bias, activation)) => {
                let (mut d, d_bias) = (self.own(d), bias.of_mut(gradients));
                let dropout = layer.dropout;
                rows::bias_activation_back(outputs, activation, dropout, self.data(out), &mut d, d_bias);
                Rc::new(d)
            }
            None => d,
        };
        let d_weight = &mut gradients[start..start + inputs * outputs];
        let x_turned = Left::transposed(self.data(x), inputs);
        gemm([inputs, outputs, rows], x_turned, Right::rows(&d, outputs), d_weight, outputs, Into::Add);

        let (mut d_x, into) = match self.values[x.0].gradient.take() {
            Some(gradient) => (self.own(gradient), Into::Add),
            None => (self.pool.take(rows * inputs), Into::Set),
        };
        let weight = Right::packed(self.weights.backward(layer.weight), outputs);
        gemm([rows, inputs, outputs], Left::rows(&d, outputs), weight, &mut d_x, inputs, into);
        self.values[x.0].gradient = Some(Rc::new(d_x));
        self.release(d);
    }

    fn back_add_norm(
        &mut self,
        terms: [Matrix; 2],
        norm: Norm,
        (normal, inverse_sd): (Vec<T>, Vec<T>),
        out: Matrix,
        gradients: &mut [T],
    ) {
        if let Some(d) = self.values[out.0].gradient.take() {
            let mut d_in = self.pool.take(d.len());
            let gain = norm.gain.of(self.weights.values());
            let width = self.width(out);
            let (d_gain, d_bias) = both(gradients, norm.gain, norm.bias);
            rows::add_norm_back(width, &d, &normal, &inverse_sd, gain, &mut d_in, d_gain, d_bias);
            self.release(d);
            let d_in = Rc::new(d_in);
            for term in terms {
                self.contribute(term, &d_in);
            }
            self.release(d_in);
        }
        self.pool.give(normal);
        self.pool.give(inverse_sd);
    }

    fn back_mix(&mut self, attention: Attention, x: Columns, out: Matrix) {
        let Some(d) = self.values[out.0].gradient.take() else { return };
        let p = Rc::clone(&self.attentions[attention.0].p);
        let d_rows = |rows: &Range<usize>| Rows { data: &d[rows.start * x.width..], stride: x.width };
        if self.attentions[attention.0].log_p.is_some() {
            let (mut d_p, mut scratch) = (self.pool.take(p.len()), self.scratch(x.width));
            for (pairs, rows, places) in self.spans() {
                let x_rows = self.rows_of(x, &rows);
                pairs::dots(pairs, x.width, d_rows(&rows), x_rows, &mut d_p[places], &mut scratch);
            }
            self.pool.give(scratch);
            match &mut self.attentions[attention.0].d_p {
                Some(sum) => rows::add(&d_p, sum),
                none => *none = Some(d_p),
            }
        }
        let stride = self.width(x.matrix);
        let mut d_x = self.take_gradient(x.matrix);
        for (pairs, rows, places) in self.spans() {
            let out = &mut d_x[rows.start * stride + x.first..];
            pairs::mix_transposed(pairs, x.width, &p[places], d_rows(&rows), out, stride);
        }
        self.values[x.matrix.0].gradient = Some(Rc::new(d_x));
        self.release(d);
    }

    fn back_attend(&mut self, query: Columns, key: Columns, scale: f64, out: Attention) {
        let weighting = &mut self.attentions[out.0];
        let (p, log_p) = (Rc::clone(&weighting.p), weighting.log_p.clone().expect("it was computed"));
        let (d_p, leash, after) = (weighting.d_p.take(), weighting.leash, weighting.after);
        let before = leash.map(|leash| (Rc::clone(&self.attentions[leash.before.0].p), leash.weight));
        let after = after.map(|after| {
            let after = &self.attentions[after.0];
            let weight = after.leash.map_or(0.0, |leash| leash.weight);
            (after.log_p.clone().expect("it was computed"), weight)
        });
        if d_p.is_none() && before.is_none() && after.is_none() {
            return;
        }
        let mut d = d_p.unwrap_or_else(|| self.pool.zeros(p.len()));
        for (pairs, _, places) in self.spans() {
            let chain = Chain {
                before: before.as_ref().map(|(p, weight)| (&p[places.clone()], *weight)),
                log_after: after.as_ref().map(|(log, weight)| (&log[places.clone()], *weight)),
            };
            let (p, log_p) = (&p[places.clone()], &log_p[places.clone()]);
            pairs::softmax_back(pairs, scale, p, log_p, chain, &mut d[places]);
        }
        let (mut d_query, stride) = (self.take_gradient(query.matrix), self.width(query.matrix));
        for (pairs, rows, places) in self.spans() {
            let out = &mut d_query[rows.start * stride + query.first..];
            pairs::mix(pairs, query.width, &d[places], self.rows_of(key, &rows), out, stride);
        }
        self.values[query.matrix.0].gradient = Some(Rc::new(d_query));
        let (mut d_key, stride) = (self.take_gradient(key.matrix), self.width(key.matrix));
        for (pairs, rows, places) in self.spans() {
            let out = &mut d_key[rows.start * stride + key.first..];
            pairs::mix_transposed(pairs, key.width, &d[places], self.rows_of(query, &rows), out, stride);
        }
        self.values[key.matrix.0].gradient = Some(Rc::new(d_key));
        self.pool.give(d);
    }

    fn back_sum(&mut self, x: Matrix, out: Matrix) {
        let Some(d) = self.values[out.0].gradient.take() else { return };
        let width = self.width(out);
        let mut d_x = self.pool.take(self.data(x).len());
        for ((_, rows, _), d) in self.spans().zip(d.chunks_exact(width)) {
            for row in rows {
                d_x[row * width..][..width].copy_from_slice(d);
            }
        }
        self.release(d);
        let d_x = Rc::new(d_x);
        self.contribute(x, &d_x);
        self.release(d_x);
    }

    fn back_select(&mut self, x: Matrix, rows: &[usize], out: Matrix) {
        let Some(d) = self.values[out.0].gradient.take() else { return };
        let width = self.width(out);
        let mut d_x = self.take_gradient(x);
        for (row, d) in rows.iter().zip(d.chunks_exact(width)) {
            rows::add(d, &mut d_x[row * width..][..width]);
        }
        self.values[x.0].gradient = Some(Rc::new(d_x));
        self.release(d);
    }
}

/// Two vectors out of all gradients, the first of which comes first.
fn both<T>(gradients: &mut [T], first: Vector, second: Vector) -> (&mut [T], &mut [T]) {
    assert!(first.start + first.len <= second.start, "gain is planned before bias");
    let (before, after) = gradients.split_at_mut(second.start);
    (&mut before[first.start..][..first.len], &mut after[..second.len])
}
