//! Query attributes of MySQL's clients through the proxy: the server gets them as if there were no proxy, and statements on
//! rules' tables get their keys beside them.

use std::sync::{Arc, Mutex, PoisonError};

use keywright_testkit::{
    Attribute, Flavour, Login, Param, ProxyConfig, ProxyProcess, Reply, Result, SqlFault, Upstream,
    Wire, capability, command, make_store,
};

const TABLE: &str =
    "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(99), b VARCHAR(99));
     CREATE TABLE others LIKE orders";
/// Without the names of schema and table.
const ROWS: &str =
    "SELECT CONCAT(id, ': ', a, ', ', COALESCE(b, '-')) AS r FROM orders ORDER BY id";
/// What the server tells of an attribute.
const WHO: &str = "mysql_query_attribute_string('who')";

/// A server that tells attributes, with the same tables twice, and a proxy whose rule is for one of them.
struct Shop {
    server: Arc<Upstream>,
    proxy: ProxyProcess,
    /// Behind "native_" and "shop_" in the schemas' names.
    name: &'static str,
}

impl Shop {
    /// `None` where this flavour is not wanted.
    fn open(name: &'static str) -> Result<Option<Shop>> {
        if !Flavour::MySql.is_wanted() {
            return Ok(None);
        }
        let server = Upstream::shared(Flavour::MySql)?;
        install_component(&server)?;
        for schema in ["native", "shop"] {
            let schema = format!("{schema}_{name}");
            server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
            server.run(&schema, TABLE)?;
        }
        let store = make_store(&server, &format!("store_{name}"), &[("orders", 1)])?;
        let rule = format!("shop_{name}.orders");
        let config = ProxyConfig::before(&server, &store).rule(&rule, "segment:orders");
        let proxy = ProxyProcess::start(config)?;
        Ok(Some(Shop {
            server,
            proxy,
            name,
        }))
    }

    /// Does the same directly and through the proxy, and asserts that it comes to the same.
    fn same<T: PartialEq + std::fmt::Debug>(
        &self,
        seen: impl Fn(&mut Wire) -> Result<T>,
    ) -> Result<T> {
        let direct = seen(&mut Wire::connect_tcp(
            self.server.port(),
            &self.login("native"),
        )?)?;
        assert_eq!(seen(&mut self.client()?)?, direct);
        Ok(direct)
    }

    fn client(&self) -> Result<Wire> {
        let wire = Wire::connect_tcp(self.proxy.port(), &self.login("shop"))?;
        assert_ne!(wire.capabilities() & capability::QUERY_ATTRIBUTES, 0);
        Ok(wire)
    }

    fn login(&self, schema: &str) -> Login {
        let mut login = Login::root(&format!("{schema}_{}", self.name));
        login.capabilities |= capability::QUERY_ATTRIBUTES;
        login
    }
}

/// The functions that tell attributes, once for all tests.
fn install_component(server: &Upstream) -> Result<()> {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if server.run("mysql", "SELECT COUNT(*) FROM component")? == [["0"]] {
        server.run(
            "mysql",
            "INSTALL COMPONENT 'file://component_query_attributes'",
        )?;
    }
    Ok(())
}

fn text(text: &str) -> Param {
    Param::Text(text.as_bytes().to_vec())
}

/// What is told of `who`, beside attributes of other kinds.
fn attributes(who: &str) -> [Attribute; 4] {
    [
        ("none", Param::Null),
        ("who", text(who)),
        ("number", Param::Unsigned(7)),
        ("real", Param::Real(1.5)),
    ]
}

