//! A Redis that may have lost something: its tags are suspended until somebody says how far ids were given, and none comes twice.

use keywright_testkit::redis::{RedisServer, RedisTools, RespClient};
use keywright_testkit::{ProxyConfig, ProxyProcess, Result, WAIT_MAX, assert_has, wait_until};

use super::{Given, checked, near, not_started};

const ACCEPTED: &str = "accept_loss_on_failover = true\n";

fn config(redis: &RedisServer) -> ProxyConfig {
    near(redis.port(), ACCEPTED)
}

fn vouch(config: &ProxyConfig, above: i64) -> Result<String> {
    ProxyProcess::said(
        config,
        &["advance", "orders", "--above", &above.to_string()],
    )
}

/// One digit too many is for ever.
#[test]
fn what_would_use_a_counter_up_is_refused_unless_it_is_meant() -> Result<()> {
    const NEAR_THE_END: &str = "9223372036854774000";
    let redis = RedisServer::start(&RedisTools::get()?, &RedisServer::DURABLE)?;
    let config = config(&redis);
    assert_has(&vouch(&config, 7)?, &["tag \"orders\" goes on at 8"]);
    let beyond = ["advance", "orders", "--above", NEAR_THE_END];
    let output = ProxyProcess::command(&config, &beyond)?;
    assert!(!output.status.success());
    assert_has(
        &String::from_utf8(output.stderr)?,
        &["would leave tag \"orders\"", "--use-up"],
    );
    assert_has(&vouch(&config, 0)?, &["tag \"orders\" goes on at 8"]);
    let meant = [beyond.as_slice(), &["--use-up"]].concat();
    let said = ProxyProcess::said(&config, &meant)?;
    assert_has(&said, &["tag \"orders\" goes on at 9223372036854774001"]);
    Ok(())
}

/// A Redis, and a program that has given some numbers of it.
fn begun(options: &[&str]) -> Result<(RedisServer, ProxyConfig, ProxyProcess, Given)> {
    let tools = RedisTools::get()?;
    let options = [RedisServer::DURABLE.as_slice(), options].concat();
    let redis = RedisServer::start(&tools, &options)?;
    let config = config(&redis);
    assert_has(&vouch(&config, 0)?, &["tag \"orders\" goes on at 1"]);
    let its = ProxyProcess::start(config.clone())?;
    let given = Given::default();
    given.take(its.key_port()?, 1_500)?;
    Ok((redis, config, its, given))
}

/// The program goes on when somebody has vouched, and gives nothing twice.
fn goes_on_when_vouched(config: &ProxyConfig, its: &ProxyProcess, given: &Given) -> Result<()> {
    vouch(config, given.highest())?;
    given.wait_until_given(its.key_port()?)?;
    given.take(its.key_port()?, 1_500)?;
    given.assert_distinct();
    Ok(())
}

#[test]
fn nothing_is_taken_before_somebody_has_vouched() -> Result<()> {
    let redis = RedisServer::start(&RedisTools::get()?, &RedisServer::DURABLE)?;
    let config = config(&redis);
    let (is_ready, told) = checked(&config)?;
    assert!(!is_ready, "{told}");
    assert_has(
        &told,
        &[
            "nobody has vouched for tag \"orders\"",
            "keywright advance orders --above 0",
        ],
    );
    assert_has(
        &not_started(config.clone())?,
        &["the store has no tag \"orders\""],
    );
    // A counter that was there goes on where it is.
    RespClient::connect(redis.port())?.say("SET orders 5000")?;
    assert_has(&vouch(&config, 0)?, &["goes on at 5001"]);
    let (is_ready, told) = checked(&config)?;
    assert!(is_ready, "{told}");
    assert_has(&told, &["warning", "it is a plain Redis"]);
    let its = ProxyProcess::start(config)?;
    let first = RespClient::connect(its.key_port()?)?
        .say("INCR orders")?
        .integer()?;
    assert_eq!(first, 5001);
    Ok(())
}

#[test]
fn others_may_count_beside_and_two_programs_at_once() -> Result<()> {
    let (redis, config, its, given) = begun(&[])?;
    let other = ProxyProcess::start(config)?;
    let ports = [its.key_port()?, other.key_port()?, redis.port()];
    std::thread::scope(|scope| {
        let given = &given;
        let takers = ports.map(|port| scope.spawn(move || given.take(port, 3_000)));
        let mut takers = takers.into_iter();
        takers.try_for_each(|taker| taker.join().expect("a taker"))
    })?;
    given.assert_distinct();
    assert_eq!(given.count(), 10_500);
    Ok(())
}

#[test]
fn a_restart_suspends_until_somebody_vouches() -> Result<()> {
    let (mut redis, config, mut its, given) = begun(&[])?;
    redis.kill9_and_restart()?;
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    assert_has(
        &refusal,
        &[
            "SUSPENDED",
            "master_replid",
            "keywright advance orders --above N",
        ],
    );
    // A program that starts sees it as well: it stands in Redis.
    its.kill9()?;
    its.restart()?;
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    assert_has(&refusal, &["SUSPENDED"]);
    let (is_ready, told) = checked(&config)?;
    assert!(!is_ready);
    assert_has(&told, &["is suspended"]);
    goes_on_when_vouched(&config, &its, &given)
}

