"""Encounter lists and conditional probabilities of a long table of events: the peers of `gct prepare events --prior`.

    python reference/prepare_peers.py events DATASET EVENTS.parquet     make the table of a dataset folder
    python reference/prepare_peers.py duckdb EVENTS.parquet OUT
    python reference/prepare_peers.py polars EVENTS.parquet OUT
"""

import argparse
import json
import pathlib
import time

import duckdb

KINDS = ["diagnosis", "treatment", "lab"]
PAIRS = [("diagnosis", "treatment"), ("treatment", "lab")]
# Which subjects are in the training part is not what is compared: both peers take a cheap hash.
THREADS = 2


def events(dataset, out):
    """A row per encounter and code, as a hospital's warehouse has them."""
    parts = " union all ".join(
        f"select encounter_id, subject_id, '{kind}' as kind, unnest({kind}) as id from '{dataset}/encounters/*.parquet'"
        for kind in KINDS
    )
    duckdb.sql(f"set threads = {THREADS}")
    duckdb.sql(f"""
        copy (select e.encounter_id, e.subject_id, e.kind, v.code
              from ({parts}) e join '{dataset}/vocabulary.parquet' v on v.kind = e.kind and v.id = e.id)
        to '{out}' (format parquet, compression snappy)
    """)
    return duckdb.sql(f"select count(*) from '{out}'").fetchall()[0][0]


def with_duckdb(source, out):
    db = duckdb.connect()
    db.sql(f"set threads = {THREADS}")
    db.sql(f"""
        create table codes as
        select kind, code, row_number() over (partition by kind order by code) - 1 as id
        from (select distinct kind, code from '{source}')
    """)
    lists = ", ".join(f"coalesce(list(distinct id) filter (kind = '{kind}'), []) as {kind}" for kind in KINDS)
    db.sql(f"""
        create table encounters as
        select encounter_id, any_value(subject_id) as subject_id, hash(any_value(subject_id)) % 10 < 8 as training, {lists}
        from '{source}' join codes using (kind, code) group by encounter_id
    """)
    db.sql(f"copy encounters to '{out}/encounters.parquet' (format parquet, compression snappy)")
    for cause, effect in PAIRS:
        db.sql(f"""
            create or replace table pairs as
            select c, e, count(*) as n
            from (select c, unnest({effect}) as e from (select unnest({cause}) as c, {effect} from encounters where training))
            group by all
        """)
        for given in ("c", "e"):
            kind = cause if given == "c" else effect
            db.sql(f"""
                copy (select pairs.*, n / total as probability from pairs
                      join (select {given}, count(*) as total
                            from (select unnest({kind}) as {given} from encounters where training) group by {given})
                      using ({given}))
                to '{out}/{cause}_{effect}_given_{kind}.parquet' (format parquet, compression snappy)
            """)
    return db.sql("select count(*) from encounters").fetchall()[0][0]


def with_polars(source, out):
    import polars as pl

    table = pl.scan_parquet(source)
    codes = table.select("kind", "code").unique().collect().sort("kind", "code")
    codes = codes.with_columns((pl.int_range(pl.len()).over("kind")).cast(pl.UInt32).alias("id"))
    lists = [pl.col("id").filter(pl.col("kind") == kind).unique().alias(kind) for kind in KINDS]
    encounters = (
        table.join(codes.lazy(), on=["kind", "code"])
        .group_by("encounter_id")
        .agg(pl.col("subject_id").first(), *lists)
        .with_columns((pl.col("subject_id").hash() % 10 < 8).alias("training"))
        .collect(engine="streaming")
    )
    encounters.write_parquet(f"{out}/encounters.parquet", compression="snappy")
    training = encounters.lazy().filter("training")
    for cause, effect in PAIRS:
        pairs = (
            training.select(pl.col(cause).alias("c"), pl.col(effect).alias("e"))
            .explode("c")
            .explode("e")
            .group_by("c", "e")
            .len("n")
            .collect(engine="streaming")
        )
        for given, kind in (("c", cause), ("e", effect)):
            totals = training.select(pl.col(kind).alias(given)).explode(given).group_by(given).len("total").collect()
            pairs.join(totals, on=given).with_columns(probability=pl.col("n") / pl.col("total")).write_parquet(
                f"{out}/{cause}_{effect}_given_{kind}.parquet", compression="snappy"
            )
    return encounters.height


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["events", "duckdb", "polars"])
    parser.add_argument("source")
    parser.add_argument("out")
    args = parser.parse_args()
    if args.what == "events":
        print(json.dumps({"rows": events(args.source, args.out)}))
        return
    pathlib.Path(args.out).mkdir(parents=True, exist_ok=True)
    start = time.time()
    encounters = {"duckdb": with_duckdb, "polars": with_polars}[args.what](args.source, args.out)
    print(json.dumps({"encounters": encounters, "seconds": time.time() - start}))


if __name__ == "__main__":
    main()
