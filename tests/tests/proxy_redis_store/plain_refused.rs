//! What a Redis must be so that ranges are taken of it.

use keywright_testkit::redis::{RedisServer, RedisTools, RespClient};
use keywright_testkit::{ProxyConfig, ProxyProcess, Result, assert_has};

use super::{Given, checked, near};

const ACCEPTED: &str = "accept_loss_on_failover = true\n";

#[test]
fn a_redis_is_a_store_only_where_somebody_says_what_that_means() -> Result<()> {
    let redis = RedisServer::start(&RedisTools::get()?, &RedisServer::DURABLE)?;
    let (is_ready, told) = checked(&near(redis.port(), ""))?;
    assert!(!is_ready, "{told}");
    assert_has(
        &told,
        &[
            "is a Redis and no key port",
            "accept_loss_on_failover = true",
        ],
    );
    // With the word that it may be a Redis the file is refused, without it the first host that is one.
    for accepted in [ACCEPTED, ""] {
        let several = ProxyConfig {
            store_url: format!("redis://127.0.0.1:{0},localhost:{0}", redis.port()),
            ..near(redis.port(), accepted)
        };
        let (is_ready, told) = checked(&several)?;
        assert!(!is_ready, "{told}");
        assert_has(&told, &["names several hosts"]);
    }
    Ok(())
}

#[test]
fn a_redis_that_may_lose_what_it_acknowledged_is_refused() -> Result<()> {
    let tools = RedisTools::get()?;
    for (options, words) in [
        ([].as_slice(), "has appendonly no, and not yes"),
        (
            &["--appendonly", "yes", "--appendfsync", "everysec"],
            "has appendfsync everysec, and not always",
        ),
        (
            &[
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--no-appendfsync-on-rewrite",
                "yes",
            ],
            "has no-appendfsync-on-rewrite yes, and not no",
        ),
        (
            &[
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--maxmemory-policy",
                "allkeys-lru",
            ],
            "has maxmemory-policy allkeys-lru, and not noeviction",
        ),
        (
            &[
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--rename-command",
                "CONFIG",
                "",
            ],
            "CONFIG",
        ),
        (
            &[
                "--appendonly",
                "yes",
                "--appendfsync",
                "always",
                "--cluster-enabled",
                "yes",
            ],
            "in mode \"cluster\"",
        ),
    ] {
        let redis = RedisServer::start(&tools, options)?;
        let (is_ready, told) = checked(&near(redis.port(), ACCEPTED))?;
        assert!(!is_ready, "{options:?}: {told}");
        assert_has(&told, &[words]);
    }
    Ok(())
}

/// What is set while programs run counts from the next range on.
#[test]
fn settings_that_change_are_seen() -> Result<()> {
    let redis = RedisServer::start(&RedisTools::get()?, &RedisServer::DURABLE)?;
    let config = near(redis.port(), ACCEPTED);
    ProxyProcess::said(&config, &["advance", "orders", "--above", "0"])?;
    let its = ProxyProcess::start(config)?;
    let given = Given::default();
    given.take(its.key_port()?, 100)?;
    let mut client = RespClient::connect(redis.port())?;
    client.say("CONFIG SET appendfsync everysec")?;
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    assert_has(&refusal, &["STORE_UNAVAILABLE", "appendfsync everysec"]);
    client.say("CONFIG SET appendfsync always")?;
    given.wait_until_given(its.key_port()?)?;
    given.assert_distinct();
    Ok(())
}
