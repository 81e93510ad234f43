//! What a tag had left when the server was stopped in order is issued after the next start, first, and once. After any other end, and
//! in a copy, it is left out.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::ensure;
use keywright_testkit::{PgServer, Result, Stop, query_i64, query_text};
use postgres::Client;

const NEXT: &str = "SELECT next_biz_id('orders')";
const RESERVED_TO: &str = "SELECT reserved_to FROM keywright.tags WHERE tag = 'orders'";

/// A server with tag `orders`, of which 1 to 150 were issued and 151 to 1000 are left.
fn server() -> Result<PgServer> {
    let server = PgServer::builder().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; \
         SELECT keywright.create_tag('orders', step => 1000, step_min => 1000, step_max => 1000); \
         SELECT keywright.create_tag('bills', step => 1000, step_min => 1000, step_max => 1000)",
    )?;
    draw(&mut client, 150)?;
    query_i64(&mut client, "SELECT next_biz_id('bills')")?;
    assert!(query_i64(&mut client, RESERVED_TO)? >= 1_000);
    Ok(server)
}

/// The last of so many ids of `orders`, one after the other.
fn draw(client: &mut Client, count: i64) -> Result<i64> {
    let sql = format!("SELECT max(next_biz_id('orders')) FROM generate_series(1, {count})");
    Ok(query_i64(client, &sql)?)
}

fn file(server: &PgServer) -> PathBuf {
    server.data_dir().join("pg_stat/keywright.unused_ids")
}

/// The next id, and how far the tag was reserved before it.
fn after_start(server: &mut PgServer) -> Result<(i64, i64)> {
    server.start()?;
    assert!(!file(server).exists(), "the start takes it away");
    let mut client = server.client("postgres")?;
    let reserved_to = query_i64(&mut client, RESERVED_TO)?;
    Ok((query_i64(&mut client, NEXT)?, reserved_to))
}

/// Asserts that nothing of what was left is issued: ids go on above all that was reserved.
fn is_left_out(server: &mut PgServer, said: &str) -> Result<()> {
    let (next, reserved_to) = after_start(server)?;
    assert_eq!(next, reserved_to + 1);
    ensure!(server.log_contains(said)?, "{}", server.log()?);
    Ok(())
}

#[test]
fn a_clean_stop_leaves_nothing_out() -> Result<()> {
    let mut server = server()?;
    for stops in 0..3 {
        server.stop(if stops == 1 { Stop::Smart } else { Stop::Fast })?;
        assert!(file(&server).exists());
        let (next, reserved_to) = after_start(&mut server)?;
        assert_eq!(next, 151 + stops);
        assert!(reserved_to >= 1_000, "nothing was reserved for it");
    }
    assert!(server.log_contains("are issued first, of 2 tags")?);
    let mut client = server.client("postgres")?;
    let figures = "SELECT current_id || ' ' || (remaining > 800) || ' ' || refills FROM keywright.stats WHERE tag = 'orders'";
    assert_eq!(query_text(&mut client, figures)?, "153 true 0");
    // One call needs more than is left: what is left and the next range continue each other.
    assert_eq!(draw(&mut client, 2_000)?, 2_153);
    Ok(())
}

/// What was not asked for since the start is kept once more; a tag that is dropped takes its own along.
#[test]
fn unused_since_the_start_is_kept_again() -> Result<()> {
    let mut server = server()?;
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    let left = "SELECT remaining FROM keywright.stats WHERE tag = 'orders'";
    assert!(query_i64(&mut client, left)? >= 850, "it is shown");
    client.batch_execute(
        "SELECT keywright.drop_tag('bills'); SELECT keywright.create_tag('bills')",
    )?;
    let above = query_i64(&mut client, "SELECT next_biz_id('bills')")?;
    assert!(above > 1, "{above} was issued before");
    drop(client);
    server.stop(Stop::Fast)?;
    assert_eq!(after_start(&mut server)?.0, 151);
    Ok(())
}

#[test]
fn an_immediate_stop_leaves_it_out() -> Result<()> {
    let mut server = server()?;
    server.stop(Stop::Immediate)?;
    assert!(!file(&server).exists());
    let (next, reserved_to) = after_start(&mut server)?;
    assert_eq!(next, reserved_to + 1);
    Ok(())
}

