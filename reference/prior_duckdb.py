"""The conditional probabilities of the training split in SQL: the peer of `gct prior`.

    python reference/prior_duckdb.py synthetic [--out prior.parquet]
"""

import argparse
import hashlib
import json
import time

import duckdb
import pyarrow as pa

CONDITIONALS = """
    with training as (
        select e.* from encounters e join split s using (encounter_id) where s.part = 'train'
    ), mentions as (
        select encounter_id, 'diagnosis' as kind, unnest(diagnosis) as id from training
        union all select encounter_id, 'treatment', unnest(treatment) from training
        union all select encounter_id, 'lab', unnest(lab) from training
    ), totals as (
        select kind, id, count(*) as total from mentions group by all
    ), pairs as (
        select a.kind as given_kind, a.id as given_id, b.kind, b.id, count(*) as count
        from mentions a join mentions b using (encounter_id)
        where (a.kind, b.kind) in
            (('diagnosis', 'treatment'), ('treatment', 'diagnosis'), ('treatment', 'lab'), ('lab', 'treatment'))
        group by all
    )
    select given_kind, given_id, pairs.kind, pairs.id, count, total as given_count, count / total as probability
    from pairs join totals on totals.kind = given_kind and totals.id = given_id
"""


def part(subject_id, seed=0):
    """Where a subject belongs, as docs/data.md says."""
    digest = hashlib.sha256(f"gct-split-1\0{seed}\0{subject_id}".encode()).digest()
    u = int.from_bytes(digest[:8], "big") / 2**64
    return "train" if u < 0.8 else "validation" if u < 0.9 else "test"


def conditionals(folder):
    """A relation with the columns of `gct prior --out`, without the names of codes."""
    db = duckdb.connect()
    db.sql(f"create table encounters as from '{folder}/encounters/*.parquet'")
    ids = db.sql("select encounter_id, subject_id from encounters").fetchall()
    split = [(encounter, part(subject)) for encounter, subject in ids]
    columns = {"encounter_id": [e for e, _ in split], "part": [p for _, p in split]}
    db.register("split", pa.table(columns))
    start = time.time()
    db.sql(f"create table prior as {CONDITIONALS}")
    return db, time.time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--out")
    args = parser.parse_args()
    db, seconds = conditionals(args.folder)
    if args.out:
        db.sql("from prior").write_parquet(args.out)
    ((rows,),) = db.sql("select count(*) from prior").fetchall()
    print(json.dumps({"pairs": rows // 2, "seconds": seconds}))


if __name__ == "__main__":
    main()
