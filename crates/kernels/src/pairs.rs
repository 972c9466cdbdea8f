//! A graph's nodes come in groups of consecutive rows. `Pairs` says which nodes each group looks at, and lays
//! the numbers of those pairs out row after row, 16-aligned, with nothing for pairs that are not allowed.

use std::ops::Range;

use crate::Number;
use crate::gemm::{Into, Left, Right, gemm};
use crate::level::vectorized;
use crate::rows::{sum, transpose};

/// Rows of pair numbers start at multiples of this.
const ALIGN: usize = 16;

/// The logarithm of a probability is taken to be no less than that of 1e-12.
const LEAST_LOG: f64 = -27.631_021_115_928_547;

/// The logarithm of a probability that is zero.
const LOG_ZERO: f64 = -1e30;

/// Which pairs of a graph's nodes interact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    nodes: usize,
    len: usize,
    groups: Vec<Group>,
}

/// Nodes that look at the same other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    /// Who looks.
    rows: Range<usize>,
    /// At whom.
    columns: [Range<usize>; 2],
    /// Whether also at themselves, each at itself.
    own: bool,
    /// Whether row i sees only columns from i on.
    upper: bool,
    /// Where the group's numbers begin, and how far apart its rows are.
    start: usize,
    stride: usize,
}

impl Group {
    /// How many numbers of a row are in use.
    fn width(&self) -> usize {
        self.columns[0].len() + self.columns[1].len() + usize::from(self.own)
    }

    /// The ranges of columns, each with the offset of its first number in a row.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, usize)> {
        let second = self.columns[0].len();
        [(self.columns[0].clone(), 0), (self.columns[1].clone(), second)]
            .into_iter()
            .filter(|(columns, _)| !columns.is_empty())
    }
}

impl Pairs {
    /// Every node looks at every node.
    pub fn full(nodes: usize) -> Self {
        let group = Group {
            rows: 0..nodes,
            columns: [0..nodes, 0..0],
            own: false,
            upper: false,
            start: 0,
            stride: 0,
        };
        Pairs::lay_out(nodes, vec![group])
    }

    /// Nodes in groups of these sizes look at the group that theirs hangs on, at the groups that hang on
    /// theirs, and at themselves.
    ///
    /// # Panics
    /// If groups that hang on the same one do not follow each other, or come before it.
    pub fn tree(sizes: &[usize], parents: &[Option<usize>]) -> Self {
        let mut groups: Vec<Range<usize>> = Vec::with_capacity(sizes.len());
        let mut children: Vec<Option<Range<usize>>> = vec![None; sizes.len()];
        let mut nodes = 0;
        for (group, (size, parent)) in sizes.iter().zip(parents).enumerate() {
            let rows = nodes..nodes + size;
            if let Some(parent) = *parent {
                let start = children[parent].as_ref().map_or(rows.start, |before| before.start);
                let follows = children[parent].as_ref().is_none_or(|before| before.end == rows.start);
                assert!(parent < group && follows, "group {group} of {sizes:?} hangs on {parent}");
                children[parent] = Some(start..rows.end);
            }
            groups.push(rows);
            nodes += size;
        }
        let rows = groups.iter().zip(parents).zip(children).map(|((rows, parent), children)| {
            let parent = parent.map_or(0..0, |parent| groups[parent].clone());
            let columns = [parent, children.unwrap_or(0..0)];
            Group { rows: rows.clone(), columns, own: true, upper: false, start: 0, stride: 0 }
        });
        Pairs::lay_out(nodes, rows.collect())
    }

    /// Gives every group its offset.
    fn lay_out(nodes: usize, mut groups: Vec<Group>) -> Self {
        let mut len = 0;
        for group in &mut groups {
            group.start = len;
            group.stride = group.width().next_multiple_of(ALIGN);
            len += group.rows.len() * group.stride;
        }
        Pairs { nodes, len, groups }
    }

