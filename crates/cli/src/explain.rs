//! `gct explain`: what a model believes about one encounter, and why.

mod deletion;
mod reasons;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use gct::files::{self, Overwrite};
use gct::graph::{Link, NodeKind};
use gct::incoming::Met;
use gct::picture;
use gct::predict::{Cause, Explanation, MOST_PAIRED, explain, explain_incoming};
use gct::record::CodeKind;
use gct::run::Run;
use serde_json::json;

use crate::selection::RawArguments;
use crate::terminal::refusal;
use crate::{selection, terminal};

/// Explain one encounter: its predictions, what each code does to them, and where the model looks
///
/// What a code does to a prediction is exact: the model is asked again about the encounter without the code.
/// A run that sees history is asked so about each earlier visit and each of its codes too.
/// Attention is something else. It says what each node gives to each other node, block by block, and a
/// prediction need not depend on what the model looks at.
#[derive(Args)]
#[command(after_help = "Examples:
  gct explain runs/gct                                   the first encounter of the test split
  gct explain runs/gct --encounter E17 --pairs 5         also what two codes do together
  gct explain runs/gct --encounter E17 --json
  gct explain runs/gct --encounter E17 --graph graph.svg --bars bars.svg --code D_199
  gct explain runs/gct --data new.jsonl                  the first of a file, as for `gct predict`
  gct explain runs/gct --deletion                        attribution, attention and chance compared")]
pub(crate) struct Arguments {
    /// The run folder
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// The dataset folder, a file of new encounters, or - for standard input [default: the dataset that the
    /// run was trained on]
    #[arg(long, value_name = "DIR|FILE")]
    data: Option<PathBuf>,

    /// Which encounter [default: the first of the test split; of another dataset or a file, the first of all]
    #[arg(long, value_name = "ID")]
    encounter: Option<String>,

    #[command(flatten)]
    raw: RawArguments,

    /// Which block to list or to draw with --graph, counted from 1 [default: the last]
    #[arg(long, value_name = "N")]
    block: Option<usize>,

    /// How many predictions, codes and links to list [default: 20]
    #[arg(long, value_name = "N", conflicts_with = "json", value_parser = at_least_one)]
    top: Option<usize>,

    /// For each prediction, also leave out every pair of the encounter's N strongest codes, from 2 to 20
    #[arg(long, value_name = "N", value_parser = paired)]
    pairs: Option<usize>,

    /// Instead of explaining an encounter, compare rankings of codes: by how much true answers with a
    /// probability of P or more [default: 0.9] change without the 1 to 5 codes that attribution, attention
    /// and chance rank first
    #[arg(long, value_name = "P", num_args = 0..=1, require_equals = true, default_missing_value = "0.9")]
    #[arg(value_parser = probability)]
    #[arg(conflicts_with_all = ["encounter", "block", "top", "pairs", "graph", "bars", "force"])]
    deletion: Option<f64>,

    /// Draw the encounter as a graph to this SVG file: all true edges, and of other links the 1,500 strongest
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,

    /// Draw what one code attends to, the paper's Figure 4, to this SVG file
    #[arg(long, value_name = "FILE")]
    bars: Option<PathBuf>,

    /// The code for --bars [default: the diagnosis with the most edges, or the first]
    #[arg(long, value_name = "CODE", requires = "bars")]
    code: Option<String>,

