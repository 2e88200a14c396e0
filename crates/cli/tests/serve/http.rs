//! As much of HTTP as the tests need, written out, so that they can also get it wrong.

use crate::support::PATIENCE;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal, which must have the form of one.
    pub fn code(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{self:?}");
        body["code"].as_str().expect("a code").to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// What is to be asked.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
}

pub fn get(path: &str) -> Ask {
    ask("GET", path)
}

pub fn ask(method: &str, path: &str) -> Ask {
    Ask { method: method.to_owned(), path: path.to_owned(), headers: vec![], body: None }
}

impl Ask {
    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn token(self, secret: &str) -> Ask {
        self.header("Authorization", &format!("Bearer {secret}"))
    }

    pub fn body(mut self, body: impl Into<String>) -> Ask {
        self.body = Some(body.into());
        self
    }

    /// How it is sent; with this host unless it has one.
    pub fn text(&self, host: &str) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text += &format!("Host: {host}\r\n");
        }
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        let body = self.body.as_deref();
        if let Some(body) = body {
            text +=
                &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        text + "Connection: close\r\n\r\n" + body.unwrap_or_default()
    }
}

pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("{address}: {error}"));
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends bytes as they are, and reads the answer to the end of the connection. A server that has
/// heard enough may answer, and close, before all is sent.
pub fn exchange(stream: &mut (impl Read + Write), bytes: &[u8]) -> Answer {
    let _ = stream.write_all(bytes);
    read(stream)
}

/// Reads an answer to the end of the connection.
pub fn read(stream: &mut impl Read) -> Answer {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    parse(&text).unwrap_or_else(|| panic!("no answer: {ended:?} {text:?}"))
}

pub fn parse(text: &str) -> Option<Answer> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.get(2..)?.get(..3)?.parse().ok()?;
    Some(Answer { status, head: head.to_owned(), body: body.to_owned() })
}
