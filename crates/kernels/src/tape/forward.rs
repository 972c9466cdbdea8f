//! Every operation, played as it is written down.

use std::rc::Rc;

use super::pool::Buffer;
use super::{Attention, Matrix, MatrixColumns, Operation, Tape, Weighting};
use crate::Number;
use crate::engine::{
    Attend, Columns, Connected, DecoderParameters, Engine, Extent, Linear, Norm, Reach, Recurrent,
};
use crate::gemm::{Into, Left, Right, gemm};
use crate::loss;
use crate::pairs::{self, Pairs};
use crate::recurrent::{self, Passed, Schedule};
use crate::rows;
use crate::weights::{Dense, Vector};

/// Rows of a table that are on their way to the cache while one is copied: a table is larger than that.
const AHEAD: usize = 4;

impl From<Columns<'_, Matrix>> for MatrixColumns {
    fn from(columns: Columns<'_, Matrix>) -> MatrixColumns {
        MatrixColumns { matrix: columns.matrix.index, first: columns.first, width: columns.width }
    }
}

impl<T: Number> Engine for Tape<'_, T> {
    type Matrix = Matrix;
    type Attention = Attention;

    fn embed(&mut self, table: Vector, width: usize, ids: &[u32]) -> Matrix {
        let mut data = self.take(ids.len() * width);
        let table_rows = table.of(self.weights.values());
        let row = |id: u32| &table_rows[id as usize * width..][..width];
        for (index, out) in data.chunks_exact_mut(width).enumerate() {
            if let Some(later) = ids.get(index + AHEAD) {
                rows::prefetch(row(*later));
            }
            out.copy_from_slice(row(ids[index]));
        }
        let out = self.push(data, width, Some(Extent::nodes(Reach::ALL)));
        self.record(|| Operation::Embed { table, ids: ids.to_vec(), out: out.index });
        out
    }

    fn linear(&mut self, x: &Matrix, layer: Linear) -> Matrix {
        let Dense { inputs, outputs, .. } = layer.weight;
        let rows = self.data(x).len() / inputs;
        let mut data = self.take(rows * outputs);
        let (sizes, x_rows) = ([rows, outputs, inputs], Left::rows(self.data(x), inputs));
        let weight = Right::packed(self.weights.forward(layer.weight), inputs);
        let bias = layer.bias.map(|(bias, activation)| (bias.of(self.weights.values()), activation));
        match bias {
            Some((bias, activation)) if layer.dropout.is_none() => {
                let into = Into::Layer { bias, least: activation.least() };
                gemm(sizes, x_rows, weight, &mut data, outputs, into);
            }
            _ => gemm(sizes, x_rows, weight, &mut data, outputs, Into::Set),
        }
        if let (Some((bias, activation)), Some(dropout)) = (bias, layer.dropout) {
            rows::bias_activation(outputs, activation, Some(dropout), bias, &mut data);
        }
        let out = self.push(data, outputs, self.values[x.index].extent);
        self.record(|| Operation::Linear { x: x.index, layer, out: out.index });
        out
    }

    fn add_norm(&mut self, a: &Matrix, b: &Matrix, norm: Norm) -> Matrix {
        let (width, len) = (self.values[a.index].width, self.data(a).len());
        let mut data = self.take(len);
        let mut kept = self.learns.then(|| [len, len / width].map(|len| self.pool.take(len)));
        let [gain, bias] = [norm.gain, norm.bias].map(|vector| vector.of(self.weights.values()));
        let keep = kept.as_mut().map(|[normal, inverse_sd]| (&mut normal[..], &mut inverse_sd[..]));
        rows::add_norm(width, norm.epsilon, self.data(a), self.data(b), gain, bias, &mut data, keep);
        let out = self.push(data, width, self.values[a.index].extent);
        if let Some([normal, inverse_sd]) = kept {
            let (a, b, out) = (a.index, b.index, out.index);
            self.operations.push(Operation::AddNorm { a, b, norm, normal, inverse_sd, out });
        }
        out
    }

    fn relu(&mut self, x: &Matrix) -> Matrix {
        let out = self.map([x, x], |x, _| x.larger(T::ZERO));
        self.record(|| Operation::Relu { x: x.index, out: out.index });
        out
    }

    fn add(&mut self, a: &Matrix, b: &Matrix) -> Matrix {
        let out = self.map([a, b], |a, b| a + b);
        self.record(|| Operation::Add { a: a.index, b: b.index, out: out.index });
        out
    }

    fn multiply(&mut self, a: &Matrix, b: &Matrix) -> Matrix {
        let out = self.map([a, b], |a, b| a * b);
        self.record(|| Operation::Multiply { a: a.index, b: b.index, out: out.index });
        out
    }

    fn side_by_side(&mut self, parts: &[Matrix]) -> Matrix {
        let width: usize = parts.iter().map(|part| self.values[part.index].width).sum();
        let rows = self.data(&parts[0]).len() / self.values[parts[0].index].width;
        let mut data = self.take(rows * width);
        let mut first = 0;
        for part in parts {
            let part_width = self.values[part.index].width;
            for (from, to) in self.data(part).chunks_exact(part_width).zip(data.chunks_exact_mut(width)) {
                to[first..first + part_width].copy_from_slice(from);
            }
            first += part_width;
        }
        let out = self.push(data, width, self.values[parts[0].index].extent);
        self.record(|| {
            let parts = parts.iter().map(|part| part.index).collect();
            Operation::SideBySide { parts, out: out.index }
        });
        out
    }

    fn given(&mut self, pairs: &[f32]) -> Attention {
        let mut p = self.take(pairs.len());
        for (p, given) in p.iter_mut().zip(pairs) {
            *p = T::of(f64::from(*given));
        }
        self.push_attention(p, None, Extent::nodes(Reach::ALL), None, true)
    }

    fn attend(
        &mut self,
        query: Columns<'_, Matrix>,
        key: Columns<'_, Matrix>,
        how: Attend<'_, Attention>,
    ) -> Attention {
        let Attend { scale, bias, normalizer, divergence, reach } = how;
        let [query, key] = [query, key].map(MatrixColumns::from);
        let extent = self.extent(query.matrix).within(reach);
        assert_eq!(self.extent(key.matrix).axis, extent.axis, "queries and keys are of the same graphs");
        let (spans, of_query, of_key) =
            (self.spans(extent), self.spans_of(query.matrix), self.spans_of(key.matrix));
        let len = spans.iter().map(|span| span.pairs.len()).sum();
        let (mut log_p, mut p) = (self.take(len), self.take(len));
        let mut scratch = self.scratch(extent.axis, query.width);
        let before = divergence.as_ref().map(|term| {
            let before = &self.attentions[term.before.index];
            assert_eq!(before.extent, extent, "a divergence is between the same rows");
            (Rc::clone(&before.p), before.log_p.clone())
        });
        let bias = bias.map(|bias| {
            let bias = &self.attentions[bias.index];
            assert!(bias.is_given, "a bias does not learn");
            assert_eq!(bias.extent.axis, extent.axis, "a bias is of the same graphs");
            (Rc::clone(&bias.p), self.spans(bias.extent))
        });
        for (graph, ((span, of_query), of_key)) in
            spans.iter().zip(of_query.iter()).zip(of_key.iter()).enumerate()
        {
            check_columns(&span.pairs, of_key.rows.len());
            assert!(span.rows.len() <= of_query.rows.len(), "whoever attends has a query");
            let (s, p) = (&mut log_p[span.cells.clone()], &mut p[span.cells.clone()]);
            let (x, y) = (self.rows_of(query, &of_query.rows), self.rows_of(key, &of_key.rows));
            pairs::dots(&span.pairs, query.width, x, y, s, &mut scratch);
            if let Some((bias, spans)) = &bias {
                rows::add_scaled(T::of(1.0 / scale), &bias[spans[graph].cells.clone()][..s.len()], s);
            }
            pairs::normalize(&span.pairs, normalizer, scale, before.is_some(), s, p);
            if let Some((before, log_before)) = &before {
                let log_before = log_before.as_ref().map(|log| &log[span.cells.clone()]);
                let before = &before[span.cells.clone()];
                self.divergence += pairs::divergence(&span.pairs, before, log_before, s);
            }
        }
        self.pool.give(scratch);
        let log_p = match divergence {
            Some(_) => Some(Rc::new(log_p)),
            None => {
                self.pool.give(log_p);
                None
            }
        };
        let before = divergence.map(|term| (term.before.index, term.weight));
        let out = self.push_attention(p, log_p, extent, before, false);
        if let Some((before, _)) = before {
            let before = &mut self.attentions[before];
            assert!(before.is_given || before.after.is_none(), "one attention at most is held near another");
            before.after = Some(out.index);
        }
        self.record(|| Operation::Attend { query, key, scale, normalizer, out: out.index });
        out
    }

    fn mix(&mut self, attention: &Attention, x: Columns<'_, Matrix>, reach: Reach) -> Matrix {
        let x = MatrixColumns::from(x);
        let (extent, attending) =
            (self.extent(x.matrix).within(reach), self.attentions[attention.index].extent);
        assert_eq!(attending.axis, extent.axis, "an attention mixes rows of its own graphs");
        let (spans, of_x, of_attention) =
            (self.spans(extent), self.spans_of(x.matrix), self.spans(attending));
        let rows: usize = spans.iter().map(|span| span.rows.len()).sum();
        let mut data = self.take(rows * x.width);
        let p = &self.attentions[attention.index].p;
        for ((span, of_attention), of_x) in spans.iter().zip(of_attention.iter()).zip(of_x.iter()) {
            check_columns(&span.pairs, of_x.rows.len());
            let out = &mut data[span.rows.start * x.width..];
            let p = &p[of_attention.cells.clone()];
            pairs::mix(&span.pairs, x.width, p, self.rows_of(x, &of_x.rows), out, x.width);
        }
        let out = self.push(data, x.width, Some(extent));
        self.record(|| Operation::Mix { attention: attention.index, x, out: out.index });
        out
    }

    fn within(&mut self, x: &Matrix, reach: Reach) -> Matrix {
        let (extent, width) = (self.extent(x.index).within(reach), self.values[x.index].width);
        let (from, to) = (self.spans_of(x.index), self.spans(extent));
        let rows: usize = to.iter().map(|span| span.rows.len()).sum();
        if rows * width == self.data(x).len() {
            return x.clone();
        }
        let mut data = self.take(rows * width);
        for (from, to) in from.iter().zip(to.iter()) {
            assert!(to.rows.len() <= from.rows.len(), "a matrix has no rows beyond its own reach");
            let (first, len) = (from.rows.start * width, to.rows.len() * width);
            data[to.rows.start * width..][..len].copy_from_slice(&self.data(x)[first..][..len]);
        }
        let out = self.push(data, width, Some(extent));
        self.record(|| Operation::Within { x: x.index, out: out.index });
        out
    }

    fn sum(&mut self, x: &Matrix) -> Matrix {
        let (spans, width) = (self.spans_of(x.index), self.values[x.index].width);
        let mut data = self.take(spans.len() * width);
        data.fill(T::ZERO);
        for (span, out) in spans.iter().zip(data.chunks_exact_mut(width)) {
            for row in span.rows.clone() {
                rows::add(&self.data(x)[row * width..][..width], out);
            }
        }
        let out = self.push(data, width, Some(self.extent(x.index).within(Reach::FIRST)));
        self.record(|| Operation::Sum { x: x.index, out: out.index });
        out
    }

    fn select(&mut self, x: &Matrix, nodes: &[(usize, usize)]) -> Matrix {
        let spans = self.spans_of(x.index);
        let row = |&(graph, node): &(usize, usize)| {
            assert!(node < spans[graph].rows.len(), "node {node} of graph {graph} is out of reach");
            spans[graph].rows.start + node
        };
        self.gather(x, nodes.iter().map(row).collect(), None)
    }

    fn steps(&mut self, x: &Matrix, graphs: &[usize]) -> Matrix {
        let steps: usize = self.sequences.iter().map(Pairs::nodes).sum();
        assert_eq!(graphs.len(), steps, "there is a row for every step");
        self.gather(x, graphs.to_vec(), Some(Extent::steps(Reach::ALL)))
    }

    fn gru(&mut self, x: &Matrix, layer: Recurrent) -> Matrix {
        let width = layer.weight.inputs;
        let rows: Vec<_> = self.sequences_of(x.index).iter().map(|span| span.rows.clone()).collect();
        let schedule = Schedule::new(&rows);
        let [mut states, mut gates] = [width, 4 * width].map(|width| self.take(schedule.steps() * width));
        let [mut state, mut data] = [(); 2].map(|()| self.take(rows.len() * width));
        let weight = Right::packed(self.weights.forward(layer.weight), width);
        let bias = layer.bias.of(self.weights.values());
        let passed = Passed { states: &mut states[..], gates: &mut gates[..] };
        recurrent::gru(&schedule, width, self.data(x), (weight, bias), passed, &mut state, &mut data);
        self.pool.give(state);
        let out = self.push(data, width, Some(Extent::steps(Reach::FIRST)));
        let passed = Passed { states, gates };
        if self.learns {
            self.operations.push(Operation::Gru { x: x.index, layer, schedule, passed, out: out.index });
        } else {
            self.pool.give(passed.states);
            self.pool.give(passed.gates);
        }
        out
    }

    fn windows(&mut self, x: &Matrix, size: usize) -> Matrix {
        let (spans, width) = (self.sequences_of(x.index), self.values[x.index].width);
        let mut data = self.take(size * self.data(x).len());
        for span in spans.iter() {
            let [from, to] =
                [width, size * width].map(|width| span.rows.start * width..span.rows.end * width);
            recurrent::windows(width, size, &self.data(x)[from], &mut data[to]);
        }
        let out = self.push(data, size * width, Some(Extent::steps(Reach::ALL)));
        self.record(|| Operation::Windows { x: x.index, size, out: out.index });
        out
    }

    fn largest(&mut self, x: &Matrix) -> Matrix {
        let (spans, width) = (self.sequences_of(x.index), self.values[x.index].width);
        let mut data = self.take(spans.len() * width);
        for (span, out) in spans.iter().zip(data.chunks_exact_mut(width)) {
            recurrent::largest(&self.data(x)[span.rows.start * width..span.rows.end * width], out);
        }
        let out = self.push(data, width, Some(Extent::steps(Reach::FIRST)));
        self.record(|| Operation::Largest { x: x.index, out: out.index });
        out
    }

    fn edge_loss(
        &mut self,
        z: &Matrix,
        parameters: Option<DecoderParameters>,
        graphs: &[Connected<'_>],
        weight: f64,
    ) -> f64 {
        let (spans, width) = (self.spans_of(z.index), self.values[z.index].width);
        let [mut logits, mut turned] = self.decoder_room(width);
        let mut d_z = self.learns.then(|| self.pool.take(self.data(z).len()));
        let mut decoder = self.decoder(parameters);
        let mut loss = 0.0;
        for (span, graph) in spans.iter().zip(graphs) {
            let range = span.rows.start * width..span.rows.end * width;
            loss += loss::edges(
                graph.sizes,
                width,
                &mut decoder,
                &self.data(z)[range.clone()],
                graph.edges,
                weight,
                &mut logits,
                &mut turned,
                d_z.as_mut().map(|d_z| &mut d_z[range]),
            );
        }
        self.pool.give(logits);
        self.pool.give(turned);
        if let Some(d_z) = d_z {
            self.contribute_own(z.index, d_z);
        }
        if let Some(DecoderParameters { scale, bias }) = parameters {
            self.record(|| Operation::Known { parameter: scale.start, gradient: vec![decoder.d_scale] });
            self.record(|| Operation::Known { parameter: bias.start, gradient: decoder.d_biases });
        }
        loss
    }

    fn label_loss(
        &mut self,
        logits: &Matrix,
        labels: impl Iterator<Item = Option<bool>>,
        smoothing: f64,
        positives: &[f64],
        weight: f64,
    ) -> f64 {
        let mut d = self.pool.take(self.data(logits).len());
        let (mut loss, mut count) = (0.0, 0);
        for (label, (logit, d)) in labels.zip(self.data(logits).iter().zip(d.iter_mut())) {
            let (one, slope) = label.map_or((0.0, T::ZERO), |label| loss::binary(*logit, label, smoothing));
            let counted = loss::counted(label, count, positives);
            loss += counted * one;
            *d = slope * T::of(counted * weight);
            count += 1;
        }
        assert_eq!(count, d.len(), "there is a label, or none, for every logit");
        self.seed(logits, d);
        loss
    }

    fn class_loss(
        &mut self,
        logits: &Matrix,
        classes: impl Iterator<Item = usize>,
        smoothing: f64,
        weight: f64,
    ) -> f64 {
        let mut d = self.pool.take(self.data(logits).len());
        d.copy_from_slice(self.data(logits));
        let width = self.values[logits.index].width;
        let (mut loss, mut count) = (0.0, 0);
        for (class, logits) in classes.zip(d.chunks_exact_mut(width)) {
            loss += loss::classes(logits, class, smoothing, weight);
            count += width;
        }
        assert_eq!(count, d.len(), "there is a class for every row");
        self.seed(logits, d);
        loss
    }

    fn divergence(&mut self) -> f64 {
        self.divergence
    }
}

