//! The two servers of the pages on MySQL, of either kind.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use keywright_testkit::{Flavour, mysql_tree};

use super::machine::Machine;
use super::root::Root;
use crate::shell::run;

/// What the servers, and the client for both, are made of.
pub(super) const PACKAGES: &[&str] = &["mariadb-server"];
pub(super) const SHARDS: [u8; 2] = [1, 2];
/// Where MySQL is unpacked, which the release of the root does not have; what starts it beside it.
const MYSQL: &str = "/opt/mysql";
/// It comes with the loader and the libraries that it needs.
const MYSQLD: &str = "#!/bin/sh\n\
    usr=/opt/mysql/usr\n\
    for loader in $usr/lib/*-linux-gnu/ld-linux-*; do\n\
    \x20   exec $loader --library-path ${loader%/*} $usr/sbin/mysqld --no-defaults --basedir=$usr --lc-messages-dir=$usr/share/mysql \
    --plugin-dir=$usr/lib/mysql/plugin --mysqlx=OFF --secure-file-priv= \"$@\"\n\
    done\n";

/// A root with the two servers of the pages, which start with a machine.
pub(super) fn with_servers(root: &Root, within: &Path, flavour: Flavour) -> Result<Root> {
    let machine = Machine::boot(root, within, &format!("servers-{}", flavour.name()))?;
    match flavour {
        Flavour::MariaDb => {
            machine.must("apt install mariadb-server && systemctl disable --now mariadb")?;
        }
        Flavour::MySql => unpack_mysql(&machine)?,
    }
    for n in SHARDS {
        let data = format!("/var/lib/shard-{n}");
        let (initialise, server) = match flavour {
            Flavour::MariaDb => (
                "mariadb-install-db --no-defaults --skip-test-db".to_owned(),
                "/usr/sbin/mariadbd --no-defaults".to_owned(),
            ),
            Flavour::MySql => (
                format!("{MYSQL}/mysqld --initialize-insecure"),
                format!("{MYSQL}/mysqld"),
            ),
        };
        machine.must(&format!("{initialise} --user=mysql --datadir={data}"))?;
        let unit = format!(
            "[Service]\nType=notify\nExecStart={server} --user=mysql --datadir={data} --socket={data}/socket \
             --pid-file={data}/pid --bind-address=127.0.0.1 --port=3306{n} --server-id={n}\n\
             [Install]\nWantedBy=multi-user.target\n"
        );
        machine.write(&format!("/etc/systemd/system/shard-{n}.service"), &unit)?;
        machine.must(&format!(
            "systemctl daemon-reload && systemctl enable --now shard-{n}"
        ))?;
    }
    machine.must("systemctl stop shard-1 shard-2")?;
    machine.into_root()
}

fn unpack_mysql(machine: &Machine) -> Result<()> {
    machine.must("apt install mariadb-client && useradd --system mysql")?;
    let from = mysql_tree()?.join("usr");
    machine.must(&format!("mkdir {MYSQL}"))?;
    let to = machine.path(MYSQL);
    run(Command::new("cp").arg("--archive").arg(&from).arg(&to))
        .with_context(|| format!("copying MySQL to {}", to.display()))?;
    machine.write(&format!("{MYSQL}/mysqld"), MYSQLD)?;
    machine.must(&format!("chmod 755 {MYSQL}/mysqld"))?;
    Ok(())
}

/// SQL on one of them, as its administrator.
pub(super) fn sql(machine: &Machine, shard: u8, sql: &str) -> Result<String> {
    machine.must(&format!(
        "mariadb --socket=/var/lib/shard-{shard}/socket --user=root --batch --skip-column-names <<'END_OF_SQL'\n{sql}\nEND_OF_SQL"
    ))
}
