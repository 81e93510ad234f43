//! Tags that are made, altered, raised and dropped through a key port, and by the command.

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{ProxyProcess, Result, WAIT_MAX, assert_has, wait_until};

use super::{Port, bulk, client_as, ok, port_with_users};

#[test]
fn tags_are_made_and_raised_by_those_who_may() -> Result<()> {
    let port = port_with_users("")?;
    let mut keeper = client_as(port.proxy.key_port()?, "keeper")?;
    assert_eq!(keeper.say("KEYWRIGHT CREATE fresh.keys")?, ok());
    for (request, expected) in [
        ("CREATE fresh.keys", "TAG_EXISTS"),
        ("CREATE fresh.k\\", "TAG_INVALID"),
        ("ADVANCE orders -1", "ARGUMENT_OUT_OF_RANGE"),
        ("ADVANCE orders x", "ERR value is not an integer"),
        ("ADVANCE orders 5 ODD", "ERR syntax error"),
        ("ADVANCE order 5", "TAG_UNKNOWN"),
        ("ALTER orders", "ERR wrong number of arguments"),
        (
            "ALTER orders STEP 0",
            "ARGUMENT_OUT_OF_RANGE a step must be between",
        ),
        (
            "ALTER orders COVER_S -1",
            "ARGUMENT_OUT_OF_RANGE cover_s cannot be -1",
        ),
        (
            "ALTER orders REFILL_PERCENT 100",
            "ARGUMENT_OUT_OF_RANGE refill_percent",
        ),
        (
            "ALTER orders STEP_MIN 9 STEP_MAX 8",
            "ARGUMENT_OUT_OF_RANGE step_min would be 9",
        ),
        ("ALTER order STEP 5", "TAG_UNKNOWN"),
        ("DROP order", "TAG_UNKNOWN"),
        (
            "DROP orders",
            "TAG_IN_USE tag \"orders\" is that of the listener 127.0.0.1:",
        ),
    ] {
        let reply = keeper.say(&format!("KEYWRIGHT {request}"))?;
        assert_has(reply.error()?, &[expected]);
    }
    let next = keeper.say("KEYWRIGHT ADVANCE orders 5000000")?;
    assert_eq!(next, RespValue::Integer(5_000_001));
    let altered = keeper.say("KEYWRIGHT ALTER orders STEP 5 STEP_MIN 5 STEP_MAX 5")?;
    assert_eq!(altered, ok());
    let mut config = port.config.clone();
    config.key_ports =
        vec!["keys = { fresh = \"segment:fresh.keys\", orders = \"segment:orders\" }\n".to_owned()];
    // What other listeners are for others is here for everybody.
    let open = ProxyProcess::start(config)?;
    let mut client = RespClient::connect(open.key_port()?)?;
    assert_eq!(client.say("INCR fresh")?, RespValue::Integer(1));
    assert!(client.say("INCR orders")?.integer()? > 5_000_000);
    for request in [
        "ADVANCE orders 6000000",
        "ALTER orders STEP 1",
        "DROP none",
        "CREATE none",
    ] {
        let refused = client.say(&format!("KEYWRIGHT {request}"))?;
        assert_has(
            refused.error()?,
            &["ERR nothing is managed through a listener without users"],
        );
    }
    assert_has(
        client.say("KEYWRIGHT USER LIST")?.error()?,
        &["ERR nothing is managed"],
    );
    assert_eq!(client.say("KEYWRIGHT USER WHOAMI")?, bulk("default"));
    Ok(())
}

/// One digit too many is for ever, here as with the command.
#[test]
fn what_would_use_a_tag_up_is_refused_unless_it_is_meant() -> Result<()> {
    const NEAR_THE_END: i64 = i64::MAX - 1_000;
    let port = port_with_users("")?;
    let mut keeper = client_as(port.proxy.key_port()?, "keeper")?;
    let beyond = format!("KEYWRIGHT ADVANCE orders {NEAR_THE_END}");
    let refused = keeper.say(&beyond)?;
    assert_has(
        refused.error()?,
        &[
            "ARGUMENT_OUT_OF_RANGE",
            "would leave tag \"orders\"",
            "USEUP",
        ],
    );
    let next = keeper.say("KEYWRIGHT ADVANCE orders 5000000")?;
    assert_eq!(next, RespValue::Integer(5_000_001));
    let next = keeper.say(&format!("{beyond} USEUP"))?;
    assert_eq!(next, RespValue::Integer(NEAR_THE_END + 1));
    Ok(())
}

/// What was given of a tag is not given again, whoever drops it and makes one of the same name.
#[test]
fn a_tag_that_was_dropped_goes_on_above_when_it_is_made_anew() -> Result<()> {
    let port = port_with_users("")?;
    ProxyProcess::add_user(
        &port.config,
        "owner",
        super::PASSWORD,
        &[("create,manage", "*")],
    )?;
    let mut owner = client_as(port.proxy.key_port()?, "owner")?;
    let mut config = port.config.clone();
    config.key_ports = vec!["keys = { sold = \"segment:ordinary\" }\n".to_owned()];
    let mut highest = 0;
    for _ in 0..3 {
        assert_eq!(owner.say("KEYWRIGHT CREATE ordinary")?, ok());
        let others = ProxyProcess::start(config.clone())?;
        let mut client = RespClient::connect(others.key_port()?)?;
        let first = client.say("INCRBY sold 5")?.integer()? - 4;
        assert!(first > highest, "{first} {highest}");
        highest = first + 4;
        let next = owner.say("KEYWRIGHT DROP ordinary")?.integer()?;
        assert!(next > highest, "{next} {highest}");
        // What it has reserved is used up, and then it hears.
        wait_until("the end", WAIT_MAX, || {
            Ok(match client.say("INCRBY sold 50")? {
                RespValue::Integer(last) => {
                    assert!(last > highest && last < next, "{last} {next}");
                    highest = last;
                    false
                }
                refused => {
                    let error = refused.error()?;
                    assert_has(error, &["TAG_UNKNOWN tag \"ordinary\" was dropped"]);
                    true
                }
            })
        })?;
    }
    Ok(())
}

/// The same by the command.
#[test]
fn the_command_alters_and_drops() -> Result<()> {
    let port = Port::start("")?;
    let said = |arguments: &[&str]| ProxyProcess::said(&port.config, arguments);
    let altered = said(&[
        "tag",
        "alter",
        "orders",
        "--step",
        "20",
        "--description",
        "shop",
    ])?;
    assert_has(&altered, &["altered tag \"orders\""]);
    let mut config = port.config.clone();
    config.key_ports = vec!["keys = { tokens = \"uuid_v7\" }\n".to_owned()];
    let dropped = ProxyProcess::said(&config, &["tag", "drop", "segment:orders"])?;
    assert_has(
        &dropped,
        &["dropped tag \"orders\"; programs use up", "would go on at "],
    );
    for (arguments, expected) in [
        (&["tag", "drop", "orders"][..], "is that of the listener"),
        (&["tag", "drop", "or ders"], "a tag"),
        (&["tag", "drop", "none"], "is not in keywright_segment"),
        (&["tag", "alter", "orders", "--step", "20"], "was dropped"),
        (&["tag", "alter", "orders"], "required"),
        (&["tag", "alter", "orders", "--step", "0"], "a step must be"),
    ] {
        let output = ProxyProcess::command(&port.config, arguments)?;
        assert!(!output.status.success(), "{arguments:?}");
        assert_has(&String::from_utf8(output.stderr)?, &[expected]);
    }
    // A program does not begin without it, and init makes it above.
    assert_has(&said(&["init"])?, &["created tag \"orders\""]);
    Ok(())
}