    /// The same pairs, but nodes look only at themselves and at those after them.
    pub fn directed(&self) -> Self {
        let turned = |group: &Group| {
            let mut group = group.clone();
            if group.own {
                let is_before = |columns: &Range<usize>| columns.end <= group.rows.start;
                group.columns = group.columns.map(|columns| if is_before(&columns) { 0..0 } else { columns });
            } else {
                group.upper = true;
            }
            group
        };
        Pairs::lay_out(self.nodes, self.groups.iter().map(turned).collect())
    }

    /// Only the first nodes look, at whom they did; their numbers keep their indices.
    pub fn of_first(&self, rows: usize) -> Self {
        let mut first = self.clone();
        first.len = 0;
        for group in &mut first.groups {
            group.rows.end = group.rows.end.min(rows).max(group.rows.start);
            if !group.rows.is_empty() {
                first.len = group.start + group.rows.len() * group.stride;
            }
        }
        first
    }

    /// How many nodes are at most so many steps along pairs away from the first one. They are the first ones,
    /// because nodes are ordered so.
    pub fn count_within(&self, steps: usize) -> usize {
        if steps >= self.nodes {
            return self.nodes;
        }
        (0..steps).fold(1, |within, _| {
            let near = self.groups.iter().filter(|group| group.rows.start < within);
            near.flat_map(|group| group.columns.iter()).map(|columns| columns.end).fold(within, usize::max)
        })
    }

    /// The nodes that are looked at are all before this one.
    pub fn columns_end(&self) -> usize {
        let looking = self.groups.iter().filter(|group| !group.rows.is_empty());
        looking
            .map(|group| group.columns[0].end.max(group.columns[1].end).max(group.rows.end))
            .max()
            .unwrap_or(0)
    }

    /// How many nodes look.
    pub fn rows(&self) -> usize {
        self.groups.iter().map(|group| group.rows.len()).sum()
    }

    /// How many nodes the graph has.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// How many numbers its pairs take, with those that fill up rows.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many numbers [`dots`] needs to work with.
    pub fn scratch(&self, width: usize) -> usize {
        self.groups.iter().map(|group| (group.stride + 1) * width).max().unwrap_or(0)
    }

    /// Every allowed pair (i, j) with the index of its number.
    pub fn cells(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        self.groups.iter().flat_map(|group| {
            group.rows.clone().flat_map(move |i| {
                let row = group.start + (i - group.rows.start) * group.stride;
                let columns = group.columns[0].clone().chain(group.columns[1].clone());
                let own = group.own.then_some(i);
                let all = columns.chain(own).enumerate();
                all.filter(move |(_, j)| !group.upper || *j >= i).map(move |(column, j)| (i, j, row + column))
            })
        })
    }

    /// Takes the allowed pairs out of a matrix over nodes.
    pub fn compact<T: Number>(&self, matrix: &[T], out: &mut [T]) {
        out[..self.len].fill(T::ZERO);
        for (i, j, cell) in self.cells() {
            out[cell] = matrix[i * self.nodes + j];
        }
    }

    /// Puts the pairs into a matrix over nodes; the others are 0.
    pub fn expand<T: Number>(&self, pairs: &[T], matrix: &mut [T]) {
        matrix[..self.nodes * self.nodes].fill(T::ZERO);
        for (i, j, cell) in self.cells() {
            matrix[i * self.nodes + j] = pairs[cell];
        }
    }
}

/// A matrix whose rows of `width` numbers are `stride` apart.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    /// The numbers.
    pub data: &'a [T],
    /// Distance between rows.
    pub stride: usize,
}

