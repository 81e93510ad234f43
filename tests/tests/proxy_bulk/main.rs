//! MariaDB's bulk execution through the proxy: rows of parameters get keys, and the answer is what native auto-increment gives.

mod cases;

use std::sync::Arc;

use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Reply, Result, Upstream, Wire, capability,
    make_store,
};

use cases::Cell::{Int, Null, Text};
use cases::{BIGINT, Case, Cell, DOUBLE, INT, SEND_TYPES, STRING, bulk, cases, run};

/// The first key, above those that rows bring.
const FIRST: u64 = 1_000;

/// A server with the same table twice, and a proxy whose rule is for one of them.
struct Shop {
    server: Arc<Upstream>,
    proxy: ProxyProcess,
    /// Behind "native_" and "shop_" in the schemas' names.
    name: &'static str,
}

impl Shop {
    /// `None` where this flavour is not wanted.
    fn open(name: &'static str, rule: &str) -> Result<Option<Shop>> {
        if !Flavour::MariaDb.is_wanted() {
            return Ok(None);
        }
        let server = Upstream::shared(Flavour::MariaDb)?;
        for schema in ["native", "shop"] {
            let schema = format!("{schema}_{name}");
            server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
            server.run(&schema, TABLES)?;
        }
        let store = make_store(&server, &format!("store_{name}"), &[("orders", FIRST)])?;
        let pattern = format!("shop_{name}.orders");
        let mut config = ProxyConfig::before(&server, &store).rule(&pattern, "segment:orders");
        for line in &mut config.rules {
            line.push_str(rule);
        }
        let proxy = ProxyProcess::start(config)?;
        Ok(Some(Shop {
            server,
            proxy,
            name,
        }))
    }

    fn direct(&self) -> Result<Wire> {
        Wire::connect_tcp(self.server.port(), &self.login("native"))
    }

    fn client(&self) -> Result<Wire> {
        let wire = Wire::connect_tcp(self.proxy.port(), &self.login("shop"))?;
        assert_ne!(wire.capabilities() & capability::MARIADB_BULK, 0);
        Ok(wire)
    }

    fn login(&self, schema: &str) -> Login {
        let mut login = Login::root(&format!("{schema}_{}", self.name));
        login.capabilities |= capability::MARIADB_BULK;
        login
    }
}

const TABLES: &str = "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20) UNIQUE, b INT DEFAULT 5) AUTO_INCREMENT = 1000;
     CREATE TABLE others LIKE orders";

/// What a client sees of it, in keys that begin with 1000 where the first generated one would be `next`.
fn seen(wire: &mut Wire, case: &Case, next: u64) -> Result<Vec<String>> {
    let shown = |id: u64| if id >= FIRST { id - next + FIRST } else { id };
    let id = |text: &str| {
        text.parse()
            .map_or_else(|_| text.to_owned(), |id| shown(id).to_string())
    };
    wire.run("DELETE FROM orders")?;
    wire.run(case.before)?;
    wire.rows("SELECT LAST_INSERT_ID(42)")?;
    let statement = wire.prepare(case.text)??;
    let payload = bulk(SEND_TYPES, case.types, &case.rows);
    let mut seen = Vec::new();
    for reply in run(wire, statement.id, &payload)? {
        seen.push(match reply {
            Reply::Done(done) => format!(
                "{} rows, id {}, {} warnings, status {}, {}",
                done.affected_rows,
                shown(done.last_insert_id),
                done.warnings,
                done.status,
                String::from_utf8_lossy(&done.info)
            ),
            Reply::Failed(fault) => format!(
                "{} {}",
                fault.errno,
                String::from_utf8_lossy(&fault.message)
            ),
            Reply::Rows(rows) => format!(
                "{:?}",
                rows.as_text()
                    .iter()
                    .flatten()
                    .map(|text| id(text))
                    .collect::<Vec<_>>()
            ),
        });
    }
    wire.close(&statement)?;
    for row in wire.rows("SELECT LAST_INSERT_ID()")? {
        seen.push(format!("last {}", id(&row[0])));
    }
    for row in wire.rows("SELECT id, a, b FROM orders ORDER BY id")? {
        seen.push(format!("{}: {}, {}", id(&row[0]), row[1], row[2]));
    }
    wire.run("SET sql_mode = DEFAULT")?;
    Ok(seen)
}

