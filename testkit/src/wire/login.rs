//! The handshake.

use std::sync::Arc;

use anyhow::{Context, bail};
use rustls::ClientConfig;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::bytes::{Reader, put_string};
use super::channel::Channel;
use super::link::Link;
use super::protocol::{capability, command};
use super::reply::fault;
use super::tls;
use crate::Result;

/// What a connection needs to work at all.
const REQUIRED: u64 = capability::LONG_PASSWORD
    | capability::LONG_FLAG
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH;

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING_SHA2: &[u8] = b"caching_sha2_password";

/// utf8mb4_general_ci: both servers know it.
const UTF8MB4: u8 = 45;

const PACKET_BYTES_MAX: u32 = 1 << 30;

/// Who connects, to what, and how.
#[derive(Debug, Clone)]
pub struct Login {
    /// The account.
    pub user: String,
    /// Its password; none when empty.
    pub password: String,
    /// The first schema; none when empty.
    pub database: String,
    /// What is wanted besides what is needed; what the server does not offer is left out.
    pub capabilities: u64,
    /// What is claimed whether or not the server offers it.
    pub claimed: u64,
    /// The number of the connection's collation.
    pub collation: u8,
}

impl Login {
    /// The superuser of a private server, with everything that common drivers ask for.
    #[must_use]
    pub fn root(database: &str) -> Login {
        Login {
            user: "root".to_owned(),
            password: String::new(),
            database: database.to_owned(),
            capabilities: capability::LOCAL_FILES
                | capability::MULTI_STATEMENTS
                | capability::MULTI_RESULTS
                | capability::PS_MULTI_RESULTS
                | capability::SESSION_TRACK
                | capability::DEPRECATE_EOF,
            claimed: 0,
            collation: UTF8MB4,
        }
    }
}

/// What a server says first.
pub(super) struct Greeting {
    pub(super) version: String,
    pub(super) thread_id: u32,
    capabilities: u64,
    seed: Vec<u8>,
    plugin: Vec<u8>,
}

fn read_greeting(packet: &[u8]) -> Result<Greeting> {
    let mut reader = Reader::new(packet);
    if reader.u8()? != 10 {
        return Err(fault(packet)
            .context("neither a greeting nor an error")?
            .into());
    }
    let version = String::from_utf8_lossy(reader.string0()?).into_owned();
    let thread_id = reader.u32()?;
    let mut seed = reader.take(8)?.to_vec();
    reader.take(1)?;
    let low = u64::from(reader.u16()?);
    // Collation and status.
    reader.take(3)?;
    let high = u64::from(reader.u16()?);
    reader.take(7)?;
    let mariadb = u64::from(reader.u32()?);
    let is_mariadb = low & capability::LONG_PASSWORD == 0;
    seed.extend(reader.take(12)?);
    reader.take(1)?;
    let plugin = reader.string0()?.to_vec();
    // Oracle's servers fill the place of MariaDB's capabilities with zeros.
    let capabilities = low | high << 16 | if is_mariadb { mariadb << 32 } else { 0 };
    Ok(Greeting {
        version,
        thread_id,
        capabilities,
        seed,
        plugin,
    })
}

