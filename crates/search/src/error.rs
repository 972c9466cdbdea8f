//! What a space or a history can be wrong about.

/// The result of everything in this library that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting has a value that makes no sense.
    #[error("setting `{name}`: {value} is not allowed; expected {allowed}")]
    Setting {
        /// The setting, with its path in the configuration.
        name: String,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
}

impl Error {
    pub(crate) fn setting(name: &str, value: impl ToString, allowed: &str) -> Self {
        Error::Setting { name: name.into(), value: value.to_string(), allowed: allowed.into() }
    }
}