/// The key that the next INSERT gets.
fn next(wire: &mut Wire) -> Result<u64> {
    let done = wire.run("INSERT INTO orders (a) VALUES ('probe')")?;
    Ok(done.last_insert_id + 1)
}

#[test]
fn answers_are_those_of_native_auto_increment() -> Result<()> {
    let Some(shop) = Shop::open("answers", "")? else {
        return Ok(());
    };
    let (mut client, mut direct) = (shop.client()?, shop.direct()?);
    for case in cases() {
        shop.server.run("native_answers", "TRUNCATE orders; TRUNCATE others; ALTER TABLE orders AUTO_INCREMENT = 1000; ALTER TABLE others AUTO_INCREMENT = 1000")?;
        shop.server.run(
            "shop_answers",
            "TRUNCATE others; ALTER TABLE others AUTO_INCREMENT = 1000",
        )?;
        let is_ours = !case.text.contains("others");
        let first = if is_ours { next(&mut client)? } else { FIRST };
        let native = seen(&mut direct, &case, FIRST)?;
        assert_eq!(seen(&mut client, &case, first)?, native, "{}", case.text);
    }
    Ok(())
}

#[test]
fn a_statement_is_executed_in_both_ways_and_by_the_number_of_the_last() -> Result<()> {
    let Some(shop) = Shop::open("both", "")? else {
        return Ok(());
    };
    let mut client = shop.client()?;
    let last = u32::MAX;
    let keyed = client.prepare("INSERT INTO orders (id, a) VALUES (?, ?)")??;
    let types = [BIGINT, STRING];
    let ids = |replies: Vec<Reply>| -> Vec<u64> {
        let done = replies
            .into_iter()
            .map(|reply| reply.done().map_or(0, |done| done.last_insert_id));
        done.collect()
    };
    let rows = |first, second| {
        bulk(
            SEND_TYPES,
            &types,
            &[vec![Null, Text(first)], vec![Null, Text(second)]],
        )
    };
    assert_eq!(ids(run(&mut client, last, &rows("a", "b"))?), [1000]);
    // Types are remembered.
    let rest = bulk(0, &types, &[vec![Null, Text("c")]]);
    assert_eq!(ids(run(&mut client, keyed.id, &rest)?), [1002]);
    let params = [
        keywright_testkit::Param::Null,
        keywright_testkit::Param::Text(b"d".to_vec()),
    ];
    assert_eq!(ids(client.execute(&keyed, &params)?), [1003]);
    // Of a PREPARE that is refused, or that fails, no execution follows.
    for text in ["INSERT INTO orders (id, a) VALUES (RAND(), ?)", "SELEC"] {
        assert!(client.prepare(text)?.is_err());
        let replies = run(&mut client, last, &rows("e", "f"))?;
        assert!(
            matches!(replies.as_slice(), [Reply::Failed(fault)] if fault.errno == 1243),
            "{replies:?}"
        );
    }
    // The session's own texts are not the client's last.
    let select = client.prepare("SELECT COUNT(*), LAST_INSERT_ID() FROM orders")??;
    assert_eq!(ids(run(&mut client, keyed.id, &rows("g", "h"))?), [1004]);
    let replies = client.execute_with(last, &[], &[], 0)?;
    assert!(
        matches!(replies.as_slice(), [Reply::Rows(rows)] if rows.as_text() == [["6", "1004"]]),
        "{replies:?}"
    );
    client.close(&select)?;
    Ok(())
}

#[test]
fn many_rows_get_keys_in_their_order() -> Result<()> {
    const ROWS: i64 = 20_000;
    let Some(shop) = Shop::open("many", "")? else {
        return Ok(());
    };
    let mut client = shop.client()?;
    let statement = client.prepare("INSERT INTO orders (b) VALUES (?)")??;
    let rows: Vec<Vec<Cell>> = (0..ROWS).map(|row| vec![Int(row)]).collect();
    run(&mut client, statement.id, &bulk(SEND_TYPES, &[INT], &rows))?;
    let wrong = "SELECT COUNT(*), SUM(id <> 1000 + b) FROM orders";
    assert_eq!(client.rows(wrong)?, [[ROWS.to_string(), "0".to_owned()]]);
    Ok(())
}

