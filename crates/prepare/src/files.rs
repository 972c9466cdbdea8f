//! Which file holds which table: CSV, gzipped CSV and Parquet, single or as a folder of shards, in a local
//! folder or an object store.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::engine::Engine;
use crate::error::{ALIKE, Error, Result, likeness};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Format {
    /// Text with a header.
    Csv,
    /// The same, compressed.
    CsvGz,
    /// Parquet.
    Parquet,
    /// JSON, one object per line or one bundle per file.
    Json,
    /// The same, compressed.
    JsonGz,
}

/// The extensions by which files are known.
const EXTENSIONS: [(&str, Format); 14] = [
    (".csv", Format::Csv),
    (".tsv", Format::Csv),
    (".txt", Format::Csv),
    (".csv.gz", Format::CsvGz),
    (".tsv.gz", Format::CsvGz),
    (".txt.gz", Format::CsvGz),
    (".parquet", Format::Parquet),
    (".parq", Format::Parquet),
    (".json", Format::Json),
    (".ndjson", Format::Json),
    (".jsonl", Format::Json),
    (".json.gz", Format::JsonGz),
    (".ndjson.gz", Format::JsonGz),
    (".jsonl.gz", Format::JsonGz),
];

/// A file of a table.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Its name as the user knows it.
    pub(crate) name: String,
    /// Its path below the folder that is its table, without extension; nothing for a file that is a table.
    pub(crate) inside: String,
    /// Where it is.
    pub(crate) url: ListingTableUrl,
    /// What it is called in its store.
    pub(crate) path: ObjectPath,
    pub(crate) size: u64,
    pub(crate) format: Format,
}

/// Where tables are looked for: a folder, a single file, or their like in an object store.
#[derive(Debug)]
pub(crate) struct InputFiles {
    /// As the user wrote it.
    pub(crate) name: String,
    /// Whether it is a single file.
    pub(crate) is_file: bool,
    files: Vec<(String, File)>,
}

