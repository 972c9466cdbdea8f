//! The query engine with what all queries share: a memory limit, a folder for what lies between two steps,
//! progress, and a stop.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, SchemaRef, UInt64Type};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::TableProvider;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::format_as_file_type;
use datafusion::datasource::file_format::parquet::ParquetFormatFactory;
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::{ParquetReadOptions, SQLOptions, SessionConfig, SessionContext};
use futures::TryStreamExt;
use gct::files::TemporaryFolder;
use gct::job::Job;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::functions;

/// Encounters per row group: what a reader of the result holds in memory at a time.
const ROW_GROUP: usize = 32_768;

/// Rows per row group of what is kept between two steps: a writer holds one, and lists of codes are long.
const KEPT_ROW_GROUP: usize = 16_384;

/// Bytes that the program takes before it reads anything.
const PROGRAM: usize = 30 << 20;

/// With less, not even small tables can be done.
const LEAST_POOL: usize = 64 << 20;

/// More shares would read the same rows too often.
const MOST_SHARES: u64 = 64;

/// How often progress is told, and a wish to stop is heard.
const TICK: Duration = Duration::from_millis(100);

/// How far a step has come.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What is being done.
    pub step: String,
    /// How many rows have been read for it.
    pub rows: u64,
    /// How many there are, where that is known.
    pub total: Option<u64>,
}

/// How much the engine may take.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Bytes of memory, if not three quarters of what is free; what does not fit goes to disk.
    pub memory: Option<usize>,
    /// Threads, if not all.
    pub threads: Option<usize>,
    /// Encounters in a part of the dataset, if not [`gct::dataset::ENCOUNTERS_PER_PART`].
    pub encounters_per_part: Option<u64>,
}

/// A session of the query engine.
pub(crate) struct Engine<'a> {
    pub(crate) context: SessionContext,
    work: TemporaryFolder,
    job: &'a Job<'a, Progress>,
    limits: Limits,
    /// Bytes of memory that queries may hold.
    pool: Option<usize>,
    /// The most bytes that there were in that folder.
    peak: AtomicU64,
    /// The user's Parquet files, each as a table of its own: one of them is the reason when a query fails.
    parquet: Mutex<Vec<(String, Arc<dyn TableProvider>)>>,
}

