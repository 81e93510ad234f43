//! A store in etcd: bounds of MySQL's keys that outlive any of its servers.

#[path = "common/stores.rs"]
mod stores;

use std::collections::BTreeSet;

use keywright_testkit::etcd::EtcdCluster;
use keywright_testkit::{ProxyConfig, ProxyProcess, Result, Upstream, assert_has};
use stores::{insert, made_by_all, server_with_tables};

fn config(server: &Upstream, cluster: &EtcdCluster) -> ProxyConfig {
    let url = format!("etcd://{}/keywright", cluster.hosts());
    ProxyConfig::before(server, &url)
        .rule("killed.t", "segment:orders")
        .rule("killed.s", "snowflake")
}

/// As copies of one configuration do that are started together.
#[test]
fn whoever_makes_the_store_together_with_others_is_content() -> Result<()> {
    let cluster = EtcdCluster::start(1)?;
    let server = server_with_tables()?;
    let config = config(&server, &cluster);
    let said = made_by_all(&config)?;
    for made in ["created etcd://", "created tag \"orders\""] {
        let those = said.iter().filter(|said| said.contains(made));
        assert_eq!(those.count(), 1, "{said:?}");
    }
    Ok(())
}

#[test]
fn no_key_comes_twice_however_programs_and_members_end() -> Result<()> {
    let mut cluster = EtcdCluster::start(3)?;
    let server = server_with_tables()?;
    let config = config(&server, &cluster);
    let output = ProxyProcess::command(&config, &["check"])?;
    assert_has(
        &String::from_utf8(output.stdout)?,
        &[
            "there is no store below its prefix yet",
            "run keywright init",
        ],
    );
    let output = ProxyProcess::said(&config, &["init"])?;
    assert_has(&output, &["created etcd://", "created tag \"orders\""]);
    assert_has(&ProxyProcess::said(&config, &["init"])?, &["nothing to do"]);
    let mut ids = [BTreeSet::new(), BTreeSet::new()];
    let mut all = 0;
    let mut insert_by = |programs: &[&ProxyProcess]| -> Result<()> {
        for program in programs {
            for (table, ids) in ["t", "s"].iter().zip(&mut ids) {
                let given = insert(program, table, 50)?;
                all += given.len();
                ids.extend(given);
            }
        }
        assert_eq!(ids.iter().map(BTreeSet::len).sum::<usize>(), all);
        Ok(())
    };
    // Two programs share it.
    let mut other = ProxyProcess::start(config.clone())?;
    for round in 0..4 {
        let mut proxy = ProxyProcess::start(config.clone())?;
        insert_by(&[&proxy, &other])?;
        let member = round % 3;
        cluster.kill9(member)?;
        insert_by(&[&proxy, &other])?;
        match round % 2 {
            0 => proxy.kill9()?,
            _ => proxy.stop()?,
        };
        cluster.restart(member)?;
        cluster.wait()?;
    }
    let backup = cluster.save("backup")?;
    insert_by(&[&other])?;
    other.stop()?;
    // The manual's way: a cluster of another id. Nobody takes anything of it.
    cluster.restore(&backup, Some("restored"))?;
    let config = self::config(&server, &cluster);
    let output = ProxyProcess::command(&config, &["check"])?;
    assert_has(
        &String::from_utf8(output.stdout)?,
        &[
            "the store was written by cluster",
            "keywright store restored --lost TIME",
        ],
    );
    let output = ProxyProcess::said(&config, &["store", "restored", "--lost", "10m"])?;
    assert_has(&output, &["tag \"orders\": its bound is", "a gap of"]);
    let proxy = ProxyProcess::start(config.clone())?;
    insert_by(&[&proxy])?;
    let output = ProxyProcess::said(&config, &["advance", "orders", "--above", "900000000"])?;
    assert_has(&output, &["tag \"orders\" goes on at 900000001"]);
    Ok(())
}
