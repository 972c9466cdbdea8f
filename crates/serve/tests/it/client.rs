//! The plainest client there is: every byte that is sent is chosen here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// What it says, if it says no: status, error, hint.
    pub(crate) fn refusal(&self) -> (u16, String, String) {
        let value = self.json();
        assert_eq!(value.as_object().unwrap().len(), 2, "{value}");
        let text = |name: &str| value[name].as_str().unwrap().to_owned();
        (self.status, text("error"), text("hint"))
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client { stream: BufReader::new(stream), address }
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send_head("GET", path, "");
        self.answer()
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.post_bytes(path, body.to_string().as_bytes())
    }

    pub(crate) fn post_bytes(&mut self, path: &str, body: &[u8]) -> Answer {
        self.send_post(path, body);
        self.answer()
    }

    /// A whole request, without waiting for the answer.
    pub(crate) fn send_post(&mut self, path: &str, body: &[u8]) {
        self.send_post_head(path, body.len());
        self.send(body);
    }

    pub(crate) fn send_post_head(&mut self, path: &str, length: usize) {
        let headers = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        self.send_head("POST", path, &headers);
    }

    pub(crate) fn send_head(&mut self, method: &str, path: &str, headers: &str) {
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address);
        self.send(head.as_bytes());
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The stream to write to, for whoever writes while another thread reads.
    pub(crate) fn writer(&self) -> TcpStream {
        self.stream.get_ref().try_clone().unwrap()
    }

    /// The next answer.
    pub(crate) fn answer(&mut self) -> Answer {
        let line = self.line();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body).unwrap();
        answer
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What arrives until the server closes the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        // A connection that is reset has ended too.
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }
}
