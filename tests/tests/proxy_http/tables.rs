//! Keys of a tag that tables go over to and leave.

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};

use super::client::HttpClient;

const NATIVE_ROWS: i64 = 3_000;

/// A program that has a key port and no rule takes part in the switch: it gives no key that a table may have natively.
#[test]
fn keys_follow_tables_that_go_over_to_the_tag_and_leave_it() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
             INSERT INTO shop.orders (a) SELECT seq FROM seq_1_to_{NATIVE_ROWS}"
        ),
    )?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    let shop = |mode: &str| {
        let mut config = ProxyConfig::before(&server, &store);
        config.rules.push(format!(
            "table = \"shop.orders\"\ncolumn = \"id\"\nkey = \"segment:orders\"\nmode = \"{mode}\"\n"
        ));
        config
    };
    let mut proxy = ProxyProcess::start(shop("observe"))?;
    let alone = ProxyProcess::start(ProxyConfig {
        store_url: store.clone(),
        http_ports: vec!["keys = { orders = \"segment:orders\" }\n".to_owned()],
        ..ProxyConfig::default()
    })?;
    let mut client = HttpClient::connect(alone.http_port()?)?;
    let mut last = client.say("POST /v1/keys/orders")?.numbers("keys")?[0];
    // What it has reserved is below the table's own ids.
    assert!(last < NATIVE_ROWS);
    proxy.reload(shop("rewrite"))?;
    // Requests meanwhile wait, and none fails.
    wait_until("the switch", WAIT_MAX, || {
        let answer = client.say("POST /v1/keys/orders")?;
        assert_eq!(answer.status, 200, "{answer:?}");
        let key = answer.numbers("keys")?[0];
        assert!(key > last);
        last = key;
        Ok(proxy.log().contains("the rule is in force"))
    })?;
    let key = client.say("POST /v1/keys/orders")?.numbers("keys")?[0];
    assert!(key > NATIVE_ROWS, "{key}");

    proxy.reload(shop("observe"))?;
    wait_until("no more keys", WAIT_MAX, || {
        let answer = client.say("POST /v1/keys/orders")?;
        if answer.status != 200 {
            assert_eq!(answer.status, 410);
            assert_has(
                &answer.body,
                &["\"keys_left\"", "tables have left segment:orders"],
            );
        }
        Ok(answer.status == 410)
    })
}
