//! Tags whose keys hide how many there are, through the proxy: rows, several rows, keys that are changed, tables that have ids.

mod lost_fence;
mod ports;
mod switched;

use std::collections::BTreeSet;

use keywright_testkit::{
    Flavour, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, Wire, assert_has,
    make_store, wait_until,
};
use lost_fence::tables_that_lost_their_fence_get_keys_again_by_the_statement_that_is_named;
use switched::{hidden_keys_are_for_tables_without_ids, tables_with_hidden_keys_do_not_go_back};

keywright_testkit::on_both_flavours!(
    rows_get_keys_that_tell_nothing,
    several_rows_are_refused_unless_the_rule_allows_them,
    keys_of_the_application_are_refused_where_the_rule_says_so,
    another_key_gives_nothing,
    hidden_keys_are_for_tables_without_ids,
    tables_with_hidden_keys_do_not_go_back,
    tables_that_lost_their_fence_get_keys_again_by_the_statement_that_is_named,
);

/// That of the fixed examples: `core/tests/unit/hidden_keys.rs`, `tests/tests/hide`.
pub const KEY: &str = "000102030405060708090a0b0c0d0e0f";
/// Another one.
pub const OTHER_KEY: &str = "ff0102030405060708090a0b0c0d0e0f";

/// The section for tag "orders", whose key is in the environment.
pub fn section(bits: u8) -> String {
    format!("[[hidden_tag]]\ntag = \"orders\"\nhide_bits = {bits}\nhide_key_env = \"HIDE_KEY\"\n")
}

/// The same configuration with such a tag.
pub fn hidden(config: ProxyConfig, bits: u8, key: &str) -> ProxyConfig {
    ProxyConfig {
        more: section(bits),
        environment: vec![("HIDE_KEY".to_owned(), key.to_owned())],
        ..config
    }
}

/// A server with an empty table, and a proxy whose rule for it is hidden.
pub struct Shop {
    /// The server.
    pub server: Upstream,
    /// Before it.
    pub config: ProxyConfig,
}

impl Shop {
    /// `lines`: of the rule.
    pub fn new(flavour: Flavour, lines: &str) -> Result<Shop> {
        let server = Upstream::start_with(flavour, &[])?;
        server.run(
            "mysql",
            "CREATE DATABASE shop; USE shop;
             CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, u INT UNIQUE)",
        )?;
        let store = make_store(&server, "keywright", &[("plain", 1)])?;
        let mut config = ProxyConfig::before(&server, &store).rule("shop.orders", "segment:orders");
        config
            .rules
            .iter_mut()
            .for_each(|rule| rule.push_str(lines));
        let config = hidden(config, 53, KEY);
        Ok(Shop { server, config })
    }

    /// The store's tag, and a proxy that gives its keys.
    pub fn open(&self) -> Result<ProxyProcess> {
        let said = ProxyProcess::said(&self.config, &["init"])?;
        assert_has(&said, &["created tag \"orders\""]);
        let proxy = ProxyProcess::start(self.config.clone())?;
        wait_until("keys to be in force", WAIT_MAX, || {
            Ok(proxy.http_get("/readyz")?.0 == 200)
        })?;
        Ok(proxy)
    }

    /// The numbers of all rows' keys, by the command.
    pub fn numbers(&self) -> Result<Vec<u64>> {
        let ids = self
            .server
            .wire("shop")?
            .rows("SELECT id FROM orders")?
            .concat();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let said = ProxyProcess::said(
            &self.config,
            &[&["tag", "number", "orders"], &*ids].concat(),
        )?;
        Ok(said
            .lines()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?)
    }
}

/// The number and the message of an error.
fn refusal(replies: Vec<Reply>) -> (u16, String) {
    match replies.as_slice() {
        [Reply::Failed(fault)] => (
            fault.errno,
            String::from_utf8_lossy(&fault.message).into_owned(),
        ),
        other => panic!("{other:?}"),
    }
}

