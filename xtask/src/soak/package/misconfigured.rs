//! What the installed program says of configurations, servers and files that are not as they must be: place, cause, and what to type.

use std::path::Path;

use anyhow::{Context, Result, bail};
use keywright_testkit::Flavour;

use super::figure::Figure;
use super::machine::Machine;
use super::mysql::{PAGE, configuration, tables_and_accounts};
use super::page::Page;
use super::servers::sql;
use super::unit::{CONFIG, SERVICE};
use super::walk::{Walk, bring};

/// One thing that is wrong.
struct Fault {
    what: &'static str,
    /// What the configuration has, and what stands there instead.
    edit: (&'static str, &'static str),
    /// What is done on the first server before, and undone afterwards.
    sql: (&'static str, &'static str),
    asked: Asked,
    told: &'static [&'static str],
}

/// Who says it.
#[derive(Clone, Copy)]
enum Asked {
    /// `keywright check`.
    Check,
    /// The same with `--strict`: it keeps nobody from starting.
    CheckStrictly,
    /// The unit, which does not start, in the journal.
    Unit,
}

const NOTHING: (&str, &str) = ("", "");

const FAULTS: &[Fault] = &[
    Fault {
        what: "a typo",
        edit: (
            "upstream = \"127.0.0.1:33061\"",
            "upstrem = \"127.0.0.1:33061\"",
        ),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "line 6, upstrem: unknown option",
            "Did you mean \"upstream\"?",
        ],
    },
    Fault {
        what: "a wrong type",
        edit: ("column = \"id\"", "column = id"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "keywright.toml: line 16",
            "Text stands in quotes: column = \"id\"",
        ],
    },
    Fault {
        what: "a rule that matches nothing",
        edit: ("shop_*.orders_*", "shop_*.order_*"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "no table matches \"shop_*.order_*\" with a column \"id\"",
            "orders_1",
        ],
    },
    Fault {
        what: "a pattern in backticks",
        edit: ("shop_*.orders_*", "`shop_1`.`orders_1`"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &["no table matches", "without backticks: \"shop_1.orders_1\""],
    },
    Fault {
        what: "a pattern with %",
        edit: ("shop_*.orders_*", "shop_%.orders_%"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &["no table matches \"shop_%.orders_%\"", "shop_*.orders_*"],
    },
    Fault {
        what: "a missing privilege",
        edit: NOTHING,
        sql: (
            "REVOKE ALTER ON shop_1.* FROM keywright_admin@'127.0.0.1'",
            "GRANT ALTER ON shop_1.* TO keywright_admin@'127.0.0.1'",
        ),
        asked: Asked::CheckStrictly,
        told: &[
            "127.0.0.1:6031: warning: no table can be switched",
            "lacks ALTER on `shop_1`.`orders_1` (GRANT ALTER ON `shop_1`.* TO it)",
        ],
    },
    Fault {
        what: "a wrong password",
        edit: (":admin@127.0.0.1:33061", ":wrong@127.0.0.1:33061"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "127.0.0.1:6031: error: ",
            "Access denied for user 'keywright_admin'",
            "check admin and its password",
        ],
    },
    Fault {
        what: "a wrong password of the store",
        edit: (":store@", ":wrong@"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "store: error: the store at ",
            "Access denied for user 'keywright'",
            "check url of [store]",
        ],
    },
    Fault {
        what: "a store that is down",
        edit: ("127.0.0.1:33061/keywright", "127.0.0.1:33069/keywright"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "the store at 127.0.0.1:33069 cannot be used: Connection refused",
            "and the address in url of [store] right?",
        ],
    },
    Fault {
        what: "a port that is taken",
        edit: ("bind = \"127.0.0.1:6032\"", "bind = \"127.0.0.1:33062\""),
        sql: NOTHING,
        asked: Asked::Unit,
        told: &[
            "listening on 127.0.0.1:33062: Address already in use",
            "ss -ltnp",
        ],
    },
    Fault {
        what: "a missing certificate",
        edit: (
            "[[rule]]",
            "tls = \"required\"\ncertificate = \"/etc/keywright/none.pem\"\nkey = \"/etc/keywright/none.key\"\n\n[[rule]]",
        ),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "listener 2: certificate /etc/keywright/none.pem: ",
            "No such file",
            "listener 2: key /etc/keywright/none.key: ",
        ],
    },
    Fault {
        what: "a tag that is missing",
        edit: ("segment:orders", "segment:bills"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &["store: error: ", "\"bills\"", "keywright init"],
    },
    Fault {
        what: "overlapping rules",
        edit: (
            "[metrics]",
            "[[rule]]\ntable = \"shop_1.orders_1\"\ncolumn = \"id\"\nkey = \"segment:orders\"\n\n[metrics]",
        ),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "no table is left for rule shop_1.orders_1.id",
            "Put the narrower one first",
        ],
    },
    Fault {
        what: "a fence without admin",
        edit: (
            "admin = \"mysql://keywright_admin:admin@127.0.0.1:33061\"\n",
            "",
        ),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "127.0.0.1:6031: error: tables could not be looked at: there is no admin url",
            "write admin = \"mysql://USER@HOST:PORT\"",
        ],
    },
    Fault {
        what: "a password's file that the program's user may not read",
        edit: (
            "keywright:store@127.0.0.1:33061/keywright\"",
            "keywright@127.0.0.1:33061/keywright\"\npassword_file = \"/etc/keywright/secrets/store\"",
        ),
        sql: NOTHING,
        asked: Asked::Unit,
        told: &[
            "password_file: \"/etc/keywright/secrets/store\" cannot be read: Permission denied",
            "/run/credentials/keywright.service/secrets_FILE",
        ],
    },
    Fault {
        what: "limits of zero",
        edit: (
            "[metrics]",
            "[limits]\nconnections_max = 0\nschema_refresh_s = 0\n\n[metrics]",
        ),
        sql: NOTHING,
        asked: Asked::Check,
        told: &[
            "limits.connections_max is at least 1",
            "limits.schema_refresh_s is at least 1",
        ],
    },
    Fault {
        what: "an INT column",
        edit: NOTHING,
        sql: (
            "ALTER TABLE shop_1.orders_1 MODIFY id INT NOT NULL AUTO_INCREMENT",
            "ALTER TABLE shop_1.orders_1 MODIFY id BIGINT NOT NULL AUTO_INCREMENT",
        ),
        asked: Asked::Check,
        told: &[
            "127.0.0.1:6031: error: ",
            "no room for keys of 63 bits: make it bigint, or lower bits_max",
        ],
    },
    Fault {
        what: "two listeners at one address",
        edit: ("bind = \"127.0.0.1:6032\"", "bind = \"127.0.0.1:6031\""),
        sql: NOTHING,
        asked: Asked::Check,
        told: &["listener 2: bind is \"127.0.0.1:6031\", and so is listener 1: bind"],
    },
    Fault {
        what: "an address that is none",
        edit: ("127.0.0.1:6031", "127.0.0.1:66031"),
        sql: NOTHING,
        asked: Asked::Check,
        told: &["listener 1: bind is address:port or unix:/path"],
    },
];

