//! The MySQL half of the demo: two shards with unchanged auto-increment tables, the proxy in front of both, and an
//! application in an unmodified driver.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use keywright_testkit::{MariaServer, WAIT_MAX, free_port, wait_until, workspace_root};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::demo::show::Show;
use crate::program::Program;
use crate::shell::run;

/// Orders before their table is switched over to keys.
const ORDERS_NATIVE: u64 = 1_000;
/// Orders before the proxy is killed.
const ORDERS_UNTIL_KILL: u64 = 4_000;
/// Orders in all.
const ORDERS: u64 = 12_000;
/// Connections of the application, half of them to each shard.
const CONNECTIONS: usize = 8;
/// How soon the application connects again after an error.
const RECONNECT_EVERY: Duration = Duration::from_millis(50);

const SCHEMA: &str = "\
CREATE DATABASE shop;
USE shop;
CREATE TABLE orders     (id bigint AUTO_INCREMENT PRIMARY KEY, customer varchar(40) NOT NULL);
CREATE TABLE order_line (id bigint AUTO_INCREMENT PRIMARY KEY, order_id bigint NOT NULL, item varchar(40) NOT NULL, KEY (order_id));
CREATE USER app@'127.0.0.1';
GRANT SELECT, INSERT ON shop.* TO app@'127.0.0.1';";

/// Two MariaDB servers, the proxy's configuration and its process.
pub(crate) struct Shards {
    servers: [MariaServer; 2],
    ports: [u16; 2],
    program: Program,
}

impl Shards {
    /// Starts both servers and the proxy.
    ///
    /// # Errors
    /// A program is missing or does not start.
    pub(crate) fn start(screen: &Show) -> Result<Shards> {
        screen.stage("two MariaDB shards, with auto-increment tables as applications have them");
        screen.say(SCHEMA);
        let servers = [MariaServer::start()?, MariaServer::start()?];
        for (server, offset) in servers.iter().zip(1..) {
            server.run("mysql", SCHEMA)?;
            // As where two servers share the numbers out without Keywright.
            let shared = format!(
                "SET GLOBAL auto_increment_increment = 2; SET GLOBAL auto_increment_offset = {offset}"
            );
            server.run("mysql", &shared)?;
        }
        let [first, _] = &servers;
        first.run("mysql", "CREATE DATABASE keywright")?;
        screen.stage("building the proxy");
        Program::build()?;
        let ports = [free_port()?, free_port()?];
        let mut program = Program::new(&ports)?;
        let config = configuration(&servers, ports, "observe");
        program.configure(&config)?;
        screen.stage("keywright init, then run; the keys of orders are native for the time being");
        screen.say(&config);
        run(&mut program.command("init"))?;
        program.start()?;
        Ok(Shards {
            servers,
            ports,
            program,
        })
    }