/// out = A x: every node takes the weighted sum of those it looks at. Rows of `out` are `stride` apart.
pub fn mix<T: Number>(pairs: &Pairs, width: usize, a: &[T], x: Rows<'_, T>, out: &mut [T], stride: usize) {
    for group in pairs.groups.iter().filter(|group| !group.rows.is_empty()) {
        let (a, rows) = (&a[group.start..], group.rows.len());
        let out = &mut out[group.rows.start * stride..];
        let mut into = match group.own {
            true => Into::Beside {
                diagonal: (&a[group.width() - 1..], group.stride),
                x: (&x.data[group.rows.start * x.stride..], x.stride),
            },
            false => Into::Set,
        };
        if group.blocks().next().is_none() {
            gemm([rows, width, 0], Left::rows(&[], 0), Right::rows(&[], 0), out, stride, into);
        }
        for (columns, offset) in group.blocks() {
            let x = Right::rows(&x.data[columns.start * x.stride..], x.stride);
            gemm([rows, width, columns.len()], Left::rows(&a[offset..], group.stride), x, out, stride, into);
            into = Into::Add;
        }
    }
}

/// out = A' x: the gradient of [`mix`] with respect to its x, given that of its result.
pub fn mix_transposed<T: Number>(
    pairs: &Pairs,
    width: usize,
    a: &[T],
    x: Rows<'_, T>,
    out: &mut [T],
    stride: usize,
) {
    for group in pairs.groups.iter().filter(|group| !group.rows.is_empty()) {
        let out = &mut out[group.rows.start * stride..];
        if group.own {
            let own = &a[group.start + group.width() - 1..];
            let x_own = &x.data[group.rows.start * x.stride..];
            scale_rows(group.rows.len(), width, own, group.stride, x_own, x.stride, out, stride);
        } else {
            for row in 0..group.rows.len() {
                out[row * stride..][..width].fill(T::ZERO);
            }
        }
    }
    for group in pairs.groups.iter().filter(|group| !group.rows.is_empty()) {
        for (columns, offset) in group.blocks() {
            let a = Left::transposed(&a[group.start + offset..], group.stride);
            let x = Right::rows(&x.data[group.rows.start * x.stride..], x.stride);
            let out = &mut out[columns.start * stride..];
            gemm([columns.len(), width, group.rows.len()], a, x, out, stride, Into::Add);
        }
    }
}

/// s = x_i . y_j for every allowed pair. It is also the gradient of [`mix`] with respect to its a, for x the
/// gradient of its result and y its x.
pub fn dots<T: Number>(
    pairs: &Pairs,
    width: usize,
    x: Rows<'_, T>,
    y: Rows<'_, T>,
    s: &mut [T],
    scratch: &mut [T],
) {
    for group in pairs.groups.iter().filter(|group| !group.rows.is_empty()) {
        let s = &mut s[group.start..];
        let columns = group.columns[0].len() + group.columns[1].len();
        let x_rows = &x.data[group.rows.start * x.stride..];
        // The product has `stride` columns, those beyond the last node zero: whole registers are faster than
        // the rest of one.
        let (rows, stride) = (group.rows.len(), group.stride);
        let (turned, zeros) = scratch.split_at_mut(stride * width);
        zeros[..width].fill(T::ZERO);
        let mut blocks = group.blocks().peekable();
        if blocks.peek().is_none() {
            turned.fill(T::ZERO);
        }
        while let Some((columns, offset)) = blocks.next() {
            // The last one fills up the lines. It writes over what the first wrote too much, in whole eights.
            let whole = columns.len().next_multiple_of(8);
            let end = if blocks.peek().is_some() { whole } else { stride - offset };
            let from = &y.data[columns.start * y.stride..];
            transpose([columns.len(), end, width], from, y.stride, zeros, &mut turned[offset..], stride);
        }
        gemm(
            [rows, stride, width],
            Left::rows(x_rows, x.stride),
            Right::rows(turned, stride),
            s,
            stride,
            Into::Set,
        );
        if group.own {
            let y_rows = &y.data[group.rows.start * y.stride..];
            row_dots(rows, width, x_rows, x.stride, y_rows, y.stride, &mut s[columns..], stride);
        }
    }
}

vectorized! {
/// out_i = c_i x_i.
fn scale_rows(
    rows: usize,
    width: usize,
    factors: &[T],
    factor_stride: usize,
    x: &[T],
    x_stride: usize,
    out: &mut [T],
    stride: usize,
) {
    for row in 0..rows {
        let (factor, x, out) =
            (factors[row * factor_stride], &x[row * x_stride..][..width], &mut out[row * stride..][..width]);
        for i in 0..width {
            out[i] = x[i] * factor;
        }
    }
}
}

