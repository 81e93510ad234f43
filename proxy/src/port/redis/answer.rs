//! Answers that need no keys.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use keywright_core::Cause;
use keywright_resp::command::table::{self, Row};
use keywright_resp::command::{ClientCommand, CommandQuery, HELP};
use keywright_resp::reply::Writer;
use keywright_resp::request::Request;
use keywright_store::{Clock, Failure, SystemClock};

use crate::decode::{Decoded, decode};
use crate::port::issue;
use crate::port::keys::{NamedKeys, PortKeys};
use crate::port::redis::client::Client;
use crate::port::redis::{refused, role, told};
use crate::status::{Status, VERSION};

/// Whose commands are spoken, for clients that ask.
const REDIS_VERSION: &str = "7.0.0";

/// What the server is.
pub(super) fn hello(client: &Client, keys: &PortKeys, to: &mut Writer<'_>) {
    to.map(7);
    for (key, value) in [("server", "keywright"), ("version", VERSION)] {
        to.bulk(key.as_bytes());
        to.bulk(value.as_bytes());
    }
    to.bulk(b"proto");
    to.integer(i64::from(to.protocol().number()));
    to.bulk(b"id");
    to.integer(client.id());
    let mode = if client.is_in_cluster() {
        "cluster"
    } else {
        "standalone"
    };
    for (key, value) in [("mode", mode), ("role", role::own_role(keys))] {
        to.bulk(key.as_bytes());
        to.bulk(value.as_bytes());
    }
    to.bulk(b"modules");
    to.array(0);
}

/// Which commands there are behind `KEYWRIGHT`, a line each.
pub(super) fn help(to: &mut Writer<'_>) {
    to.array(HELP.len());
    HELP.iter().for_each(|line| to.simple(line));
}

/// The program's clock: seconds and microseconds.
pub(super) fn time(to: &mut Writer<'_>) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    to.array(2);
    to.bulk_number(since.as_secs());
    to.bulk_number(u64::from(since.subsec_micros()));
}

/// What the program says of itself.
pub(super) fn info(keys: &PortKeys, status: &Status, to: &mut Writer<'_>) {
    let given: u64 = keys.names().iter().map(|of| of.figures.given()).sum();
    let is_up = |is_up: Option<bool>| match is_up {
        Some(true) => "1",
        Some(false) => "0",
        None => "unknown",
    };
    let stores: String = status
        .stores()
        .iter()
        .map(|of| match of.name.as_str() {
            "" => format!("store_up:{}\r\n", is_up(of.is_up)),
            name => format!("store_{name}_up:{}\r\n", is_up(of.is_up)),
        })
        .collect();
    let (mode, enabled) = match keys.cluster {
        Some(_) => ("cluster", 1),
        None => ("standalone", 0),
    };
    to.text(&format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nkeywright_version:{VERSION}\r\nredis_mode:{mode}\r\nprocess_id:{}\r\nuptime_in_seconds:{}\r\n\
         \r\n# Clients\r\nconnected_clients:{}\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Stats\r\nkeys_given:{given}\r\n\r\n# Replication\r\n{}\
         \r\n# Cluster\r\ncluster_enabled:{enabled}\r\n\r\n# Store\r\n{stores}",
        std::process::id(),
        status.uptime_s(),
        keys.figures.open(),
        role::replication(keys),
    ));
}

/// Which commands there are.
pub(super) fn commands(query: CommandQuery, request: &Request<'_>, to: &mut Writer<'_>) {
    let named: Vec<&[u8]> = request.arguments(2).collect();
    let found = |name: &&[u8]| table::find(&name.to_ascii_uppercase());
    match query {
        CommandQuery::Count => to.integer(i64::try_from(table::ROWS.len()).unwrap_or(i64::MAX)),
        CommandQuery::Info if !named.is_empty() => {
            to.array(named.len());
            for row in named.iter().map(found) {
                match row {
                    Some(row) => command(row, to),
                    None => to.null(),
                }
            }
        }
        CommandQuery::All | CommandQuery::Info => {
            to.array(table::ROWS.len());
            table::ROWS.iter().for_each(|row| command(row, to));
        }
        CommandQuery::Docs => {
            let rows: Vec<&Row> = match named.is_empty() {
                true => table::ROWS.iter().collect(),
                false => named.iter().filter_map(found).collect(),
            };
            to.map(rows.len());
            for row in rows {
                to.bulk(row.name.to_ascii_lowercase().as_bytes());
                to.map(2);
                for (key, value) in [("summary", row.summary), ("group", "keywright")] {
                    to.bulk(key.as_bytes());
                    to.bulk(value.as_bytes());
                }
            }
        }
    }
}

/// A command as `COMMAND` shows it.
fn command(row: &Row, to: &mut Writer<'_>) {
    to.array(10);
    to.bulk(row.name.to_ascii_lowercase().as_bytes());
    to.integer(row.arity);
    to.array(2);
    to.simple(if row.is_write { "write" } else { "readonly" });
    to.simple("fast");
    for place in row.keys {
        to.integer(place);
    }
    // Categories of rights, tips, specifications of keys, subcommands: there are none.
    for _ in 0..4 {
        to.array(0);
    }
}

/// What a client says of itself, or asks.
pub(super) fn client(asked: ClientCommand<'_>, client: &mut Client, to: &mut Writer<'_>) {
    match asked {
        ClientCommand::SetName(name) => {
            client.set_name(name);
            to.ok();
        }
        ClientCommand::SetInfo => to.ok(),
        ClientCommand::GetName if client.name().is_empty() => to.null(),
        ClientCommand::GetName => to.bulk(client.name()),
        ClientCommand::Id => to.integer(client.id()),
        ClientCommand::Info => {
            let resp = to.protocol().number();
            let text = format!(
                "id={} name={} db=0 resp={resp} user={}\n",
                client.id(),
                client.name().escape_ascii(),
                client.who().name()
            );
            to.text(&text);
        }
    }
}

