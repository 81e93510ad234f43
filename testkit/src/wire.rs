//! A blocking client of the MySQL protocol that hides nothing: every field of every answer is there to compare, and every
//! command can be sent. Drivers keep most of it to themselves.

mod bytes;
mod channel;
mod link;
mod login;
mod packet;
mod prepared;
mod protocol;
mod reply;
mod result;
mod tls;

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use rustls::ClientConfig;

use crate::{Result, WAIT_MAX};
use channel::Channel;
use link::Link;

pub use login::Login;
pub use prepared::{Attribute, Param, Statement};
pub use protocol::{capability, command, status};
pub use reply::{Column, Done, Reply, Rows, SqlFault, Value};

/// A connection.
#[derive(Debug)]
pub struct Wire {
    link: Link,
    server_version: String,
    thread_id: u32,
}

impl Wire {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Errors
    /// A [`SqlFault`] when the server refuses; others when nobody listens or the server speaks something else.
    pub fn connect_tcp(port: u16, login: &Login) -> Result<Wire> {
        Self::connect_after(&[], port, login)
    }

    /// Connects to a port of 127.0.0.1, and says something before everything else.
    ///
    /// # Errors
    /// As [`Wire::connect_tcp`].
    pub fn connect_after(preface: &[u8], port: u16, login: &Login) -> Result<Wire> {
        let mut stream = tcp(port)?;
        stream.write_all(preface)?;
        Wire::enter(Channel::new(Box::new(stream)), login, None)
    }

    /// Connects to a port of 127.0.0.1, and does something else before it answers the server's greeting.
    ///
    /// # Errors
    /// As [`Wire::connect_tcp`], and that of what is done.
    pub fn connect_slowly(
        port: u16,
        login: &Login,
        greeted: impl FnOnce() -> Result<()>,
    ) -> Result<Wire> {
        Wire::enter_slowly(Channel::new(Box::new(tcp(port)?)), login, None, greeted)
    }

    /// Connects to a port of 127.0.0.1 with TLS, and trusts whom that authority has signed.
    ///
    /// # Errors
    /// As [`Wire::connect_tcp`], and when there is no TLS, or another certificate.
    pub fn connect_tls(port: u16, authority: &Path, login: &Login) -> Result<Wire> {
        let tls = tls::trusting(authority)?;
        Wire::enter(Channel::new(Box::new(tcp(port)?)), login, Some(tls))
    }

    /// Connects to a UNIX socket.
    ///
    /// # Errors
    /// As [`Wire::connect_tcp`].
    pub fn connect_unix(path: &Path, login: &Login) -> Result<Wire> {
        let stream = UnixStream::connect(path)
            .with_context(|| format!("connecting to {}", path.display()))?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.set_write_timeout(Some(WAIT_MAX))?;
        Wire::enter(Channel::new(Box::new(stream)), login, None)
    }

    fn enter(channel: Channel, login: &Login, tls: Option<Arc<ClientConfig>>) -> Result<Wire> {
        Self::enter_slowly(channel, login, tls, || Ok(()))
    }

    fn enter_slowly(
        channel: Channel,
        login: &Login,
        tls: Option<Arc<ClientConfig>>,
        greeted: impl FnOnce() -> Result<()>,
    ) -> Result<Wire> {
        let (link, greeting) = login::enter(channel, login, tls, greeted)?;
        Ok(Wire {
            link,
            server_version: greeting.version,
            thread_id: greeting.thread_id,
        })
    }

    /// What was agreed on: the low 32 bits are MySQL's, the high ones MariaDB's.
    #[must_use]
    pub fn capabilities(&self) -> u64 {
        self.link.capabilities
    }

    /// As the server greeted.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// The connection's id, as the server greeted.
    #[must_use]
    pub fn thread_id(&self) -> u32 {
        self.thread_id
    }

    /// What the server gets when it asks for a local file, whichever it asks for.
    pub fn set_local_file(&mut self, contents: impl Into<Vec<u8>>) {
        self.link.local_file = contents.into();
    }