vectorized! {
/// out_i = x_i . y_i.
fn row_dots(
    rows: usize,
    width: usize,
    x: &[T],
    x_stride: usize,
    y: &[T],
    y_stride: usize,
    out: &mut [T],
    stride: usize,
) {
    for row in 0..rows {
        let (x, y) = (&x[row * x_stride..][..width], &y[row * y_stride..][..width]);
        out[row * stride] = sum([x, y], |[x, y], sum| x.fma::<FMA>(y, sum));
    }
}
}

/// How scores become an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalizer {
    /// The softmax over each row.
    Softmax,
    /// The logistic function of each score.
    Sigmoid,
}

/// Normalises scores over the allowed pairs: weights go to `p`, and if `logs`, scores become their logarithms
/// in place.
pub fn normalize<T: Number>(
    pairs: &Pairs,
    normalizer: Normalizer,
    scale: f64,
    logs: bool,
    s: &mut [T],
    p: &mut [T],
) {
    for group in &pairs.groups {
        for row in 0..group.rows.len() {
            let at = group.start + row * group.stride;
            let (s, p) = (&mut s[at..][..group.stride], &mut p[at..][..group.stride]);
            s[group.width()..].fill(T::of(LOG_ZERO / scale));
            if group.upper {
                s[..row].fill(T::of(LOG_ZERO / scale));
            }
            match normalizer {
                Normalizer::Softmax => softmax_row(T::of(scale), logs, s, p),
                Normalizer::Sigmoid => sigmoid_row(scale, s, p),
            }
        }
    }
}

vectorized! {
fn softmax_row(scale: T, logs: bool, s: &mut [T], p: &mut [T]) {
    let width = s.len();
    let p = &mut p[..width];
    let mut largest = [T::of(LOG_ZERO); ALIGN];
    for chunk in s.chunks_exact_mut(ALIGN) {
        for (largest, s) in largest.iter_mut().zip(chunk) {
            *s *= scale;
            *largest = largest.larger(*s);
        }
    }
    let largest = largest.into_iter().fold(T::of(LOG_ZERO), T::larger);
    for (p, s) in p.iter_mut().zip(&*s) {
        *p = (*s - largest).exp::<FMA>();
    }
    let total = sum([&*p], |[e], sum| sum + e);
    let inverse = T::ONE / total;
    for p in p.iter_mut() {
        *p *= inverse;
    }
    if logs {
        let log_total = largest + T::of(total.f64().ln());
        for s in s.iter_mut() {
            *s -= log_total;
        }
    }
}
}

/// Not in a hurry: the default is softmax.
fn sigmoid_row<T: Number>(scale: f64, s: &mut [T], p: &mut [T]) {
    for (s, p) in s.iter_mut().zip(p) {
        let x = scale * s.f64();
        *p = T::of(1.0 / (1.0 + (-x).exp()));
        *s = T::of((x.min(0.0) - (-x.abs()).exp().ln_1p()).max(LOG_ZERO));
    }
}

/// The sum over pairs of p (log p - log q): how far the distributions q of all rows are from p. Logarithms
/// are those of
/// [`normalize`]; without `log_p`, they are taken here.
pub fn divergence<T: Number>(pairs: &Pairs, p: &[T], log_p: Option<&[T]>, log_q: &[T]) -> f64 {
    let p = &p[..pairs.len];
    let entropy = match log_p {
        Some(log_p) => cross(p, log_p).f64(),
        None => -p.iter().map(|p| p.f64()).filter(|p| *p > 0.0).map(|p| p * p.ln()).sum::<f64>(),
    };
    cross(p, log_q).f64() - entropy
}

vectorized! {
/// The sum of -p log q.
fn cross(p: &[T], log_q: &[T]) -> T {
    let log_q = &log_q[..p.len()];
    sum([p, log_q], |[p, log_q], sum| (-p).fma::<FMA>(log_q.larger(T::of(LEAST_LOG)), sum))
}
}

