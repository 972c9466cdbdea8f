//! Damaged input is refused or counted, whatever the damage: no panic, no value in a message.
//! `GCT_FUZZ_SECONDS=600` looks longer.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use gct::job::Job;
use gct_prepare::{Request, Source};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::write;

const SECRET: &str = "PATIENT-4711";

/// Valid tables of a source, to be damaged.
struct Base {
    source: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
}

fn bases() -> Vec<Base> {
    let patient = format!(
        "patientunitstayid,patienthealthsystemstayid,uniquepid,hospitaladmitoffset,unitdischargeoffset,unitdischargestatus,hospitaldischargestatus\n\
         11,1,{SECRET},-10,600,Alive,Expired\n12,1,{SECRET},-2000,1441,Alive,Expired\n21,2,p2,0,1440,Expired,Expired\n"
    );
    let events: String = (0..200)
        .map(|row| {
            let kind = ["dx", "rx", "lab"][row % 3];
            format!(
                "{},{SECRET}{},{kind},C{},2020-01-0{},{}\n",
                row / 7,
                row / 20,
                row % 11,
                row % 9 + 1,
                row as f64 / 3.0
            )
        })
        .collect();
    let events = format!("encounter_id,subject_id,kind,code,time,numeric_value\n{events}");
    let meds: String = (0..60)
        .map(|row| {
            let code = ["ADMISSION", "ICD10CM/A", "RxNorm/1", "LOINC/2", "DISCHARGE"][row % 5];
            format!(
                "{},2020-01-{:02}T0{}:00:00,{code},{row}.5,{}\n",
                row as i64 / 20 - 1,
                row / 3 + 1,
                row % 10,
                row / 10
            )
        })
        .collect();
    let meds = format!("subject_id,time,code,numeric_value,visit_id\n{meds}");
    let labels = "subject_id,prediction_time,boolean_value\n-1,2020-01-05,true\n0,2020-01-15,false\n1,2020-01-18,true\n";
    let splits = "subject_id,split\n-1,train\n0,tuning\n1,held_out\n";
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    gzip.write_all(events.as_bytes()).unwrap();
    vec![
        Base {
            source: "eicu",
            files: vec![
                ("patient.csv", patient.into_bytes()),
                (
                    "admissiondx.csv",
                    b"patientunitstayid,admitdxenteredoffset,admitdxpath\n11,5,a|b\n12,6,a|c\n".to_vec(),
                ),
                (
                    "diagnosis.csv",
                    b"patientunitstayid,diagnosisoffset,diagnosisstring\n11,5,x\n12,6,y\n21,1,\"q\"\n"
                        .to_vec(),
                ),
                (
                    "treatment.csv",
                    b"patientunitstayid,treatmentoffset,treatmentstring\n11,5,t\n12,6,u\n21,7,t\n".to_vec(),
                ),
            ],
        },
        Base { source: "events", files: vec![("events.csv", events.clone().into_bytes())] },
        Base { source: "events", files: vec![("events.csv.gz", gzip.finish().unwrap())] },
        Base { source: "events", files: vec![("events.parquet", parquet(&events))] },
        Base {
            source: "meds",
            files: vec![
                ("data.csv", meds.into_bytes()),
                ("labels.csv", labels.into()),
                ("subject_splits.csv", splits.into()),
            ],
        },
    ]
}

/// The events as Parquet.
fn parquet(events: &str) -> Vec<u8> {
    use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
    let rows: Vec<Vec<&str>> = events.lines().map(|line| line.split(',').collect()).collect();
    let column = |index: usize| -> ArrayRef {
        std::sync::Arc::new(rows[1..].iter().map(|row| Some(row[index])).collect::<StringArray>())
    };
    let columns = rows[0].iter().enumerate().map(|(index, name)| ((*name).to_owned(), column(index)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = vec![];
    let mut writer =
        datafusion::parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// Things that readers stumble over.
const ODD: [&[u8]; 14] = [
    b"\"",
    b",",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"-9223372036854775808",
    b"1e400",
    b"NaN",
    b"'",
    b"$x",
    b"9999-99-99",
    b"\xf0\x9f\x92\x8a",
];

fn damage(bytes: &mut Vec<u8>, random: &mut Xoshiro256PlusPlus) {
    for _ in 0..random.random_range(1..6) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..40)).min(bytes.len());
        match random.random_range(0..7) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => drop(bytes.splice(at..at, ODD[random.random_range(0..ODD.len())].iter().copied())),
        }
    }
}

#[test]
fn damaged_tables_are_refused_or_counted() {
    let seconds = std::env::var("GCT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed = std::env::var("GCT_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (bases, end) = (bases(), Instant::now() + Duration::from_secs(seconds));
    let mut tried = 0;
    while Instant::now() < end {
        let base = &bases[random.random_range(0..bases.len())];
        let victim = random.random_range(0..base.files.len());
        let home = tempfile::tempdir().unwrap();
        let mut damaged = vec![];
        for (index, (name, bytes)) in base.files.iter().enumerate() {
            let mut bytes = bytes.clone();
            if index == victim {
                damage(&mut bytes, &mut random);
                damaged.clone_from(&bytes);
            }
            write(home.path(), &[]);
            std::fs::write(home.path().join(name), bytes).unwrap();
        }
        if let Err(said) = attempt(base.source, home.path()) {
            let kept = std::env::temp_dir().join(base.files[victim].0);
            std::fs::write(&kept, damaged).unwrap();
            panic!(
                "after {tried} of seed {seed}, with {} kept as {}: {said}",
                base.files[victim].0,
                kept.display()
            );
        }
        tried += 1;
    }
    assert!(tried > 0);
}

/// Prepares what is there, and says what should not have happened.
fn attempt(source: &str, folder: &Path) -> Result<(), String> {
    let source = Source::builtin().into_iter().find(|known| known.name == source).unwrap();
    let folder = folder.display().to_string();
    let request = Request::new(source, &folder, None, Vec::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let prepared = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(gct_prepare::prepare(&request, None, &Job::silent()))
    }));
    let said = match prepared {
        Err(_) => return Err("it panicked".into()),
        Ok(Ok(summary)) => summary.json(0).to_string(),
        Ok(Err(error)) => format!("{error} {}", error.hint()),
    };
    if said.contains("not foreseen") || said.contains("computation failed") {
        return Err(said);
    }
    // Its own path, and codes of the dataset, are no values of patients.
    if said.replace(&folder, "").contains(SECRET) { Err(format!("a value is in: {said}")) } else { Ok(()) }
}