impl InputFiles {
    /// Lists what is there.
    pub(crate) async fn list(context: &SessionContext, name: &str) -> Result<InputFiles> {
        let refuse = |problem: String| Error::Input { path: name.into(), problem };
        let is_url = name.contains("://");
        if !is_url {
            gct::files::check_regular(Path::new(name)).map_err(|error| Error::system("read", name, error))?;
        }
        let url = if is_url { checked(name)?.to_owned() } else { local_url(name).map_err(&refuse)? };
        let url = ListingTableUrl::parse(&url).map_err(|error| refuse(error.to_string()))?;
        #[cfg(feature = "cloud")]
        let store = crate::cloud::register(context, &url)?;
        #[cfg(not(feature = "cloud"))]
        let store = None;
        let is_cloud = store.is_some();
        let store = match store {
            Some(store) => store,
            None => context
                .runtime_env()
                .object_store(url.object_store())
                .map_err(|_| unknown_store(name, url.scheme()))?,
        };
        let files =
            list_files(store.as_ref(), url.prefix()).await.map_err(|error| unreadable(name, &error))?;
        if is_cloud && files.is_empty() {
            // Stores have no folders, so one that is empty is one that is not there.
            let (path, problem) = (name.into(), "nothing is there".into());
            let hint = "is it spelled right, upper and lower case included?".into();
            return Err(Error::Store { path, problem, hint });
        }
        let is_file = files.len() == 1 && &files[0].location == url.prefix();
        let files: Vec<(String, File)> = files
            .into_iter()
            .filter_map(|meta| {
                let inside: Vec<_> =
                    meta.location.prefix_match(url.prefix())?.map(|part| part.as_ref().to_owned()).collect();
                let inside = if is_file { meta.location.filename()?.to_owned() } else { inside.join("/") };
                let hidden = inside.split('/').any(|part| part.starts_with(['.', '_']));
                let (stem, format) = if hidden { None } else { known(&inside, is_file) }?;
                let name = if is_file {
                    name.to_owned()
                } else {
                    format!("{}/{inside}", name.trim_end_matches('/'))
                };
                let url = address_of(&url, &meta.location)?;
                let inside = if is_file { String::new() } else { stem.clone() };
                Some((stem, File { name, inside, url, path: meta.location, size: meta.size, format }))
            })
            .collect();
        for (_, file) in files.iter().filter(|_| !is_url) {
            // Opening a pipe would wait for whoever writes to it. What is not there is found later.
            match gct::files::check_regular(Path::new(&file.name)) {
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                    return Err(Error::system("read", &file.name, error));
                }
                _ => {}
            }
        }
        Ok(InputFiles { name: name.into(), is_file, files })
    }

    /// The files of a table that can have these names, in the order of their own if there are several. In a
    /// name `*` stands for any characters, and all that it fits is one table.
    pub(crate) fn table(&self, table: &str, names: &[String]) -> Result<Vec<File>> {
        if self.is_file {
            return Ok(self.all());
        }
        let mut found: Vec<(String, Vec<File>)> = vec![];
        for (original, file) in &self.files {
            let stem = original.to_lowercase();
            // A file of that name, or any file in a folder of that name, which some programs give the
            // extension.
            let root = names.iter().map(|name| name.to_lowercase()).find_map(|name| {
                if name.contains('*') {
                    // Shards, perhaps each in a folder of that name.
                    let first = stem.split('/').next().unwrap_or(&stem);
                    return fits(first, &name).then(|| (format!("{name} ({:?})", file.format), ""));
                }
                let rest = stem.strip_prefix(&name)?;
                if rest.is_empty() {
                    return Some((file.name.clone(), ""));
                }
                let (end, inside) = rest.split_once('/')?;
                let in_folder = end.is_empty() || EXTENSIONS.iter().any(|(known, _)| *known == end);
                // As it is spelled there.
                let inside = original.get(original.len().saturating_sub(inside.len())..).unwrap_or_default();
                in_folder.then(|| (format!("{name}/ ({:?})", file.format), inside))
            });
            if let Some((root, inside)) = root {
                let file = File { inside: inside.into(), ..file.clone() };
                match found.iter_mut().find(|(other, _)| *other == root) {
                    Some((_, files)) => files.push(file),
                    None => found.push((root, vec![file])),
                }
            }
        }
        match found.len() {
            0 => Ok(vec![]),
            1 => {
                let mut files = found.remove(0).1;
                files.sort_by(|a, b| a.name.cmp(&b.name));
                Ok(files)
            }
            _ => Err(Error::SeveralTables {
                path: self.name.clone(),
                table: table.into(),
                files: found.into_iter().map(|(_, files)| files[0].name.clone()).collect(),
            }),
        }
    }

    /// Whether one of its files has one of these names, in which `*` stands for any characters.
    pub(crate) fn is_called(&self, names: &[String]) -> bool {
        self.files.iter().any(|(stem, _)| {
            let last = stem.rsplit('/').next().unwrap_or(stem).to_lowercase();
            names.iter().any(|name| fits(&last, &name.to_lowercase()))
        })
    }

    /// What is called nearly so, at any depth, the most alike first.
    pub(crate) fn near(&self, names: &[String]) -> Vec<String> {
        const SHOWN: usize = 3;
        let likeness = |found: &str| {
            let last = found.rsplit('/').next().unwrap_or(found);
            let alike = names.iter().map(|name| likeness(&name.replace('*', ""), last));
            alike.fold(0.0, f64::max)
        };
        let mut near: Vec<(f64, String)> = self
            .names()
            .into_iter()
            .chain(self.files.iter().map(|(stem, _)| stem.clone()))
            .map(|found| (likeness(&found), found))
            .filter(|(alike, _)| *alike > ALIKE)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        near.dedup();
        near.into_iter().map(|(_, found)| found).take(SHOWN).collect()
    }

    /// All of its files, for an input that is one table.
    pub(crate) fn all(&self) -> Vec<File> {
        self.files.iter().map(|(_, file)| file.clone()).collect()
    }

    /// The names of what is there, for a message: files and folders at the top.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.files.iter().map(|(stem, _)| stem.split('/').next().unwrap_or(stem).to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Whether a name is like a pattern, in which `*` stands for any characters.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((begin, end)) => name.strip_prefix(begin).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| &rest[at..]).chain([""]).any(|rest| fits(rest, end))
        }),
    }
}

