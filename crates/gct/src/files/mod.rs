//! Files and folders, for everybody who reads or writes them.
//!
//! - A file or folder that this program writes appears whole or not at all: it is written under a temporary
//!   name in the same folder, synced and renamed (`write_text`, `PendingFolder`).
//! - Its writer holds a lock on the temporary name until then, so that the next command removes what a killed
//!   one left (`TemporaryFolder`).
//! - A folder that is replaced is never lost (`replace.rs`).
//! - Only regular files are read, and a decoder that panics has met a damaged file (`open`, `decode`).

mod check;
mod file;
mod folder;
mod hash;
mod input;
mod lock;
mod replace;
mod temporary;

pub(crate) use check::{DATASET_MANIFEST, FolderKind, RUN_MANIFEST, check_folder, check_outside};
pub use check::{Overwrite, check_ending, check_file};
pub(crate) use file::{PendingFile, write_file, write_own};
pub use file::{copy_file, write_text};
pub(crate) use folder::{PendingFolder, parent_of};
pub use hash::FileEntry;
pub(crate) use hash::{HashedFile, hex};
pub use input::{check_regular, decode, open, read, read_text};
pub(crate) use lock::lock;
pub(crate) use replace::restore_missing;
pub use temporary::TemporaryFolder;
pub(crate) use temporary::{is_partial, sweep_all, sweep_around};
