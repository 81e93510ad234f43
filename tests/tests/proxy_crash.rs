//! Proxies that are killed at any moment: what they issued is never issued again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use keywright_testkit::{
    Flavour, IdLog, Login, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX,
    Wire, make_store, wait_until,
};

/// How often a proxy is killed; the variable asks for more than a quick run does.
const KILLS: usize = 6;
const KILLS_VARIABLE: &str = "KEYWRIGHT_KILLS";

/// Connections per proxy.
const CLIENTS: usize = 4;

/// The longest that a proxy is left alone, in milliseconds.
const LIFE_MS_MAX: u64 = 400;

#[test]
fn segments_survive_kills() -> Result<()> {
    no_key_is_issued_twice("segment:orders", "")
}

#[test]
fn snowflakes_survive_kills() -> Result<()> {
    no_key_is_issued_twice("snowflake", "")
}

#[test]
fn hidden_keys_survive_kills() -> Result<()> {
    let section = "[[hidden_tag]]\ntag = \"orders\"\nhide_bits = 53\nhide_key_env = \"HIDE_KEY\"\n";
    no_key_is_issued_twice("segment:orders", section)
}

/// Two proxies on one store, each before a shard of its own, under load; one after the other is killed. `more`: of their configuration.
fn no_key_is_issued_twice(key: &str, more: &str) -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    let tags: &[(&str, u64)] = match more {
        "" => &[("orders", 1)],
        _ => &[],
    };
    let store = make_store(&server, "keywright", tags)?;
    // Without a unique key, so that a repeated id is seen as such.
    for shard in ["shop_0", "shop_1"] {
        server.run(
            "mysql",
            &format!("CREATE DATABASE {shard}; CREATE TABLE {shard}.orders (id BIGINT NOT NULL, a INT, KEY (id))"),
        )?;
    }
    let config = ProxyConfig {
        more: more.to_owned(),
        environment: vec![("HIDE_KEY".to_owned(), "07".repeat(16))],
        ..ProxyConfig::before(&server, &store).rule("shop_*.orders", key)
    };
    ProxyProcess::said(&config, &["init"])?;
    let proxies = [
        Mutex::new(ProxyProcess::start(config.clone())?),
        Mutex::new(ProxyProcess::start(config)?),
    ];
    let ports = [0, 1].map(|i| lock(&proxies[i]).port());
    let log = IdLog::new();
    let over = AtomicBool::new(false);
    let killed = thread::scope(|scope| {
        for (port, shard) in ports.into_iter().zip(["shop_0", "shop_1"]) {
            for client in 0..CLIENTS {
                let (log, over) = (&log, &over);
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        // It ends when the proxy is killed; the next one finds the proxy that comes after.
                        let _ended = insert_until(port, shard, client, over, log);
                    }
                });
            }
        }
        let killed = kill_in_turn(&proxies);
        over.store(true, Ordering::Relaxed);
        killed
    });
    killed?;
    let acknowledged = log.check()?;
    assert!(acknowledged.count > 1000, "{acknowledged:?}");
    // Also those whose acknowledgement the kill cut off.
    let stored = IdLog::new();
    for shard in ["shop_0", "shop_1"] {
        let ids = server.wire(shard)?.rows("SELECT id FROM orders")?;
        stored.record_unordered(
            ids.concat()
                .iter()
                .map(|id| id.parse())
                .collect::<std::result::Result<_, _>>()?,
        );
    }
    let stored = stored.check()?;
    assert!(
        stored.count >= acknowledged.count,
        "{stored:?}, {acknowledged:?}"
    );
    println!("{key} {more}: {} rows, all distinct", stored.count);
    Ok(())
}

fn lock(proxy: &Mutex<ProxyProcess>) -> std::sync::MutexGuard<'_, ProxyProcess> {
    proxy
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn kill_in_turn(proxies: &[Mutex<ProxyProcess>; 2]) -> Result<()> {
    let kills = std::env::var(KILLS_VARIABLE)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(KILLS);
    for (_, proxy) in (0..kills).zip(proxies.iter().cycle()) {
        // The random moment is the test: nothing is waited for here.
        thread::sleep(Duration::from_millis(fastrand::u64(0..LIFE_MS_MAX)));
        let mut proxy = lock(proxy);
        proxy.kill9()?;
        proxy.restart()?;
        wait_until("the proxy's readiness", WAIT_MAX, || {
            Ok(proxy.http_get("/readyz")?.0 == 200)
        })?;
    }
    Ok(())
}

/// Inserts one row, several rows and prepared rows in turn, and records the ids that were acknowledged.
fn insert_until(
    port: u16,
    shard: &str,
    client: usize,
    over: &AtomicBool,
    log: &IdLog,
) -> Result<()> {
    let mut wire = Wire::connect_tcp(port, &Login::root(shard))?;
    let prepared = wire.prepare("INSERT INTO orders (a) VALUES (?)")??;
    let mut acknowledged = Vec::new();
    let mut round = 0;
    let ended = loop {
        if over.load(Ordering::Relaxed) {
            break Ok(());
        }
        round += 1;
        let (rows, replies) = match round % 3 {
            0 => (
                1,
                wire.query(format!("INSERT INTO orders (a) VALUES ({client})")),
            ),
            1 => (
                3,
                wire.query(format!(
                    "INSERT INTO orders (id, a) VALUES (NULL, {client}), (NULL, 1), (NULL, 2)"
                )),
            ),
            _ => (1, wire.execute(&prepared, &[Param::Signed(7)])),
        };
        match replies.as_deref() {
            Ok([Reply::Done(done)]) => {
                let first = i64::try_from(done.last_insert_id)?;
                acknowledged.extend(first..first + rows);
            }
            // The store is being asked again after a start: the application tries again.
            Ok(_) => {}
            Err(_) => break replies.map(drop),
        }
    };
    log.record_unordered(acknowledged);
    ended
}
