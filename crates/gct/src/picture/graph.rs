//! The encounter as a graph: what the nodes of each kind attend to in the next.

use super::axis::{Axis, Numbers};
use super::heading;
use super::links::{DrawnLink, Links, Mark};
use super::page::{BLUE, DROP, Key, PALE_INK, Page, RED, RULE, SHADE, SMALL, SYMBOL, block};
use super::svg::{Element, element, number, shortened, text, width};
use crate::graph::{NodeKind, NodePair, Structure};

const PITCH: f64 = 24.0;
const BOX: f64 = 19.0;
const HEAD: f64 = 28.0;
/// The most that a label gets.
const LABEL: f64 = 230.0;
/// The width of the strongest line.
const WIDEST: f64 = 6.0;

/// A picture of an encounter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// The text of the SVG file.
    pub svg: String,
    /// How many links were left out: true edges are all drawn, and of what else a node gives to another the
    /// 1,500 strongest.
    pub left_out: usize,
}

/// Draws who attends to whom in one layer, in columns from the visit to the labs. Context, where there is
/// any, stands on the other side of the visit.
///
/// A line has two halves. Each begins at a node and is as wide and as dark as the attention that this node
/// gives to the other: a treatment of many labs gives little to each, which may give much to it. A true edge
/// is missed if neither end gives the other as much as it gives to nodes of that kind on average: an edge is
/// known if either end knows it. What a node gives to itself is not drawn, nor what is too little to see.
///
/// Edges that are found are counted between codes, since those of the visit are given, and beside them how
/// many pairs without an edge pass the same rule.
///
/// # Panics
/// If there is no such layer, a matrix is not square over the nodes, or an edge names a node that is missing.
pub fn graph(structure: &Structure, layer: usize) -> Graph {
    structure.check();
    let Links { drawn: links, left_out, edges, others } = Links::of(structure, layer);
    let strongest = links.iter().map(|link| link.strength).fold(0.0, f64::max);
    let plan = Plan::new(structure);
    let name = &structure.layers[layer].name;
    let mut note = match structure.edges {
        Some(_) => format!(
            "The average share or more in {} of {} true edges between codes, and in {} of {} pairs without an edge.",
            edges.passed, edges.pairs, others.passed, others.pairs
        ),
        None => "True edges are not known.".into(),
    };
    if left_out > 0 {
        note += &format!(" {left_out} weaker links are left out.");
    }
    let page = Page {
        heading: &format!("Who attends to whom: {name}"),
        note: &note,
        description: &format!(
            "{} nodes in {}, diagnoses, treatments and labs, and {} halves of lines between them, each by \
             the attention that the node at its end gives in {name}.",
            structure.nodes.len(),
            if plan.columns.len() > 4 { "five columns, context, visit" } else { "four columns, visit" },
            links.len()
        ),
        legend: legend(structure.edges.is_some(), strongest),
        width: plan.width,
        height: plan.height,
        body: element("g").with(plan.lines(&links, strongest)).with(plan.headings()).with(plan.boxes()),
    };
    Graph { svg: page.draw(), left_out }
}

/// Where things are.
struct Plan<'a> {
    structure: &'a Structure,
    columns: Vec<Column>,
    /// The middle of each node's box.
    heights: Vec<f64>,
    width: f64,
    height: f64,
}

struct Column {
    kind: NodeKind,
    left: f64,
    width: f64,
    nodes: Vec<usize>,
}

impl Column {
    fn right(&self) -> f64 {
        self.left + self.width
    }
}

impl<'a> Plan<'a> {
    fn new(structure: &'a Structure) -> Self {
        let of_kind =
            |kind| (0..structure.nodes.len()).filter(move |&node| structure.nodes[node].kind == kind);
        let longest = NodeKind::ALL.map(|kind| of_kind(kind).count()).into_iter().max().unwrap_or(0).max(4);
        let height = longest as f64 * PITCH;
        // Tall pictures are wide, or all lines would be steep.
        let gap = (height * 0.3).clamp(150.0, 320.0);
        let (mut columns, mut heights) = (Vec::new(), vec![0.0; structure.nodes.len()]);
        let mut left = 0.0;
        let [visit, context, others @ ..] = NodeKind::ALL;
        let has_context = of_kind(context).next().is_some();
        for kind in has_context.then_some(context).into_iter().chain([visit]).chain(others) {
            let nodes: Vec<usize> = of_kind(kind).collect();
            for (position, &node) in nodes.iter().enumerate() {
                heights[node] = HEAD + (position as f64 + 0.5) * height / nodes.len() as f64;
            }
            let labels = nodes.iter().map(|&node| width(&structure.nodes[node].label(), SMALL));
            let width = labels.fold(64.0, f64::max).min(LABEL) + 16.0;
            columns.push(Column { kind, left, width, nodes });
            left += width + gap;
        }
        Plan { structure, columns, heights, width: left - gap, height: HEAD + height }
    }

