//! A new program takes over from the one that runs (SIGUSR2), or begins on sockets that a service manager keeps.

mod load;
mod managed;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use keywright_testkit::{
    Flavour, Login, Program, ProxyConfig, ProxyProcess, Relay, Reply, Result, SqlFault, Upstream,
    WAIT_MAX, Wire, assert_has, free_port, make_store, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The documented answer to whoever stays too long.
const STOPPING: u16 = 1053;
/// The first key of a tag: above all that tables have.
const FIRST: u64 = 1_000_000;

/// A store and a table in a schema of its own, of a name.
pub(crate) fn shop(schema: &str) -> Result<(Arc<Upstream>, ProxyConfig)> {
    let server = Upstream::shared(Flavour::MariaDb)?;
    let store = make_store(&server, &format!("{schema}_store"), &[(schema, FIRST)])?;
    server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
    let table = "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    server.run(schema, table)?;
    let config = ProxyConfig::before(&server, &store);
    Ok((server, config))
}

pub(crate) fn insert(wire: &mut Wire) -> Result<u64> {
    Ok(wire.run("INSERT INTO t (a) VALUES (1)")?.last_insert_id)
}

/// The error that comes unasked.
fn told_unasked(wire: &mut Wire) -> Result<SqlFault> {
    wire.wait_for_word()?;
    match wire.query("SELECT 1")?.pop().context("an answer")? {
        Reply::Failed(fault) => Ok(fault),
        other => anyhow::bail!("{other:?}"),
    }
}

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn who_stays_is_told_when_the_drain_is_over_and_may_end_a_transaction() -> Result<()> {
    let (server, mut config) = shop("stays")?;
    config.more = "[limits]\ndrain_ms_max = 5000\n".to_owned();
    let mut proxy = ProxyProcess::start(config.rule("stays.t", "segment:stays"))?;
    let mut idle = proxy.wire("stays")?;
    let mut busy = proxy.wire("stays")?;
    busy.run("BEGIN")?;
    insert(&mut busy)?;
    let mut old = proxy.take_over()?;
    // Until then it goes on as before, between transactions too.
    insert(&mut idle)?;
    let fault = told_unasked(&mut idle)?;
    assert_eq!(fault.errno, STOPPING, "{fault}");
    insert(&mut busy)?;
    busy.run("COMMIT")?;
    assert_eq!(told_unasked(&mut busy)?.errno, STOPPING);
    assert!(old.wait()?.success(), "{}", proxy.log());
    assert_has(&proxy.log(), &["connections=2", "handed back the rests"]);
    insert(&mut proxy.wire("stays")?)?;
    let rows = server.run("stays", "SELECT COUNT(DISTINCT id) FROM t")?;
    assert_eq!(rows, [["4"]]);
    Ok(())
}

/// Whoever starts it again may wait for the old one's end: it comes soon, and with the answer that clients know.
#[test]
fn where_the_new_program_crashes_the_old_one_ends_as_at_a_stop() -> Result<()> {
    let (_server, mut config) = shop("crashes")?;
    config.more = "[limits]\ndrain_ms_max = 600000\n".to_owned();
    let mut proxy = ProxyProcess::start(config.rule("crashes.t", "segment:crashes"))?;
    let mut idle = proxy.wire("crashes")?;
    let mut old = proxy.take_over()?;
    proxy.kill9()?;
    assert_eq!(told_unasked(&mut idle)?.errno, STOPPING);
    assert!(old.wait()?.success(), "{}", proxy.log());
    assert_has(&proxy.log(), &["the new program has crashed"]);
    proxy.restart()?;
    insert(&mut proxy.wire("crashes")?)?;
    Ok(())
}

#[test]
fn a_program_that_cannot_serve_takes_nothing_over() -> Result<()> {
    let (_server, mut good) = shop("fails")?;
    good.more = "[snowflake]\nworker_id = 7\n".to_owned();
    let good = good.rule("fails.t", "segment:fails");
    let mut proxy = ProxyProcess::start(good.clone())?;
    let mut stays = proxy.wire("fails")?;
    let process = proxy.pid()?;
    let occupied = TcpListener::bind("127.0.0.1:0")?;
    let changed = |change: &dyn Fn(&mut ProxyConfig)| {
        let mut config = good.clone();
        change(&mut config);
        config
    };
    let upstream = good.upstream_ports.first().copied().context("a server")?;
    let listener = format!(
        "[[listener]]\nbind = \"{}\"\nupstream = \"127.0.0.1:{upstream}\"\n\
         admin = \"mysql://root@127.0.0.1:{upstream}\"\n",
        occupied.local_addr()?
    );
    let nobody = format!("mysql://root@127.0.0.1:{}/store", free_port()?);
    for (config, why) in [
        (
            changed(&|config| config.more.push_str("[nonsense]\n")),
            "nonsense",
        ),
        (changed(&|config| config.more.push_str(&listener)), "in use"),
        (
            changed(&|config| config.store_url.clone_from(&nobody)),
            "whether the store has the new rules' tags is not known",
        ),
        (
            changed(&|config| config.rules = vec![rule("fails.t", "segment:missing")]),
            "the store has no tag \"missing\"",
        ),
    ] {
        proxy.reconfigure(config);
        let error = proxy.take_over().expect_err(why);
        assert_has(&format!("{error:#}"), &[why, "going on as before"]);
        assert_eq!(proxy.pid()?, process);
        insert(&mut stays)?;
        insert(&mut proxy.wire("fails")?)?;
    }
    proxy.reconfigure(good);
    let mut old = proxy.take_over()?;
    drop(stays);
    assert!(old.wait()?.success(), "{}", proxy.log());
    insert(&mut proxy.wire("fails")?)?;
    Ok(())
}

fn rule(table: &str, key: &str) -> String {
    format!("table = \"{table}\"\ncolumn = \"id\"\nkey = \"{key}\"\n")
}

/// Two programs cannot have one worker id.
#[test]
fn a_fixed_worker_id_is_not_taken_over() -> Result<()> {
    let (_server, mut config) = shop("worker")?;
    let free = config.clone().rule("worker.t", "snowflake");
    config.more = "[snowflake]\nworker_id = 7\n".to_owned();
    let mut proxy = ProxyProcess::start(config.rule("worker.t", "snowflake"))?;
    insert(&mut proxy.wire("worker")?)?;
    let error = proxy.take_over().expect_err("one worker id");
    assert_has(
        &format!("{error:#}"),
        &[
            "no keys of snowflake for two programs at once",
            "worker id 7",
        ],
    );
    insert(&mut proxy.wire("worker")?)?;
    proxy.reconfigure(free);
    assert!(proxy.take_over()?.wait()?.success(), "{}", proxy.log());
    insert(&mut proxy.wire("worker")?)?;
    Ok(())
}

/// Neither program is left, and nobody listens.
#[test]
fn a_stop_ends_the_program_that_is_to_take_over_too() -> Result<()> {
    let (_server, config) = shop("stopped")?;
    let config = config.rule("stopped.t", "segment:stopped");
    let mute = TcpListener::bind("127.0.0.1:0")?;
    let mut proxy = ProxyProcess::start(config.clone())?;
    proxy.reconfigure(never_ready(&config, &mute)?);
    proxy.begin_take_over()?;
    let _looking = mute.accept()?;
    insert(&mut proxy.wire("stopped")?)?;
    let pid = new_program(&proxy.log())?;
    let port = proxy.port();
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    let mut new = Program::adopted(pid);
    assert_eq!(new.wait()?.code(), Some(1), "{}", proxy.log());
    assert!(is_gone(pid), "{}", proxy.log());
    assert_has(&proxy.log(), &["to be taken over from has ended before"]);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    Ok(())
}

/// A configuration for a program that never serves: it looks at a server that says nothing.
fn never_ready(config: &ProxyConfig, mute: &TcpListener) -> Result<ProxyConfig> {
    let mut slow = config.clone();
    let upstream = config.upstream_ports.first().copied().context("a server")?;
    slow.more = format!(
        "[[listener]]\nbind = \"127.0.0.1:{}\"\nupstream = \"127.0.0.1:{upstream}\"\n\
         admin = \"mysql://root@{}\"\n[limits]\nconnect_ms_max = 600000\n",
        free_port()?,
        mute.local_addr()?
    );
    Ok(slow)
}

/// The process of the program that was started last to take over.
fn new_program(log: &str) -> Result<u32> {
    let (_, pid) = log
        .rsplit_once("a new program is to take over pid=")
        .context("its process")?;
    Ok(pid.lines().next().context("its process")?.parse()?)
}

/// It ends by itself when it is given up, and is killed if it cannot.
#[test]
fn a_program_that_never_serves_is_given_up() -> Result<()> {
    let (_server, config) = shop("given_up")?;
    let config = config.rule("given_up.t", "segment:given_up");
    let mut hasty = config.clone();
    hasty.more = "[limits]\ntake_over_wait_ms_max = 6000\n".to_owned();
    let mute = TcpListener::bind("127.0.0.1:0")?;
    let mut proxy = ProxyProcess::start(hasty)?;
    let process = proxy.pid()?;
    let mut stays = proxy.wire("given_up")?;
    for (is_stuck, how) in [(false, "exit status: 1"), (true, "signal: 9 (SIGKILL)")] {
        proxy.reconfigure(never_ready(&config, &mute)?);
        proxy.begin_take_over()?;
        let _looking = mute.accept()?;
        let pid = new_program(&proxy.log())?;
        if is_stuck {
            kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGSTOP)?;
        }
        // It serves meanwhile.
        insert(&mut proxy.wire("given_up")?)?;
        let given_up = format!("within take_over_wait_ms_max (6000) and was given up ({how}");
        wait_until("that it is given up", WAIT_MAX, || {
            Ok(proxy.log().contains(&given_up))
        })?;
        assert!(is_gone(pid), "{}", proxy.log());
        assert_eq!(proxy.pid()?, process);
        insert(&mut stays)?;
        insert(&mut proxy.wire("given_up")?)?;
    }
    // It still can be taken over from.
    proxy.reconfigure(config);
    let mut old = proxy.take_over()?;
    drop(stays);
    assert!(old.wait()?.success(), "{}", proxy.log());
    insert(&mut proxy.wire("given_up")?)?;
    Ok(())
}

