//! What may be wrong with a store in etcd: a clear error each time.

use keywright_core::Cause;
use keywright_store::{Failure, Keys, RawSnowflakeSettings, RawStoreSettings, StoreSettings};
use keywright_testkit::etcd::{EtcdCluster, EtcdOptions};
use keywright_testkit::{Pki, Result, assert_has};

use crate::common::{IssuedLog, open, raw_etcd, runtime, segment, small_steps, tag, take_many};

/// What the first key says.
fn refusal(settings: &RawStoreSettings) -> Result<String> {
    let keys = open(settings)?;
    let refused =
        runtime()?.block_on(async { keys.source(&segment("orders"))?.take(1, true).await });
    let refused = refused.unwrap_err();
    Ok(format!(
        "{refused}; {}",
        refused.hint_text().unwrap_or_default()
    ))
}

async fn some_keys(keys: &Keys, log: &IssuedLog) -> Result<()> {
    keys.init().await?;
    keys.create_tag(&tag("orders"), &small_steps(100)).await?;
    take_many(
        keys.source(&segment("orders"))?,
        log.clone(),
        "it".to_owned(),
        30,
    )
    .await;
    Ok(())
}

#[test]
fn what_is_below_the_prefix_is_no_store() -> Result<()> {
    let cluster = EtcdCluster::start(1)?;
    let settings = RawStoreSettings {
        wait_ms_max: 3_000,
        ..raw_etcd(&cluster.hosts(), "shop")
    };
    let told = refusal(&settings)?;
    assert_has(
        &told,
        &[
            "there is no store below its prefix yet",
            "run keywright init",
        ],
    );
    cluster.ctl(&["put", "/shop/else", "1"])?;
    let told = refusal(&settings)?;
    assert_has(&told, &["keys that are no store's", "name another prefix"]);
    let told = runtime()?.block_on(open(&settings)?.init()).unwrap_err();
    assert_has(&told.to_string(), &["keys that are no store's"]);
    cluster.ctl(&["del", "/shop/else"])?;
    let log = IssuedLog::default();
    let keys = open(&settings)?;
    runtime()?.block_on(some_keys(&keys, &log))?;
    // Others may not write beside it.
    cluster.ctl(&["put", "/shop/else", "1"])?;
    let told = refusal(&settings)?;
    assert_has(&told, &["it is no row of the store's", "etcdctl"]);
    Ok(())
}

#[test]
fn a_row_that_somebody_spoiled_is_told_with_its_key() -> Result<()> {
    let cluster = EtcdCluster::start(1)?;
    let settings = RawStoreSettings {
        wait_ms_max: 3_000,
        ..raw_etcd(&cluster.hosts(), "shop")
    };
    let log = IssuedLog::default();
    runtime()?.block_on(some_keys(&open(&settings)?, &log))?;
    let key = "/shop/keywright_segment/orders";
    let row = cluster.ctl(&["get", "--print-value-only", key])?;
    let row = row.trim();
    for (spoiled, told) in [
        (row.replace("\"hi\":", "\"high\":"), "there is no \"hi\""),
        (
            row.replace("\"orders\"", "\"other\""),
            "the row is another's",
        ),
        (
            row.replace("\"step\":", "\"step\":true,\"x\":"),
            "\"step\" is true",
        ),
        (format!("{row}}}"), "trailing characters"),
        (
            row.replace("\"hi\":", "\"more\":1,\"hi\":"),
            "other columns",
        ),
    ] {
        cluster.ctl(&["put", key, "--", &spoiled])?;
        assert_has(&refusal(&settings)?, &["keywright_segment/orders", told]);
    }
    cluster.ctl(&["put", key, "--", row])?;
    let keys = open(&settings)?;
    runtime()?.block_on(async {
        take_many(
            keys.source(&segment("orders"))?,
            log,
            "mended".to_owned(),
            30,
        )
        .await;
        Ok(())
    })
}

/// By hand, in the middle of things: whoever wrote it, it counts.
#[test]
fn a_bound_that_somebody_raised_with_etcdctl_is_obeyed_at_once() -> Result<()> {
    let cluster = EtcdCluster::start(1)?;
    let settings = raw_etcd(&cluster.hosts(), "shop");
    let log = IssuedLog::default();
    let keys = open(&settings)?;
    runtime()?.block_on(some_keys(&keys, &log))?;
    let key = "/shop/keywright_segment/orders";
    let row = cluster.ctl(&["get", "--print-value-only", key])?;
    let (before, rest) = row.trim().split_once("\"hi\":").unwrap();
    let (_, after) = rest.split_once(',').unwrap();
    cluster.ctl(&["put", key, "--", &format!("{before}\"hi\":5000000,{after}")])?;
    runtime()?.block_on(async {
        let source = keys.source(&segment("orders"))?;
        while log.max() < 5_000_000 {
            log.add_all("it", &source.take(20, true).await?);
            assert!(log.len() < 3_000, "nobody reads what was written");
        }
        assert!(!log.contains(4_999_999));
        Ok(())
    })
}

