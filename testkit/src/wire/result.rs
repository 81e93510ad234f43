//! Results of commands, read off the connection.

use anyhow::bail;

use super::bytes::Reader;
use super::link::Link;
use super::packet::{read_binary_row, read_column, read_done, read_end, read_text_row};
use super::protocol::{capability, status};
use super::reply::{Column, Reply, Rows, SqlFault, fault};
use crate::Result;

/// One result.
pub(super) fn read(link: &mut Link, is_binary: bool) -> Result<Reply> {
    let packet = link.channel.read()?;
    match packet.first() {
        Some(0x00) => read_done(&packet, link.capabilities).map(Reply::Done),
        // An old server's answer to a command without rows.
        Some(0xfe) if packet.len() < 9 => read_end(&packet, link.capabilities).map(Reply::Done),
        Some(0xff) => fault(&packet).map(Reply::Failed),
        Some(0xfb) => {
            link.send_local_file()?;
            read(link, is_binary)
        }
        Some(_) => read_result_set(link, is_binary, &packet),
        None => bail!("an empty packet for an answer"),
    }
}

fn read_result_set(link: &mut Link, is_binary: bool, head: &[u8]) -> Result<Reply> {
    let count = Reader::new(head).integer()?;
    let mut columns = Vec::new();
    for _ in 0..count {
        columns.push(read_column(&link.channel.read()?)?);
    }
    if link.capabilities & capability::DEPRECATE_EOF == 0 {
        let packet = link.channel.read()?;
        if packet.first() == Some(&0xff) {
            return fault(&packet).map(Reply::Failed);
        }
        let end = read_end(&packet, link.capabilities)?;
        // A routine with a cursor of its own open says so too, and sends its rows.
        let rest = status::CURSOR_EXISTS | status::MORE_RESULTS;
        if is_binary && end.status & rest == status::CURSOR_EXISTS {
            let rows = Vec::new();
            return Ok(Reply::Rows(Rows { columns, rows, end }));
        }
    }
    let packet = link.channel.read()?;
    if packet.first() == Some(&0xff) {
        return fault(&packet).map(Reply::Failed);
    }
    match read_rows(link, columns, is_binary, packet) {
        Ok(rows) => Ok(Reply::Rows(rows)),
        // An error in the middle of the rows is the statement's.
        Err(error) => error.downcast::<SqlFault>().map(Reply::Failed),
    }
}

/// Rows up to their end, of which `packet` is the first.
pub(super) fn read_rows(
    link: &mut Link,
    columns: Vec<Column>,
    is_binary: bool,
    mut packet: Vec<u8>,
) -> Result<Rows> {
    let mut rows = Vec::new();
    loop {
        match packet.first() {
            // A row can begin like this only when its first field is longer than 16 MB.
            Some(0xfe) if packet.len() < 0xff_ffff => {
                let end = read_end(&packet, link.capabilities)?;
                return Ok(Rows { columns, rows, end });
            }
            Some(0xff) => return Err(fault(&packet)?.into()),
            Some(_) | None if is_binary => rows.push(read_binary_row(&packet, &columns)?),
            Some(_) | None => rows.push(read_text_row(&packet, columns.len())?),
        }
        packet = link.channel.read()?;
    }
}