/// Issued after the start, then killed: the file is gone, and what it said was reserved.
#[test]
fn nothing_is_used_twice_after_a_crash() -> Result<()> {
    let mut server = server()?;
    server.stop(Stop::Fast)?;
    let kept = server.data_dir().join("kept");
    fs::hard_link(file(&server), &kept)?;
    assert_eq!(after_start(&mut server)?.0, 151);
    server.kill9()?;
    // Brought back, as the very same file of the disk.
    fs::rename(&kept, file(&server))?;
    is_left_out(&mut server, "the server was started since it was written")
}

/// The same after a clean stop, which writes another; and with no stop of ours in between.
#[test]
fn an_older_file_is_not_used() -> Result<()> {
    let mut server = server()?;
    server.stop(Stop::Fast)?;
    let kept = server.data_dir().join("kept");
    fs::hard_link(file(&server), &kept)?;
    assert_eq!(after_start(&mut server)?.0, 151);
    server.stop(Stop::Fast)?;
    fs::rename(&kept, file(&server))?;
    is_left_out(&mut server, "the server was started since it was written")
}

#[test]
fn a_copied_or_edited_file_is_not_used() -> Result<()> {
    let mut server = server()?;
    server.stop(Stop::Fast)?;
    let kept = server.data_dir().join("kept");
    fs::copy(file(&server), &kept)?;
    fs::set_permissions(&kept, Permissions::from_mode(0o644))?;
    fs::rename(&kept, file(&server))?;
    is_left_out(&mut server, "it is a copy")?;

    server.stop(Stop::Fast)?;
    fs::set_permissions(file(&server), Permissions::from_mode(0o000))?;
    is_left_out(&mut server, "Permission denied")?;

    server.stop(Stop::Fast)?;
    let text = fs::read_to_string(file(&server))?;
    fs::write(file(&server), text.replacen(" orders", " others", 1))?;
    is_left_out(&mut server, "it is damaged")
}

/// The original goes on with what was left; a copy of its data directory does not have it.
#[test]
fn a_copied_data_directory_does_not_have_it() -> Result<()> {
    let mut server = server()?;
    server.stop(Stop::Fast)?;
    let mut copy = server.copy()?;
    assert!(file(&copy).exists());
    is_left_out(&mut copy, "it is a copy")?;
    assert_eq!(after_start(&mut server)?.0, 151);
    Ok(())
}

/// The bound was changed before the tag was used again.
#[test]
fn a_changed_bound_takes_it_away() -> Result<()> {
    let mut server = server()?;
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "SELECT setval(pg_get_serial_sequence, 5000) FROM \
         (SELECT 'keywright.tag_' || id AS pg_get_serial_sequence FROM keywright.tag WHERE tag = 'orders') AS its",
    )?;
    assert_eq!(query_i64(&mut client, NEXT)?, 5_001);

    let above = query_i64(&mut client, "SELECT keywright.advance_tag('orders', 9000)")?;
    assert_eq!(above, 9_001);
    drop(client);
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    assert!(query_i64(&mut client, NEXT)? > 9_000);
    Ok(())
}

/// A standby was promoted meanwhile: whoever was stopped before that and is promoted in turn leaves it out, as any other writer.
#[test]
fn a_promotion_takes_it_away() -> Result<()> {
    let mut server = server()?;
    server.stop(Stop::Fast)?;
    fs::write(server.data_dir().join("standby.signal"), "")?;
    server.start()?;
    server.promote()?;
    let mut client = server.client("postgres")?;
    let reserved_to = query_i64(&mut client, RESERVED_TO)?;
    assert!(query_i64(&mut client, NEXT)? > reserved_to);
    Ok(())
}

/// A server with fewer places than tags had something left: the others are left out, and places are there for new tags.
#[test]
fn what_is_left_takes_no_places_away() -> Result<()> {
    let mut server = server()?;
    server.stop(Stop::Fast)?;
    server.set("keywright.tags_max", "1");
    server.start()?;
    assert!(server.log_contains("are issued first, of 1 tags")?);
    let mut client = server.client("postgres")?;
    client.batch_execute("SELECT keywright.create_tag('third')")?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('third')")?, 1);
    Ok(())
}