#[test]
fn users_and_their_roles() -> Result<()> {
    let mut cluster = EtcdCluster::start(1)?;
    cluster.ctl(&["user", "add", "root:secret"])?;
    cluster.ctl(&["user", "grant-role", "root", "root"])?;
    cluster.ctl(&["user", "add", "kw:pass/word"])?;
    cluster.ctl(&["role", "add", "keys"])?;
    let grant = ["role", "grant-permission", "keys", "--prefix=true", "read"];
    cluster.ctl(&[&grant[..], &["/shop/"]].concat())?;
    cluster.ctl(&["user", "grant-role", "kw", "keys"])?;
    cluster.ctl(&["auth", "enable"])?;
    cluster.log_in("root:secret");
    let settings = |login: &str| RawStoreSettings {
        url: format!("etcd://{login}{}/shop", cluster.hosts()),
        wait_ms_max: 3_000,
        ..raw_etcd("", "")
    };
    assert_has(
        &refusal(&settings(""))?,
        &["user name is empty", "roles of its user"],
    );
    assert_has(
        &refusal(&settings("kw:wrong@"))?,
        &["authentication failed", "password"],
    );
    let its = settings("kw:pass%2Fword@");
    let told = runtime()?.block_on(open(&its)?.init()).unwrap_err();
    assert_has(&told.to_string(), &["permission denied"]);
    let grant = [
        "role",
        "grant-permission",
        "keys",
        "--prefix=true",
        "readwrite",
    ];
    cluster.ctl(&[&grant[..], &["/shop/"]].concat())?;
    let log = IssuedLog::default();
    runtime()?.block_on(some_keys(&open(&its)?, &log))?;
    let other = RawStoreSettings {
        url: its.url.replace("/shop", "/other"),
        ..its
    };
    assert_has(
        &refusal(&other)?,
        &["permission denied", "roles of its user"],
    );
    Ok(())
}

#[test]
fn tls_and_certificates() -> Result<()> {
    let pki = Pki::new()?;
    let its = EtcdOptions {
        tls: Some(&pki),
        ..EtcdOptions::default()
    };
    let cluster = EtcdCluster::start_with(1, &its)?;
    let plain = RawStoreSettings {
        wait_ms_max: 3_000,
        ..raw_etcd(&cluster.hosts(), "shop")
    };
    let told = refusal(&plain)?;
    assert_has(&told, &["is the cluster there"]);
    let by_tls = RawStoreSettings {
        tls: "required".to_owned(),
        tls_ca_file: Some(pki.file("ca.pem")),
        ..plain
    };
    let log = IssuedLog::default();
    runtime()?.block_on(some_keys(&open(&by_tls)?, &log))?;
    let other_name = RawStoreSettings {
        url: by_tls.url.replace("127.0.0.1", "localhost"),
        ..by_tls.clone()
    };
    assert_has(&refusal(&other_name)?, &["certificate"]);
    let web = RawStoreSettings {
        tls_ca_file: None,
        ..by_tls
    };
    assert_has(&refusal(&web)?, &["certificate"]);
    Ok(())
}

#[test]
fn a_cluster_without_space_says_so_and_goes_on_when_it_has_some() -> Result<()> {
    let its = EtcdOptions {
        options: vec!["--quota-backend-bytes=1048576".to_owned()],
        ..EtcdOptions::default()
    };
    let cluster = EtcdCluster::start_with(1, &its)?;
    let settings = RawStoreSettings {
        wait_ms_max: 5_000,
        ..raw_etcd(&cluster.hosts(), "shop")
    };
    let log = IssuedLog::default();
    let keys = open(&settings)?;
    runtime()?.block_on(some_keys(&keys, &log))?;
    let much = "x".repeat(100_000);
    while cluster.ctl(&["put", "/else", "--", &much]).is_ok() {}
    let source = keys.source(&segment("orders"))?;
    // On a busy machine the last thing that was heard may be that there was no answer in time.
    let is_late = |refused: &Failure| refused.to_string().contains("no answer within");
    let refused = runtime()?.block_on(async {
        loop {
            match source.take(1, true).await {
                Ok(taken) => log.add_all("it", &taken),
                Err(refused) if is_late(&refused) => {}
                Err(refused) => break refused,
            }
        }
    });
    assert_eq!(refused.cause(), Cause::StoreUnavailable);
    assert_has(&refused.to_string(), &["database space exceeded"]);
    assert_has(
        &alarms(&settings)?,
        &["NOSPACE", "nothing can be reserved on it"],
    );
    let status = cluster.ctl(&["endpoint", "status", "--write-out=json"])?;
    let (_, rest) = status.split_once("\"revision\":").unwrap();
    let revision: String = rest.chars().take_while(char::is_ascii_digit).collect();
    cluster.ctl(&["compact", &revision])?;
    cluster.ctl(&["--command-timeout=60s", "defrag"])?;
    cluster.ctl(&["--command-timeout=60s", "alarm", "disarm"])?;
    runtime()?.block_on(async {
        while source.take(1, true).await.is_err() {}
        take_many(source, log, "after".to_owned(), 100).await;
        anyhow::Ok(())
    })?;
    assert!(!alarms(&settings)?.contains("alarm"));
    Ok(())
}

/// What `check` finds.
fn alarms(settings: &RawStoreSettings) -> Result<String> {
    let keys = open(settings)?;
    let found = runtime()?.block_on(keys.check(&[tag("orders")]));
    let messages: Vec<String> = found.into_iter().map(|found| found.message).collect();
    Ok(messages.join("; "))
}

#[test]
fn settings_that_do_not_fit() {
    let raw = RawStoreSettings {
        url: "etcd://kw@a,b/shop".to_owned(),
        dialect: "leaf".to_owned(),
        segment_table: Some("leaf_alloc".to_owned()),
        any_file_system: true,
        tls_cert_file: Some("/none".into()),
        ..RawStoreSettings::default()
    };
    let told = StoreSettings::new(&raw, &RawSnowflakeSettings::default());
    let told = told.unwrap_err().to_string();
    assert_has(
        &told,
        &[
            "store.any_file_system: is for a store in a file",
            "store.segment_table: a store in etcd has none",
            "store.dialect: a store in etcd has tags of its own only",
            "store.url: names a user, whose password is nowhere",
            "store.tls_cert_file: needs tls = \"required\"",
        ],
    );
}