/// A local path as an address, so that no character of it is taken for a pattern.
fn local_url(path: &str) -> Result<String, String> {
    let absolute = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
    let url = if absolute.is_dir() {
        url::Url::from_directory_path(&absolute)
    } else {
        url::Url::from_file_path(&absolute)
    };
    url.map(String::from).map_err(|()| "its path is not absolute".into())
}

/// An address of a store and a path, and nothing else: who is asking and with what key is no part of it, and
/// what the rest of an address would mean is not known here. What is refused is not repeated.
fn checked(name: &str) -> Result<&str> {
    let (scheme, rest) = name.split_once("://").unwrap_or(("file", name));
    let bucket = rest.split('/').next().unwrap_or(rest);
    let refuse = |shown: &str, problem: &str, hint: &str| {
        let path = format!("{scheme}://{shown}...");
        Err(Error::Store { path, problem: problem.into(), hint: hint.into() })
    };
    let hint = format!("say {scheme}://BUCKET/PATH; who is asking is said in the environment");
    if bucket.contains(['@', ':']) {
        return refuse("", "an address has no user, key or port", &hint);
    }
    if bucket.is_empty() && scheme != "file" {
        return refuse("", "an address begins with a bucket", &hint);
    }
    match rest.split_once(['?', '#']) {
        Some((before, _)) => refuse(
            before,
            "an address ends with the path",
            "where `?` or `#` are part of a name, write %3F or %23",
        ),
        None => Ok(name),
    }
}

/// Why an address has no store.
fn unknown_store(path: &str, scheme: &str) -> Error {
    let (problem, hint) = if ["s3", "gs", "az"].contains(&scheme) {
        (
            "this gct-prepare was built without object stores",
            "build it with them: cargo install --locked --path crates/prepare --features cloud; or copy the tables into a folder",
        )
    } else {
        (
            "its kind of address is not known",
            "known are paths, s3://BUCKET/PATH, gs://BUCKET/PATH and az://CONTAINER/PATH",
        )
    };
    Error::Store { path: path.into(), problem: problem.into(), hint: hint.into() }
}

/// What a store says of a path that it cannot list or read.
pub(crate) fn unreadable(path: &str, error: &object_store::Error) -> Error {
    #[cfg(feature = "cloud")]
    if let Some(explained) = crate::cloud::explained(Some(path), error) {
        return explained;
    }
    Error::Input { path: path.into(), problem: error.to_string() }
}

/// The error of a store that is behind another, if one is.
pub(crate) fn store_error<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a object_store::Error> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// An error, and what is behind it.
pub(crate) fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        // Those of input and output name as their source what is behind the error that they hold.
        let held = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        held.map(|error| error as _).or_else(|| error.source())
    })
}

fn is_unreachable(error: &object_store::Error) -> bool {
    #[cfg(feature = "cloud")]
    return crate::cloud::http_error(error).is_some();
    #[cfg(not(feature = "cloud"))]
    {
        let _ = error;
        false
    }
}

/// The address of an object in the store of another address, whatever characters its name has.
fn address_of(url: &ListingTableUrl, path: &ObjectPath) -> Option<ListingTableUrl> {
    let mut address = url.get_url().clone();
    address.set_path(&path.as_ref().replace('%', "%25"));
    ListingTableUrl::try_new(address, None).ok()
}