impl<'a> Engine<'a> {
    /// Begins a session that keeps what lies between two steps in a new folder inside of `beside`.
    pub(crate) fn new(limits: Limits, beside: &Path, job: &'a Job<'a, Progress>) -> Result<Self> {
        let work = TemporaryFolder::inside(beside)?;
        let spill = work.path().join("spill");
        std::fs::create_dir(&spill).map_err(|error| Error::Input {
            path: spill.display().to_string(),
            problem: error.to_string(),
        })?;

        let mut config = SessionConfig::new().with_information_schema(false);
        if let Some(threads) = limits.threads {
            config = config.with_target_partitions(threads);
        }
        let options = config.options_mut();
        // What gct reads, and fast enough for what is read once.
        options.execution.parquet.compression = Some("snappy".into());
        options.execution.parquet.max_row_group_size = ROW_GROUP * 4;
        options.execution.parquet.pushdown_filters = false;
        // A join that filters what it will be joined with, while the query runs, lost rows in version 55.2.
        // The field of this name switches nothing off by itself: setting it by its key does, for joins too.
        options.set("datafusion.optimizer.enable_dynamic_filter_pushdown", "false")?;
        // Names are compared as the views spell them.
        options.sql_parser.enable_ident_normalization = true;
        let runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(
            DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![spill])),
        );
        let pool = limits.memory.map(pool_of).or_else(available);
        let runtime = match pool {
            Some(bytes) => runtime.with_memory_pool(Arc::new(TrackConsumersPool::new(
                FairSpillPool::new(bytes),
                std::num::NonZeroUsize::MIN,
            ))),
            None => runtime.with_memory_pool(Arc::new(UnboundedMemoryPool::default())),
        };
        let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
        functions::register(&context);
        Ok(Engine { context, work, job, limits, pool, peak: AtomicU64::new(0), parquet: Mutex::default() })
    }

    /// The path of a file between two steps.
    pub(crate) fn temporary_path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// Deletes the rows that were kept under a name, once no query needs them.
    pub(crate) fn forget(&self, name: &str) -> Result<()> {
        self.context.deregister_table(name)?;
        let path = self.temporary_path(name);
        std::fs::remove_dir_all(&path).map_err(|error| Error::system("remove", &path, error))
    }

    /// Where temporary files are, and how many bytes of them there were at most.
    pub(crate) fn temporary(&self) -> Temporary {
        let folder = self.work.path().parent().unwrap_or(self.work.path()).to_owned();
        Temporary { folder, bytes: self.peak.load(Ordering::Relaxed) }
    }

    /// Bytes that this program may hold while a query runs.
    pub(crate) fn room(&self) -> usize {
        self.pool.map_or(usize::MAX, |pool| pool / 2)
    }

    /// In how many shares to do what holds so many bytes at once.
    pub(crate) fn shares(&self, bytes: u64) -> u64 {
        self.pool.map_or(1, |pool| bytes.div_ceil(pool.max(1) as u64).clamp(1, MOST_SHARES))
    }

    /// Looks how much disk is taken.
    fn weigh(&self) {
        self.peak.fetch_max(bytes_in(self.work.path()), Ordering::Relaxed);
    }

    /// Plans a query of somebody else: nothing that writes or changes anything.
    pub(crate) async fn foreign_sql(&self, sql: &str) -> Result<DataFrame, DataFusionError> {
        let only_queries =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        self.context.sql_with_options(sql, only_queries).await
    }

    /// Plans a query.
    pub(crate) async fn sql(&self, sql: &str) -> Result<DataFrame> {
        Ok(self.context.sql(sql).await?)
    }

    /// Gives a query a name that other queries can use.
    pub(crate) fn view(&self, name: &str, frame: DataFrame) -> Result<()> {
        self.context.deregister_table(name)?;
        self.context.register_table(name, frame.into_view())?;
        Ok(())
    }

    /// Gives a table without rows a name, so that queries can be planned.
    pub(crate) fn outline(&self, name: &str, schema: SchemaRef) -> Result<()> {
        self.context.deregister_table(name)?;
        self.context.register_table(name, Arc::new(EmptyTable::new(schema)))?;
        Ok(())
    }

    /// The tables that a query reads, without those that its conditions rule out.
    pub(crate) fn tables_of(frame: DataFrame) -> Result<BTreeSet<String>, DataFusionError> {
        let mut tables = BTreeSet::new();
        frame.into_optimized_plan()?.apply_with_subqueries(|plan| {
            if let LogicalPlan::TableScan(scan) = plan {
                tables.insert(scan.table_name.table().to_owned());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(tables)
    }

    /// Computes a query once and gives its rows a name that other queries can use.
    pub(crate) async fn keep(&self, step: &str, name: &str, frame: DataFrame) -> Result<()> {
        self.keep_all(step, name, vec![frame]).await
    }

    /// Computes queries of the same columns, one after the other, and gives the rows of all of them a name.
    pub(crate) async fn keep_all(&self, step: &str, name: &str, frames: Vec<DataFrame>) -> Result<()> {
        let path = self.temporary_path(name);
        std::fs::create_dir(&path).map_err(|error| Error::system("write", &path, error))?;
        let schema = frames[0].schema().inner().clone();
        for frame in frames {
            let rows = HashMap::from([("format.max_row_group_size".to_owned(), KEPT_ROW_GROUP.to_string())]);
            self.write_with(step, frame, &format!("{}/", path.display()), rows).await?;
        }
        self.context.deregister_table(name)?;
        let options = ParquetReadOptions::default().schema(&schema);
        self.context.register_parquet(name, path.display().to_string(), options).await?;
        Ok(())
    }

    /// Computes a query into a Parquet file, or a folder of them.
    pub(crate) async fn write(&self, step: &str, frame: DataFrame, path: &str) -> Result<()> {
        self.write_with(step, frame, path, HashMap::new()).await
    }

    async fn write_with(
        &self,
        step: &str,
        frame: DataFrame,
        path: &str,
        options: HashMap<String, String>,
    ) -> Result<()> {
        let file_type = format_as_file_type(Arc::new(ParquetFormatFactory::new()));
        let (state, plan) = frame.into_parts();
        let plan = LogicalPlanBuilder::copy_to(plan, path.into(), file_type, options, vec![])?;
        self.run(step, DataFrame::new(state, plan.build()?)).await.map(drop)
    }

    /// Computes a query whose result is small.
    pub(crate) async fn run(&self, step: &str, frame: DataFrame) -> Result<Vec<RecordBatch>> {
        let context = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        let all = self.watch(step, plan.clone(), tokio::spawn(collect(plan, context))).await;
        self.weigh();
        all
    }

    /// Computes a query and hands out its rows as they come.
    pub(crate) async fn each_batch(
        &self,
        step: &str,
        frame: DataFrame,
        mut each: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let context = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        let (sender, mut receiver) = tokio::sync::mpsc::channel(2);
        let mut rows = execute_stream(plan.clone(), context)?;
        let sending = tokio::spawn(async move {
            while let Some(batch) = rows.try_next().await? {
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
        let receiving = async {
            while let Some(batch) = receiver.recv().await {
                each(batch)?;
            }
            Ok::<(), Error>(())
        };
        tokio::try_join!(self.watch(step, plan, sending), receiving).map(drop)
    }

    /// Waits for a query, tells of its progress, and stops it if the user wants that.
    async fn watch<T>(
        &self,
        step: &str,
        plan: Arc<dyn ExecutionPlan>,
        mut task: JoinHandle<Result<T, DataFusionError>>,
    ) -> Result<T> {
        if std::env::var_os("GCT_EXPLAIN").is_some() {
            let shown = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
            self.job.tell(Progress { step: shown, rows: 0, total: None });
        }
        let total = total_rows(plan.as_ref());
        let mut ticks = 0;
        loop {
            tokio::select! {
                result = &mut task => {
                    return match result {
                        Ok(Ok(found)) => Ok(found),
                        Ok(Err(error)) => Err(self.blamed(self.explained(error)).await),
                        // The Parquet library panics on some damages.
                        Err(join) if join.is_panic() => {
                            Err(self.blamed(Error::Engine { kind: "it panicked".into() }).await)
                        }
                        Err(_) => Err(Error::Interrupted),
                    };
                }
                () = tokio::time::sleep(TICK) => {
                    ticks += 1;
                    if ticks % 10 == 0 {
                        self.weigh();
                    }
                    let rows = rows_read(plan.as_ref());
                    if let Err(stopped) = self.job.advance(Progress { step: step.into(), rows, total }) {
                        task.abort();
                        // Files are closed before their folder is deleted.
                        let _ = task.await;
                        return Err(stopped.into());
                    }
                }
            }
        }
    }

    /// Computes a query of SQL whose result is small.
    pub(crate) async fn query(&self, step: &str, sql: &str) -> Result<Vec<RecordBatch>> {
        let frame = self.sql(sql).await?;
        self.run(step, frame).await
    }

    /// The first row, counted from 1, for which a query of one condition on one file says yes.
    pub(crate) async fn first_row(&self, sql: &str) -> Result<Option<u64>> {
        // One thread reads rows in their order.
        let (mut state, plan) = self.sql(sql).await?.into_parts();
        state.config_mut().options_mut().execution.target_partitions = 1;
        let mut batches = DataFrame::new(state, plan).execute_stream().await?;
        let mut before = 0;
        while let Some(batch) = batches.try_next().await? {
            let condition = batch.column(0).as_boolean();
            let found = (0..batch.num_rows()).find(|row| condition.is_valid(*row) && condition.value(*row));
            if let Some(row) = found {
                return Ok(Some(before + row as u64 + 1));
            }
            before += batch.num_rows() as u64;
        }
        Ok(None)
    }

    fn explained(&self, error: DataFusionError) -> Error {
        match Error::from(error) {
            Error::Memory { .. } => Error::Memory { limit: self.limits.memory.map(bytes) },
            // Only what is written needs room.
            Error::System(error)
                if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
            {
                Error::system("write temporary files in", self.temporary().folder, error)
            }
            error => error,
        }
    }

    /// Remembers a Parquet file of the user.
    pub(crate) fn remember(&self, file: &str, table: Arc<dyn TableProvider>) {
        let mut parquet = self.parquet.lock().unwrap_or_else(PoisonError::into_inner);
        parquet.push((file.to_owned(), table));
    }

    /// A failure without a reason, as damage of the first Parquet file that cannot be read from end to end.
    async fn blamed(&self, error: Error) -> Error {
        if !matches!(error, Error::Engine { .. }) || std::env::var_os("GCT_ENGINE_ERRORS").is_some() {
            return error;
        }
        let parquet = self.parquet.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (file, table) in parquet {
            if let Err(stopped) = self.tell("looking for the file", 0) {
                return stopped;
            }
            let Ok(frame) = self.context.read_table(table) else { continue };
            // In a task of its own, since the library panics on some damages.
            let read = tokio::spawn(async move {
                let mut batches = frame.execute_stream().await?;
                while batches.try_next().await?.is_some() {}
                Ok::<(), DataFusionError>(())
            });
            if !matches!(read.await, Ok(Ok(()))) {
                return Error::Damaged { file, problem: "cut off, or not a Parquet file".into() };
            }
        }
        error
    }

    /// Tells of work that no query does, and ends it if the user wants that.
    pub(crate) fn tell(&self, step: &str, rows: u64) -> Result<()> {
        Ok(self.job.advance(Progress { step: step.into(), rows, total: None })?)
    }
}

/// Where temporary files are, and how much room they take.
#[derive(Debug, Clone, Default)]
pub struct Temporary {
    /// The folder that theirs is in.
    pub folder: PathBuf,
    /// The most bytes that there were at a time, as far as was looked.
    pub bytes: u64,
}

/// The bytes of all files in a folder. What is deleted meanwhile counts nothing.
fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// What queries may hold if the whole program may take so much. The rest is for the program itself, for files
/// that are being read and written, and for what a query copies when it moves what it holds to disk.
fn pool_of(limit: usize) -> usize {
    (limit / 2).saturating_sub(PROGRAM).max(LEAST_POOL)
}

/// Three quarters of the memory that is free, where the system says how much that is.
fn available() -> Option<usize> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: usize = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes / 4 * 3 * 1024)
}

/// 1073741824 as 1 GiB.
fn bytes(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        bytes => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

/// The rows that have come out of the files that a plan reads.
fn rows_read(plan: &dyn ExecutionPlan) -> u64 {
    let children = plan.children();
    if children.is_empty() {
        return plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0) as u64;
    }
    children.into_iter().map(|child| rows_read(child.as_ref())).sum()
}

/// The rows of the files that a plan reads, where all of them say so.
fn total_rows(plan: &dyn ExecutionPlan) -> Option<u64> {
    let children = plan.children();
    if children.is_empty() {
        let statistics = StatisticsContext::new().compute(plan, &StatisticsArgs::default()).ok()?;
        return match statistics.num_rows {
            Precision::Exact(rows) | Precision::Inexact(rows) => Some(rows as u64),
            Precision::Absent => None,
        };
    }
    children.into_iter().map(|child| total_rows(child.as_ref())).sum()
}

/// The only number of a result.
pub(crate) fn single(batches: &[RecordBatch]) -> u64 {
    numbers(batches).first().copied().unwrap_or(0)
}

/// The numbers of the only row of a result.
pub(crate) fn numbers(batches: &[RecordBatch]) -> Vec<u64> {
    let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else { return vec![] };
    let number = |column: &ArrayRef| {
        let column =
            cast(column, &DataType::UInt64).unwrap_or_else(|error| panic!("a count as a number: {error}"));
        let column = column.as_primitive::<UInt64Type>();
        if column.is_null(0) { 0 } else { column.value(0) }
    };
    batch.columns().iter().map(number).collect()
}

/// Rows of a text and a count; no text is an empty one.
pub(crate) fn text_counts(batches: &[RecordBatch]) -> Vec<(String, u64)> {
    let mut counts = vec![];
    for batch in batches {
        let texts = as_text(batch.column(0));
        let numbers =
            cast(batch.column(1), &DataType::UInt64).unwrap_or_else(|error| panic!("counts: {error}"));
        for row in 0..batch.num_rows() {
            let texts = texts.as_string::<i32>();
            let text = if texts.is_null(row) { String::new() } else { texts.value(row).to_owned() };
            counts.push((text, numbers.as_primitive::<UInt64Type>().value(row)));
        }
    }
    counts
}

/// A column of text, whatever the engine made of it.
pub(crate) fn as_text(column: &ArrayRef) -> ArrayRef {
    cast(column, &DataType::Utf8).unwrap_or_else(|error| panic!("text as text: {error}"))
}

/// The texts of the first column of a result.
pub(crate) fn texts(found: &[RecordBatch]) -> Vec<String> {
    let columns: Vec<ArrayRef> = found.iter().map(|batch| as_text(batch.column(0))).collect();
    let texts = columns.iter().flat_map(|column| column.as_string::<i32>().iter().flatten());
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::displayable;

    use super::*;

    /// Every reason leads to a condition, and every condition to a code: as many rows come out as there are
    /// reasons.
    const JOINED: &str = "SELECT links.encounter, codes.id FROM ( \
            SELECT treatments.encounter, coalesce(reasons.code, conditions.code) AS cause \
            FROM (SELECT resource, nullif(trim(condition), '') AS condition, nullif(trim(code), '') AS code FROM reason) AS reasons \
            JOIN treatments ON reasons.resource = treatments.resource \
            LEFT JOIN conditions ON reasons.condition = conditions.id \
            WHERE conditions.wrong IS NULL \
        ) AS links JOIN codes ON codes.kind = 'diagnosis' AND codes.code = links.cause";

    #[tokio::test(flavor = "multi_thread")]
    async fn no_join_filters_what_it_is_joined_with_while_a_query_runs() {
        let home = tempfile::tempdir().unwrap();
        let limits = Limits { threads: Some(1), ..Limits::default() };
        let job = Job::silent();
        let engine = Engine::new(limits, home.path(), &job).unwrap();
        let numbers = |upto: u32| format!("FROM (SELECT unnest(generate_series(1, {upto})) AS n)");
        let text = |sql: &str| format!("CAST({sql} AS VARCHAR)");
        for (name, columns, rows) in [
            (
                "conditions",
                format!("{} AS id, {} AS wrong, {} AS code", text("n"), text("NULL"), text("'a'")),
                100,
            ),
            (
                "treatments",
                format!("n AS resource, {} AS code, {} AS encounter", text("'b'"), text("n % 100")),
                2400,
            ),
            (
                "reason",
                format!("n AS resource, {} AS condition, {} AS code", text("n % 100 + 1"), text("NULL")),
                2400,
            ),
            ("codes", format!("{} AS kind, {} AS code, n AS id", text("'diagnosis'"), text("'a'")), 1),
        ] {
            let frame = engine.sql(&format!("SELECT {columns} {}", numbers(rows))).await.unwrap();
            engine.keep("making tables", name, frame).await.unwrap();
        }
        let plan = engine.sql(JOINED).await.unwrap().create_physical_plan().await.unwrap();
        let plan = displayable(plan.as_ref()).indent(false).to_string();
        assert!(!plan.contains("DynamicFilter"), "{plan}");
        // With such filters, none came out.
        let joined = engine.query("joining", JOINED).await.unwrap();
        assert_eq!(joined.iter().map(RecordBatch::num_rows).sum::<usize>(), 2400);
    }
}