#[test]
fn listeners_come_and_go_with_the_configuration() -> Result<()> {
    let (_server, config) = shop("places")?;
    let mut config = config.rule("places.t", "segment:places");
    let upstream = config.upstream_ports.first().copied().context("a server")?;
    let mut place = || -> Result<(u16, ProxyConfig)> {
        let port = free_port()?;
        config.more = format!(
            "[[listener]]\nbind = \"127.0.0.1:{port}\"\nupstream = \"127.0.0.1:{upstream}\"\n\
             admin = \"mysql://root@127.0.0.1:{upstream}\"\n"
        );
        Ok((port, config.clone()))
    };
    let ((before, first), (behind, second)) = (place()?, place()?);
    let connect = |port| Wire::connect_tcp(port, &Login::root("places"));
    let mut proxy = ProxyProcess::start(first)?;
    // What has started listens at its own place first.
    wait_until("the other place", WAIT_MAX, || {
        Ok(TcpStream::connect(("127.0.0.1", before)).is_ok())
    })?;
    let mut stays = connect(before)?;
    proxy.reconfigure(second);
    let mut old = proxy.take_over()?;
    insert(&mut connect(behind)?)?;
    insert(&mut proxy.wire("places")?)?;
    assert!(TcpStream::connect(("127.0.0.1", before)).is_err());
    assert_has(&proxy.log(), &["listened on no more"]);
    insert(&mut stays)?;
    drop(stays);
    assert!(old.wait()?.success(), "{}", proxy.log());
    Ok(())
}

