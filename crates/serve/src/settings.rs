//! Where a server listens, whom it answers, and what it takes on.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use subtle::ConstantTimeEq;

use crate::error::{Error, Result};

/// Takes a log line: method, route, status, duration.
pub type Log = Box<dyn Fn(&str) + Send + Sync>;

/// How to serve.
pub struct Settings {
    /// Where to listen. Port 0 takes one that is free.
    pub listen: SocketAddr,
    /// What a client must send, if anything. An address that other machines can reach needs one.
    pub token: Option<Token>,
    /// What is taken on.
    pub limits: Limits,
    /// Where log lines go, if they are wanted.
    pub log: Option<Log>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            token: None,
            limits: Limits::default(),
            log: None,
        }
    }
}

/// What a server takes on, so that no client can take it all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of all bodies that are being read or worked on.
    pub bodies: usize,
    /// Bytes of an answer, and of all answers that clients have not taken yet; short ones are not counted.
    pub answers: usize,
    /// Encounters of a request.
    pub encounters: usize,
    /// Codes of an encounter: attention takes their square.
    pub codes: usize,
    /// Numbers in the matrices of an answer of `/v1/explain`.
    pub numbers: usize,
    /// Small requests that wait for the model; as many large ones may wait.
    pub queue: usize,
    /// Pairs of nodes that a thread works on before it is looked who else waits. A request that has more of
    /// them is large, and is worked on in parts.
    pub batch: usize,
    /// Connections.
    pub connections: usize,
    /// From a request's header to its answer, and for a client to take some of the answer.
    pub request: Duration,
    /// For a request's header; also how long a connection may be idle between requests.
    pub header: Duration,
    /// How long a connection without a request stays open after the server was asked to stop. A client that
    /// asks again meanwhile is answered, and hears that it was the last time.
    pub grace: Duration,
    /// For what was received to be answered after the server was asked to stop. Longer than `request`, or
    /// answers are lost.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body: 8 << 20,
            bodies: 256 << 20,
            answers: 256 << 20,
            encounters: 1024,
            codes: 512,
            numbers: 2_000_000,
            queue: 256,
            batch: 300_000,
            connections: 1024,
            request: Duration::from_secs(30),
            header: Duration::from_secs(10),
            grace: Duration::from_millis(500),
            shutdown: Duration::from_secs(35),
        }
    }
}

/// What a client must send. It never prints itself.
pub struct Token(Vec<u8>);

impl Token {
    /// The first and only word of a file.
    ///
    /// # Errors
    /// If the file cannot be read, is empty, or can be read by everybody.
    pub fn read(path: &Path) -> Result<Self> {
        let refuse = |problem| Err(Error::NotAToken { path: path.to_owned(), problem });
        let text = gct::files::read_text(path)
            .map_err(|source| Error::TokenFile { path: path.to_owned(), source })?;
        if is_open_to_all(path) {
            return Err(Error::TokenExposed { path: path.to_owned() });
        }
        match text.trim() {
            "" => refuse("the file is empty"),
            token if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                refuse("a token is one word of printable ASCII characters")
            }
            token => Ok(Token(token.into())),
        }
    }

    /// Whether a header `Authorization` has it. How long this takes does not depend on where they differ.
    pub(crate) fn is_in(&self, header: &[u8]) -> bool {
        let Some((scheme, token)) = header.split_at_checked("Bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && token.ct_eq(&self.0).into()
    }
}

#[cfg(unix)]
fn is_open_to_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o007 != 0)
}

#[cfg(not(unix))]
fn is_open_to_all(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_is_the_token() {
        let token = Token(b"s3cret".into());
        assert!(token.is_in(b"Bearer s3cret") && token.is_in(b"bearer s3cret"));
        for wrong in ["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crett", "Basic s3cret", "s3cret"] {
            assert!(!token.is_in(wrong.as_bytes()), "{wrong}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_no_secret_holds_no_token() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Token::read(&path)
        };
        assert!(read("  s3cret\n", 0o600).unwrap().is_in(b"Bearer s3cret"));
        assert!(read("s3cret", 0o640).is_ok());
        assert!(matches!(read("s3cret", 0o644), Err(Error::TokenExposed { .. })));
        assert!(matches!(read(" \n", 0o600), Err(Error::NotAToken { .. })));
        assert!(matches!(read("two words", 0o600), Err(Error::NotAToken { .. })));
        assert!(Token::read(&folder.path().join("none")).is_err());
    }
}