fn rows_get_keys_that_tell_nothing(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour, "")?;
    let proxy = shop.open()?;
    let mut wire = proxy.wire("shop")?;
    let prepared = wire.prepare("INSERT INTO orders (a) VALUES (?)")??;
    let mut keys = BTreeSet::new();
    for row in 0..100 {
        let told = match row % 3 {
            0 => wire.query(format!("INSERT INTO orders (a) VALUES ({row})"))?,
            1 => wire.execute(&prepared, &[Param::Signed(row)])?,
            _ => wire.query(format!("REPLACE INTO orders (id, a) VALUES (NULL, {row})"))?,
        };
        let [Reply::Done(done)] = told.as_slice() else {
            panic!("{told:?}");
        };
        let shown = wire.rows("SELECT LAST_INSERT_ID()")?.concat();
        assert_eq!(shown, [done.last_insert_id.to_string()]);
        let there = format!("SELECT a FROM orders WHERE id = {}", done.last_insert_id);
        assert_eq!(wire.rows(there)?.concat(), [row.to_string()]);
        assert!(keys.insert(done.last_insert_id));
    }
    // As PostgreSQL's of the same key, and both ways.
    assert!(keys.contains(&3_542_873_360_303_234) && keys.contains(&5_879_817_218_275_551));
    let say = |words: &[&str]| ProxyProcess::said(&shop.config, words);
    assert_eq!(
        say(&["tag", "number", "orders", "5879817218275551"])?,
        "2\n"
    );
    let keys = say(&["tag", "key", "orders", "1", "1000"])?;
    assert_eq!(keys, "3542873360303234\n835231793264911\n");
    for none in ["0", "9007199254740992", "x"] {
        let said = ProxyProcess::command(&shop.config, &["tag", "number", "orders", none])?;
        assert!(!said.status.success(), "{said:?}");
        let told = String::from_utf8_lossy(&said.stderr);
        assert_has(&told, &["its keys are from 1 to 9007199254740991"]);
    }
    let numbers: BTreeSet<u64> = shop.numbers()?.into_iter().collect();
    assert_eq!(numbers, (1..=100).collect());
    // Keys that are asked for one by one, and listed.
    let listed = wire.rows("SELECT NEXT 3 VALUES FOR orders")?.concat();
    let words: Vec<&str> = listed.iter().map(String::as_str).collect();
    let said = say(&[&["tag", "number", "orders"], &*words].concat())?;
    assert_eq!(said, "101\n102\n103\n");
    Ok(())
}

/// Statements with several rows, of each kind.
fn several(wire: &mut Wire) -> Result<Vec<Vec<Reply>>> {
    let prepared = wire.prepare("INSERT INTO orders (id, a) VALUES (?, 1), (?, 2)")??;
    let absent = wire.prepare("INSERT INTO orders (a) VALUES (?), (?)")?;
    let absent = match absent {
        Ok(absent) => wire.execute(&absent, &[Param::Signed(1), Param::Signed(2)])?,
        Err(fault) => vec![Reply::Failed(fault)],
    };
    wire.set_local_file("8\n9\n");
    Ok(vec![
        wire.query("INSERT INTO orders (a) VALUES (1), (2), (3)")?,
        wire.query("INSERT IGNORE INTO orders (id, a) VALUES (NULL, 1), (0, 2)")?,
        wire.execute(&prepared, &[Param::Null, Param::Null])?,
        absent,
        wire.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE orders (a)")?,
    ])
}

fn several_rows_are_refused_unless_the_rule_allows_them(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour, "")?;
    let mut proxy = shop.open()?;
    let mut wire = proxy.wire("shop")?;
    for replies in several(&mut wire)? {
        let (errno, message) = refusal(replies);
        assert_eq!(errno, 1235, "{message}");
        assert_has(&message, &["hide how many there are", "on_several_rows"]);
    }
    let query = "INSERT INTO orders (a) SELECT 1 UNION ALL SELECT 2";
    assert_eq!(refusal(wire.query(query)?).0, 1235);
    let explained = ProxyProcess::said(
        &shop.config,
        &["explain", "INSERT INTO shop.orders (a) VALUES (1), (2)"],
    )?;
    assert_has(&explained, &["on_several_rows"]);
    // One row that needs a key is none of them, nor is one of a query.
    wire.run("INSERT INTO orders (id, a) VALUES (-5, 1), (NULL, 2)")?;
    wire.run("INSERT INTO orders (a, u) VALUES (1, 7) ON DUPLICATE KEY UPDATE a = 2")?;
    let before = shop
        .server
        .wire("shop")?
        .rows("SELECT COUNT(*) FROM orders")?;
    assert_eq!(before.concat(), ["3"]);

    let mut config = shop.config.clone();
    config.rules[0].push_str("on_several_rows = \"allow\"\n");
    proxy.reload(config)?;
    wait_until("the new rules", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("connections follow the rules as they are now"))
    })?;
    let mut wire = proxy.wire("shop")?;
    for (at, replies) in several(&mut wire)?.into_iter().enumerate() {
        // The text of a prepared statement counts from its first key, and so does that of LOAD DATA.
        let kept = match at {
            3 => Some("whose keys are not one apart"),
            4 => Some("whatever on_several_rows says"),
            _ => None,
        };
        if let Some(says) = kept {
            let (errno, message) = refusal(replies);
            assert_eq!(errno, 1235);
            assert_has(&message, &[says]);
            continue;
        }
        let [Reply::Done(done)] = replies.as_slice() else {
            panic!("{at}: {replies:?}");
        };
        assert!(done.last_insert_id > 0, "{done:?}");
        let first = format!(
            "SELECT COUNT(*) FROM orders WHERE id = {}",
            done.last_insert_id
        );
        assert_eq!(wire.rows(first)?.concat(), ["1"]);
    }
    // Not even where the keys of its rows happen to ascend, and none is taken for it.
    let next = |wire: &mut Wire| -> Result<u64> {
        let key = wire
            .rows("SELECT NEXT 1 VALUES FOR orders")?
            .concat()
            .concat();
        let said = ProxyProcess::said(&shop.config, &["tag", "number", "orders", &key])?;
        Ok(said.trim().parse()?)
    };
    let before = next(&mut wire)?;
    wire.set_local_file("8\n");
    for _ in 0..16 {
        let (errno, message) =
            refusal(wire.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE orders (a)")?);
        assert_eq!(errno, 1235, "{message}");
    }
    assert_eq!(next(&mut wire)?, before + 1);
    // The server numbers the rows of a query, and cannot number them so.
    let (errno, message) = refusal(wire.query(query)?);
    assert_eq!(errno, 1235);
    assert_has(&message, &["not evenly spaced"]);
    wire.run("DELETE FROM orders WHERE id < 0")?;
    let numbers: BTreeSet<u64> = shop.numbers()?.into_iter().collect();
    assert_eq!(numbers.len(), 2 + 3 + 2 + 2, "{numbers:?}");
    Ok(())
}

