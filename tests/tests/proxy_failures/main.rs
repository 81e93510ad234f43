//! Every cause of failure that only a client of the proxy can meet, produced once each: number, state, words, and whether
//! the connection goes on, as the README says.

mod limits;
mod logins;
mod stores;

use anyhow::{Context, bail};
use keywright_core::cause::Cause;
use keywright_testkit::{
    Flavour, Login, Param, ProxyConfig, ProxyProcess, Relay, Reply, Result, SqlFault, Upstream,
    WAIT_MAX, Wire, command, make_store, wait_until,
};

/// A shard with one table.
struct Shop {
    server: Upstream,
    config: ProxyConfig,
}

impl Shop {
    fn open() -> Result<Shop> {
        let server = Upstream::start(Flavour::MariaDb)?;
        server.run(
            "mysql",
            "CREATE DATABASE shop;
             CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT);
             CREATE TABLE shop.plain (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT)",
        )?;
        let url = make_store(&server, "keywright", &[("orders", 1)])?;
        let config = ProxyConfig::before(&server, &url).rule("shop.orders", "segment:orders");
        Ok(Shop { server, config })
    }

    fn proxy(&self) -> Result<ProxyProcess> {
        ProxyProcess::start(self.config.clone())
    }

    /// With a line in the rule.
    fn ruled(&self, line: &str) -> Result<ProxyProcess> {
        let mut config = self.config.clone();
        for rule in &mut config.rules {
            rule.push_str(line);
        }
        ProxyProcess::start(config)
    }

    fn limited(&self, limits: &str) -> Result<ProxyProcess> {
        let mut config = self.config.clone();
        config.more = format!("[limits]\n{limits}\n");
        ProxyProcess::start(config)
    }
}

#[test]
fn every_cause_is_produced() -> Result<()> {
    let shop = Shop::open()?;
    for cause in Cause::OF_PROXY {
        produce(cause, &shop).with_context(|| cause.name())?;
    }
    Ok(())
}

/// No `_`: a new cause does not compile untested.
fn produce(cause: Cause, shop: &Shop) -> Result<()> {
    match cause {
        Cause::StatementUnsupported => an_unsupported_statement(shop),
        Cause::KeyExplicit => an_explicit_key(shop),
        Cause::StoreUnavailable => stores::a_store_that_is_away(shop),
        Cause::TableAhead => a_table_with_ids_still_to_be_given(shop),
        Cause::TableUnshown => a_table_that_admin_may_not_see(shop),
        Cause::TableUnanswered => a_new_table_while_admin_is_away(shop),
        Cause::UpstreamUnreachable => a_server_that_is_away(shop),
        Cause::ConnectionsFull => limits::one_connection_too_many(shop),
        Cause::MemoryFull => {
            limits::one_statement_too_many(shop)?;
            limits::long_statements_at_once(shop)
        }
        Cause::PacketTooLarge => limits::a_statement_too_long(shop),
        Cause::PacketMalformed => a_command_out_of_order(shop),
        Cause::TagOrdered => stores::a_tag_that_is_ordered(shop),
        Cause::TagHomeUnknown => stores::a_tag_that_may_be_open_elsewhere(shop),
        Cause::Draining => a_proxy_that_stops(shop),
        Cause::AuthUnsupported => logins::a_password_in_clear_on_one_leg(shop),
        Cause::TlsRequired => logins::a_client_without_tls(shop),
        Cause::UpstreamTls => logins::a_server_without_tls(shop),
        Cause::SocketAccount => logins::an_account_of_the_socket(shop),
        Cause::LoginTimeout => logins::a_client_that_says_nothing(shop),
        Cause::NotPreloaded
        | Cause::TagUnknown
        | Cause::TagExists
        | Cause::TagInvalid
        | Cause::TagExhausted
        | Cause::TagsFull
        | Cause::WorkersFull
        | Cause::ReadOnly
        | Cause::RefillTimeout
        | Cause::Suspended
        | Cause::WorkerIdUnset
        | Cause::WorkerIdInUse
        | Cause::LayoutInvalid
        | Cause::LayoutRanOut
        | Cause::LayoutOverlap
        | Cause::ZoneInvalid
        | Cause::ClockBehind
        | Cause::LeadExceeded
        | Cause::ArgumentOutOfRange
        | Cause::ArgumentNull
        | Cause::IdForeign
        | Cause::Privilege
        | Cause::Serialization
        | Cause::VersionMismatch
        | Cause::AdoptRefused
        | Cause::InExtensionScript
        | Cause::InParallelQuery
        | Cause::BoundDamaged
        | Cause::OwnTables
        | Cause::NotPromoted
        | Cause::IdentityUncommitted
        | Cause::NotFed
        | Cause::HandOverRefused
        | Cause::TagMoved
        | Cause::HideKeyMismatch => bail!("a PostgreSQL client can meet it too"),
        Cause::CommandRefused
        | Cause::KeyKind
        | Cause::PasswordMissing
        | Cause::PasswordWrong
        | Cause::KeysLeft
        | Cause::NobodyActive
        | Cause::SlotsCross
        | Cause::SlotGroupsDiffer
        | Cause::StoreMayLose
        | Cause::PathUnknown
        | Cause::MethodRefused
        | Cause::RequestTimeout
        | Cause::BrowserRefused
        | Cause::RightsMissing
        | Cause::UsersUnknown
        | Cause::LoginsFull
        | Cause::UserExists
        | Cause::UserUnknown
        | Cause::UserInvalid
        | Cause::TagInUse => bail!("only a client of a key port can meet it"),
    }
}

