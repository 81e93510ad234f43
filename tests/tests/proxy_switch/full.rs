//! A column whose numbers are used up, of a table that is native again. On MariaDB its counter is then what its fence would be: it is no fence that
//! somebody could lift.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use keywright_testkit::{
    AT_FENCE, Flavour, ProxyConfig, ProxyProcess, Reply, Result, WAIT_MAX, Wire, wait_until,
};

use super::ahead::is_fenced;
use super::{Shop, id, rule};

const INSERT: &str = "INSERT INTO orders (a) VALUES (1)";
/// The largest number of the column.
const LARGEST: u64 = 2_147_483_647;
/// How long such an INSERT may take: the wait for news of the switch, and what a busy machine adds.
const REFUSED_MAX: Duration = Duration::from_secs(20);

/// A rule for the tables that INT has room for.
fn config(shop: &Shop, mode: &str) -> ProxyConfig {
    let mut config = shop.config.clone();
    let rule = rule("one", mode).replace("shop.orders", "shop.*");
    config.rules = vec![format!("{rule}bits_max = 31\n")];
    config.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
    config
}

/// Its tables were switched on, `meanwhile` came, and they are native again.
fn native_again(shop: &Shop, meanwhile: &str) -> Result<ProxyProcess> {
    shop.server.run(
        "shop",
        "ALTER TABLE orders MODIFY id INT NOT NULL AUTO_INCREMENT",
    )?;
    let mut proxy = ProxyProcess::start(config(shop, "rewrite"))?;
    shop.wait_for(Some("one"))?;
    id(proxy.wire("shop")?.query(INSERT)?)?;
    shop.server.run("keywright", meanwhile)?;
    proxy.reload(config(shop, "observe"))?;
    wait_until("native tables", WAIT_MAX, || {
        Ok(proxy.log().contains("the tables are native again"))
    })?;
    Ok(proxy)
}

/// In time, and with the server's own error.
fn is_refused(wire: &mut Wire) -> Result<()> {
    let began = Instant::now();
    let replies = wire.query(INSERT)?;
    // No panic, for which somebody would be waited for that is told the end.
    anyhow::ensure!(
        matches!(replies.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
        "{replies:?}"
    );
    anyhow::ensure!(began.elapsed() < REFUSED_MAX, "after {:?}", began.elapsed());
    Ok(())
}

#[test]
fn a_column_that_native_ids_have_filled_is_refused_in_time() -> Result<()> {
    if !Flavour::MariaDb.is_wanted() {
        return Ok(());
    }
    let shop = Shop::new(Flavour::MariaDb)?;
    let proxy = native_again(&shop, "SELECT 1")?;
    let mut wire = proxy.wire("shop")?;
    id(wire.query(INSERT)?)?;
    wire.run(format!("INSERT INTO orders (id, a) VALUES ({LARGEST}, 1)"))?;
    is_refused(&mut wire)?;
    let log = proxy.log();
    assert!(!log.contains("fence lifted"), "{log}");
    Ok(())
}

#[test]
fn a_column_that_keys_have_filled_is_told_and_refused_in_time() -> Result<()> {
    if !Flavour::MariaDb.is_wanted() {
        return Ok(());
    }
    let shop = Shop::new(Flavour::MariaDb)?;
    // Somebody has taken all of the tag's keys up to there.
    let used_up = format!(
        "UPDATE keywright_segment SET hi = {} WHERE tag = 'one'",
        LARGEST + 1
    );
    let proxy = native_again(&shop, &used_up)?;
    wait_until("what is said of the column", WAIT_MAX, || {
        let log = proxy.log();
        Ok(log.contains("number no row") && log.contains("`shop`.`orders` on"))
    })?;
    is_refused(&mut proxy.wire("shop")?)?;
    let log = proxy.log();
    assert!(!log.contains("fence lifted"), "{log}");
    Ok(())
}

/// The fence of another table comes back again and again, as on servers that took over, of which nothing is recorded. With each time that it is lifted
/// statements are sent again.
#[test]
fn a_full_column_is_refused_in_time_while_other_fences_are_lifted() -> Result<()> {
    if !Flavour::MariaDb.is_wanted() {
        return Ok(());
    }
    let shop = Shop::new(Flavour::MariaDb)?;
    let proxy = native_again(&shop, "SELECT 1")?;
    let mut wire = proxy.wire("shop")?;
    wire.run(format!("INSERT INTO orders (id, a) VALUES ({LARGEST}, 1)"))?;
    let mut direct = shop.server.wire("shop")?;
    let is_over = AtomicBool::new(false);
    let fence_again = || -> Result<()> {
        while !is_over.load(Ordering::Acquire) {
            direct.run(format!("ALTER TABLE line AUTO_INCREMENT = {}", 1_u64 << 63))?;
            wait_until("no fence", WAIT_MAX, || {
                direct.run("DELETE FROM keywright.keywright_lifted WHERE table_name = 'line'")?;
                Ok(is_over.load(Ordering::Acquire) || !is_fenced(&mut direct, "line")?)
            })?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let fencing = scope.spawn(fence_again);
        let lifted = wait_until("a fence that was lifted", WAIT_MAX, || {
            Ok(proxy.log().contains("fence lifted"))
        });
        let refused = lifted.and_then(|()| is_refused(&mut wire));
        // Whatever came of it, or the thread would not end.
        is_over.store(true, Ordering::Release);
        let fenced = fencing.join();
        fenced.map_err(|_| anyhow::anyhow!("whoever sets the fence has panicked"))??;
        refused
    })
}
