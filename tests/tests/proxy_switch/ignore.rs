//! INSERT IGNORE that reaches the fence before its program has heard of the switch: MariaDB leaves its rows out.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use keywright_testkit::{
    Flavour, Param, ProxyProcess, Reply, Result, SqlFault, WAIT_MAX, command, wait_until,
};

use super::Shop;

/// One program switches while the other hears nothing for so long that nobody waits for it.
pub(super) fn what_a_program_sends_that_was_away_is_not_left_out(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |mode| {
        let mut config = shop.with("one", mode);
        config.more = "[limits]\nswitch_peer_wait_s = 1\n".to_owned();
        config
    };
    let away = ProxyProcess::start(config("observe"))?;
    let mut leads = ProxyProcess::start(config("observe"))?;
    let mut wires = [
        away.wire("shop")?,
        away.wire("shop")?,
        away.wire("shop")?,
        away.wire("shop")?,
    ];
    let text = "INSERT IGNORE INTO orders (a) VALUES (1), (2)";
    let mixed = "INSERT IGNORE INTO orders (id, a) VALUES (7, 3), (NULL, 4)";
    let [text_wire, bound_wire, mixed_wire, native_wire] = &mut wires;
    let bound = bound_wire.prepare("INSERT IGNORE INTO orders (a) VALUES (?)")??;
    for wire in [&mut *text_wire, mixed_wire, native_wire] {
        wire.run("INSERT INTO orders (a) VALUES (0)")?;
    }
    // What it warns of otherwise is seen as ever.
    native_wire.run("INSERT IGNORE INTO orders (id, a) VALUES (500, 9)")?;
    let shown = native_wire.rows("SHOW WARNINGS")?;
    assert_eq!(
        shown.first().map(|row| row[1].as_str()),
        Some("1062"),
        "{shown:?}"
    );

    let pid = Pid::from_raw(i32::try_from(away.pid()?)?);
    kill(pid, Signal::SIGSTOP)?;
    leads.reload(config("rewrite"))?;
    shop.wait_for(Some("one"))?;
    text_wire.send_query(text)?;
    mixed_wire.send_query(mixed)?;
    kill(pid, Signal::SIGCONT)?;
    let sent = bound_wire.execute(&bound, &[Param::Signed(5)])?;
    for replies in [text_wire.read_query()?, sent] {
        let [Reply::Done(done)] = replies.as_slice() else {
            anyhow::bail!("{replies:?}");
        };
        assert!(
            done.affected_rows > 0 && done.last_insert_id > 502,
            "{done:?}"
        );
    }
    let replies = mixed_wire.read_query()?;
    let rows = native_wire.rows(
        "SELECT COUNT(*), COUNT(IF(a = 3, 1, NULL)), COUNT(IF(a = 4, 1, NULL)) FROM orders",
    )?;
    match replies.as_slice() {
        // It says what became of it, or has done it all.
        [Reply::Failed(fault)] => {
            assert_eq!(fault.errno, 1467);
            assert_eq!(rows, [["7", "1", "0"]]);
        }
        [Reply::Done(done)] => {
            assert_eq!(done.affected_rows, 2);
            assert_eq!(rows, [["8", "1", "1"]]);
        }
        other => anyhow::bail!("{other:?}"),
    }
    wait_until("the program to follow", WAIT_MAX, || {
        let key = native_wire.run(text)?.last_insert_id;
        Ok(key > 502)
    })?;
    Ok(())
}

/// What the client of a statement hears that cannot go out again: that it failed, or that all its rows are in.
pub(super) fn nobody_hears_of_success_whose_rows_were_left_out(flavour: Flavour) -> Result<()> {
    let shop = Shop::new(flavour)?;
    let config = |mode| {
        let mut config = shop.with("one", mode);
        config.more = "[limits]\nswitch_peer_wait_s = 1\n".to_owned();
        config
    };
    shop.server.run(
        "shop",
        "SET GLOBAL local_infile = 1; CREATE TABLE source (a INT)",
    )?;
    shop.server
        .run("shop", "INSERT INTO source VALUES (30), (31)")?;
    let away = ProxyProcess::start(config("observe"))?;
    let mut leads = ProxyProcess::start(config("observe"))?;
    // What each is to insert, in its column `a`.
    let mut texts = vec![
        (
            "LOAD DATA LOCAL INFILE 'f' INTO TABLE orders (a)",
            "10\n11\n",
            10..12,
        ),
        (
            "LOAD DATA LOCAL INFILE 'f' INTO TABLE orders (id, a)",
            "7\t20\n0\t21\n",
            20..22,
        ),
        (
            "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE orders (a)",
            "40\n41\n",
            40..42,
        ),
    ];
    if flavour == Flavour::MariaDb {
        let returning = "INSERT IGNORE INTO orders (a) VALUES (50), (51) RETURNING a";
        texts.push((returning, "", 50..52));
    }
    let mut wires = Vec::new();
    for (text, file, rows) in texts {
        let mut wire = away.wire("shop")?;
        wire.set_local_file(file);
        wires.push((wire, text.to_owned(), None, rows));
    }
    for (text, rows) in [
        ("INSERT IGNORE INTO orders (a) SELECT a FROM source", 30..32),
        ("INSERT INTO orders (a) SELECT a + 30 FROM source", 60..62),
    ] {
        let mut wire = away.wire("shop")?;
        let statement = wire.prepare(text)??;
        wires.push((wire, text.to_owned(), Some(statement), rows));
    }

    let pid = Pid::from_raw(i32::try_from(away.pid()?)?);
    kill(pid, Signal::SIGSTOP)?;
    leads.reload(config("rewrite"))?;
    shop.wait_for(Some("one"))?;
    for (wire, text, statement, _) in &mut wires {
        match statement {
            Some(statement) => {
                // The number, no flags, once.
                let number = statement.id.to_le_bytes();
                let payload = [&number[..], &[0, 1, 0, 0, 0]].concat();
                wire.send(command::STMT_EXECUTE, &payload)?;
            }
            None => wire.send_query(text.as_str())?,
        }
    }
    kill(pid, Signal::SIGCONT)?;
    let mut direct = shop.server.wire("shop")?;
    for (mut wire, text, statement, rows) in wires {
        let replies = wire.read_query()?;
        let count = "SELECT COUNT(*), COUNT(DISTINCT id) FROM orders WHERE a >= {} AND a < {}";
        let count = count.replacen("{}", &rows.start.to_string(), 1);
        let there = direct.rows(count.replacen("{}", &rows.end.to_string(), 1))?;
        match replies.as_slice() {
            [Reply::Failed(fault)] => {
                assert!(
                    [167, 1053, 1235, 1467].contains(&fault.errno),
                    "{text}: {fault:?}"
                );
                // What is prepared with a query cannot go over.
                if fault.errno == 1053 {
                    continue;
                }
            }
            [_] => assert_eq!(there, [["2", "2"]], "{text}: {replies:?}"),
            other => anyhow::bail!("{text}: {other:?}"),
        }
        // The connection goes on, but one that has prepared what cannot go over may hear of that only now.
        match wire.rows("SELECT 1") {
            Ok(rows) => assert_eq!(rows, [["1"]], "{text}"),
            Err(error) => {
                let fault = error.downcast_ref::<SqlFault>();
                let is_told = fault.is_some_and(|fault| fault.errno == 1053);
                assert!(is_told && statement.is_some(), "{text}: {error}");
            }
        }
    }
    Ok(())
}