#[test]
fn what_cannot_be_done_exactly_is_refused_by_name() -> Result<()> {
    let Some(shop) = Shop::open(
        "refused",
        "on_ambiguous_id = \"refuse\"\non_explicit = \"refuse\"\n",
    )?
    else {
        return Ok(());
    };
    let mut client = shop.client()?;
    let mut refused = |text: &str, rest: &[u8], expected: (u16, &str)| -> Result<()> {
        let statement = client.prepare(text)??;
        let replies = run(&mut client, statement.id, rest)?;
        let [Reply::Failed(fault)] = replies.as_slice() else {
            panic!("{text}: {replies:?}");
        };
        let message = String::from_utf8_lossy(&fault.message);
        assert_eq!(fault.errno, expected.0, "{message}");
        assert!(message.contains(expected.1), "{message}");
        client.close(&statement)
    };
    let plain = "INSERT INTO orders (a) VALUES (?)";
    let keyed = "INSERT INTO orders (id, a) VALUES (?, ?)";
    let two = [vec![Text("x")], vec![Text("y")]];
    refused(
        plain,
        &bulk(SEND_TYPES | 64, &[STRING], &two),
        (1235, "a result for each row"),
    )?;
    refused(
        plain,
        &bulk(SEND_TYPES, &[STRING], &[]),
        (1235, "without rows"),
    )?;
    refused(
        plain,
        &bulk(SEND_TYPES, &[[9, 0]], &[vec![Int(1)]]),
        (1235, "of a type that is not known"),
    )?;
    refused(
        keyed,
        &bulk(
            SEND_TYPES,
            &[DOUBLE, STRING],
            &[
                vec![Int(0x3FF8_0000_0000_0000), Text("x")],
                vec![Null, Text("y")],
            ],
        ),
        (1235, "no room for keys"),
    )?;
    refused(
        keyed,
        &bulk(
            SEND_TYPES,
            &[STRING, STRING],
            &[vec![Text("0e999"), Text("x")]],
        ),
        (1235, "a string that is no number"),
    )?;
    // Certainly no key of the server's: in strict mode it refuses a word in every row.
    refused(
        keyed,
        &bulk(
            SEND_TYPES,
            &[STRING, STRING],
            &[vec![Text("abc"), Text("x")]],
        ),
        (3105, "generated"),
    )?;
    let mut native = shop.direct()?;
    let statement = native.prepare(keyed)??;
    let rows = [vec![Text("7"), Text("x")], vec![Text("abc"), Text("y")]];
    let payload = bulk(SEND_TYPES, &[STRING, STRING], &rows);
    let replies = run(&mut native, statement.id, &payload)?;
    assert!(
        matches!(replies.as_slice(), [Reply::Failed(fault)] if fault.errno == 1366),
        "{replies:?}"
    );
    refused(
        keyed,
        &bulk(
            SEND_TYPES,
            &[BIGINT, STRING],
            &[vec![Null, Text("x")], vec![Int(5), Text("y")]],
        ),
        (3105, "generated"),
    )?;
    let ignore = "INSERT IGNORE INTO orders (a) VALUES (?)";
    refused(ignore, &bulk(SEND_TYPES, &[STRING], &two), (1235, "IGNORE"))?;
    let statement = client.prepare(plain)??;
    client.send_long_data(&statement, 0, b"ahead")?;
    let replies = run(
        &mut client,
        statement.id,
        &bulk(SEND_TYPES, &[STRING], &two),
    )?;
    assert!(
        matches!(replies.as_slice(), [Reply::Failed(fault)] if fault.errno == 1235),
        "{replies:?}"
    );
    // All of them left nothing behind.
    assert_eq!(client.rows("SELECT COUNT(*) FROM orders")?, [["0"]]);
    let replies = run(
        &mut client,
        statement.id,
        &bulk(SEND_TYPES, &[STRING], &two),
    )?;
    assert!(
        matches!(replies.as_slice(), [Reply::Done(done)] if done.affected_rows == 2),
        "{replies:?}"
    );
    Ok(())
}