/// Asserts that the client was refused for that cause, in words that help.
#[track_caller]
fn expect(cause: Cause, fault: &SqlFault, message_has: &str) {
    let message = String::from_utf8_lossy(&fault.message);
    assert_eq!(fault.errno, cause.mysql_errno(), "{fault}");
    assert_eq!(fault.sqlstate, cause.sqlstate(), "{fault}");
    assert!(
        message.contains(message_has),
        "{message_has:?} is not in {message:?}"
    );
    assert!(
        !message.contains('\n') && !message.contains("::"),
        "insides shown: {message}"
    );
}

/// The error that the last result is, if it is one.
fn refusal(replies: Vec<Reply>) -> Option<SqlFault> {
    match replies.into_iter().next_back() {
        Some(Reply::Failed(fault)) => Some(fault),
        Some(Reply::Done(_) | Reply::Rows(_)) | None => None,
    }
}

fn refused(wire: &mut Wire, sql: impl AsRef<[u8]>) -> Result<SqlFault> {
    refusal(wire.query(sql)?).context("it was not refused")
}

fn login_refused(proxy: &ProxyProcess) -> Option<SqlFault> {
    let refused = Wire::connect_tcp(proxy.port(), &Login::root("shop")).err()?;
    refused.downcast::<SqlFault>().ok()
}

/// The connection goes on, and nothing of what was refused was carried out.
#[track_caller]
fn goes_on(wire: &mut Wire) -> Result<()> {
    assert_eq!(
        wire.rows("SELECT COUNT(*) FROM orders WHERE a = 'refused'")?,
        [["0"]]
    );
    Ok(())
}

#[track_caller]
fn has_ended(wire: &mut Wire) {
    assert!(wire.query("SELECT 1").is_err(), "the connection goes on");
}

/// It is told unasked: its next command is answered with the reason, and not carried out.
fn told_to_go(wire: &mut Wire) -> Result<()> {
    wire.wait_for_word()?;
    let sql = "INSERT INTO orders (a) VALUES ('late')";
    let fault = refusal(wire.query(sql)?).context("the refusal")?;
    expect(Cause::Draining, &fault, "Server shutdown in progress");
    has_ended(wire);
    Ok(())
}

