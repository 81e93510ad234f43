//! Layouts of snowflake keys that have no time now, and a clock that does not know the time yet.

use std::time::{SystemTime, UNIX_EPOCH};

use keywright_testkit::{
    FakeClock, ProxyConfig, ProxyProcess, Result, WAIT_MAX, assert_has, scratch_dir, wait_until,
};

use crate::{KEYS, Port, config_at};

#[test]
fn a_layout_that_has_no_time_now_gives_no_keys_and_keeps_nobody_from_others() -> Result<()> {
    for (layout, told, refused) in [
        (
            "baidu",
            "its time ran out on 2024-11-20",
            "\"layout_ran_out\"",
        ),
        (
            "leaf,epoch=2199-01-01",
            "its epoch, 2199-01-01, is ahead of the clock: give it one in the past",
            "\"clock_behind\"",
        ),
    ] {
        let scratch = scratch_dir()?;
        let config = ProxyConfig {
            more: format!("[snowflake]\nlayout = \"{layout}\"\n"),
            ..config_at(scratch.path(), "")
        };
        ProxyProcess::said(&config, &["init"])?;
        let checked = ProxyProcess::command(&config, &["check"])?;
        assert!(!checked.status.success());
        let told = ["snowflake.layout", told];
        assert_has(&String::from_utf8(checked.stdout)?, &told);
        // A program that runs takes its other changes.
        let reloads = ProxyProcess::said(&config, &["check", "--reload"])?;
        assert_has(&reloads, &["warning: snowflake.layout", "ready to run"]);
        let port = Port::start_with("", |its| ProxyConfig {
            more: config.more.clone(),
            ..its
        })?;
        let mut client = port.client()?;
        let no_key = client.say("POST /v1/keys/flakes")?;
        assert_has(&no_key.body, &[refused]);
        assert_eq!(client.say("POST /v1/keys/orders")?.status, 200);
        assert_has(&port.proxy.log(), &told);
        // Nobody takes such keys.
        let without = KEYS.replace("flakes = \"snowflake\", ", "");
        let config = ProxyConfig {
            key_ports: vec![without.clone()],
            http_ports: vec![without],
            ..config
        };
        assert_has(&ProxyProcess::said(&config, &["check"])?, &["ready to run"]);
    }
    Ok(())
}

/// As on a machine without a battery, until it has heard the time.
#[test]
fn a_program_that_starts_in_1970_gives_keys_when_its_clock_is_set_right() -> Result<()> {
    const DAY_S: i64 = 86_400;
    let scratch = scratch_dir()?;
    let clock = FakeClock::of_program(scratch.path())?;
    let real_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    clock.step_to(DAY_S - i64::try_from(real_s)?)?;
    let environment = clock.environment()?;
    let port = Port::start_with("", |config| ProxyConfig {
        environment,
        ..config
    })?;
    let mut client = port.client()?;
    for name in ["flakes", "invoices"] {
        let refused = client.say(&format!("POST /v1/keys/{name}"))?;
        assert_eq!(refused.status, 503, "{refused:?}");
        let told = ["\"clock_behind\"", "the clock reads 1970-01-"];
        assert_has(&refused.body, &told);
    }
    assert_eq!(client.say("POST /v1/keys/orders")?.status, 200);
    assert_has(
        &port.proxy.log(),
        &["no snowflake keys are given until it is set right"],
    );
    clock.step_to(0)?;
    for name in ["flakes", "invoices"] {
        wait_until("keys", WAIT_MAX, || {
            Ok(client.say(&format!("POST /v1/keys/{name}"))?.status == 200)
        })?;
    }
    let flakes = client.say("POST /v1/keys/flakes")?.numbers("keys")?;
    let request = format!("GET /v1/decode/{}", flakes[0]);
    let lines = client.say_with(&request, "Accept: text/plain\r\n")?;
    assert!(!lines.body.contains("note"), "it is of now: {lines:?}");
    Ok(())
}