    /// While the application inserts.
    fn switch_on(&self, screen: &Show) -> Result<()> {
        screen.stage("mode = \"rewrite\" for orders, and SIGHUP, while the application inserts");
        let began = Instant::now();
        self.program
            .configure(&configuration(&self.servers, self.ports, "rewrite"))?;
        self.program.reload()?;
        let [first, _] = &self.servers;
        wait_until("the switch", WAIT_MAX, || {
            let keys = first.run(
                "keywright",
                "SELECT key_space FROM keywright_rule WHERE table_pattern = 'shop.orders'",
            )?;
            Ok(keys == [["segment:orders"]])
        })?;
        screen.say(&format!(
            "    in force after {:.1} s, above every id that either shard has given",
            began.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// A shard on which a program of its own may listen.
    pub(crate) fn first(&self) -> &MariaServer {
        let [first, _] = &self.servers;
        first
    }

    /// Runs the application, kills the proxy under it, starts it again, and shows what came of it.
    ///
    /// # Errors
    /// A key came twice, or LAST_INSERT_ID was wrong.
    pub(crate) fn show(&mut self, screen: &Show) -> Result<()> {
        screen.stage(&format!(
            "an application with {CONNECTIONS} connections: orders, and lines that refer to them by LAST_INSERT_ID()"
        ));
        let shop = Shop::default();
        let ports = self.ports;
        thread::scope(|scope| -> Result<()> {
            let buyers: Vec<_> = (0..CONNECTIONS)
                .map(|number| {
                    let (shop, port) = (&shop, port_of(ports, number));
                    scope.spawn(move || shop.buy(port))
                })
                .collect();
            shop.wait_for(ORDERS_NATIVE);
            let switched = self.switch_on(screen);
            if switched.is_err() {
                shop.stop.store(true, Ordering::SeqCst);
            }
            switched?;
            shop.wait_for(ORDERS_UNTIL_KILL);
            screen.stage("kill -9 of the proxy, in the middle of it, and a new start");
            let killed = Instant::now();
            let restarted = self.program.kill().and_then(|()| self.program.start());
            if restarted.is_err() {
                shop.stop.store(true, Ordering::SeqCst);
            }
            restarted?;
            screen.say(&format!(
                "    accepts again after {:.1} s",
                killed.elapsed().as_secs_f64()
            ));
            for buyer in buyers {
                buyer
                    .join()
                    .map_err(|_| anyhow!("a connection's thread panicked"))??;
            }
            Ok(())
        })?;
        let wrong = shop.wrong.load(Ordering::SeqCst);
        if wrong > 0 {
            bail!("LAST_INSERT_ID() was wrong {wrong} times");
        }
        screen.say(&format!(
            "    {} orders, the driver's last insert id and LAST_INSERT_ID() right in each; {} connections were lost",
            shop.bought.load(Ordering::SeqCst),
            shop.lost.load(Ordering::SeqCst)
        ));
        self.show_distinct(screen)?;
        self.show_decoded(screen)
    }

    fn show_distinct(&self, screen: &Show) -> Result<()> {
        screen.stage("are keys distinct over both shards?");
        for table in ["orders", "order_line"] {
            let mut keys = Vec::new();
            for server in &self.servers {
                let rows = server.run("shop", &format!("SELECT id FROM {table}"))?;
                keys.extend(rows.into_iter().flatten());
            }
            let rows = keys.len();
            keys.sort_unstable();
            keys.dedup();
            if keys.len() != rows {
                bail!(
                    "{table}: {rows} rows with only {} distinct keys",
                    keys.len()
                );
            }
            screen.say(&format!(
                "    {table:10} {rows:>8} rows, {:>8} distinct keys",
                keys.len()
            ));
        }
        Ok(())
    }

    fn show_decoded(&self, screen: &Show) -> Result<()> {
        screen.stage("reading keys back in SQL, on the shards");
        let functions = workspace_root().join("sql/mysql/keywright_decode.sql");
        let functions = fs::read_to_string(functions).context("reading the decoding functions")?;
        let query = "SELECT id, snowflake_timestamp(id, 'twitter'), snowflake_worker(id, 'twitter'), \
                     snowflake_sequence(id, 'twitter') FROM order_line ORDER BY id DESC LIMIT 2";
        screen.say(&format!("{query};"));
        for server in &self.servers {
            server.run("shop", &functions)?;
            for row in server.run("shop", query)? {
                screen.say(&format!("    {}", row.join(" | ")));
            }
        }
        Ok(())
    }

    /// How to try it by hand.
    pub(crate) fn show_how_to_connect(&self) {
        for port in self.ports {
            println!("    mariadb --host=127.0.0.1 --port={port} --user=app --skip-ssl shop");
        }
        println!("    INSERT INTO orders (customer) VALUES ('me'); SELECT LAST_INSERT_ID();");
    }
}

fn port_of([first, second]: [u16; 2], connection: usize) -> u16 {
    if connection.is_multiple_of(2) {
        first
    } else {
        second
    }
}

fn configuration(servers: &[MariaServer; 2], ports: [u16; 2], orders: &str) -> String {
    let [first, _] = servers;
    let mut text = format!(
        "[store]\nurl = \"mysql://root@127.0.0.1:{}/keywright\"\n",
        first.port()
    );
    for (server, port) in servers.iter().zip(ports) {
        let upstream = format!("127.0.0.1:{}", server.port());
        text += &format!(
            "\n[[listener]]\nbind = \"127.0.0.1:{port}\"\nupstream = \"{upstream}\"\nadmin = \"mysql://root@{upstream}\"\n"
        );
    }
    let rules = [
        ("orders", "segment:orders", orders),
        ("order_line", "snowflake", "rewrite"),
    ];
    for (table, key, mode) in rules {
        text += &format!(
            "\n[[rule]]\ntable = \"shop.{table}\"\ncolumn = \"id\"\nkey = \"{key}\"\nmode = \"{mode}\"\nfence = true\n"
        );
    }
    text
}

/// As the application does.
pub(super) fn connect(port: u16) -> std::result::Result<Conn, mysql::Error> {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("app"))
        .db_name(Some("shop"))
        .prefer_socket(false);
    Conn::new(options)
}

/// What all connections of the application did.
#[derive(Default)]
struct Shop {
    begun: AtomicU64,
    bought: AtomicU64,
    wrong: AtomicU64,
    lost: AtomicU64,
    stop: AtomicBool,
}

impl Shop {
    fn wait_for(&self, orders: u64) {
        while self.bought.load(Ordering::SeqCst) < orders && !self.stop.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Buys until all connections together have bought enough, over as many connections as it takes.
    fn buy(&self, port: u16) -> Result<()> {
        let mut connected = Instant::now();
        while !self.stop.load(Ordering::SeqCst) {
            let outcome = connect(port).and_then(|connection| {
                connected = Instant::now();
                self.buy_over(connection)
            });
            match outcome {
                Ok(()) => return Ok(()),
                Err(error @ mysql::Error::MySqlError(_)) => {
                    self.stop.store(true, Ordering::SeqCst);
                    return Err(error.into());
                }
                Err(error) => {
                    if connected.elapsed() > WAIT_MAX {
                        self.stop.store(true, Ordering::SeqCst);
                        return Err(error.into());
                    }
                    self.lost.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(RECONNECT_EVERY);
                }
            }
        }
        Ok(())
    }

    fn buy_over(&self, mut connection: Conn) -> std::result::Result<(), mysql::Error> {
        let order = connection.prep("INSERT INTO orders (customer) VALUES (?)")?;
        while self.begun.fetch_add(1, Ordering::SeqCst) < ORDERS {
            connection.exec_drop(&order, ("somebody",))?;
            let id = connection.last_insert_id();
            connection.query_drop(
                "INSERT INTO order_line (order_id, item) VALUES (LAST_INSERT_ID(), 'pen'), (LAST_INSERT_ID(), 'paper')",
            )?;
            let lines: Option<u64> = connection
                .exec_first("SELECT count(*) FROM order_line WHERE order_id = ?", (id,))?;
            if lines != Some(2) {
                self.wrong.fetch_add(1, Ordering::SeqCst);
            }
            self.bought.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}
