//! The tables of every source, with what their columns hold.

/// What a column of a random table holds.
#[derive(Clone, Copy)]
pub(super) enum Holds {
    /// The number of the row.
    Key,
    /// An identifier among so many, sometimes one that no table has.
    Of(u32),
    /// Text among these.
    Word(&'static [&'static str]),
    /// A day, sometimes with a time, sometimes none, sometimes nonsense.
    Time,
    /// A number, sometimes none, sometimes nonsense.
    Number,
    Integer,
}

use Holds::{Integer, Key, Number, Of, Time, Word};

/// A table: its file, how many rows it has at most, and its columns.
pub(super) type Shape = (&'static str, u32, &'static [(&'static str, Holds)]);

pub(super) const CODES: &[&str] = &["A", "B", "B", "C", "C", "C", "D", "E", "", "F G", "ä", "0010"];

/// Tables of MIMIC, with the columns of both versions.
const MIMIC: &[Shape] = &[
    (
        "admissions.csv",
        40,
        &[
            ("hadm_id", Key),
            ("subject_id", Of(15)),
            ("admittime", Time),
            ("dischtime", Time),
            ("deathtime", Time),
            ("admission_type", Word(&["ELECTIVE", "URGENT", ""])),
            ("admission_location", Word(&["CLINIC", "", "?"])),
            ("race", Word(&["WHITE", "UNKNOWN", ""])),
            ("hospital_expire_flag", Word(&["0", "0", "1", ""])),
        ],
    ),
    (
        "icustays.csv",
        40,
        &[("stay_id", Key), ("subject_id", Of(15)), ("hadm_id", Of(40)), ("intime", Time), ("outtime", Time)],
    ),
    (
        "patients.csv",
        15,
        &[
            ("subject_id", Of(15)),
            ("dod", Time),
            ("gender", Word(&["F", "M", ""])),
            ("anchor_age", Integer),
            ("anchor_year", Word(&["2020", "2019", ""])),
            ("dob", Time),
        ],
    ),
    (
        "diagnoses_icd.csv",
        60,
        &[
            ("subject_id", Of(15)),
            ("hadm_id", Of(40)),
            ("icd_code", Word(CODES)),
            ("icd9_code", Word(&["", "", "0389"])),
            ("icd_version", Word(&["9", "10", "11", ""])),
        ],
    ),
    (
        "procedures_icd.csv",
        60,
        &[
            ("subject_id", Of(15)),
            ("hadm_id", Of(40)),
            ("chartdate", Time),
            ("icd_code", Word(CODES)),
            ("icd9_code", Word(&["", "", "0066"])),
            ("icd_version", Word(&["9", "10", ""])),
        ],
    ),
    (
        "prescriptions.csv",
        60,
        &[
            ("subject_id", Of(15)),
            ("hadm_id", Of(40)),
            ("starttime", Time),
            ("drug", Word(CODES)),
            ("ndc", Word(&["0", "", "00002831501"])),
        ],
    ),
    (
        "labevents.csv",
        150,
        &[
            ("subject_id", Of(15)),
            ("hadm_id", Word(&["", "", "1", "2", "3", "99999"])),
            ("itemid", Word(&["50931", "50971", "51486", ""])),
            ("charttime", Time),
            ("valuenum", Number),
        ],
    ),
    ("d_labitems.csv", 9, &[("itemid", Word(&["50931", "50971"])), ("label", Word(CODES))]),
];

/// The sources that read tables; with options that lead through their branches.
pub(super) const SOURCES: &[(&str, &[&str], &[Shape])] = &[
    (
        "eicu",
        &["", "labs=true,medications=true", "labs=true,observe_hours=24", "rules=paper"],
        &[
            (
                "patient.csv",
                40,
                &[
                    ("patientunitstayid", Key),
                    ("patienthealthsystemstayid", Of(9)),
                    ("uniquepid", Of(15)),
                    ("hospitaladmitoffset", Integer),
                    ("unitdischargeoffset", Integer),
                    ("unitdischargestatus", Word(&["Alive", "Expired", ""])),
                    ("age", Word(&["> 89", "64", "", "old"])),
                    ("gender", Word(&["Male", "Unknown", ""])),
                    ("unitvisitnumber", Integer),
                    ("admissionweight", Number),
                    ("hospitaldischargestatus", Word(&["Alive", "Expired", ""])),
                ],
            ),
            (
                "admissiondx.csv",
                60,
                &[
                    ("patientunitstayid", Of(40)),
                    ("admitdxenteredoffset", Integer),
                    ("admitdxpath", Word(CODES)),
                ],
            ),
            (
                "diagnosis.csv",
                60,
                &[
                    ("patientunitstayid", Of(40)),
                    ("diagnosisoffset", Integer),
                    ("diagnosisstring", Word(CODES)),
                ],
            ),
            (
                "treatment.csv",
                90,
                &[
                    ("patientunitstayid", Of(40)),
                    ("treatmentoffset", Integer),
                    ("treatmentstring", Word(CODES)),
                ],
            ),
            (
                "medication.csv",
                60,
                &[
                    ("patientunitstayid", Of(40)),
                    ("drugstartoffset", Integer),
                    ("drugordercancelled", Word(&["Yes", "No", ""])),
                    ("drugname", Word(CODES)),
                ],
            ),
            (
                "lab.csv",
                90,
                &[
                    ("patientunitstayid", Of(40)),
                    ("labresultoffset", Integer),
                    ("labname", Word(CODES)),
                    ("labresult", Number),
                ],
            ),
        ],
    ),
    (
        "mimic4",
        &[
            "",
            "encounters=icu",
            "observe_hours=48",
            "encounters=icu,observe_hours=12,billed=keep,drugs=ndc",
            "after_discharge=keep,drugs=none",
        ],
        MIMIC,
    ),
    ("mimic3", &["", "encounters=icu", "labs=none,readmission=unplanned"], MIMIC),
    (
        "meds",
        &["encounters=visit", "encounters=admission", "encounters=gap", "encounters=icu,vitals=labs"],
        &[(
            "data.csv",
            200,
            &[
                ("subject_id", Of(9)),
                ("time", Time),
                (
                    "code",
                    Word(&[
                        "ADMISSION",
                        "DISCHARGE",
                        "ICD10CM/A",
                        "ICD10CM/B",
                        "RxNorm/1",
                        "LOINC/2",
                        "LOINC/8867-4",
                        "ICU_ADMISSION",
                        "ICU_DISCHARGE",
                        "MEDICATION//a//Administered",
                        "MEDICATION//a//Not Given",
                        "x",
                        "GENDER//F",
                        "MEDS_BIRTH",
                        "ADMISSION//URGENT",
                    ]),
                ),
                ("numeric_value", Number),
                ("hadm_id", Of(5)),
            ],
        )],
    ),
    (
        "synthea",
        &[
            "",
            "observations=all",
            "observations=none",
            "classes=Inpatient,readmission=acute",
            "onset=SNOMED:A,readmission_days=7",
        ],
        &[
            (
                "encounters.csv",
                40,
                &[
                    ("Id", Key),
                    ("START", Time),
                    ("STOP", Time),
                    ("PATIENT", Of(15)),
                    ("ENCOUNTERCLASS", Word(&["inpatient", "wellness", ""])),
                ],
            ),
            (
                "patients.csv",
                15,
                &[("Id", Key), ("DEATHDATE", Time), ("BIRTHDATE", Time), ("GENDER", Word(&["F", ""]))],
            ),
            (
                "conditions.csv",
                60,
                &[
                    ("START", Time),
                    ("ENCOUNTER", Of(40)),
                    ("CODE", Word(CODES)),
                    ("DESCRIPTION", Word(CODES)),
                ],
            ),
            (
                "procedures.csv",
                60,
                &[("DATE", Time), ("ENCOUNTER", Of(40)), ("CODE", Word(CODES)), ("REASONCODE", Word(CODES))],
            ),
            (
                "medications.csv",
                60,
                &[("START", Time), ("ENCOUNTER", Of(40)), ("CODE", Word(CODES)), ("REASONCODE", Word(CODES))],
            ),
            (
                "observations.csv",
                60,
                &[
                    ("ENCOUNTER", Of(40)),
                    ("DATE", Time),
                    ("CODE", Word(CODES)),
                    ("VALUE", Number),
                    ("TYPE", Word(&["numeric", "text", ""])),
                    ("CATEGORY", Word(&["laboratory", "vital-signs", ""])),
                ],
            ),
        ],
    ),
    (
        "omop",
        &[
            "",
            "link_by_date=true",
            "visits=inpatient",
            "concepts=source,unmapped=drop",
            "cohort=cohort,within=0..90",
            "onset=*,prevalent=keep,readmission=unplanned",
        ],
        &[
            (
                "visit_occurrence.csv",
                40,
                &[
                    ("visit_occurrence_id", Key),
                    ("person_id", Of(15)),
                    ("visit_concept_id", Word(&["9201", "262", "9202", ""])),
                    ("visit_start_date", Time),
                    ("visit_end_date", Time),
                    ("visit_end_datetime", Time),
                ],
            ),
            (
                "condition_occurrence.csv",
                60,
                &[
                    ("person_id", Of(15)),
                    ("visit_occurrence_id", Of(40)),
                    ("condition_concept_id", Word(&["1", "2", "0", "", "x"])),
                    ("condition_start_date", Time),
                    ("condition_source_value", Word(CODES)),
                ],
            ),
            (
                "procedure_occurrence.csv",
                60,
                &[
                    ("person_id", Of(15)),
                    ("visit_occurrence_id", Of(40)),
                    ("procedure_concept_id", Word(&["1", "2", "0", ""])),
                    ("procedure_datetime", Time),
                    ("procedure_source_value", Word(CODES)),
                ],
            ),
            (
                "measurement.csv",
                60,
                &[
                    ("person_id", Of(15)),
                    ("visit_occurrence_id", Of(40)),
                    ("measurement_concept_id", Word(&["1", "2", "0", ""])),
                    ("measurement_date", Time),
                    ("value_as_number", Number),
                    ("value_as_concept_id", Word(&["7", "0", ""])),
                ],
            ),
            (
                "person.csv",
                15,
                &[
                    ("person_id", Of(15)),
                    ("gender_concept_id", Word(&["8507", "8532", "0", ""])),
                    ("year_of_birth", Word(&["1950", "2020", "0", ""])),
                    ("birth_datetime", Time),
                    ("race_concept_id", Word(&["8527", "7", ""])),
                ],
            ),
            ("death.csv", 9, &[("person_id", Of(15)), ("death_date", Time)]),
            ("observation_period.csv", 9, &[("person_id", Of(15)), ("observation_period_end_date", Time)]),
            (
                "cohort.csv",
                30,
                &[
                    ("cohort_definition_id", Word(&["1", "2"])),
                    ("subject_id", Of(15)),
                    ("cohort_start_date", Time),
                    ("cohort_end_date", Time),
                ],
            ),
        ],
    ),
    (
        "claims",
        &["", "types=INPATIENT", "prescriptions=link_by_date"],
        &[
            (
                "claims.csv",
                120,
                &[
                    ("claim_id", Of(40)),
                    ("subject_id", Word(&["s"])),
                    ("from_date", Time),
                    ("thru_date", Time),
                    ("claim_type", Word(&["Inpatient", "outpatient", ""])),
                    ("code", Word(CODES)),
                    ("code_type", Word(&["ICD10CM", "icd-10-pcs", "LOINC", "CPT", "DRG", ""])),
                    ("value", Number),
                ],
            ),
            ("prescription.csv", 40, &[("subject_id", Word(&["s"])), ("date", Time), ("code", Word(CODES))]),
            (
                "beneficiary.csv",
                9,
                &[
                    ("subject_id", Word(&["s", "t"])),
                    ("death_date", Time),
                    ("birth_date", Time),
                    ("sex", Word(&["1", "2", ""])),
                ],
            ),
        ],
    ),
    (
        "events",
        &["", "onset=A,within=0..9", "onset=*,prevalent=keep"],
        &[
            (
                "events.csv",
                150,
                &[
                    ("encounter_id", Of(40)),
                    ("subject_id", Word(&["s"])),
                    ("kind", Word(&["dx", "rx", "lab", "context", "other", ""])),
                    ("code", Word(CODES)),
                    ("time", Time),
                    ("numeric_value", Number),
                ],
            ),
            (
                "encounters.csv",
                40,
                &[("encounter_id", Key), ("start", Time), ("end", Time), ("prediction_time", Time)],
            ),
            ("links.csv", 60, &[("encounter_id", Of(40)), ("cause", Word(CODES)), ("effect", Word(CODES))]),
        ],
    ),
];
