use serde_json::json;

use super::{json, lines, prepare, write};

/// As CMS names and writes them: a claim in two segments, a person who dies, shards.
pub(super) const SYNPUF: [(&str, &str); 6] = [
    (
        "synpuf/DE1_0_2008_to_2010_Inpatient_Claims_Sample_1.csv",
        "DESYNPUF_ID,CLM_ID,SEGMENT,CLM_FROM_DT,CLM_THRU_DT,ADMTNG_ICD9_DGNS_CD,ICD9_DGNS_CD_1,ICD9_DGNS_CD_2,ICD9_DGNS_CD_10,ICD9_PRCDR_CD_1,ICD9_PRCDR_CD_2,HCPCS_CD_1,HCPCS_CD_45\n\
         00013D,101,1,20100312,20100313,4580,7802,,0380,,0066,,\n\
         00013D,101,2,,,,V4501,,,,,99213,\n\
         00013D,102,1,20100412,20100415,,7802,,,0066,,,\n\
         00016F,103,1,20090412,20090418,,486,,,,,,A0428\n",
    ),
    (
        "synpuf/DE1_0_2008_to_2010_Outpatient_Claims_Sample_1A.csv",
        "DESYNPUF_ID,CLM_ID,SEGMENT,CLM_FROM_DT,CLM_THRU_DT,ICD9_DGNS_CD_1,ICD9_PRCDR_CD_1,HCPCS_CD_1,ADMTNG_ICD9_DGNS_CD\n\
         00016F,201,1,20090901,20090901,V5841,,00102,\n",
    ),
    (
        "synpuf/DE1_0_2008_to_2010_Outpatient_Claims_Sample_1B.csv",
        "DESYNPUF_ID,CLM_ID,SEGMENT,CLM_FROM_DT,CLM_THRU_DT,ICD9_DGNS_CD_1,ICD9_PRCDR_CD_1,HCPCS_CD_1,ADMTNG_ICD9_DGNS_CD\n\
         00018A,202,1,20090901,20090901,V5841,,00102,\n",
    ),
    (
        "synpuf/DE1_0_2009_Beneficiary_Summary_File_Sample_1.csv",
        "DESYNPUF_ID,BENE_BIRTH_DT,BENE_DEATH_DT\n00013D,19230501,\n00016F,19430101,\n",
    ),
    (
        "synpuf/DE1_0_2010_Beneficiary_Summary_File_Sample_1.csv",
        "DESYNPUF_ID,BENE_BIRTH_DT,BENE_DEATH_DT\n00013D,19230501,20100415\n00016F,19430101,\n",
    ),
    (
        "synpuf/DE1_0_2008_to_2010_Prescription_Drug_Events_Sample_1.csv",
        "DESYNPUF_ID,PDE_ID,SRVC_DT,PROD_SRVC_ID\n00016F,1,20090413,00049398025\n00016F,2,20090513,00049398025\n",
    ),
];

#[test]
fn wide_claims_have_one_encounter_for_all_segments() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &SYNPUF);
    let counts = json(home.path(), "claims synpuf --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "101 of 00013D: ICD9DX:0380 ICD9DX:4580 ICD9DX:7802 ICD9DX:V4501 | HCPCS:99213 ICD9PROC:0066 | , readmission=true, mortality=false",
            "102 of 00013D: ICD9DX:7802 | ICD9PROC:0066 | , readmission=?, mortality=true",
            "103 of 00016F: ICD9DX:486 | HCPCS:A0428 | , readmission=false, mortality=false",
            "201 of 00016F: ICD9DX:V5841 | HCPCS:00102 | , readmission=?, mortality=false",
            "202 of 00018A: ICD9DX:V5841 | HCPCS:00102 | , readmission=?, mortality=?",
        ]
    );
    assert_eq!(counts["options"]["layout"], "wide");
    // Columns without a code are no events.
    assert_eq!((&counts["events_read"], &counts["events_dropped"]), (&json!(14), &json!({})));
}

#[test]
fn prescriptions_find_their_claims_by_date() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &SYNPUF);
    let counts = json(home.path(), "claims synpuf --prescriptions link_by_date --types inpatient --out data");
    assert_eq!(
        lines(&home.path().join("data"))[2],
        "103 of 00016F: ICD9DX:486 | HCPCS:A0428 NDC:00049398025 | , readmission=false, mortality=false"
    );
    assert_eq!(counts["dropped"], json!({"other_type": 2}));
    assert_eq!(counts["events_noted"], json!({"linked_by_date": 1}));
    assert_eq!(counts["events_dropped"], json!({"no_encounter": 1, "encounter_dropped": 4}));
    let upper = json(home.path(), "claims synpuf --types INPATIENT --dry-run");
    assert_eq!(upper["dropped"], json!({"other_type": 2}));
}

