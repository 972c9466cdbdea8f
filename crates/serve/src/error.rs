//! Why a server does not start. What to do about it is worded by whoever starts it: a command line speaks of
//! its flags.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The result of starting a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong before the first request.
///
/// The enum is exhaustive on purpose: whoever words what to do learns of a new variant from the compiler.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run cannot be used; [`gct::Error::remedy`] says what can be done about it.
    #[error(transparent)]
    Run(#[from] gct::Error),

    /// A list of codes has no edges.
    #[error(
        "the model {model} must be given the true edges of an encounter, and requests are lists of codes"
    )]
    NeedsEdges {
        /// Its name.
        model: &'static str,
    },

    /// Anybody could send requests.
    #[error("{address} can be reached from other machines, and there is no token")]
    TokenNeeded {
        /// Where it should listen.
        address: SocketAddr,
    },

    /// The token is not secret.
    #[error("{}: everybody on this machine can read the token", path.display())]
    TokenExposed {
        /// The file.
        path: PathBuf,
    },

    /// The token file holds no token.
    #[error("{}: {problem}", path.display())]
    NotAToken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// The token file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The address is not free, or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where it should listen.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },

    /// The operating system gives no threads.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
}

#[cfg(test)]
mod tests {
    use std::iter::successors;

    use super::*;

    /// One of each kind of error, each found by way of the one before it, so that the compiler misses none.
    fn after(error: Option<&Error>) -> Option<Error> {
        let (address, path) = (SocketAddr::from(([127, 0, 0, 1], 1)), PathBuf::from("P"));
        let source = io::Error::from(io::ErrorKind::AddrNotAvailable);
        Some(match error {
            None => Error::Run(gct::Error::NotFinite),
            Some(Error::Run(_)) => Error::NeedsEdges { model: "gcn" },
            Some(Error::NeedsEdges { .. }) => Error::TokenNeeded { address },
            Some(Error::TokenNeeded { .. }) => Error::TokenExposed { path },
            Some(Error::TokenExposed { .. }) => Error::NotAToken { path, problem: "the file is empty" },
            Some(Error::NotAToken { .. }) => Error::TokenFile { path, source },
            Some(Error::TokenFile { .. }) => Error::Listen { address, source },
            Some(Error::Listen { .. }) => Error::Threads(source),
            Some(Error::Threads(_)) => return None,
        })
    }

    #[test]
    fn every_error_says_what_is_wrong() {
        let errors: Vec<Error> = successors(after(None), |error| after(Some(error))).collect();
        for error in &errors {
            let message = error.to_string();
            assert!(message.split(' ').count() >= 3, "{message}");
        }
        assert_eq!(errors.len(), 8, "one of each");
    }
}