    fn headings(&self) -> Vec<Element> {
        let titled = |column: &Column| {
            let name = match column.kind {
                NodeKind::Visit => heading(column.kind).into(),
                NodeKind::Code(_) => format!("{} ({})", heading(column.kind), column.nodes.len()),
            };
            let middle = column.left + column.width / 2.0;
            text(middle, 14.0, 12.0, &name).set("text-anchor", "middle").set("font-weight", "600")
        };
        self.columns.iter().map(titled).collect()
    }

    fn boxes(&self) -> Vec<Element> {
        let labelled_box = |(node, &y): (usize, &f64)| {
            let (column, node) = (self.column(node), &self.structure.nodes[node]);
            let frame = block((column.left, y - BOX / 2.0), (column.width, BOX), SHADE);
            let label = text(column.left + 8.0, y + DROP, SMALL, &shortened(&node.label(), SMALL, LABEL));
            let parts = [frame.set("stroke", RULE).at([("rx", 4.0)]), label];
            element("g").hover(&node.full_label()).with(parts)
        };
        self.heights.iter().enumerate().map(labelled_box).collect()
    }

    fn column(&self, node: usize) -> &Column {
        let kind = self.structure.nodes[node].kind;
        self.columns.iter().find(|column| column.kind == kind).expect("every node is in a column")
    }

    fn lines(&self, links: &[DrawnLink], strongest: f64) -> Vec<Element> {
        let line = |link: &DrawnLink| {
            let share = link.strength / strongest;
            let path = element("path").set("d", &self.path(link.ends));
            let path = weighted(path, link.mark, share);
            // No mouse can rest on a thinner line.
            if link.mark == Mark::Other && share < 0.1 {
                path
            } else {
                path.hover(&caption(self.structure, link))
            }
        };
        let same_mark = links.chunk_by(|a, b| a.mark == b.mark);
        same_mark.map(|links| coloured(element("g"), links[0].mark).with(links.iter().map(line))).collect()
    }

    /// The half of a line that begins at the first node.
    fn path(&self, (a, b): NodePair) -> String {
        let (from, to) = (self.column(a), self.column(b));
        let (y1, y2) = (self.heights[a], self.heights[b]);
        let [x1, x2] = match from.left < to.left {
            _ if from.kind == to.kind => [from.left; 2],
            true => [from.right(), to.left],
            false => [from.left, to.right()],
        };
        let bend = match from.kind == to.kind {
            true => from.left - (20.0 + 0.2 * (y2 - y1).abs()).min(100.0),
            false => (x1 + x2) / 2.0,
        };
        // The first half of a curve with the corners (bend, y1) and (bend, y2).
        let corners = [
            [(x1 + bend) / 2.0, y1],
            [(x1 + 3.0 * bend) / 4.0, (3.0 * y1 + y2) / 4.0],
            [(x1 + 6.0 * bend + x2) / 8.0, (y1 + y2) / 2.0],
        ];
        let corners = corners.map(|corner| corner.map(number).join(" ")).join(" ");
        format!("M{} {}C{corners}", number(x1), number(y1))
    }
}

fn caption(structure: &Structure, link: &DrawnLink) -> String {
    let [a, b] =
        [link.ends.0, link.ends.1].map(|node| shortened(&structure.nodes[node].label(), SMALL, LABEL));
    format!("{a} gives {b} {:.2}", link.strength)
}

fn coloured(line: Element, mark: Mark) -> Element {
    let line = line.set("fill", "none");
    match mark {
        Mark::Other => line.set("stroke", BLUE),
        Mark::Found => line.set("stroke", RED),
        Mark::Missed => line.set("stroke", RED).set("stroke-width", "1.4").set("stroke-dasharray", "4 3"),
    }
}

/// Makes a line wide and dark by its share of the strongest attention.
fn weighted(line: Element, mark: Mark, share: f64) -> Element {
    let opacity = match mark {
        // They are many, and together must not hide the true ones.
        Mark::Other => 0.04 + 0.56 * share * share.sqrt(),
        Mark::Found => 0.3 + 0.6 * share,
        Mark::Missed => return line,
    };
    line.at([("stroke-width", 0.6 + (WIDEST - 0.6) * share), ("stroke-opacity", opacity)])
}

fn legend(edges_known: bool, strongest: f64) -> Vec<Key> {
    let sample = || element("path").set("d", &format!("M0 0H{SYMBOL}"));
    let key = |mark: Mark, text: &str| Key {
        symbol: weighted(coloured(sample(), mark), mark, 0.8),
        text: text.into(),
    };
    let mut keys = match edges_known {
        true => vec![
            key(Mark::Found, "true edge"),
            key(Mark::Missed, "true edge, missed"),
            key(Mark::Other, "no true edge"),
        ],
        false => vec![key(Mark::Other, "what the node at this end gives to the other")],
    };
    // This many steps make two to five samples, whatever the strongest.
    let axis = Axis::over([0.0, strongest].into_iter(), 3.2, Numbers::All);
    let samples = axis.ticks.into_iter().filter(|tick| tick.value > 0.0 && tick.value <= strongest);
    keys.extend(samples.enumerate().map(|(position, tick)| Key {
        symbol: weighted(sample().set("stroke", PALE_INK), Mark::Found, tick.value / strongest),
        text: if position == 0 { format!("attention {}", tick.label) } else { tick.label },
    }));
    keys
}