    /// Replace files that exist
    #[arg(long)]
    force: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    if let Some(least) = arguments.deletion {
        return deletion::run(arguments, least, quiet);
    }
    let overwrite = if arguments.force { Overwrite::Replace } else { Overwrite::Refuse };
    for file in [&arguments.graph, &arguments.bars].into_iter().flatten() {
        files::check_ending(file, &["svg"])?;
        files::check_file(file, overwrite)?;
    }
    if arguments.graph.is_some() && arguments.graph == arguments.bars {
        return Err(refusal("--graph and --bars are the same file", "give each a file of its own"));
    }
    if arguments.force && arguments.graph.is_none() && arguments.bars.is_none() {
        return Err(refusal(
            "--force is for the files of --graph and --bars, and neither is given",
            "leave it out",
        ));
    }
    if arguments.block.is_some() && arguments.json && arguments.graph.is_none() {
        return Err(refusal(
            "--block is for text and for --graph, and --json has all blocks",
            "leave it out",
        ));
    }
    let (run, explanation, met) = explained(arguments, quiet)?;
    let structure = &explanation.structure;
    if structure.layers.is_empty() && (arguments.graph.is_some() || arguments.bars.is_some()) {
        let model = run.settings().model.name();
        let hint = "leave out --graph and --bars, or explain a run of gct or transformer";
        return Err(refusal(format!("{model} does not mix nodes: there is no attention to draw"), hint));
    }
    // All that can be wrong is found before the first file is written.
    let layer = layer(&explanation, arguments.block)?;
    if arguments.pairs.is_some() {
        reasons::check_pairs(&explanation)?;
    }
    let node = node(&explanation, arguments.code.as_deref())?;
    let mut left_out = None;
    if let Some(file) = &arguments.graph {
        let graph = picture::graph(structure, layer);
        write(file, &graph.svg, overwrite)?;
        left_out = Some(graph.left_out);
    }
    if let Some(file) = &arguments.bars {
        write(file, &picture::bars(structure, node), overwrite)?;
    }
    if arguments.json {
        let mut report = report(&explanation, left_out);
        if let Some(met) = &met {
            report["unknown"] = selection::unknown_json(&met.unknown);
        }
        return Ok(terminal::print_json(&report)?);
    }
    let top = arguments.top.unwrap_or(20);
    let mut text = predictions(&explanation, top);
    text += &reasons::text(&run.settings().task, &explanation, top);
    text += &causes(&explanation, top);
    text += &attention(&explanation, layer, top);
    if let Some(left_out) = left_out.filter(|count| *count > 0) {
        let left_out = terminal::count(left_out as u64);
        text += &format!("\nthe picture leaves out {left_out} weaker links\n");
    }
    if let Some(met) = &met {
        selection::unknown(&run, met).lines().for_each(terminal::print_line);
    }
    Ok(terminal::print(&text)?)
}

/// The run, what it says of the encounter, and, of a file, what was met in it.
fn explained(arguments: &Arguments, quiet: bool) -> Result<(Run, Explanation, Option<Met>)> {
    let (id, paired) = (arguments.encounter.as_deref(), arguments.pairs.unwrap_or(0));
    let what = "looking for the encounter";
    if let Some(file) = arguments.data.as_deref().filter(|data| selection::is_file(data)) {
        let run = arguments.raw.of(Run::open(&arguments.run)?);
        let bar = terminal::progress(0, what, quiet);
        let job = terminal::counting(&bar);
        let found = selection::incoming(&run, file, &job)
            .and_then(|incoming| explain_incoming(&run, incoming, id, paired, &job));
        bar.finish_and_clear();
        let (explanation, met) = found?;
        return Ok((run, explanation, Some(met)));
    }
    let (run, dataset) = selection::open(&arguments.run, arguments.data.as_deref())?;
    let run = arguments.raw.of(run);
    let bar = terminal::progress(dataset.manifest().encounters, what, quiet);
    let explanation = explain(&run, &dataset, id, paired, &terminal::counting(&bar));
    bar.finish_and_clear();
    Ok((run, explanation?, None))
}

pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "expected a whole number from 1".into())
}

fn probability(text: &str) -> Result<f64, String> {
    let expected = || "expected a probability from 0 to 1".into();
    text.parse().ok().filter(|least| (0.0..=1.0).contains(least)).ok_or_else(expected)
}

fn paired(text: &str) -> Result<usize, String> {
    let is_possible = |number: &usize| (2..=MOST_PAIRED).contains(number);
    text.parse()
        .ok()
        .filter(is_possible)
        .ok_or_else(|| format!("expected a whole number from 2 to {MOST_PAIRED}"))
}