/// The neighbours of an attention in a chain of divergences, each with the weight of its divergence in the
/// loss.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a, T> {
    /// The probabilities before this attention: the loss has the divergence of this one from them.
    pub before: Option<(&'a [T], f64)>,
    /// The logarithms of those after it: the loss has the divergence of them from this one.
    pub log_after: Option<(&'a [T], f64)>,
}

/// The gradient of [`normalize`] and of the divergences: `d` holds the gradient with respect to the weights,
/// and then that with respect to the scores. Without a chain, logarithms may be left out.
pub fn normalize_back<T: Number>(
    pairs: &Pairs,
    normalizer: Normalizer,
    scale: f64,
    p: &[T],
    log_p: Option<&[T]>,
    chain: Chain<'_, T>,
    d: &mut [T],
) {
    for group in &pairs.groups {
        for row in 0..group.rows.len() {
            let at = group.start + row * group.stride;
            let range = at..at + group.stride;
            let (before, after) = (part(chain.before, &range), part(chain.log_after, &range));
            let log_p = log_p.map_or(&[][..], |log_p| &log_p[range.clone()]);
            let (p, d, scale) = (&p[range.clone()], &mut d[range], T::of(scale));
            match normalizer {
                Normalizer::Softmax => softmax_back_row(scale, p, log_p, before, after, d),
                Normalizer::Sigmoid => sigmoid_back_row(scale, p, log_p, before, after, d),
            }
        }
    }
}

/// A row of a neighbour, or nothing if there is none.
fn part<'a, T: Number>(of: Option<(&'a [T], f64)>, row: &Range<usize>) -> (&'a [T], T) {
    of.map_or((&[], T::ZERO), |(all, weight)| (&all[row.clone()], T::of(weight)))
}

fn sigmoid_back_row<T: Number>(
    scale: T,
    p: &[T],
    log_p: &[T],
    (before, before_weight): (&[T], T),
    (log_after, after_weight): (&[T], T),
    d: &mut [T],
) {
    let least = T::of(LEAST_LOG);
    for i in 0..d.len() {
        if !log_after.is_empty() {
            // Where the logarithm is held at its least, it does not move.
            let moves = if log_p[i] > least { T::ONE } else { T::ZERO };
            d[i] += after_weight * (log_p[i].larger(least) + moves - log_after[i].larger(least));
        }
        d[i] = d[i] * p[i] * (T::ONE - p[i]) * scale;
        if !before.is_empty() && log_p[i] > least {
            d[i] -= before_weight * before[i] * (T::ONE - p[i]) * scale;
        }
    }
}

vectorized! {
fn softmax_back_row(
    scale: T,
    p: &[T],
    log_p: &[T],
    before: (&[T], T),
    log_after: (&[T], T),
    d: &mut [T],
) {
    let ((before, before_weight), (log_after, after_weight)) = (before, log_after);
    let (width, least) = (d.len(), T::of(LEAST_LOG));
    let p = &p[..width];
    if !log_after.is_empty() {
        let (log_p, log_after) = (&log_p[..width], &log_after[..width]);
        for i in 0..width {
            let difference = log_p[i].larger(least) - log_after[i].larger(least);
            d[i] = after_weight.fma::<FMA>(difference, d[i]);
        }
    }
    let along = sum([&*d, p], |[d, p], sum| d.fma::<FMA>(p, sum));
    for i in 0..width {
        d[i] = p[i] * (d[i] - along) * scale;
    }
    if !before.is_empty() {
        let (log_p, before, weight) = (&log_p[..width], &before[..width], before_weight * scale);
        // Where the logarithm is held at its least, it does not move.
        let counts = |log_p: T, before: T| if log_p > least { before } else { T::ZERO };
        let mass = sum([log_p, before], |[log_p, before], sum| sum + counts(log_p, before));
        for i in 0..width {
            d[i] += weight * (p[i] * mass - counts(log_p[i], before[i]));
        }
    }
}
}