/// The old program's configuration says otherwise, and does not bring that back.
#[test]
fn what_the_new_configuration_changes_is_switched_once() -> Result<()> {
    let (server, config) = shop("switched")?;
    let rewrite = config.rule("switched.t", "segment:switched");
    let mut observe = rewrite.clone();
    for rule in &mut observe.rules {
        rule.push_str("mode = \"observe\"\n");
    }
    // Often, as what is wanted is looked at with it.
    observe.more = "[limits]\nschema_refresh_s = 1\n".to_owned();
    let mut proxy = ProxyProcess::start(observe)?;
    let mut stays = proxy.wire("switched")?;
    assert!(insert(&mut stays)? < FIRST);
    proxy.reconfigure(rewrite);
    let mut old = proxy.take_over()?;
    let mut comes = proxy.wire("switched")?;
    for wire in [&mut comes, &mut stays] {
        wait_until("keys", WAIT_MAX, || Ok(insert(wire)? >= FIRST))?;
    }
    drop(stays);
    assert!(old.wait()?.success(), "{}", proxy.log());
    assert!(insert(&mut comes)? >= FIRST);
    let attempts = server.run(
        "switched_store",
        "SELECT attempt, phase FROM keywright_switch",
    )?;
    assert_eq!(attempts, [["1", "none"]], "{}", proxy.log());
    Ok(())
}

