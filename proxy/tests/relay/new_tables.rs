//! Statements on tables that are new to the program.

use std::sync::Arc;

use anyhow::Result;
use keywright_proxy::connection::stream::Stream;
use keywright_proxy::in_force::context::ListenerContext;
use keywright_proxy::schema::NewTables;
use keywright_session::{Rules, SchemaChanges, Session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{elsewhere, facts, packet, pair, relay_of, state, within};

/// An account may not read the table.
pub(super) const DENIED: &[u8] = b"\xFF\x76\x04#42000denied";
/// A statement without parameters and columns was prepared.
pub(super) const PREPARED: &[u8] = b"\0\x01\0\0\0\0\0\0\0\0\0\0";

pub(super) async fn payload_of(from: &mut TcpStream) -> Result<Vec<u8>> {
    let mut header = [0; 4];
    from.read_exact(&mut header).await?;
    let [low, high, ..] = header;
    let mut payload = vec![0; usize::from(u16::from_le_bytes([low, high]))];
    from.read_exact(&mut payload).await?;
    Ok(payload)
}

/// Whatever comes of it: here there are no keys, and that is what the client hears.
#[tokio::test]
async fn they_wait_until_the_servers_were_asked() -> Result<()> {
    within(async {
        let (mut client, from_client) = pair().await?;
        let (to_server, mut server) = pair().await?;
        let schema = Arc::new(SchemaChanges::default());
        let new_tables = Arc::new(NewTables::default());
        let rules = Rules::new(vec![elsewhere()?], false)
            .with_tables(&[], true)
            .with_schema(Arc::clone(&schema));
        let context = ListenerContext {
            new_tables: Arc::clone(&new_tables),
            ..ListenerContext::default()
        };
        let relay = relay_of(
            |_| Session::new(Arc::new(rules), facts()),
            context,
            Vec::new(),
            Stream::Tcp(from_client),
            Stream::Tcp(to_server),
        );
        let insert = b"\x03INSERT INTO elsewhere.t (a) VALUES (1)";
        client.write_all(&packet(0, insert)).await?;
        payload_of(&mut server).await?;
        server.write_all(&state()).await?;
        // The server does not say by the client's account whether the table has the column.
        let asked = payload_of(&mut server).await?;
        assert!(asked.starts_with(b"\x16SELECT `id`"), "{asked:?}");
        server.write_all(&packet(1, DENIED)).await?;
        let asked = payload_of(&mut server).await?;
        assert!(asked.starts_with(b"\x16INSERT INTO"), "{asked:?}");
        server.write_all(&packet(1, PREPARED)).await?;
        new_tables.waited_for().await;
        assert!(client.try_read(&mut [0]).is_err(), "it was answered");
        let tables = schema.tables_to_ask(false);
        assert_eq!(tables.len(), 1, "{tables:?}");
        // Nobody has answered, and the statement still waits.
        schema.note_asked(&tables);
        new_tables.waited_for().await;
        assert_eq!(schema.tables_to_ask(false), tables);
        for table in &tables {
            schema.note_shown(table, true);
        }
        new_tables.tell(schema.answers());
        let told = payload_of(&mut client).await?;
        let told = String::from_utf8_lossy(&told);
        assert!(told.contains("no source of keys"), "{told}");
        drop((client, server));
        relay.await??;
        Ok(())
    })
    .await
}