fn keys_of_the_application_are_refused_where_the_rule_says_so(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour, "on_explicit = \"refuse\"\n")?;
    let proxy = shop.open()?;
    let mut wire = proxy.wire("shop")?;
    for sql in [
        "REPLACE INTO orders (id, a) VALUES (5, 1)",
        "INSERT INTO orders (id, a) VALUES (5, 1) ON DUPLICATE KEY UPDATE a = 2",
        "INSERT IGNORE INTO orders (id, a) VALUES (5, 1)",
    ] {
        assert_eq!(refusal(wire.query(sql)?).0, 3105, "{sql}");
    }
    // That looks at what INSERTs say, and at nothing else.
    wire.run("SET insert_id = 7")?;
    wire.run("INSERT INTO orders (a) VALUES (1)")?;
    assert_eq!(wire.rows("SELECT id FROM orders")?.concat(), ["7"]);
    wire.run("UPDATE orders SET id = 8")?;
    assert_eq!(wire.rows("SELECT id FROM orders")?.concat(), ["8"]);
    Ok(())
}

fn another_key_gives_nothing(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour, "")?;
    let mut proxy = shop.open()?;
    let mut wire = proxy.wire("shop")?;
    wire.run("INSERT INTO orders (a) VALUES (1)")?;
    let plain = ProxyConfig {
        more: String::new(),
        ..shop.config.clone()
    };
    let others = [
        (
            hidden(shop.config.clone(), 53, OTHER_KEY),
            "was made with another hide key",
        ),
        (
            hidden(shop.config.clone(), 31, KEY),
            "have hide_bits = 53, and here 31",
        ),
        (
            plain,
            "hides its volume, and this program has no key for that",
        ),
    ];
    for (other, says) in &others {
        let error = ProxyProcess::start(other.clone()).expect_err("it does not start");
        assert_has(&format!("{error:#}"), &[says]);
        for command in [["check"], ["init"]] {
            let said = ProxyProcess::command(other, &command)?;
            assert!(!said.status.success(), "{said:?}");
            let told = [said.stdout, said.stderr].concat();
            assert_has(&String::from_utf8_lossy(&told), &[says]);
        }
        // One that runs keeps what it has.
        proxy.reload(other.clone())?;
    }
    // The environment of a program does not change; a file does.
    wait_until("both changes to be refused", WAIT_MAX, || {
        Ok(proxy
            .log()
            .matches("[[hidden_tag]] sections have changed")
            .count()
            >= 2)
    })?;
    proxy.reconfigure(shop.config.clone());
    for row in 0..5 {
        wire.run(format!("INSERT INTO orders (a) VALUES ({row})"))?;
    }
    assert_eq!(shop.numbers()?.len(), 6);
    assert!(!proxy.log().contains(KEY) && !proxy.log().contains(OTHER_KEY));
    // Nobody lets the server number rows meanwhile.
    proxy.stop()?;
    let direct = refusal(
        shop.server
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?,
    );
    assert!([1467, 167].contains(&direct.0), "{direct:?}");
    Ok(())
}