fn an_unsupported_statement(shop: &Shop) -> Result<()> {
    let proxy = shop.proxy()?;
    let mut wire = proxy.wire("shop")?;
    for (sql, names) in [
        (
            "INSERT INTO orders (id, a) VALUES (RAND(), 'refused')",
            "a function call as key",
        ),
        (
            "INSERT INTO orders (a) SELECT GET_LOCK('refused', 0) FROM orders",
            "INSERT … SELECT",
        ),
    ] {
        expect(
            Cause::StatementUnsupported,
            &refused(&mut wire, sql)?,
            names,
        );
        goes_on(&mut wire)?;
    }
    Ok(())
}

fn an_explicit_key(shop: &Shop) -> Result<()> {
    let proxy = shop.ruled("on_explicit = \"refuse\"\n")?;
    let mut wire = proxy.wire("shop")?;
    let fault = refused(
        &mut wire,
        "INSERT INTO orders (id, a) VALUES (5, 'refused')",
    )?;
    expect(Cause::KeyExplicit, &fault, "\"id\"");
    goes_on(&mut wire)?;
    let prepared = wire.prepare("INSERT INTO orders (id, a) VALUES (?, 'refused')")??;
    let fault = refusal(wire.execute(&prepared, &[Param::Signed(5)])?).context("bound")?;
    expect(Cause::KeyExplicit, &fault, "\"id\"");
    goes_on(&mut wire)
}

/// Its fence was lifted by hand, and a transaction of XA is in the way of going on above its ids.
fn a_table_with_ids_still_to_be_given(shop: &Shop) -> Result<()> {
    let proxy = shop.limited("schema_refresh_s = 1\nswitch_wait_ms_max = 1000")?;
    let mut wire = proxy.wire("shop")?;
    let mut other = shop.server.wire("shop")?;
    for sql in [
        "XA START 'other'",
        "INSERT INTO plain (a) VALUES ('b')",
        "XA END 'other'",
        "XA PREPARE 'other'",
    ] {
        other.run(sql)?;
    }
    let mut direct = shop.server.wire("shop")?;
    direct.run("ALTER TABLE orders AUTO_INCREMENT = 5000000")?;
    let insert = "INSERT INTO orders (a) VALUES ('b')";
    let mut found = None;
    wait_until("the look", WAIT_MAX, || {
        found = refusal(wire.query(insert)?);
        Ok(found.is_some())
    })?;
    let fault = found.context("a refusal")?;
    expect(Cause::TableAhead, &fault, "ids of its own");
    other.run("XA ROLLBACK 'other'")?;
    wait_until("keys above its ids", WAIT_MAX, || {
        Ok(refusal(wire.query(insert)?).is_none())
    })?;
    let is_above = wire.rows("SELECT LAST_INSERT_ID() >= 5000000")?;
    assert_eq!(is_above, [["1"]]);
    Ok(())
}

/// A rule's pattern reaches further than what admin was granted.
fn a_table_that_admin_may_not_see(shop: &Shop) -> Result<()> {
    shop.server.run(
        "mysql",
        "CREATE DATABASE near; CREATE DATABASE nearly;
         CREATE TABLE near.items (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT); CREATE TABLE nearly.items LIKE near.items;
         CREATE USER keeper@'%'; GRANT SELECT, ALTER, LOCK TABLES ON near.* TO keeper@'%'",
    )?;
    let url = make_store(&shop.server, "keywright_near", &[("items", 1)])?;
    let config = ProxyConfig::before(&shop.server, &url).rule("near*.items", "segment:items");
    let proxy = ProxyProcess::start(ProxyConfig {
        admin_user: Some("keeper".to_owned()),
        ..config
    })?;
    let mut wire = proxy.wire("nearly")?;
    let refused = refusal(wire.query("INSERT INTO items (a) VALUES (1)")?);
    let fault = refused.context("a refusal")?;
    expect(Cause::TableUnshown, &fault, "may not see it");
    assert_eq!(wire.rows("SELECT 1")?, [["1"]]);
    Ok(())
}

