//! Programs that end at any moment: what a key port gave is never given again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{ProxyProcess, Result, WAIT_MAX, wait_until};

use super::{KEYS, Port};

const CLIENTS: usize = 8;
const KILLS: usize = 6;

/// Eight clients take numbers, alone, in runs and in pipelines, while the program is killed again and again.
#[test]
fn no_number_is_given_twice_however_the_program_ends() -> Result<()> {
    let mut port = Port::start("")?;
    // A second program on the same store, which nobody kills.
    let other = ProxyProcess::start(port.config.clone())?;
    let ports = [port.proxy.key_port()?, other.key_port()?];
    let runs: Mutex<Vec<(i64, i64)>> = Mutex::default();
    let over = AtomicBool::new(false);
    let killed = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (runs, over) = (&runs, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    // It ends when the program is killed; the next one finds the program that comes after.
                    let _ended = take_until(ports[client % 2], client, over, runs);
                }
            });
        }
        let killed = (0..KILLS).try_for_each(|kill| {
            let before = given(&runs);
            wait_until("keys", WAIT_MAX, || Ok(given(&runs) > before + 500))?;
            thread::sleep(Duration::from_millis(u64::try_from(kill)? * 17 % 50));
            port.proxy.kill9()?;
            port.proxy.restart()
        });
        over.store(true, Ordering::Relaxed);
        killed
    });
    killed?;
    let mut runs = runs.into_inner().unwrap_or_default();
    runs.sort_unstable();
    assert!(runs.len() > KILLS * 500, "{}", runs.len());
    for pair in runs.windows(2) {
        assert!(pair[0].1 < pair[1].0, "given twice: {pair:?}");
    }
    Ok(())
}

fn given(runs: &Mutex<Vec<(i64, i64)>>) -> usize {
    runs.lock().map_or(0, |runs| runs.len())
}

fn take_until(
    port: u16,
    client: usize,
    over: &AtomicBool,
    runs: &Mutex<Vec<(i64, i64)>>,
) -> Result<()> {
    let mut wire = RespClient::connect(port)?;
    while !over.load(Ordering::Relaxed) {
        let count = i64::try_from(client % 4)? * 7 + 1;
        let request = RespClient::written(&["INCRBY", "orders", &count.to_string()]);
        let requests = client % 3 * 5 + 1;
        wire.send(&request.repeat(requests))?;
        for _ in 0..requests {
            match wire.read()? {
                RespValue::Integer(last) => {
                    if let Ok(mut runs) = runs.lock() {
                        runs.push((last - count + 1, last));
                    }
                }
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