#[test]
fn what_was_lost_is_not_given_again() -> Result<()> {
    let (redis, config, mut its, given) = begun(&[])?;
    let mut client = RespClient::connect(redis.port())?;
    client.say("FLUSHALL")?;
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    assert_has(&refusal, &["TAG_UNKNOWN", "what was there is lost"]);
    // Anew, it is another one: programs that had ranges are started again.
    vouch(&config, given.highest())?;
    wait_until("another tag", WAIT_MAX, || {
        let refusal = given.take_until_refused(its.key_port()?, 25)?;
        Ok(refusal.starts_with("BOUND_DAMAGED"))
    })?;
    its.stop()?;
    its.restart()?;
    given.take(its.key_port()?, 1_000)?;
    given.assert_distinct();
    Ok(())
}

#[test]
fn a_lower_value_suspends_until_somebody_vouches() -> Result<()> {
    for command in ["SET orders 7", "DEL orders", "DECRBY orders 100000"] {
        let (redis, config, its, given) = begun(&[])?;
        RespClient::connect(redis.port())?.say(command)?;
        let refusal = given.take_until_refused(its.key_port()?, 25)?;
        assert_has(&refusal, &["BOUND_DAMAGED"]);
        if command.starts_with("DECRBY") {
            assert_has(&refusal, &["is below zero"]);
            continue;
        }
        assert_has(&refusal, &["has gone back"]);
        goes_on_when_vouched(&config, &its, &given)?;
    }
    Ok(())
}

/// Its own moment of the past, in the same life: only who has seen more can tell, and does.
#[test]
fn an_older_state_of_counter_and_record_is_seen_by_who_has_seen_more() -> Result<()> {
    let (redis, config, its, given) = begun(&[])?;
    let mut client = RespClient::connect(redis.port())?;
    for key in ["orders", "keywright:record:orders"] {
        client.ask(&["COPY", key, &format!("old:{key}")])?;
    }
    given.take(its.key_port()?, 2_000)?;
    for key in ["orders", "keywright:record:orders"] {
        client.ask(&["COPY", &format!("old:{key}"), key, "REPLACE"])?;
    }
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    assert_has(&refusal, &["BOUND_DAMAGED", "has gone back"]);
    // Nothing less than what it has seen will do.
    let seen = refusal
        .split("--above ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let seen: i64 = seen.unwrap_or_default().parse()?;
    assert!(seen >= given.highest());
    vouch(&config, seen)?;
    given.wait_until_given(its.key_port()?)?;
    given.take(its.key_port()?, 500)?;
    given.assert_distinct();
    Ok(())
}

/// A replica that a Redis gets, its first one: from then on it is another life.
fn replicated() -> Result<(RedisServer, RedisServer)> {
    let tools = RedisTools::get()?;
    let redis = RedisServer::start(&tools, &RedisServer::DURABLE)?;
    let master = redis.port().to_string();
    let of = ["--replicaof", "127.0.0.1", &master];
    let replica = RedisServer::start(&tools, &[RedisServer::DURABLE.as_slice(), &of].concat())?;
    let mut client = RespClient::connect(replica.port())?;
    wait_until("the replica", WAIT_MAX, || {
        let told = format!("{:?}", client.say("INFO replication")?);
        Ok(told.contains("master_link_status:up"))
    })?;
    Ok((redis, replica))
}

#[test]
fn a_replica_that_lacks_writes_is_suspended_when_it_is_promoted() -> Result<()> {
    let (redis, replica) = replicated()?;
    let (of_master, of_replica) = (config(&redis), config(&replica));
    vouch(&of_master, 0)?;
    let mut its = ProxyProcess::start(of_master)?;
    let given = Given::default();
    given.take(its.key_port()?, 1_500)?;
    let mut client = RespClient::connect(replica.port())?;
    wait_until("the record on the replica", WAIT_MAX, || {
        Ok(client.say("EXISTS keywright:record:orders")?.integer()? == 1)
    })?;
    let (_, told) = checked(&of_replica)?;
    assert_has(&told, &["has the role \"slave\""]);
    // It hears nothing more.
    client.say("REPLICAOF 127.0.0.1 1")?;
    given.take(its.key_port()?, 3_000)?;
    drop(redis);
    client.say("REPLICAOF NO ONE")?;
    its.stop()?;
    its.reconfigure(of_replica.clone());
    its.restart()?;
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    assert_has(&refusal, &["SUSPENDED"]);
    goes_on_when_vouched(&of_replica, &its, &given)
}

#[test]
fn databases_that_were_swapped_suspend() -> Result<()> {
    let (redis, _, its, given) = begun(&[])?;
    RespClient::connect(redis.port())?.say("SWAPDB 0 1")?;
    let refusal = given.take_until_refused(its.key_port()?, 25)?;
    assert_has(&refusal, &["TAG_UNKNOWN"]);
    RespClient::connect(redis.port())?.say("SWAPDB 0 1")?;
    given.wait_until_given(its.key_port()?)?;
    given.assert_distinct();
    Ok(())
}
