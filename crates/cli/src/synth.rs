//! `gct synth`: synthetic encounters with their true structure.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};
use gct::dataset::Manifest;
use gct::files::Overwrite;
use gct::ingest::synthetic::{Preset, Settings};
use gct::record::CodeKind;
use gct::synth::Findings;
use serde_json::json;

use crate::settings::{self, SettingsArguments};
use crate::terminal::{self, visible};

/// Generate synthetic encounters with known structure, as in the paper's Appendix A
#[derive(Args)]
#[command(after_help = "Examples:
  gct synth --out synthetic
  gct synth --out visits --preset appendix --visits 3
  gct synth --out hard --encounters 10000 --seed 7 --set labels.p_d1=0.02
  gct synth --show-config --preset appendix")]
pub(crate) struct Arguments {
    /// The dataset folder to make
    #[arg(long, value_name = "DIR", required_unless_present = "show_config")]
    out: Option<PathBuf>,

    /// Number of encounters [default: 50000]
    #[arg(long, value_name = "N")]
    encounters: Option<u64>,

    /// Mean number of visits of a patient, who then has a history, and the label `later` [default: 1]
    #[arg(long, value_name = "MEAN")]
    visits: Option<f64>,

    /// Seed of the generator [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Which constants to use for the diagnosis-treatment labels
    #[arg(long, value_enum, default_value = "paper")]
    preset: PresetName,

    #[command(flatten)]
    settings: SettingsArguments,

    /// Replace the folder if it is a dataset
    #[arg(long)]
    force: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum PresetName {
    /// p(d1) lowered so that both labels have about the 3.3 % that the paper states
    Paper,
    /// The appendix's constants as written; they give about 13 %
    Appendix,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    let settings = settings(arguments)?;
    settings.check()?;
    let Some(out) = arguments.out.as_deref().filter(|_| !arguments.settings.show_config) else {
        return Ok(terminal::print(&toml::to_string(&settings)?)?);
    };
    let start = Instant::now();
    let bar = terminal::progress(settings.encounters, "drawing encounters", quiet);
    let overwrite = if arguments.force { Overwrite::Replace } else { Overwrite::Refuse };
    let job = terminal::drawing(&bar, "measuring the ceiling, a few seconds");
    let result = gct::synth::run(&settings, out, overwrite, &job);
    bar.finish_and_clear();
    let (manifest, findings) = result?;
    let seconds = start.elapsed().as_secs_f64();

    if arguments.json {
        return Ok(terminal::print_json(&report(&manifest, &findings, seconds))?);
    }
    let mut text = format!(
        "{}: {} encounters, kept of {} drawn, in {seconds:.1} s\n",
        visible(out.display()),
        terminal::count(manifest.encounters),
        terminal::count(findings.raw_encounters),
    );
    for kind in CodeKind::OF_PAPER {
        text += &format!("{:<9} {:>6.2} per encounter\n", kind.name(), mean(&manifest, kind));
    }
    for (label, positives) in &findings.label_positives {
        let prevalence = *positives as f64 / manifest.encounters as f64;
        text += &format!("{label:<9} {:>8} of encounters\n", terminal::percent(Some(prevalence)));
    }
    text += &format!("next: gct inspect {}\n", visible(out.display()));
    Ok(terminal::print(&text)?)
}

fn settings(arguments: &Arguments) -> Result<Settings> {
    let preset = match arguments.preset {
        PresetName::Paper => Preset::Paper,
        PresetName::Appendix => Preset::Appendix,
    };
    let mut settings = settings::apply(&arguments.settings, &Settings::preset(preset))?;
    settings.encounters = arguments.encounters.unwrap_or(settings.encounters);
    settings.visits.mean = arguments.visits.unwrap_or(settings.visits.mean);
    settings.seed = arguments.seed.unwrap_or(settings.seed);
    Ok(settings)
}

fn mean(manifest: &Manifest, kind: CodeKind) -> f64 {
    manifest.codes[kind] as f64 / manifest.encounters as f64
}

fn report(manifest: &Manifest, findings: &Findings, seconds: f64) -> serde_json::Value {
    let prevalence: serde_json::Map<_, _> = (findings.label_positives.iter())
        .map(|(label, positives)| (label.clone(), json!(*positives as f64 / manifest.encounters as f64)))
        .collect();
    let mut report = json!({
        "encounters": manifest.encounters,
        "raw_encounters": findings.raw_encounters,
        "diagnoses_per_encounter": mean(manifest, CodeKind::Diagnosis),
        "treatments_per_encounter": mean(manifest, CodeKind::Treatment),
        "labs_per_encounter": mean(manifest, CodeKind::Lab),
        "label_prevalence": prevalence,
    });
    terminal::extend(&mut report, json!(findings.ceiling));
    report["seconds"] = json!(seconds);
    report
}