#[cfg(test)]
mod tests {
    use super::super::svg::tests::{assert_well_formed, numbers, texts};
    use super::*;
    use crate::graph::structures::{encounter, small};

    #[test]
    fn true_edges_are_red_and_missed_ones_dashed() {
        let structure = Structure { edges: Some(vec![(0, 1), (1, 3)]), ..small() };
        let svg = graph(&structure, 0).svg;
        assert_well_formed(&svg);
        // Columns are 80 wide and 150 apart. D_0 gives to the visit on its left, and little to T_1.
        let found = "<path d=\"M230 76C192.5 76 173.75 76 155 76\" stroke-width=\"6\" \
            stroke-opacity=\"0.9\"><title>D_0 gives visit 0.50</title>";
        let missed = "<g fill=\"none\" stroke=\"#D55E00\" stroke-width=\"1.4\" stroke-dasharray=\"4 3\">\
            <path d=\"M460 100C422.5 100 403.75 94 385 88\">\
            <title>T_1 gives D_0 0.00</title>\n</path>\n\
            <path d=\"M310 76C347.5 76 366.25 82 385 88\">\
            <title>D_0 gives T_1 0.10</title>";
        assert!(svg.contains(found) && svg.contains(missed), "{svg}");
        let note = "in 0 of 1 true edges between codes, and in 1 of 1 pairs without an edge.";
        assert!(svg.contains(note), "{svg}");
    }

    #[test]
    fn labels_are_escaped_and_whole_when_the_mouse_rests_on_them() {
        let mut structure = small();
        structure.nodes[2].code = format!("<&\"{}", "x".repeat(100));
        let svg = graph(&structure, 0).svg;
        assert_well_formed(&svg);
        let whole = format!("&lt;&amp;&quot;{}", "x".repeat(100));
        assert!(texts(&svg, "title").contains(&whole.as_str()));
        assert!(!texts(&svg, "text ").contains(&whole.as_str()));
    }

    #[test]
    fn labels_of_151_nodes_do_not_overlap() {
        let boxes = element("g").with(Plan::new(&encounter([40, 50, 60], &["P"])).boxes()).to_string();
        let [x, y] = ["x", "y"].map(|attribute| numbers(&boxes, "text ", attribute));
        let labels: Vec<(f64, f64)> = x.into_iter().zip(y).collect();
        assert_eq!(labels.len(), 151);
        let close = |a: &(f64, f64), b: &(f64, f64)| a.0 == b.0 && (a.1 - b.1).abs() < SMALL * 1.2;
        let overlaps = |at: usize| labels[..at].iter().any(|label| close(label, &labels[at]));
        assert!(!(0..labels.len()).any(overlaps));
    }

    #[test]
    fn lines_within_a_kind_bend_to_the_side() {
        let small = small();
        let plan = Plan::new(&small);
        assert_eq!(plan.path((2, 3)), "M460 52C445.2 52 437.8 64 437.8 76");
        assert_eq!(plan.path((3, 2)), "M460 100C445.2 100 437.8 88 437.8 76");
    }

    #[test]
    fn the_legend_has_a_scale() {
        let texts =
            |strongest: f64| legend(false, strongest).into_iter().map(|key| key.text).collect::<Vec<_>>();
        assert_eq!(texts(0.5), ["what the node at this end gives to the other", "attention 0.2", "0.4"]);
        assert_eq!(
            texts(0.02),
            ["what the node at this end gives to the other", "attention 0.005", "0.010", "0.015", "0.020"]
        );
        assert_eq!(texts(0.0), ["what the node at this end gives to the other"]);
    }

    #[test]
    fn nobody_attends_to_anybody() {
        let structure = Structure { edges: Some(vec![(0, 1)]), ..encounter([1, 0, 0], &["P"]) };
        let svg = graph(&structure, 0).svg;
        assert_well_formed(&svg);
        assert!(svg.contains("in 0 of 0 true edges between codes"), "the visit's are given: {svg}");
    }

    #[test]
    fn a_picture_of_many_nodes_says_what_it_leaves_out() {
        let mut structure = encounter([60, 0, 0], &["P"]);
        structure.layers[0].matrix.fill(0.1);
        let Graph { svg, left_out } = graph(&structure, 0);
        assert_eq!(left_out, 61 * 60 - 1500);
        assert_eq!(svg.matches("<path").count(), 1500 + legend(false, 0.1).len());
        assert!(svg.contains(">True edges are not known. 2160 weaker links are left out.<"), "{svg}");
    }
}