/// SIGHUP reaches the old program, while the new one has read the file as it was before.
#[test]
fn a_file_that_changes_while_the_new_program_starts_is_in_force_in_the_end() -> Result<()> {
    let (server, config) = shop("anew")?;
    let network = Relay::to(server.port())?;
    let mut rewrite = config.rule("anew.t", "segment:anew");
    rewrite.upstream_ports = vec![network.port()];
    rewrite.more = "[limits]\nconnect_ms_max = 600000\n".to_owned();
    let mut observe = rewrite.clone();
    for rule in &mut observe.rules {
        rule.push_str("mode = \"observe\"\n");
    }
    let mut proxy = ProxyProcess::start(observe)?;
    let mut stays = proxy.wire("anew")?;
    assert!(insert(&mut stays)? < FIRST);
    // The new program waits for the server when it has read its file.
    network.cut();
    proxy.begin_take_over()?;
    let wait_for = |proxy: &ProxyProcess, words: &str, count: usize| {
        wait_until(words, WAIT_MAX, || {
            Ok(proxy.log().matches(words).count() == count)
        })
    };
    wait_for(&proxy, ": starting version=", 2)?;
    proxy.reload(rewrite)?;
    wait_for(&proxy, "a new program is taking over: send SIGHUP", 1)?;
    network.mend();
    wait_for(&proxy, "the new program has taken over pid=", 1)?;
    let _new = Program::adopted(new_program(&proxy.log())?);
    let mut comes = proxy.wire("anew")?;
    for wire in [&mut comes, &mut stays] {
        wait_until("keys", WAIT_MAX, || Ok(insert(wire)? >= FIRST))?;
    }
    assert_has(&proxy.log(), &["the file has changed since this program"]);
    // Whoever still knows the old one is told.
    proxy.reload_again()?;
    wait_for(&proxy, "reload refused: the new program has taken over", 1)?;
    drop(stays);
    assert!(proxy.wait()?.success(), "{}", proxy.log());
    assert!(insert(&mut comes)? >= FIRST);
    let attempts = server.run("anew_store", "SELECT attempt, phase FROM keywright_switch")?;
    assert_eq!(attempts, [["1", "none"]], "{}", proxy.log());
    Ok(())
}