pub(crate) fn write(file: &Path, text: &str, overwrite: Overwrite) -> gct::Result<()> {
    files::write_text(file, overwrite, text)
}

/// The index of the block that is shown.
fn layer(explanation: &Explanation, block: Option<usize>) -> Result<usize> {
    let blocks = explanation.structure.layers.len();
    match block {
        Some(_) if blocks == 0 => {
            Err(refusal("--block: the model does not mix nodes and has no blocks", "leave out --block"))
        }
        Some(block) if !(1..=blocks).contains(&block) => Err(refusal(
            format!("--block {block}: the model has blocks 1 to {blocks}"),
            format!("give a block from 1 to {blocks}"),
        )),
        Some(block) => Ok(block - 1),
        None => Ok(blocks.saturating_sub(1)),
    }
}

/// The node whose attention is drawn.
pub(crate) fn node(explanation: &Explanation, code: Option<&str>) -> Result<usize> {
    let structure = &explanation.structure;
    if let Some(code) = code {
        let found = structure.nodes.iter().position(|node| node.code == code || node.label() == code);
        let hint = "without --code the codes of the encounter are listed";
        return found.ok_or_else(|| refusal(format!("--code {code}: the encounter does not have it"), hint));
    }
    let edges = |node: usize| {
        structure.edges.iter().flatten().filter(|(cause, effect)| [*cause, *effect].contains(&node)).count()
    };
    let is_diagnosis = |node: &usize| structure.nodes[*node].kind == NodeKind::Code(CodeKind::Diagnosis);
    let diagnoses = (0..structure.nodes.len()).filter(is_diagnosis);
    // Of equal ones the first.
    Ok(diagnoses.rev().max_by_key(|node| edges(*node)).unwrap_or(0))
}

fn yes(truth: Option<bool>) -> String {
    truth.map_or("", |truth| if truth { "yes" } else { "no" }).into()
}

fn predictions(explanation: &Explanation, top: usize) -> String {
    if explanation.answers.is_empty() {
        let has = |kind| explanation.structure.nodes.iter().any(|node| node.kind == NodeKind::Code(kind));
        return match has(CodeKind::Treatment) && (has(CodeKind::Diagnosis) || has(CodeKind::Lab)) {
            true => "no connections predicted: every pair of codes has a probability below 0.5\n".into(),
            false => "no connections to predict: no treatment is together with a diagnosis or lab\n".into(),
        };
    }
    let rows = (explanation.answers.iter().take(top))
        .map(|answer| vec![answer.what.clone(), reasons::share(answer.probability), yes(answer.truth)]);
    terminal::table(&["prediction", "probability", "true"], rows)
}

/// What led to what; nothing unless the model is an explainer.
fn causes(explanation: &Explanation, top: usize) -> String {
    let Some(causes) = &explanation.causes else { return String::new() };
    let name = |node: usize| {
        let node = &explanation.structure.nodes[node];
        reasons::name(&node.label(), node.description.as_deref())
    };
    let row = |cause: &Cause| {
        let because = cause.cause.map_or("-".into(), name);
        vec![
            name(cause.effect),
            because,
            reasons::share(cause.probability),
            reasons::share(cause.unexplained),
        ]
    };
    let table = terminal::table(
        &["treatment or lab", "most probably because of", "probability", "nothing explains it"],
        causes.iter().take(top).map(row),
    );
    format!("\nwhat led to what\n{table}")
}

/// Where a model looks: the strongest links of a block; nothing for a model without blocks.
fn attention(explanation: &Explanation, layer: usize, top: usize) -> String {
    let structure = &explanation.structure;
    let Some(block) = structure.layers.get(layer) else { return String::new() };
    let name = |node: usize| {
        let node = &structure.nodes[node];
        reasons::name(&node.label(), node.description.as_deref())
    };
    let row = |Link { from, to, weight }| {
        vec![name(from), name(to), format!("{weight:.4}"), yes(structure.is_edge(from, to))]
    };
    let rows: Vec<Vec<String>> = structure.links(layer, top).into_iter().map(row).collect();
    if rows.is_empty() {
        let reason = match structure.nodes.len() {
            1 => "the encounter has no codes",
            _ => "in this block each node attends to itself alone",
        };
        return format!("\nwhere the model looks: no attention of {} between nodes, {reason}\n", block.name);
    }
    let table = terminal::table(&["node", "gives to", "attention", "true edge"], rows);
    format!("\nwhere the model looks: attention of {}\n{table}", block.name)
}

