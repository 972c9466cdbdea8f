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
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Run(error) => error.hint(),
            Error::NeedsEdges { .. } => {
                Some("serve a run of gct, transformer, gcn_p, gcn_random, shallow or deep".into())
            }
            Error::TokenNeeded { .. } => Some(
                "give a file with a token that clients must send (--token-file FILE), or listen on 127.0.0.1"
                    .into(),
            ),
            Error::Token { hint, .. } => Some((*hint).into()),
            Error::TokenFile { .. } => Some(MAKE_TOKEN.into()),
            Error::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                Some("another program listens there; choose another port (0 takes any that is free)".into())
            }
            Error::Listen { .. } | Error::Threads(_) => None,
        }
    }
}

/// How a token is made.
pub(crate) const MAKE_TOKEN: &str =
    "make one with: (umask 077; head -c 32 /dev/urandom | base64 | tr -d '\\n/+=' > FILE)";
