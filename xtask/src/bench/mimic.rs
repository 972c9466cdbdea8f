//! `cargo xtask bench mimic`: tables with the shapes of MIMIC-IV, made at random, as a dataset.
//!
//! Labs are nearly all of its rows, and many name no admission: they must stream past the admissions.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

use super::measure;
use crate::{cargo, execute, root, target};

/// As many as the real tables have; they have sixteen times as many labs.
const ADMISSIONS: u32 = 500_000;
const LABS_OF_ADMISSION: u32 = 20;
const DIAGNOSES_OF_ADMISSION: u32 = 11;
const DRUGS_OF_ADMISSION: u32 = 20;

/// The most memory that it may take.
const MEGABYTES: f64 = 1500.0;

pub(super) fn run(json_file: Option<&Path>) -> Result<bool> {
    execute(cargo().args(["build", "--release", "--locked", "--package", "gct-prepare"]))?;
    let home = tempfile::tempdir()?;
    write_tables(&home.path().join("hosp"))?;
    let line = "mimic4 . --out prepared --threads 2 --json --quiet";
    let mut command = Command::new(target().join("release/gct-prepare"));
    let measured = measure(command.current_dir(home.path()).args(line.split_whitespace()))?;
    let labs = ADMISSIONS * LABS_OF_ADMISSION;
    let met = measured.peak_mb < MEGABYTES;
    println!(
        "{labs} labs of {ADMISSIONS} admissions: {:.1} s, {:.0} MB, at most {MEGABYTES} MB{}",
        measured.seconds,
        measured.peak_mb,
        if met { "" } else { "  MISSED" }
    );
    if let Some(path) = json_file {
        let (seconds, peak_mb) = (measured.seconds, measured.peak_mb);
        let report = json!({ "labs": labs, "seconds": seconds, "peak_mb": peak_mb, "bars_met": met });
        fs::write(root().join(path), format!("{report:#}\n"))?;
    }
    Ok(met)
}

/// The tables of the folder `hosp` that have most rows.
struct Tables {
    patients: BufWriter<File>,
    admissions: BufWriter<File>,
    diagnoses: BufWriter<File>,
    prescriptions: BufWriter<File>,
    labs: BufWriter<File>,
}

fn write_tables(folder: &Path) -> Result<()> {
    fs::create_dir(folder)?;
    let table = |name: &str, header: &str| -> Result<BufWriter<File>> {
        let mut file = BufWriter::new(File::create(folder.join(name).with_extension("csv"))?);
        writeln!(file, "{header}")?;
        Ok(file)
    };
    let mut tables = Tables {
        patients: table("patients", "subject_id,gender,anchor_age,anchor_year,anchor_year_group,dod")?,
        admissions: table(
            "admissions",
            "subject_id,hadm_id,admittime,dischtime,deathtime,admission_type,hospital_expire_flag",
        )?,
        diagnoses: table("diagnoses_icd", "subject_id,hadm_id,seq_num,icd_code,icd_version")?,
        prescriptions: table("prescriptions", "subject_id,hadm_id,starttime,stoptime,drug_type,drug,ndc")?,
        labs: table(
            "labevents",
            "labevent_id,subject_id,hadm_id,specimen_id,itemid,charttime,storetime,value,valuenum,valueuom",
        )?,
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    for admission in 0..ADMISSIONS {
        tables.admission(admission, &mut random)?;
    }
    for mut file in [tables.patients, tables.admissions, tables.diagnoses, tables.prescriptions, tables.labs]
    {
        file.flush()?;
    }
    Ok(())
}

impl Tables {
    /// An admission of a few days, and what is recorded in it; a subject has two or three.
    fn admission(&mut self, number: u32, random: &mut Xoshiro256PlusPlus) -> Result<()> {
        let (subject, admission) = (10_000_000 + number * 2 / 5, 20_000_000 + number);
        if number == 0 || (number - 1) * 2 / 5 < number * 2 / 5 {
            let (sex, age) = (if random.random_bool(0.5) { 'F' } else { 'M' }, random.random_range(18..=91));
            writeln!(self.patients, "{subject},{sex},{age},2110,2008 - 2010,")?;
        }
        // One every 40 days, so that those of a subject do not overlap.
        let start = number % 900 * 40;
        let days = random.random_range(1..20);
        let died = u8::from(random.random_bool(0.02));
        let (begin, end) = (moment(start, 0), moment(start + days, 0));
        writeln!(self.admissions, "{subject},{admission},{begin},{end},,EW EMER.,{died}")?;
        for sequence in 1..=DIAGNOSES_OF_ADMISSION {
            let code = skewed(20_000, random);
            writeln!(self.diagnoses, "{subject},{admission},{sequence},C{code:05},10")?;
        }
        for _ in 0..DRUGS_OF_ADMISSION {
            let (drug, time) = (skewed(5_000, random), moment(start, random.random_range(0..days * 1440)));
            writeln!(self.prescriptions, "{subject},{admission},{time},,MAIN,Drug {drug},{drug:011}")?;
        }
        for _ in 0..LABS_OF_ADMISSION {
            let (item, value) = (50_800 + skewed(900, random), random.random_range(0..3000));
            // Half of them name no admission, and some of these are in none.
            let named = if random.random_bool(0.5) { admission.to_string() } else { String::new() };
            let late = if named.is_empty() { 5 * 1440 } else { 0 };
            let time = moment(start, random.random_range(0..days * 1440 + late));
            let value = f64::from(value) / 10.0;
            writeln!(self.labs, "1,{subject},{named},1,{item},{time},{time},{value},{value},mg/dL")?;
        }
        Ok(())
    }
}

/// A number below another, small ones more often than large ones.
fn skewed(below: u32, random: &mut Xoshiro256PlusPlus) -> u32 {
    (f64::from(below) * random.random::<f64>().powi(3)) as u32
}

/// The time so many days after the first of January 2110, in months of 28 days, and so many minutes.
fn moment(day: u32, minute: u32) -> String {
    let (day, minute) = (day + minute / 1440, minute % 1440);
    let (year, month, day) = (2110 + day / 336, day / 28 % 12 + 1, day % 28 + 1);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:00", minute / 60, minute % 60)
}