/// The names, and where their keys come from.
pub(super) fn list(names: &[&Arc<NamedKeys>], to: &mut Writer<'_>) {
    to.map(names.len());
    for named in names {
        to.bulk(named.name.as_bytes());
        to.bulk(named.source().as_bytes());
    }
}

/// The figures of all names.
pub(super) fn stats(names: &[&Arc<NamedKeys>], keys: &PortKeys, to: &mut Writer<'_>) {
    to.map(names.len());
    for named in names {
        to.bulk(named.name.as_bytes());
        to.map(3);
        to.bulk(b"key");
        to.bulk(named.source().as_bytes());
        to.bulk(b"state");
        to.bulk(keys.state(named).as_bytes());
        to.bulk(b"given");
        to.bulk_number(named.figures.given());
    }
}

/// What a program that takes ranges of a name must know: the tag they are of, which of all tags of that name it is, and how many numbers one
/// range may have.
pub(super) fn about(name: &[u8], keys: &PortKeys, to: &mut Writer<'_>) {
    let Some(named) = keys.name(name) else {
        return refused::refuse(keys, name, &issue::unknown(name, keys), to);
    };
    let facts = named.gives.tag_facts().unwrap_or_default();
    let hide_bits = facts.hide_bits.map(|bits| bits.get().to_string());
    to.map(6);
    text_pair("key", &named.spec.to_string(), to);
    text_pair("state", keys.state(named), to);
    for (key, known) in [
        ("order", facts.order.map(|order| order.name())),
        ("key_space", facts.key_space.as_deref()),
        ("hide_bits", hide_bits.as_deref()),
    ] {
        to.bulk(key.as_bytes());
        match known {
            Some(text) => to.bulk(text.as_bytes()),
            None => to.null(),
        }
    }
    to.bulk(b"run_max");
    to.bulk_number(named.run_max);
}

/// What an id says of itself.
pub(super) fn decoded(id: &[u8], keys: &PortKeys, to: &mut Writer<'_>) {
    let text = std::str::from_utf8(id).map_err(anyhow::Error::from);
    match text.and_then(|text| decode(text, &keys.layout, SystemClock.wall_ms())) {
        Ok(Decoded::Snowflake {
            layout,
            issued_at,
            issued_ms,
            datacenter,
            worker,
            sequence,
            note,
        }) => {
            let optional = usize::from(datacenter.is_some()) + usize::from(note.is_some());
            to.map(6 + optional);
            text_pair("kind", "snowflake", to);
            text_pair("layout", &layout, to);
            text_pair("issued_at", &issued_at, to);
            number_pair("issued_ms", issued_ms, to);
            if let Some(datacenter) = datacenter {
                number_pair("datacenter", i64::from(datacenter), to);
            }
            number_pair("worker", i64::from(worker), to);
            number_pair("sequence", i64::try_from(sequence).unwrap_or(i64::MAX), to);
            if let Some(note) = note {
                text_pair("note", note, to);
            }
        }
        Ok(Decoded::Readable {
            issued_at,
            issued_ms,
            biz,
            bucket,
            sequence,
        }) => {
            to.map(6);
            text_pair("kind", "readable", to);
            text_pair("issued_at", &issued_at, to);
            number_pair("issued_ms", issued_ms, to);
            text_pair("biz", &biz, to);
            number_pair("bucket", i64::from(bucket), to);
            number_pair("sequence", i64::try_from(sequence).unwrap_or(i64::MAX), to);
        }
        Err(error) => {
            let failure = Failure::new(Cause::IdForeign, format!("{error:#}"));
            refused::refuse(keys, b"", &failure, to);
        }
    }
}

fn text_pair(key: &str, value: &str, to: &mut Writer<'_>) {
    to.bulk(key.as_bytes());
    to.bulk(value.as_bytes());
}

fn number_pair(key: &str, value: i64, to: &mut Writer<'_>) {
    to.bulk(key.as_bytes());
    to.integer(value);
}

/// The last number that a name gave; nothing where none was.
pub(super) fn last(name: &[u8], keys: &PortKeys, to: &mut Writer<'_>) {
    match keys.name(name) {
        Some(named) if named.is_number() => match named.order_refusal() {
            Some(failure) => refused::refuse(keys, name, &failure, to),
            None => write_last(named.figures.last(), to),
        },
        Some(named) => refused::refuse(keys, name, &told::no_number(named), to),
        None => refused::refuse(keys, name, &issue::unknown(name, keys), to),
    }
}

/// The same of several names; nothing for those that have none.
pub(super) fn lasts(request: &Request<'_>, keys: &PortKeys, to: &mut Writer<'_>) {
    let mut names = request.arguments(1).filter_map(|name| keys.name(name));
    let refused = names.find_map(|named| Some((named, named.order_refusal()?)));
    if let Some((named, failure)) = refused {
        return refused::refuse(keys, named.name.as_bytes(), &failure, to);
    }
    to.array(request.count().saturating_sub(1));
    for name in request.arguments(1) {
        write_last(keys.name(name).and_then(|named| named.figures.last()), to);
    }
}

/// The last numbers of several names.
pub(super) fn write_lasts(lasts: &[Option<u64>], to: &mut Writer<'_>) {
    to.array(lasts.len());
    lasts.iter().for_each(|last| write_last(*last, to));
}

fn write_last(last: Option<u64>, to: &mut Writer<'_>) {
    match last {
        Some(last) => to.bulk_number(last),
        None => to.null(),
    }
}