#[test]
fn a_single_file_is_what_its_name_or_its_columns_say() {
    let home = tempfile::tempdir().unwrap();
    let (name, wide) = SYNPUF[0];
    write(
        home.path(),
        &[
            SYNPUF[0],
            ("x.csv", &wide.replace("CLM_THRU_DT", "CLM_THRU_DT,CLM_ADMSN_DT").replace(",2010", ",,2010")),
        ],
    );
    let (_, outpatient) = SYNPUF[1];
    write(home.path(), &[("y.csv", outpatient), LINES[0]]);
    for (file, layout, types) in
        [(name, "wide", "inpatient"), ("y.csv", "wide", "outpatient"), (LINES[0].0, "long", "inpatient")]
    {
        for flags in [String::new(), format!("--layout {layout}")] {
            let counts = json(home.path(), &format!("claims {file} --dry-run --types {types} {flags}"));
            assert_eq!(counts["options"]["layout"], layout, "{file}");
            assert!(counts["encounters_kept"].as_u64() > Some(0), "{file}: {counts}");
        }
    }
}

/// A row per claim line.
const LINES: [(&str, &str); 2] = [
    (
        "long/claims.csv",
        "claim_id,subject_id,from_date,thru_date,type,code,code_type,value\n\
         c1,p1,2020-01-01,2020-01-03,Inpatient,I10,ICD-10-CM,\n\
         c1,p1,2020-01-01,2020-01-03,Inpatient,0016070,icd10pcs,\n\
         c1,p1,2020-01-01,2020-01-03,Inpatient,718-7,LOINC,\n\
         c2,p1,2020-02-03,2020-02-04,Inpatient,0010,ICD9DX,\n\
         c2,p1,2020-02-03,2020-02-04,Inpatient,00049398025,NDC,\n\
         c3,p2,2020-01-20,2020-01-21,Outpatient,I10,ICD10CM,\n\
         c3,p2,2020-01-20,2020-01-21,Outpatient,99213,CPT,\n\
         c3,p2,2020-01-20,2020-01-21,Outpatient,001,DRG,\n",
    ),
    ("long/beneficiaries.csv", "member_id,death_date\np1,2020-02-04\np2,2020-02-04\n"),
];

#[test]
fn long_claims_are_recognised_and_types_of_codes_say_what_they_are() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &LINES);
    let counts = json(home.path(), "claims long --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            // Admitted again after 31 days, and the claims go on until then.
            "c1 of p1: ICD10CM:I10 | ICD10PCS:0016070 | LOINC:718-7, readmission=false, mortality=false",
            "c2 of p1: ICD9DX:0010 | NDC:00049398025 | , readmission=?, mortality=true",
            "c3 of p2: ICD10CM:I10 | CPT:99213 | , readmission=?, mortality=false",
        ]
    );
    assert_eq!(counts["options"]["layout"], "long");
    assert_eq!(counts["events_dropped"], json!({"unknown_kind": 1}));
    // One file, and other types of codes.
    write(home.path(), &[("mine.csv", "name,system,kind\ndrg,MSDRG,treatment\nicd-10-cm,,diagnosis\n")]);
    json(home.path(), "claims long/claims.csv --table kinds=mine.csv --out other");
    assert_eq!(lines(&home.path().join("other")).len(), 1);
    assert!(
        lines(&home.path().join("other"))[0].starts_with("c3 of p2: I10 | MSDRG:001 | "),
        "{:?}",
        lines(&home.path().join("other"))
    );
}

#[test]
fn a_folder_without_claims_is_refused() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("rest/inpatients.csv", "a,b\n1,2\n")]);
    let output = prepare(home.path(), "claims rest --out data").assert().code(2).get_output().stderr.clone();
    assert_eq!(
        String::from_utf8(output).unwrap(),
        "error: rest has none of the tables `claims`, `inpatient`, `outpatient`; it has: inpatients\n\
         hint: is it `inpatients`? then say so: --table inpatient=inpatients\n"
    );
}

#[tokio::test]
async fn shards_and_tables_can_have_identifiers_of_different_types() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &SYNPUF[1..5]);
    let rows = "SELECT 101 AS \"CLM_ID\", '00013D' AS \"DESYNPUF_ID\", 20100412 AS \"CLM_FROM_DT\", 20100415 AS \"CLM_THRU_DT\", \
        '0380' AS \"ICD9_DGNS_CD_1\", CAST(NULL AS VARCHAR) AS \"ICD9_DGNS_CD_2\", '0066' AS \"ICD9_PRCDR_CD_1\"";
    super::write_parquet(&home.path().join("synpuf/x_inpatient_claims_1.parquet"), rows).await;
    json(home.path(), "claims synpuf --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "101 of 00013D: ICD9DX:0380 | ICD9PROC:0066 | , mortality=true",
            "201 of 00016F: ICD9DX:V5841 | HCPCS:00102 | , mortality=false",
            "202 of 00018A: ICD9DX:V5841 | HCPCS:00102 | , mortality=?",
        ]
    );
}