    /// Runs a text and returns all its results.
    ///
    /// # Errors
    /// The connection broke; what the server refuses is a [`Reply::Failed`].
    pub fn query(&mut self, sql: impl AsRef<[u8]>) -> Result<Vec<Reply>> {
        self.send_query(sql)?;
        self.replies(false)
    }

    /// Sends a text and does not wait: clients may send the next command before they read.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send_query(&mut self, sql: impl AsRef<[u8]>) -> Result<()> {
        self.send_query_with(&[], sql)
    }

    fn send_query_with(&mut self, attributes: &[Attribute], sql: impl AsRef<[u8]>) -> Result<()> {
        let mut payload = Vec::new();
        if self.has_attributes() {
            prepared::put_attributes(&mut payload, attributes);
        }
        payload.extend(sql.as_ref());
        self.send(command::QUERY, &payload)
    }

    fn has_attributes(&self) -> bool {
        self.link.capabilities & capability::QUERY_ATTRIBUTES != 0
    }

    /// Runs a text with query attributes, which must have been agreed on.
    ///
    /// # Errors
    /// As [`Wire::query`].
    pub fn query_with(
        &mut self,
        attributes: &[Attribute],
        sql: impl AsRef<[u8]>,
    ) -> Result<Vec<Reply>> {
        self.send_query_with(attributes, sql)?;
        self.replies(false)
    }

    /// Waits until the other end says something unasked; it is read as the answer to the next command.
    ///
    /// # Errors
    /// The connection broke, or nothing came.
    pub fn wait_for_word(&mut self) -> Result<()> {
        self.link.channel.wait()
    }

    /// Reads all results of a text that was sent with [`Wire::send_query`].
    ///
    /// # Errors
    /// The connection broke.
    pub fn read_query(&mut self) -> Result<Vec<Reply>> {
        self.link.channel.expect_answer();
        self.replies(false)
    }

    /// Runs a text that must succeed with one result, and returns its rows as text: for looking at what is there.
    ///
    /// # Errors
    /// A [`SqlFault`] when the server refuses; others when the connection broke.
    pub fn rows(&mut self, sql: impl AsRef<[u8]>) -> Result<Vec<Vec<String>>> {
        let mut found = Vec::new();
        for reply in self.query(sql)? {
            match reply {
                Reply::Done(_) => {}
                Reply::Rows(rows) => found.extend(rows.as_text()),
                Reply::Failed(fault) => return Err(fault.into()),
            }
        }
        Ok(found)
    }

    /// Runs a text that must succeed and returns its last result, which must have no rows.
    ///
    /// # Errors
    /// A [`SqlFault`] when the server refuses; others when there are rows or the connection broke.
    pub fn run(&mut self, sql: impl AsRef<[u8]>) -> Result<Done> {
        let mut last = None;
        for reply in self.query(sql)? {
            last = Some(reply.done()?);
        }
        last.context("no result")
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// The connection broke; what the server refuses is the inner error.
    pub fn prepare(
        &mut self,
        sql: impl AsRef<[u8]>,
    ) -> Result<std::result::Result<Statement, SqlFault>> {
        self.send(command::STMT_PREPARE, sql.as_ref())?;
        prepared::read_prepared(&mut self.link)
    }

    /// Runs a prepared statement.
    ///
    /// # Errors
    /// The connection broke.
    pub fn execute(&mut self, statement: &Statement, params: &[Param]) -> Result<Vec<Reply>> {
        self.execute_with(statement.id, params, &[], prepared::NO_CURSOR)
    }

    /// Opens a cursor on a prepared statement, to be read with [`Wire::fetch`].
    ///
    /// # Errors
    /// The connection broke.
    pub fn open_cursor(&mut self, statement: &Statement, params: &[Param]) -> Result<Vec<Reply>> {
        self.execute_with(statement.id, params, &[], prepared::READ_ONLY_CURSOR)
    }

    /// Runs a statement by its number with query attributes, which must have been agreed on unless there are none; as number
    /// −1 (all ones) is MariaDB's for the last one prepared.
    ///
    /// # Errors
    /// The connection broke.
    pub fn execute_with(
        &mut self,
        id: u32,
        params: &[Param],
        attributes: &[Attribute],
        cursor: u8,
    ) -> Result<Vec<Reply>> {
        let attributes = self.has_attributes().then_some(attributes);
        let payload = prepared::execute_payload(id, params, attributes, cursor);
        self.send(command::STMT_EXECUTE, &payload)?;
        self.replies(true)
    }

    /// Reads at most that many rows of a cursor.
    ///
    /// # Errors
    /// The connection broke, or the server refuses.
    pub fn fetch(&mut self, statement: &Statement, rows_max: u32) -> Result<Rows> {
        let mut payload = statement.id.to_le_bytes().to_vec();
        payload.extend(rows_max.to_le_bytes());
        self.send(command::STMT_FETCH, &payload)?;
        let packet = self.link.channel.read()?;
        result::read_rows(&mut self.link, statement.columns.clone(), true, packet)
    }

    /// Sends a part of a parameter's value; there is no answer.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send_long_data(&mut self, statement: &Statement, param: u16, part: &[u8]) -> Result<()> {
        let mut payload = statement.id.to_le_bytes().to_vec();
        payload.extend(param.to_le_bytes());
        payload.extend(part);
        self.send(command::STMT_SEND_LONG_DATA, &payload)
    }

    /// Closes a prepared statement; there is no answer.
    ///
    /// # Errors
    /// The connection broke.
    pub fn close(&mut self, statement: &Statement) -> Result<()> {
        self.send(command::STMT_CLOSE, &statement.id.to_le_bytes())
    }

    /// Becomes another user. The capabilities stay those of the login.
    ///
    /// # Errors
    /// A [`SqlFault`] when the server refuses; others when the connection broke.
    pub fn change_user(&mut self, login: &Login) -> Result<()> {
        login::change_user(&mut self.link, login)
    }

    /// Any command that is answered with OK or an error.
    ///
    /// # Errors
    /// The connection broke.
    pub fn command(&mut self, command: u8, payload: &[u8]) -> Result<Vec<Reply>> {
        self.send(command, payload)?;
        self.replies(false)
    }

    /// Any command that is answered as executions of prepared statements are.
    ///
    /// # Errors
    /// The connection broke.
    pub fn binary_command(&mut self, command: u8, payload: &[u8]) -> Result<Vec<Reply>> {
        self.send(command, payload)?;
        self.replies(true)
    }

    /// Sends a command and reads nothing.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send(&mut self, command: u8, payload: &[u8]) -> Result<()> {
        self.link.send(command, payload)
    }

    /// Sends bytes as they are, however malformed.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.link.channel.write_raw(bytes)
    }

    /// The next packet's payload, whatever it is.
    ///
    /// # Errors
    /// The connection broke.
    pub fn read_packet(&mut self) -> Result<Vec<u8>> {
        self.link.channel.read()
    }

    /// Waits for the end of the connection: the bytes that still come, and the error in place of an orderly end.
    pub fn read_to_end(&mut self) -> (Vec<u8>, Option<ErrorKind>) {
        self.link.channel.read_to_end()
    }

    /// Results until one says that no more follow.
    fn replies(&mut self, is_binary: bool) -> Result<Vec<Reply>> {
        let mut replies = Vec::new();
        loop {
            let reply = result::read(&mut self.link, is_binary)?;
            let more = reply.has_more();
            replies.push(reply);
            if !more {
                return Ok(replies);
            }
        }
    }
}

fn tcp(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))
        .with_context(|| format!("connecting to port {port}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    stream.set_write_timeout(Some(WAIT_MAX))?;
    Ok(stream)
}