/// Clients reach the server another way than admin does.
fn a_new_table_while_admin_is_away(shop: &Shop) -> Result<()> {
    let columns = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    shop.server.run(
        "mysql",
        &format!("CREATE DATABASE newer; CREATE TABLE newer.old {columns}"),
    )?;
    let url = make_store(&shop.server, "keywright_newer", &[("items", 1)])?;
    let network = Relay::to(shop.server.port())?;
    let config = ProxyConfig::before(&shop.server, &url).rule("newer.*", "segment:items");
    let proxy = ProxyProcess::start(ProxyConfig {
        upstream_ports: vec![network.port()],
        upstream_socket: Some(shop.server.socket()),
        ..config
    })?;
    let mut wire = proxy.wire("newer")?;
    network.cut();
    wire.run(format!("CREATE TABLE items {columns}"))?;
    let insert = "INSERT INTO items (a) VALUES (1)";
    let fault = refused(&mut wire, insert)?;
    expect(Cause::TableUnanswered, &fault, "has not said in time");
    assert_eq!(wire.rows("SELECT COUNT(*) FROM items")?, [["0"]]);
    // The same call succeeds later.
    network.mend();
    wait_until("keys", WAIT_MAX, || {
        Ok(refusal(wire.query(insert)?).is_none())
    })
}

fn a_server_that_is_away(shop: &Shop) -> Result<()> {
    let mut server = Upstream::start(Flavour::MariaDb)?;
    let mut config = shop.config.clone();
    config.upstream_ports = vec![server.port()];
    config.rules = Vec::new();
    let proxy = ProxyProcess::start(config)?;
    proxy.wire("mysql")?;
    server.kill9()?;
    let fault = login_refused(&proxy).context("a login without a server")?;
    assert_eq!((fault.errno, fault.sqlstate.as_str()), (1158, ""));
    let message = String::from_utf8_lossy(&fault.message);
    let names = format!("'127.0.0.1:{}'", server.port());
    assert!(message.contains(&names), "{message}");
    server.restart()?;
    proxy.wire("mysql")?;
    Ok(())
}

fn a_command_out_of_order(shop: &Shop) -> Result<()> {
    let proxy = shop.proxy()?;
    let mut wire = proxy.wire("shop")?;
    // MariaDB's bulk execution, which was not agreed on.
    let fault = refusal(wire.command(command::STMT_BULK_EXECUTE, &[1, 0, 0, 0, 0, 0])?);
    expect(
        Cause::PacketMalformed,
        &fault.context("bulk execution")?,
        "out of order",
    );
    has_ended(&mut wire);
    assert_eq!(proxy.wire("shop")?.rows("SELECT 1")?, [["1"]]);
    Ok(())
}

/// Whoever is in a transaction ends it; whoever comes is told at once.
fn a_proxy_that_stops(shop: &Shop) -> Result<()> {
    let mut proxy = shop.limited("drain_ms_max = 60000")?;
    let mut busy = proxy.wire("shop")?;
    busy.run("BEGIN")?;
    busy.run("INSERT INTO orders (a) VALUES ('before')")?;
    let mut idle = proxy.wire("shop")?;
    proxy.begin_stop()?;
    let mut fault = None;
    wait_until("a refused login", WAIT_MAX, || {
        fault = login_refused(&proxy);
        Ok(fault.is_some())
    })?;
    let fault = fault.context("the refusal")?;
    assert_eq!(fault.errno, Cause::Draining.mysql_errno(), "{fault}");
    assert!(
        String::from_utf8_lossy(&fault.message).contains("stopping"),
        "{fault}"
    );
    told_to_go(&mut idle)?;
    busy.run("INSERT INTO orders (a) VALUES ('after')")?;
    busy.run("COMMIT")?;
    told_to_go(&mut busy)?;
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    let both = "SELECT a FROM orders WHERE a IN ('before', 'after', 'late') ORDER BY id";
    assert_eq!(shop.server.run("shop", both)?, [["before"], ["after"]]);
    Ok(())
}