impl<T: Number> Tape<'_, T> {
    fn map(&mut self, [a, b]: [&Matrix; 2], f: impl Fn(T, T) -> T) -> Matrix {
        let mut data = self.take(self.data(a).len());
        for ((a, b), out) in self.data(a).iter().zip(self.data(b)).zip(data.iter_mut()) {
            *out = f(*a, *b);
        }
        self.push(data, self.values[a.index].width, self.values[a.index].extent)
    }

    /// Some rows of a matrix, in any order, any of them more than once.
    fn gather(&mut self, x: &Matrix, rows: Vec<usize>, extent: Option<Extent>) -> Matrix {
        let width = self.values[x.index].width;
        let mut data = self.take(rows.len() * width);
        for (row, out) in rows.iter().zip(data.chunks_exact_mut(width)) {
            out.copy_from_slice(&self.data(x)[row * width..][..width]);
        }
        let out = self.push(data, width, extent);
        self.record(|| Operation::Select { x: x.index, rows, out: out.index });
        out
    }

    fn push_attention(
        &mut self,
        p: Buffer<T>,
        log_p: Option<Rc<Buffer<T>>>,
        extent: Extent,
        before: Option<(usize, f64)>,
        is_given: bool,
    ) -> Attention {
        let (held, index) = (Rc::new(()), self.attentions.len());
        self.attentions.push(Weighting {
            p: Rc::new(p),
            log_p,
            d_p: None,
            extent,
            before,
            after: None,
            is_given,
            held: Rc::clone(&held),
        });
        Attention { index, _held: held }
    }

    /// Leaves the gradient of the loss on a matrix, for [`Tape::back`] to begin with.
    fn seed(&mut self, matrix: &Matrix, gradient: Buffer<T>) {
        if self.learns {
            self.contribute_own(matrix.index, gradient);
        } else {
            self.pool.give(gradient);
        }
    }
}

/// Nobody may look at a node whose row is not there: it would be that of another graph.
fn check_columns(pairs: &Pairs, rows: usize) {
    assert!(pairs.columns_end() <= rows, "{} nodes are looked at, but {rows} are there", pairs.columns_end());
}