#[test]
fn texts_keep_their_attributes_and_get_keys() -> Result<()> {
    let Some(shop) = Shop::open("texts")? else {
        return Ok(());
    };
    shop.same(|wire| {
        let mut seen = Vec::new();
        for (index, sql) in [
            format!("INSERT INTO orders (a, b) VALUES ({WHO}, 'x')"),
            format!("INSERT INTO orders VALUES (NULL, 'y', {WHO}), (0, {WHO}, 'y')"),
            "INSERT INTO orders (a) VALUES ('plain')".to_owned(),
            "SELECT LAST_INSERT_ID()".to_owned(),
            format!("SELECT {WHO}; INSERT INTO orders (a) VALUES ({WHO}); SELECT {WHO}"),
            format!("INSERT INTO others (a) VALUES ({WHO})"),
            "SELECT LAST_INSERT_ID()".to_owned(),
            format!("PREPARE s FROM \"INSERT INTO orders (a) VALUES ({WHO})\""),
            "EXECUTE s".to_owned(),
            format!("SET @who = {WHO}"),
            "SELECT @who, mysql_query_attribute_string('number') n".to_owned(),
            // Burns keys: the last.
            "INSERT INTO orders (a) SELECT a FROM others".to_owned(),
        ]
        .iter()
        .enumerate()
        {
            seen.extend(wire.query_with(&attributes(&format!("text {index}")), sql)?);
        }
        seen.extend(wire.query(ROWS)?);
        Ok(seen)
    })?;
    let rows = shop
        .server
        .run("shop_texts", "SELECT id, a, b FROM orders")?;
    assert_eq!(
        rows.first().map(Vec::as_slice),
        Some(["1", "text 0", "x"].map(str::to_owned).as_slice())
    );
    assert_eq!(rows.len(), 7);
    Ok(())
}

#[test]
fn executions_keep_their_attributes_and_get_keys() -> Result<()> {
    let Some(shop) = Shop::open("executions")? else {
        return Ok(());
    };
    let who = attributes("execution");
    shop.same(|wire| {
        let mut seen = Vec::new();
        let inserts = [
            (
                format!("INSERT INTO orders (a, b) VALUES (?, {WHO})"),
                vec![text("a")],
            ),
            (
                format!("INSERT INTO orders (a, id, b) VALUES (?, ?, {WHO}), ({WHO}, ?, ?)"),
                vec![text("b"), Param::Null, Param::Signed(0), text("c")],
            ),
            (format!("INSERT INTO orders (a) VALUES ({WHO})"), Vec::new()),
            (
                format!("INSERT INTO others (a, b) VALUES (?, {WHO})"),
                vec![text("d")],
            ),
            (format!("SELECT {WHO}, ?"), vec![text("e")]),
            (format!("SELECT {WHO}"), Vec::new()),
        ];
        for (sql, params) in &inserts {
            let statement = wire.prepare(sql)??;
            for attributes in [who.as_slice(), &[], &who] {
                seen.extend(wire.execute_with(statement.id, params, attributes, 0)?);
            }
            seen.extend(wire.query("SELECT LAST_INSERT_ID()")?);
            wire.close(&statement)?;
        }
        // More parameters than fit into one byte of the bitmap, and a value that was sent as long data.
        let sql = "INSERT INTO orders (a, b) VALUES (?, ?), (?, ?), (?, ?), (?, ?), (?, ?)";
        let statement = wire.prepare(sql)??;
        let mut params: Vec<Param> = (0..10).map(|i| text(&format!("p{i}"))).collect();
        params[7] = Param::Null;
        params[8] = Param::Long;
        wire.send_long_data(&statement, 8, b"ahead")?;
        seen.extend(wire.execute_with(statement.id, &params, &who, 0)?);
        // Burns keys: the last.
        let sql = "INSERT INTO orders (a) SELECT b FROM others WHERE b = ? LIMIT 1";
        let statement = wire.prepare(sql)??;
        seen.extend(wire.execute_with(statement.id, &[text("execution")], &who, 0)?);
        seen.extend(wire.query(ROWS)?);
        Ok(seen)
    })?;
    Ok(())
}

#[test]
fn attributes_that_cannot_be_read_are_the_end_or_are_refused() -> Result<()> {
    let Some(shop) = Shop::open("strange")? else {
        return Ok(());
    };
    let insert = b"INSERT INTO orders (a) VALUES ('x')";
    // Of a type that nobody sends.
    let mut wire = shop.client()?;
    let head = b"\x01\x01\x00\x01\x09\x00\x00\x00";
    let replies = wire.command(command::QUERY, &[head.as_slice(), insert].concat())?;
    assert_eq!(refusal(&replies), Some(1235), "{replies:?}");
    assert_eq!(wire.rows("SELECT COUNT(*) FROM orders")?, [["0"]]);
    // More sets of values than one.
    let replies = wire.command(command::QUERY, &[b"\x00\x02".as_slice(), insert].concat())?;
    assert_eq!(refusal(&replies), Some(1156), "{replies:?}");
    assert!(wire.query("SELECT 1").is_err());
    Ok(())
}

fn refusal(replies: &[Reply]) -> Option<u16> {
    match replies {
        [Reply::Failed(SqlFault { errno, .. })] => Some(*errno),
        _ => None,
    }
}
