//! What flags of other programs are called here: a tip for whoever gives one.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};

/// What to use instead of a flag, whose value is taken along.
#[derive(Clone, Copy)]
enum Instead {
    /// A setting, with `--set`.
    Setting(&'static str),
    /// A flag of another name.
    Flag(&'static str),
    /// A flag without a value.
    Switch(&'static str),
    /// Something else, in words.
    Words(&'static str),
}

use Instead::{Flag, Setting, Switch, Words};

/// Names of flags, the commands that they are given to, or none for all, and what these have instead. The
/// first row that fits counts.
type Row = (&'static [&'static str], &'static [&'static str], Instead);

/// The commands with settings of a training.
const TRAINING: &[&str] = &["train", "tune", "experiment"];

const ROWS: &[Row] = &[
    (&["lr", "learning-rate"], TRAINING, Setting("learning_rate")),
    (&["batch", "batch-size"], TRAINING, Setting("batch")),
    (&["patience", "early-stopping"], TRAINING, Setting("patience")),
    (&["clip", "grad-clip", "clip-norm", "max-grad-norm"], TRAINING, Setting("clip")),
    (&["warmup", "warmup-steps"], TRAINING, Setting("warmup")),
    (&["decay", "scheduler", "lr-scheduler"], TRAINING, Words("use --set decay=cosine, or decay=constant")),
    (&["validate-every", "eval-every", "eval-steps"], TRAINING, Setting("validate_every")),
    (
        &["width", "dim", "hidden-dim", "hidden-size", "embedding-dim", "d-model"],
        TRAINING,
        Setting("model.width"),
    ),
    (&["heads", "num-heads", "n-heads"], TRAINING, Setting("model.attention.heads")),
    (&["lambda", "reg", "regularization"], TRAINING, Setting("model.regularization")),
    (&["weight-decay", "l2", "wd"], TRAINING, Setting("weight_decay")),
    (&["label-smoothing", "smoothing"], TRAINING, Setting("label_smoothing")),
    (&["class-weight", "pos-weight", "scale-pos-weight"], TRAINING, Setting("class_weight")),
    (&["average", "ema", "ema-decay", "swa"], TRAINING, Setting("average")),
    (
        &["optimizer", "optim"],
        TRAINING,
        Words("the optimizer is Adam; with --set weight_decay=RATE it is AdamW"),
    ),
    (
        &["layers", "num-layers", "n-layers", "blocks", "depth"],
        TRAINING,
        Words(
            "use --set model.blocks=N, with gcn, gcn_p and gcn_random --set model.convolutions=N, with shallow \
             --set model.layers=N, with deep --set model.layers_before_sum=N",
        ),
    ),
    (
        &["dropout", "dropout-rate"],
        TRAINING,
        Words(
            "use --set model.dropout.mlp=RATE and --set model.dropout.post_mlp=RATE, with shallow, deep and mime \
             --set model.dropout=RATE",
        ),
    ),
    (
        &["epochs", "num-epochs", "max-epochs", "n-epochs"],
        &["experiment"],
        Words(
            "use --set steps=N: an epoch has as many steps as there are training encounters, divided by the setting \
             `batch`",
        ),
    ),
    (
        &["epochs", "num-epochs", "max-epochs", "n-epochs"],
        TRAINING,
        Words(
            "use --steps N: an epoch has as many steps as there are training encounters, divided by the setting \
             `batch`",
        ),
    ),
    (&["steps", "max-steps", "num-steps"], &["experiment"], Setting("steps")),
    (&["max-steps", "num-steps"], &[], Flag("steps")),
    (&["seed"], &["experiment"], Setting("seed")),
    (&["seed"], &["inspect", "split", "prior"], Flag("split-seed")),
    (&["split-seed"], &["tune"], Setting("split.seed")),
    (&["split-seed", "split-seeds"], &["experiment"], Words("the file's `split_seeds` says them")),
    (&["split-by"], TRAINING, Setting("split.by")),
    (&["stratify"], TRAINING, Setting("split.stratify")),
    (
        &["task", "tasks", "model", "models"],
        &["experiment"],
        Words("the file's `tasks` and `models` say them"),
    ),
    (&["n-trials", "num-trials"], &[], Flag("trials")),
    (&["time", "timeout", "max-time"], &["tune"], Flag("for")),
    (&["threshold"], &[], Words("gct predict has --threshold")),
    (&["top", "top-k", "k"], &["evaluate", "report"], Words("gct predict and gct explain have --top")),
    (&["top-k", "k"], &[], Flag("top")),
    (
        &["shap", "importance", "attribution", "attributions", "reasons"],
        &[],
        Words("gct explain says what each code does, and gct predict has --why"),
    ),
    (
        &["port", "host", "bind", "address"],
        &["serve"],
        Words("use --listen HOST:PORT, such as 127.0.0.1:8080"),
    ),
    (&["token", "api-key"], &["serve"], Words("use --token-file FILE: a command line is seen by others")),
    (
        &["device", "gpu", "gpus", "cuda", "accelerator"],
        &[],
        Words("there is only the CPU; --threads N says how many threads to use"),
    ),
    (&["jobs", "workers", "num-workers", "cores", "num-threads", "n-jobs"], &[], Flag("threads")),
    (&["reference", "indications"], &["evaluate"], Flag("links")),
    (&["dataset", "data-dir", "dataset-dir"], &[], Flag("data")),
    (&["output", "output-dir", "out-dir", "save-dir"], &[], Flag("out")),
    (&["overwrite", "replace", "yes"], &[], Switch("force")),
    (&["format", "output-format"], &[], Switch("json")),
    (&["num-encounters", "n-encounters", "samples", "num-samples"], &[], Flag("encounters")),
];

/// Adds what to use instead to the error of an unknown flag.
pub(crate) fn with_tip(mut error: Error) -> Error {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(tip) = tip(&error, &words) {
        // What is spelled alike means something else.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &Error, words: &[String]) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let root = crate::Arguments::command();
    let command = words.iter().find_map(|word| root.find_subcommand(word))?;
    let flag = unknown.split('=').next()?.strip_prefix("--")?.replace('_', "-");
    let value = value(unknown, words).unwrap_or("VALUE");
    let has = |flag: &str| {
        command.get_arguments().chain(root.get_arguments()).any(|argument| argument.get_long() == Some(flag))
    };
    let fits = |(flags, commands, instead): &&Row| {
        let is_there = match instead {
            Flag(name) | Switch(name) => has(name),
            Setting(_) | Words(_) => true,
        };
        let is_for_command = commands.is_empty() || commands.contains(&command.get_name());
        flags.contains(&flag.as_str()) && is_for_command && is_there
    };
    let (.., instead) = ROWS.iter().find(fits)?;
    Some(match instead {
        Setting(name) => format!("use --set {name}={value}"),
        Flag(name) => format!("use --{name} {value}"),
        Switch(name) => format!("use --{name}"),
        Words(words) => (*words).into(),
    })
}

/// The value that the flag was given.
fn value<'a>(flag: &str, words: &'a [String]) -> Option<&'a str> {
    let (flag, _) = flag.split_once('=').unwrap_or((flag, ""));
    let position = words.iter().position(|word| word.split('=').next() == Some(flag))?;
    match words[position].split_once('=') {
        Some((_, value)) => Some(value),
        None => words.get(position + 1).map(String::as_str).filter(|next| !next.starts_with("--")),
    }
}

#[cfg(test)]
mod tests {
    use gct::question::Question;
    use gct::run::Settings;

    use super::*;

    /// What other programs call it must not lead to something that is not there.
    #[test]
    fn what_is_suggested_exists() {
        let settings = Settings::paper(Question::HiddenDiagnosis, "gct", gct::synth::SOURCE).unwrap();
        let settings = toml::Value::Table(gct::overrides::table(&settings));
        let root = crate::Arguments::command();
        let is_flag = |flag: &str| {
            let mut arguments = root.get_subcommands().chain([&root]).flat_map(clap::Command::get_arguments);
            arguments.any(|argument| argument.get_long() == Some(flag))
        };
        for (flags, commands, instead) in ROWS {
            assert!(commands.iter().all(|command| root.find_subcommand(command).is_some()), "{commands:?}");
            match instead {
                // The one setting that is not there unless it is given.
                Setting("split.stratify") | Words(_) => {}
                Setting(name) => {
                    let found = name.split('.').try_fold(&settings, |settings, key| settings.get(key));
                    assert!(found.is_some(), "{flags:?}: {name}");
                }
                Flag(name) | Switch(name) => assert!(is_flag(name), "{flags:?}: {name}"),
            }
        }
    }
}
