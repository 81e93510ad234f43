//! Ids that come past the programs: who makes them is named.

use std::time::{Duration, Instant};

use keywright_testkit::{
    Flavour, Login, Param, ProxyProcess, Result, WAIT_MAX, Wire, assert_has, wait_until,
};

use crate::{rule, shop, with};

/// While the proxy looks every second.
const SEVERAL_LOOKS: Duration = Duration::from_millis(3_200);

fn ids_unseen(proxy: &ProxyProcess) -> Result<u64> {
    let ids = proxy.figure("keywright_ids_unseen_total", &["rule=\"shop.orders.id\""])?;
    Ok(ids.map_or(Ok(0), |ids| ids.parse())?)
}

pub(crate) fn writers_past_the_program_are_named(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    server.run(
        "shop",
        "CREATE USER batch@'127.0.0.1'; GRANT INSERT ON shop.* TO batch@'127.0.0.1';
         CREATE PROCEDURE fill() INSERT INTO orders (a) VALUES (8), (9)",
    )?;
    let mut config = with(&config, rule("shop.orders", "observe", true));
    config.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
    let proxy = ProxyProcess::start(config.clone())?;
    let past = || ids_unseen(&proxy);
    // What goes by is no stranger's, whatever becomes of it, over several looks.
    let mut wire = proxy.wire("shop")?;
    let bound = wire.prepare("INSERT INTO orders (a) VALUES (?), (2)")??;
    let began = Instant::now();
    while began.elapsed() < SEVERAL_LOOKS {
        wire.run("INSERT INTO orders (a) VALUES (1), (2), (3)")?;
        wire.execute(&bound, &[Param::Signed(1)])?;
        wire.run("BEGIN")?;
        wire.run("INSERT INTO orders (a) VALUES (5)")?;
        wire.run("ROLLBACK")?;
    }
    assert_eq!(past()?, 0, "{}", proxy.log());
    let began = Instant::now();
    while began.elapsed() < SEVERAL_LOOKS {
        wire.run("INSERT INTO orders (a) SELECT a FROM (SELECT 4 a UNION SELECT 5 UNION SELECT 6) AS rows_of_three")?;
        wire.run("INSERT INTO orders (id, a) VALUES (LAST_INSERT_ID() + 100, 6)")?;
    }
    assert_eq!(past()?, 0, "{}", proxy.log());
    let login = Login {
        user: "batch".to_owned(),
        ..Login::root("shop")
    };
    let mut batch = Wire::connect_tcp(server.port(), &login)?;
    wait_until("a stranger's ids to be told", WAIT_MAX, || {
        batch.run("INSERT INTO orders (a) VALUES (1), (2), (3)")?;
        Ok(past()? > 0)
    })?;
    assert_has(
        &proxy.log(),
        &[
            " ids of shop.orders since ",
            "came by no INSERT through a program that knows the rule",
            "batch@127.0.0.1 (",
        ],
    );
    wait_until("check to say so", WAIT_MAX, || {
        let said = ProxyProcess::said(&config, &["check"])?;
        Ok(said.contains("store: warning: about ") && said.contains("batch@127.0.0.1 ("))
    })?;
    // Nor is a procedure's.
    let before = past()?;
    wait_until("a procedure's ids to be told", WAIT_MAX, || {
        wire.run("CALL fill()")?;
        Ok(past()? > before + 3)
    })?;
    Ok(())
}

pub(crate) fn programs_are_no_strangers_to_each_other(flavour: Flavour) -> Result<()> {
    let (server, config) = shop(flavour, &[])?;
    let mut config = with(&config, rule("shop.orders", "observe", true));
    config.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
    let (one, other) = (
        ProxyProcess::start(config.clone())?,
        ProxyProcess::start(config)?,
    );
    // Of both the store has what goes by them.
    let noted = || -> Result<bool> {
        let noted =
            "SELECT COUNT(DISTINCT program) FROM keywright.keywright_native WHERE ids >= 100";
        Ok(server.run("keywright", noted)? == [["2"]])
    };
    let mut wires = [one.wire("shop")?, other.wire("shop")?];
    let insert = "INSERT INTO orders (a) VALUES (1), (2), (3)";
    let mut inserts = || -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < SEVERAL_LOOKS {
            for wire in &mut wires {
                wire.run(insert)?;
            }
        }
        // One alone, while the other has nothing to note but that.
        let began = Instant::now();
        while began.elapsed() < SEVERAL_LOOKS {
            wires[0].run(insert)?;
        }
        Ok(())
    };
    inserts()?;
    wait_until("what went by to be noted", WAIT_MAX, noted)?;
    inserts()?;
    for proxy in [&one, &other] {
        assert_eq!(ids_unseen(proxy)?, 0, "{}", proxy.log());
    }
    let mut past = Wire::connect_tcp(server.port(), &Login::root("shop"))?;
    wait_until("both to tell a stranger's ids", WAIT_MAX, || {
        past.run(insert)?;
        Ok(ids_unseen(&one)? > 0 && ids_unseen(&other)? > 0)
    })?;
    for proxy in [&one, &other] {
        assert_has(&proxy.log(), &[" ids of shop.orders since "]);
    }
    Ok(())
}