fn report(explanation: &Explanation, links_left_out: Option<usize>) -> serde_json::Value {
    let structure = &explanation.structure;
    let nodes: Vec<_> = (structure.nodes.iter())
        .map(|node| json!({"kind": node.kind, "code": node.label(), "description": node.description}))
        .collect();
    let blocks: Vec<_> = (structure.layers.iter())
        .map(|layer| {
            let rows: Vec<&[f32]> = layer.matrix.chunks(structure.nodes.len().max(1)).collect();
            json!({"name": layer.name, "attention": rows})
        })
        .collect();
    let mut report = json!({
        "nodes": nodes,
        "edges": structure.edges,
        "blocks": blocks,
        "hidden": structure.hidden(),
        "predictions": explanation.answers,
        "attributions": explanation.attributions,
        "links_left_out": links_left_out,
    });
    if let Some(causes) = &explanation.causes {
        report["causes"] = json!(causes);
    }
    if let Some(visits) = &explanation.visits {
        report["visits"] = json!(visits);
    }
    report
}

#[cfg(test)]
mod tests {
    use gct::graph::{Layer, LayerKind, Node, Structure};
    use gct::question::Answer;

    use super::*;

    /// Nodes of these kinds, each of which attends to itself alone.
    fn explanation(kinds: &[NodeKind]) -> Explanation {
        let node = |kind: &NodeKind| Node { kind: *kind, code: "x".into(), ..Node::visit() };
        let itself = (0..kinds.len() * kinds.len()).map(|cell| f32::from(cell % (kinds.len() + 1) == 0));
        let layer = Layer { name: "block 1".into(), kind: LayerKind::Attention, matrix: itself.collect() };
        let nodes = kinds.iter().map(node).collect();
        let structure = Structure { nodes, layers: vec![layer], edges: None };
        Explanation {
            structure,
            visits: None,
            answers: Vec::new(),
            attributions: Vec::new(),
            causes: None,
            connected: None,
        }
    }

    #[test]
    fn nothing_to_show_is_said_with_its_reason() {
        let visit = explanation(&[NodeKind::Visit]);
        assert_eq!(
            attention(&visit, 0, 9),
            "\nwhere the model looks: no attention of block 1 between nodes, the encounter has no codes\n"
        );
        let labs = explanation(&[NodeKind::Visit, NodeKind::Code(CodeKind::Lab)]);
        let expected = "\nwhere the model looks: no attention of block 1 between nodes, \
                        in this block each node attends to itself alone\n";
        assert_eq!(attention(&labs, 0, 9), expected);
        let expected = "no connections to predict: no treatment is together with a diagnosis or lab\n";
        assert_eq!(predictions(&labs, 9), expected);
        let pair = explanation(&[
            NodeKind::Visit,
            NodeKind::Code(CodeKind::Treatment),
            NodeKind::Code(CodeKind::Lab),
        ]);
        let expected = "no connections predicted: every pair of codes has a probability below 0.5\n";
        assert_eq!(predictions(&pair, 9), expected);
    }

    #[test]
    fn what_there_is_to_show_is_a_table() {
        let mut explanation = explanation(&[NodeKind::Visit, NodeKind::Code(CodeKind::Diagnosis)]);
        explanation.structure.layers[0].matrix[1] = 0.5;
        explanation.answers.push(Answer { what: "died".into(), probability: 0.25, truth: Some(true) });
        let shown = attention(&explanation, 0, 9);
        assert!(shown.contains("0.5000") && !shown.contains("0.2500"), "one way, and no mean: {shown}");
        assert!(predictions(&explanation, 9).contains("died"));
    }
}