/// Logs in, over TLS if that is given; `greeted` comes between the server's greeting and its answer.
pub(super) fn enter(
    mut channel: Channel,
    login: &Login,
    tls: Option<Arc<ClientConfig>>,
    greeted: impl FnOnce() -> Result<()>,
) -> Result<(Link, Greeting)> {
    let greeting = read_greeting(&channel.read()?)?;
    greeted()?;
    // MariaDB says by leaving the first bit out that it has capabilities of its own, and understands it all the same.
    let offered = greeting.capabilities | REQUIRED | capability::CONNECT_WITH_DB;
    let mut wanted = login.capabilities | REQUIRED;
    if !login.database.is_empty() {
        wanted |= capability::CONNECT_WITH_DB;
    }
    if tls.is_some() {
        if offered & capability::SSL == 0 {
            bail!("the server offers no TLS");
        }
        wanted |= capability::SSL;
    }
    let capabilities = (wanted & offered) | login.claimed;
    let mariadb = capabilities >> 32;
    let ours = if mariadb == 0 {
        capabilities
    } else {
        capabilities & !capability::LONG_PASSWORD
    };
    let mut packet = Vec::new();
    packet.extend(u32::try_from(ours & 0xffff_ffff)?.to_le_bytes());
    packet.extend(PACKET_BYTES_MAX.to_le_bytes());
    packet.push(login.collation);
    packet.extend([0; 19]);
    packet.extend(u32::try_from(mariadb)?.to_le_bytes());
    if let Some(tls) = tls {
        channel.write(&packet)?;
        channel = channel.over(|stream| tls::over(stream, tls))?;
    }
    packet.extend(login.user.as_bytes());
    packet.push(0);
    let proof = prove(&greeting.plugin, &login.password, &greeting.seed)?;
    packet.push(u8::try_from(proof.len())?);
    packet.extend(&proof);
    if !login.database.is_empty() {
        packet.extend(login.database.as_bytes());
        packet.push(0);
    }
    packet.extend(&greeting.plugin);
    packet.push(0);
    if capabilities & capability::CONNECT_ATTRS != 0 {
        let mut attributes = Vec::new();
        put_string(&mut attributes, b"program_name");
        put_string(&mut attributes, b"keywright-tests");
        put_string(&mut packet, &attributes);
    }
    channel.write(&packet)?;
    authenticate(&mut channel, &login.password)?;
    let link = Link {
        channel,
        capabilities,
        local_file: Vec::new(),
    };
    Ok((link, greeting))
}

pub(super) fn change_user(link: &mut Link, login: &Login) -> Result<()> {
    let mut payload = login.user.as_bytes().to_vec();
    payload.push(0);
    // No proof: the server answers with the seed for one.
    payload.push(0);
    payload.extend(login.database.as_bytes());
    payload.push(0);
    payload.extend([login.collation, 0]);
    payload.extend(NATIVE);
    payload.push(0);
    if link.capabilities & capability::CONNECT_ATTRS != 0 {
        payload.push(0);
    }
    link.send(command::CHANGE_USER, &payload)?;
    authenticate(&mut link.channel, &login.password)
}

/// Answers what the server asks until it is content.
fn authenticate(channel: &mut Channel, password: &str) -> Result<()> {
    loop {
        let packet = channel.read()?;
        match packet.first() {
            Some(0x00) => return Ok(()),
            Some(0xff) => return Err(fault(&packet)?.into()),
            Some(0xfe) => {
                let mut reader = Reader::new(&packet);
                reader.u8()?;
                let plugin = reader.string0()?;
                let seed = reader.rest();
                let proof = prove(plugin, password, seed.strip_suffix(&[0]).unwrap_or(seed))?;
                channel.write(&proof)?;
            }
            // The server knew the password's hash; OK follows.
            Some(0x01) if packet.get(1) == Some(&3) => {}
            Some(0x01) => bail!(
                "the server wants caching_sha2_password in full, which this client leaves to drivers: connect with one first"
            ),
            first => bail!("packet {first:?} while authenticating"),
        }
    }
}

fn prove(plugin: &[u8], password: &str, seed: &[u8]) -> Result<Vec<u8>> {
    if password.is_empty() {
        return Ok(Vec::new());
    }
    match plugin {
        NATIVE => {
            let once = Sha1::digest(password);
            let twice = Sha1::digest(once);
            let mixed = Sha1::new()
                .chain_update(seed)
                .chain_update(twice)
                .finalize();
            Ok(once.iter().zip(mixed).map(|(a, b)| a ^ b).collect())
        }
        CACHING_SHA2 => {
            let once = Sha256::digest(password);
            let twice = Sha256::digest(once);
            let mixed = Sha256::new()
                .chain_update(twice)
                .chain_update(seed)
                .finalize();
            Ok(once.iter().zip(mixed).map(|(a, b)| a ^ b).collect())
        }
        _ => bail!(
            "no authentication with {:?} here",
            String::from_utf8_lossy(plugin)
        ),
    }
}
