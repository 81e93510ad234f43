//! Programs that end at any moment: what a key port gave is never given again.

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{ProxyProcess, Result, WAIT_MAX, wait_until};

use super::killed::{Given, no_number_is_given_twice};
use super::{KEYS, Port};

const KILLS: usize = 6;

/// Eight clients take numbers, alone, in runs and in pipelines, while the program is killed again and again.
#[test]
fn no_number_is_given_twice_however_the_program_ends() -> Result<()> {
    let mut port = Port::start("")?;
    // A second program on the same store, which nobody kills.
    let other = ProxyProcess::start(port.config.clone())?;
    let ports = [port.proxy.key_port()?, other.key_port()?];
    no_number_is_given_twice(&mut port.proxy, KILLS, |client, given| {
        take(ports[client % 2], client, given)
    })
}

fn take(port: u16, client: usize, given: &Given) -> Result<()> {
    let mut wire = RespClient::connect(port)?;
    while given.is_going_on() {
        let count = i64::try_from(client % 4)? * 7 + 1;
        let request = RespClient::written(&["INCRBY", "orders", &count.to_string()]);
        let requests = client % 3 * 5 + 1;
        wire.send(&request.repeat(requests))?;
        for _ in 0..requests {
            match wire.read()? {
                RespValue::Integer(last) => given.note(last - count + 1, last),
                // It is stopping.
                other => drop(other.error()?.to_owned()),
            }
        }
    }
    Ok(())
}

#[test]
fn a_stop_answers_what_was_read_and_hands_the_rest_back() -> Result<()> {
    let mut port = Port::start("")?;
    let mut idle = port.client()?;
    let mut busy = port.client()?;
    assert_eq!(idle.say("INCR orders")?, RespValue::Integer(1));
    busy.send(&RespClient::written(&["INCR", "orders"]).repeat(5_000))?;
    let first = busy.read()?.integer()?;
    port.proxy.begin_stop()?;
    assert_eq!(idle.rest()?, b"");
    let mut last = first;
    while let Ok(RespValue::Integer(number)) = busy.read() {
        assert_eq!(number, last + 1);
        last = number;
    }
    assert!(port.proxy.wait()?.success(), "{}", port.proxy.log());
    port.proxy.restart()?;
    // Nothing was lost, and nothing comes twice.
    assert_eq!(
        port.client()?.say("INCR orders")?,
        RespValue::Integer(last + 1)
    );
    Ok(())
}

/// Who is connected goes on with the old program, who comes gets keys of the new one, and nobody is kept waiting.
#[test]
fn another_program_takes_over_without_an_error() -> Result<()> {
    let mut port = Port::start("")?;
    let mut before = port.client()?;
    let mut all = vec![before.say("INCR orders")?.integer()?];
    let mut old = port.proxy.take_over()?;
    let mut after = port.client()?;
    for _ in 0..2_000 {
        all.push(before.say("INCR orders")?.integer()?);
        all.push(after.say("INCR orders")?.integer()?);
    }
    drop(before);
    assert!(old.wait()?.success());
    all.push(after.say("INCR orders")?.integer()?);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    Ok(())
}

#[test]
fn names_come_and_go_while_clients_are_connected() -> Result<()> {
    let mut port = Port::start("")?;
    let mut client = port.client()?;
    assert_eq!(client.say("INCR orders")?, RespValue::Integer(1));
    let mut config = port.config.clone();
    let more = KEYS.replace("orders = \"segment:orders\"", "shop = \"segment:orders\"");
    config.key_ports = vec![more];
    port.proxy.reload(config)?;
    let renamed = |client: &mut RespClient| Ok(client.say("INCR shop")? == RespValue::Integer(2));
    wait_until("the new name", WAIT_MAX, || renamed(&mut client))?;
    let gone = client.say("INCR orders")?;
    assert!(gone.error()?.starts_with("TAG_UNKNOWN "), "{gone:?}");
    Ok(())
}
