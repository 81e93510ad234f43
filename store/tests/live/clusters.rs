//! Strict tags in a cluster of servers that has each commit before it is acknowledged: Galera, and MySQL's group replication. And programs that
//! keep their bounds on different servers of one Galera cluster.

use keywright_store::{KeySpec, Severity};
use keywright_testkit::{Flavour, Result, Upstream, WAIT_MAX, free_port, wait_until};

use crate::common::{IssuedLog, open, raw, runtime, segment, small_steps, tag, take_many};
use crate::strict::{active, first, goes_on, may_lose};

const GALERA: &str = "/usr/lib/galera/libgalera_smm.so";
/// Any.
const GROUP_NAME: &str = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9fa";

/// Two servers of one cluster.
struct Cluster {
    first: Upstream,
    other: Upstream,
}

impl Cluster {
    fn start(flavour: Flavour) -> Result<Cluster> {
        let cluster = match flavour {
            Flavour::MariaDb => Cluster::galera()?,
            Flavour::MySql => Cluster::group()?,
        };
        cluster.wait_until_both()?;
        cluster.first.run("", "CREATE DATABASE keywright")?;
        Ok(cluster)
    }

    fn galera() -> Result<Cluster> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let start = |own: &str, joins: &str| -> Result<Upstream> {
            let options = [
                "--innodb-flush-log-at-trx-commit=1".to_owned(),
                "--binlog-format=ROW".to_owned(),
                "--innodb-autoinc-lock-mode=2".to_owned(),
                "--wsrep-on=ON".to_owned(),
                format!("--wsrep-provider={GALERA}"),
                format!("--wsrep-cluster-address=gcomm://{joins}"),
                "--wsrep-node-address=127.0.0.1".to_owned(),
                "--wsrep-sst-method=rsync".to_owned(),
                format!("--wsrep-sst-receive-address=127.0.0.1:{}", free_port()?),
                format!(
                    "--wsrep-provider-options=base_host=127.0.0.1;gmcast.listen_addr=tcp://{own};ist.recv_addr=127.0.0.1:{};gcache.size=8M",
                    free_port()?
                ),
            ];
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            Upstream::start_with(Flavour::MariaDb, &options)
        };
        Ok(Cluster {
            first: start(&address, "")?,
            other: start(&format!("127.0.0.1:{}", free_port()?), &address)?,
        })
    }

    fn group() -> Result<Cluster> {
        let addresses = [
            format!("127.0.0.1:{}", free_port()?),
            format!("127.0.0.1:{}", free_port()?),
        ];
        let start = |at: usize| -> Result<Upstream> {
            let options = [
                "--innodb-flush-log-at-trx-commit=1".to_owned(),
                "--sync-binlog=1".to_owned(),
                "--log-bin=binlog".to_owned(),
                format!("--server-id={}", at + 1),
                "--gtid-mode=ON".to_owned(),
                "--enforce-gtid-consistency=ON".to_owned(),
                "--report-host=127.0.0.1".to_owned(),
                "--plugin-load-add=group_replication.so".to_owned(),
                "--loose-group-replication-start-on-boot=OFF".to_owned(),
                "--loose-group-replication-recovery-get-public-key=ON".to_owned(),
                format!("--loose-group-replication-group-name={GROUP_NAME}"),
                format!("--loose-group-replication-local-address={}", addresses[at]),
                format!(
                    "--loose-group-replication-group-seeds={}",
                    addresses.join(",")
                ),
            ];
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let server = Upstream::start_with(Flavour::MySql, &options)?;
            server.run(
                "",
                "CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root' FOR CHANNEL 'group_replication_recovery'",
            )?;
            Ok(server)
        };
        let cluster = Cluster {
            first: start(0)?,
            other: start(1)?,
        };
        cluster.first.run(
            "",
            "SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION; \
             SET GLOBAL group_replication_bootstrap_group = OFF",
        )?;
        cluster.other.run("", "START GROUP_REPLICATION")?;
        Ok(cluster)
    }

    fn wait_until_both(&self) -> Result<()> {
        let (sql, both) = match self.first.flavour() {
            Flavour::MariaDb => (
                "SELECT GROUP_CONCAT(variable_value ORDER BY variable_name) FROM information_schema.global_status \
                 WHERE variable_name IN ('wsrep_cluster_size', 'wsrep_ready')",
                "2,ON",
            ),
            Flavour::MySql => (
                "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'",
                "2",
            ),
        };
        wait_until("both servers", WAIT_MAX, || {
            let says = |server: &Upstream| server.run("", sql).is_ok_and(|rows| rows[0][0] == both);
            Ok(says(&self.first) && says(&self.other))
        })
    }

    fn rejoin(&mut self) -> Result<()> {
        self.other.restart()?;
        match self.other.flavour() {
            Flavour::MariaDb => {}
            Flavour::MySql => {
                self.other.run("", "START GROUP_REPLICATION")?;
            }
        }
        self.wait_until_both()
    }
}

/// Ids go on while another server has each commit, and again once one does.
fn a_cluster_confirms(flavour: Flavour) -> Result<()> {
    let mut cluster = Cluster::start(flavour)?;
    let runtime = runtime()?;
    let settings = raw(cluster.first.port(), "keywright");
    let (keys, source) = runtime.block_on(active(&settings))?;
    let last = runtime.block_on(first(&source))?;
    // In order, so that the first one goes on alone.
    cluster.other.stop()?;
    runtime.block_on(may_lose(&source))?;
    let found = runtime.block_on(keys.check(&[tag("orders")]));
    assert!(
        found.iter().any(|its| its.severity == Severity::Error
            && its.message.contains("may lack what was committed")),
        "{found:?}"
    );
    cluster.rejoin()?;
    let next = runtime.block_on(goes_on(&source))?;
    assert!(next > last, "{next} behind {last}");
    Ok(())
}

mod galera {
    use super::*;

    #[test]
    fn a_cluster_confirms() -> Result<()> {
        super::a_cluster_confirms(Flavour::MariaDb)
    }

    /// Their reservations, and their leases of worker ids, meet at commits: one of them is refused there, and is made again.
    #[test]
    fn programs_on_both_servers_repeat_nothing() -> Result<()> {
        const PROGRAMS: usize = 4;
        const ROUNDS: u64 = 150;
        let cluster = Cluster::start(Flavour::MariaDb)?;
        let (log, snowflakes) = (IssuedLog::default(), IssuedLog::default());
        runtime()?.block_on(async {
            let maker = open(&raw(cluster.first.port(), "keywright"))?;
            maker.init().await?;
            maker.create_tag(&tag("orders"), &small_steps(10)).await?;
            let mut all = Vec::new();
            for program in 0..PROGRAMS {
                let server = match program % 2 {
                    0 => &cluster.first,
                    _ => &cluster.other,
                };
                let keys = open(&raw(server.port(), "keywright"))?;
                let source = keys.source(&segment("orders"))?;
                let by = format!("program {program}");
                let takes = take_many(source, log.clone(), by.clone(), ROUNDS);
                all.push((keys.clone(), tokio::spawn(takes)));
                let source = keys.source(&KeySpec::Snowflake)?;
                let takes = take_many(source, snowflakes.clone(), by, ROUNDS);
                all.push((keys, tokio::spawn(takes)));
            }
            for (_keys, takes) in all {
                takes.await?;
            }
            Ok(())
        })
    }
}

mod group {
    use super::*;

    #[test]
    fn a_cluster_confirms() -> Result<()> {
        super::a_cluster_confirms(Flavour::MySql)
    }
}
