//! Tables of a rule's pattern that the program's own account may not see.

use keywright_core::cause::Cause;
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};

use super::refused;

/// They would get keys without a fence, from below their ids.
pub(super) fn tables_that_admin_may_not_see_get_no_keys(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE far_1; CREATE DATABASE far_2;
         CREATE TABLE far_1.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE far_2.t LIKE far_1.t; INSERT INTO far_2.t (a) VALUES (1);
         CREATE USER keeper@'%'; GRANT SELECT, ALTER, LOCK TABLES ON far_1.* TO keeper@'%'",
    )?;
    let store = make_store(&server, "far_store", &[("rows", 1_000)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("far_*.t", "segment:rows");
    config.admin_user = Some("keeper".to_owned());
    config.more = "[limits]\nschema_refresh_s = 1".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("far_1")?;
    let insert = "INSERT INTO far_2.t (a) VALUES (2)";
    let unshown = Some(Cause::TableUnshown.mysql_errno());
    wait_until("a refusal", WAIT_MAX, || {
        Ok(match wire.query(insert)?.as_slice() {
            [Reply::Failed(fault)] => {
                String::from_utf8_lossy(&fault.message).contains("may not see it")
            }
            _ => false,
        })
    })?;
    assert_has(
        &proxy.log(),
        &["a rule matches far_2.t, and", "may not see it"],
    );
    // Others need not find it out.
    assert_eq!(refused(&proxy.wire("far_1")?.query(insert)?), unshown);
    for (text, expected) in [
        ("INSERT INTO t (a) VALUES (3)", None),
        ("INSERT INTO far_2.t (id, a) VALUES (900, 3)", None),
        (
            "CREATE TEMPORARY TABLE far_2.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
            None,
        ),
        (insert, None),
        ("DROP TEMPORARY TABLE far_2.t", None),
        (insert, unshown),
    ] {
        let replies = wire.query(text)?;
        assert_eq!(refused(&replies), expected, "{text}: {replies:?}");
    }
    // Past the program.
    server.run("far_2", "RENAME TABLE t TO other")?;
    let gone = wire.query(insert)?;
    assert_eq!(refused(&gone), Some(1146), "{gone:?}");
    server.run(
        "far_2",
        "RENAME TABLE other TO t;
         GRANT SELECT, ALTER, LOCK TABLES ON far_2.* TO keeper@'%'",
    )?;
    wait_until("keys", WAIT_MAX, || {
        Ok(refused(&wire.query(insert)?).is_none())
    })
}