/// Everything at or below a path.
async fn list_files(
    store: &dyn ObjectStore,
    prefix: &ObjectPath,
) -> Result<Vec<object_store::ObjectMeta>, object_store::Error> {
    if !prefix.as_ref().is_empty() {
        match store.head(prefix).await {
            Ok(meta) if &meta.location == prefix => return Ok(vec![meta]),
            // Who can list a folder may be forbidden to ask for an object of its name; but a server that is
            // not there is not asked again.
            Err(error) if is_unreachable(&error) => return Err(error),
            _ => {}
        }
    }
    let mut files: Vec<_> = store.list(Some(prefix)).try_collect().await?;
    files.sort_by(|a, b| a.location.cmp(&b.location));
    Ok(files)
}

/// A file's name without its extension, and what the extension says. A file that the user points at can have
/// any.
fn known(name: &str, any: bool) -> Option<(String, Format)> {
    let lower = name.to_lowercase();
    let found = EXTENSIONS.iter().filter(|(end, _)| lower.ends_with(end)).max_by_key(|(end, _)| end.len());
    match found {
        Some((end, format)) => Some((name[..name.len() - end.len()].to_owned(), *format)),
        None if any => Some((name.to_owned(), Format::Csv)),
        None => None,
    }
}

/// Whether a part of a path only tells shards of one table apart: a number, a split, `part-00000-of-00005`.
fn is_shard(part: &str) -> bool {
    const SPLITS: [&str; 8] = ["train", "tuning", "held_out", "validation", "valid", "val", "test", "dev"];
    let part = part.to_lowercase();
    let numbered =
        ["part", "shard", "chunk", "batch", "data"].iter().find_map(|word| part.strip_prefix(word));
    match numbered {
        _ if SPLITS.contains(&part.as_str()) => true,
        Some(number) => number.trim_start_matches(['-', '_', '.']).starts_with(|c: char| c.is_ascii_digit()),
        None => {
            let number = part.replace("-of-", "-");
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || b"-_".contains(&byte))
        }
    }
}

impl File {
    /// What it is a file of, where the folder of a table has several: `mortality` for `mortality/train/0`,
    /// and `.` for a shard.
    pub(crate) fn part(&self) -> &str {
        let mut part = self.inside.as_str();
        while !part.is_empty() {
            let (before, last) = part.rsplit_once('/').unwrap_or(("", part));
            if !is_shard(last) {
                break;
            }
            part = before;
        }
        if part.is_empty() { "." } else { part }
    }

    /// The store that it is in.
    pub(crate) fn store(&self, context: &SessionContext) -> Result<Arc<dyn ObjectStore>> {
        Ok(context.runtime_env().object_store(self.url.object_store())?)
    }

    /// Its first bytes.
    pub(crate) async fn head(&self, context: &SessionContext, bytes: u64) -> Result<Vec<u8>> {
        if self.size == 0 {
            return Ok(vec![]);
        }
        let range = 0..self.size.min(bytes);
        let read = self.store(context)?.get_range(&self.path, range).await;
        read.map(|bytes| bytes.to_vec()).map_err(|error| unreadable(&self.name, &error))
    }

