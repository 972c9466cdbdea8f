//! Why a server does not start.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The result of starting a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong before the first request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run cannot be asked.
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

    /// Others could ask too.
    #[error("{address} can be reached from other machines, and there is no token")]
    TokenNeeded {
        /// Where it should listen.
        address: SocketAddr,
    },

    /// The token file is of no use.
    #[error("{}: {problem}", path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
        /// What to do.
        hint: &'static str,
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

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        match self {
            Error::Run(error) => error.hint(),
            Error::NeedsEdges { .. } => {
                "serve a run of gct, transformer, gcn_p, gcn_random, shallow or deep".into()
            }
            Error::TokenNeeded { .. } => {
                "give a file with a token that clients must send (--token-file FILE), or listen on 127.0.0.1"
                    .into()
            }
            Error::Token { hint, .. } => (*hint).into(),
            Error::TokenFile { .. } => MAKE_TOKEN.into(),
            Error::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "another program listens there; choose another port (0 takes any that is free)".into()
                }
                io::ErrorKind::AddrNotAvailable => {
                    "give an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them".into()
                }
                io::ErrorKind::PermissionDenied => {
                    "choose a port from 1024: lower ones are for the administrator".into()
                }
                _ => gct::error::system_hint(source).into(),
            },
            Error::Threads(_) => "use fewer --threads, or allow this user more (`ulimit -u`)".into(),
        }
    }
}

/// How a token is made.
pub(crate) const MAKE_TOKEN: &str =
    "make one with: (umask 077; head -c 32 /dev/urandom | base64 | tr -d '\\n/+=' > FILE)";

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each kind of error, each found by way of the one before it, so that the compiler misses none.
    fn after(error: Option<&Error>) -> Option<Error> {
        let (address, path) = (SocketAddr::from(([127, 0, 0, 1], 1)), PathBuf::from("P"));
        let source = io::Error::from(io::ErrorKind::AddrNotAvailable);
        Some(match error {
            None => Error::Run(gct::Error::NoAnswer),
            Some(Error::Run(_)) => Error::NeedsEdges { model: "gcn" },
            Some(Error::NeedsEdges { .. }) => Error::TokenNeeded { address },
            Some(Error::TokenNeeded { .. }) => {
                Error::Token { path, problem: "the file is empty", hint: MAKE_TOKEN }
            }
            Some(Error::Token { .. }) => Error::TokenFile { path, source },
            Some(Error::TokenFile { .. }) => Error::Listen { address, source },
            Some(Error::Listen { .. }) => Error::Threads(source),
            Some(Error::Threads(_)) => return None,
        })
    }

    #[test]
    fn every_error_says_what_is_wrong_and_what_to_do() {
        let mut count = 0;
        let mut error = after(None);
        while let Some(one) = error {
            let (message, hint) = (one.to_string(), one.hint());
            assert!(message.split(' ').count() >= 3, "no more than a path: {message}");
            assert!(hint.split(' ').count() >= 3, "{message}: {hint}");
            count += 1;
            error = after(Some(&one));
        }
        assert_eq!(count, 7, "one of each");
    }
}