/// Each of them, one after the other, on the configuration of the quick start.
pub(super) fn walk(machine: &Machine, deb: &Path) -> Result<Figure> {
    bring(machine, &[deb])?;
    machine.must("apt install ./target/package/keywright_*.deb")?;
    let mut page = Page::read(PAGE)?;
    page.next("shell")?;
    tables_and_accounts(machine, Flavour::MariaDb, &mut page)?;
    let good = configuration(&mut page)?.text();
    machine.write(CONFIG, &good)?;
    machine.must(&format!("keywright init --config {CONFIG}"))?;
    machine.must("umask 077 && echo store >/etc/keywright/secrets/store")?;
    let walk = Walk::begin(machine);
    let mut wrong = Vec::new();
    for fault in FAULTS {
        let said = fault.said(machine, &good).with_context(|| fault.what)?;
        println!("    {}\n{}", fault.what, indented(&said));
        let missing = fault.told.iter().find(|part| !said.contains(**part));
        wrong.extend(missing.map(|part| format!("{}: nothing says {part:?}", fault.what)));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    machine.write(CONFIG, &good)?;
    machine.must(&format!("keywright check --config {CONFIG}"))?;
    Ok(Figure::new(
        format!("{} things that are wrong, each told", FAULTS.len()),
        walk.took(),
    ))
}

impl Fault {
    /// What is said of it, which must be a failure.
    fn said(&self, machine: &Machine, good: &str) -> Result<String> {
        let (from, to) = self.edit;
        if !good.contains(from) {
            bail!("the configuration has no {from:?}");
        }
        let config = if from.is_empty() {
            good.to_owned()
        } else {
            good.replacen(from, to, 1)
        };
        machine.write(CONFIG, &config)?;
        let (before, after) = self.sql;
        sql(machine, 1, before)?;
        let said = match self.asked {
            Asked::Check => machine.run(&format!("keywright check --config {CONFIG}")),
            Asked::CheckStrictly => {
                machine.run(&format!("keywright check --strict --config {CONFIG}"))
            }
            Asked::Unit => machine.run(&format!(
                "systemctl start {SERVICE} && exit 0; \
                 journalctl --unit {SERVICE} --output=cat --no-pager --boot; \
                 systemctl stop {SERVICE}; systemctl reset-failed {SERVICE}; exit 1"
            )),
        }?;
        sql(machine, 1, after)?;
        if said.is_well {
            bail!("nothing was wrong, and it said\n{}", said.text);
        }
        Ok(said.text)
    }
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("        {line}"));
    lines.collect::<Vec<_>>().join("\n")
}