    /// All of its bytes as they are stored. A file that is elsewhere is copied first, since it may not fit
    /// into memory.
    pub(crate) async fn open(&self, engine: &Engine<'_>) -> Result<std::fs::File> {
        let refuse = |problem: String| Error::Input { path: self.name.clone(), problem };
        let path = if self.url.scheme() == "file" {
            self.url.get_url().to_file_path().map_err(|()| refuse("not a path".into()))?
        } else {
            let path = engine.temporary_path("download");
            let unwritable = |error| Error::system("write", &path, error);
            let mut copy = std::fs::File::create(&path).map_err(unwritable)?;
            let object = self.store(&engine.context)?.get(&self.path).await;
            let mut parts = object.map_err(|error| unreadable(&self.name, &error))?.into_stream();
            while let Some(part) = parts.try_next().await.map_err(|error| unreadable(&self.name, &error))? {
                copy.write_all(&part).map_err(unwritable)?;
                engine.tell("fetching a file", 0)?;
            }
            path
        };
        std::fs::File::open(path).map_err(|error| Error::system("read", &self.name, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_extension_counts() {
        assert_eq!(known("PATIENT.CSV.gz", false), Some(("PATIENT".into(), Format::CsvGz)));
        assert_eq!(known("data/train/0.parquet", false), Some(("data/train/0".into(), Format::Parquet)));
        assert_eq!(known("notes.docx", false), None);
        assert_eq!(known("table", true), Some(("table".into(), Format::Csv)));
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for name in ["de1_0_inpatient_claims_sample_1", "inpatient_claims", "x_inpatient_claims"] {
            assert!(fits(name, "*inpatient_claims*"), "{name}");
        }
        assert!(!fits("de1_0_outpatient_claims_1a", "*inpatient_claims*"));
        assert!(fits("lab_2020", "lab_*") && !fits("old_lab_2020", "lab_*") && !fits("lab", "lab_*"));
        assert!(fits("aXbXb", "a*b") && !fits("aXbXc", "a*b"));
        assert!(fits("größe_1", "*ß*_*") && fits("", "*") && !fits("a", ""));
    }

    #[test]
    fn shards_are_told_from_names() {
        for shard in [
            "0",
            "00012",
            "part-00000-of-00005",
            "part-0-5f2c-c000.snappy",
            "3-of-7",
            "data_1",
            "held_out",
            "Train",
        ] {
            assert!(is_shard(shard), "{shard}");
        }
        for name in
            ["mortality", "first_24h", "30d_readmission", "party", "data", "part", "database", "of", ""]
        {
            assert!(!is_shard(name), "{name}");
        }
    }

    #[tokio::test]
    async fn a_name_can_have_any_character() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("50% of #1 [ü]");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a b#c%20d+e.csv"), "x").unwrap();
        let context = SessionContext::new();
        let files = InputFiles::list(&context, folder.to_str().unwrap()).await.unwrap().all();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].url.prefix(), &files[0].path);
        assert_eq!(files[0].head(&context, 10).await.unwrap(), b"x");
        assert!(files[0].url.get_url().to_file_path().unwrap().exists());
    }

    #[tokio::test]
    async fn a_table_is_a_file_or_a_folder_of_shards_and_never_both() {
        let home = tempfile::tempdir().unwrap();
        for name in [
            "Patient.csv",
            "data/train/1.parquet",
            "data/train/0.parquet",
            "lab.csv/part-0.csv",
            "lab.csv/_SUCCESS",
            "dx.csv",
            "dx.csv.gz",
            "Claims_2020_1B.csv",
            "Claims_2020_1A.csv",
            "Claims_2021/Claims.csv",
            "rx_1.csv",
            "rx_1.csv.gz",
        ] {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "a,b\n1,2\n").unwrap();
        }
        let context = SessionContext::new();
        let files = InputFiles::list(&context, home.path().to_str().unwrap()).await.unwrap();
        let names = |table: &str| -> Vec<String> {
            let files = files.table(table, &[table.to_owned()]).unwrap();
            files.iter().map(|file| file.name.rsplit_once('/').unwrap().1.to_owned()).collect()
        };
        assert_eq!(names("patient"), ["Patient.csv"]);
        assert_eq!(names("data"), ["0.parquet", "1.parquet"]);
        let inside = &files.table("data", &["DATA".to_owned()]).unwrap()[0].inside;
        assert_eq!(inside, "train/0");
        assert_eq!(names("lab"), ["part-0.csv"]);
        assert_eq!(names("other"), [""; 0]);
        assert_eq!(names("claims_*"), ["Claims_2020_1A.csv", "Claims_2020_1B.csv", "Claims.csv"]);
        assert_eq!(names("claims_2020*"), ["Claims_2020_1A.csv", "Claims_2020_1B.csv"]);
        for twice in ["dx", "rx_*"] {
            let error = files.table("dx", &[twice.to_owned()]).unwrap_err();
            assert!(matches!(error, Error::SeveralTables { .. }), "{error}");
        }
        assert_eq!(
            files.names(),
            ["Claims_2020_1A", "Claims_2020_1B", "Claims_2021", "Patient", "data", "dx", "lab.csv", "rx_1"]
        );
    }
}
