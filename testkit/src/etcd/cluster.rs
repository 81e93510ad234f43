//! A private cluster.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::Signal;

use super::EtcdTools;
use crate::machine::process::{run, send};
use crate::machine::scratch::Scratch;
use crate::{Pki, Result, WAIT_MAX, free_port, wait_until};

/// How many requests a transaction carries; etcd takes 128.
const REQUESTS_MAX: usize = 100;

/// How a cluster is started.
#[derive(Debug, Default)]
pub struct EtcdOptions<'a> {
    /// Of each member's command line.
    pub options: Vec<String>,
    /// Members show the certificate of `server`, and let in who shows one of the authority's, if `client_certificates` says so.
    pub tls: Option<&'a Pki>,
    /// Whether clients need a certificate.
    pub client_certificates: bool,
}

/// Members on free ports of this machine. They are killed, and their data removed, when it is dropped.
#[derive(Debug)]
pub struct EtcdCluster {
    tools: EtcdTools,
    members: Vec<Member>,
    options: Vec<String>,
    /// Arguments of `etcdctl`.
    login: Vec<String>,
    scheme: &'static str,
    scratch: Scratch,
}

#[derive(Debug)]
struct Member {
    port: u16,
    peer_port: u16,
    process: Option<Child>,
}

impl EtcdCluster {
    /// Starts so many members.
    ///
    /// # Errors
    /// They do not come to an agreement in time.
    pub fn start(members: usize) -> Result<EtcdCluster> {
        EtcdCluster::start_with(members, &EtcdOptions::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// The same.
    pub fn start_with(members: usize, its: &EtcdOptions<'_>) -> Result<EtcdCluster> {
        let tools = EtcdTools::get()?;
        let scratch = Scratch::for_data("etcd", tools.account())?;
        let ports = (0..members).map(|_| {
            Ok(Member {
                port: free_port()?,
                peer_port: free_port()?,
                process: None,
            })
        });
        let mut options = its.options.clone();
        let mut login = Vec::new();
        let mut scheme = "http";
        if let Some(pki) = its.tls {
            scheme = "https";
            let file = |name: &str| pki.file(name).display().to_string();
            options.push(format!("--cert-file={}", file("server.pem")));
            options.push(format!("--key-file={}", file("server.key")));
            login.push(format!("--cacert={}", file("ca.pem")));
            if its.client_certificates {
                options.push("--client-cert-auth".to_owned());
                options.push(format!("--trusted-ca-file={}", file("ca.pem")));
            }
        }
        let mut cluster = EtcdCluster {
            members: ports.collect::<Result<_>>()?,
            tools,
            options,
            login,
            scheme,
            scratch,
        };
        for at in 0..members {
            cluster.spawn(at)?;
        }
        cluster.wait()?;
        Ok(cluster)
    }

    /// How many there are.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Where members listen, as a url of `keywright` names them.
    #[must_use]
    pub fn hosts(&self) -> String {
        let hosts = self
            .members
            .iter()
            .map(|its| format!("127.0.0.1:{}", its.port));
        hosts.collect::<Vec<String>>().join(",")
    }

    /// Where a member listens.
    #[must_use]
    pub fn port(&self, at: usize) -> u16 {
        self.members.get(at).map_or(0, |member| member.port)
    }

    /// Has `etcdctl` log in from here on.
    pub fn log_in(&mut self, user: &str) {
        self.login.push(format!("--user={user}"));
    }

    /// What `etcdctl` prints, asked of all members.
    ///
    /// # Errors
    /// It fails.
    pub fn ctl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.ctl_command();
        let output = command.args(arguments).output().context("etcdctl")?;
        if !output.status.success() {
            bail!(
                "etcdctl {arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Has `etcdctl` carry out `put` and `del`, many in one call: each call is a program that starts.
    ///
    /// # Errors
    /// It fails.
    pub fn change(&self, requests: &[String]) -> Result<()> {
        for some in requests.chunks(REQUESTS_MAX) {
            let mut command = self.ctl_command();
            let mut running = command
                .arg("txn")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .context("etcdctl")?;
            let mut input = running.stdin.take().context("its input")?;
            // No condition, what to do, and nothing otherwise.
            write!(input, "\n{}\n\n\n", some.join("\n"))?;
            drop(input);
            let output = running.wait_with_output()?;
            let told = String::from_utf8_lossy(&output.stdout);
            ensure!(
                output.status.success() && told.contains("SUCCESS"),
                "etcdctl txn: {told}"
            );
        }
        Ok(())
    }

    /// Ends a member at once.
    ///
    /// # Errors
    /// It does not run.
    pub fn kill9(&mut self, at: usize) -> Result<()> {
        let member = self.members.get_mut(at).context("no such member")?;
        let mut process = member.process.take().context("it does not run")?;
        process.kill()?;
        process.wait()?;
        Ok(())
    }

    /// Starts a member that was ended; does not wait for it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn restart(&mut self, at: usize) -> Result<()> {
        self.spawn(at)
    }

    /// Sends a signal to a member.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, at: usize, signal: Signal) -> Result<()> {
        let member = self.members.get(at).context("no such member")?;
        let process = member.process.as_ref().context("it does not run")?;
        send(process.id(), signal)
    }

    /// Waits until the cluster answers.
    ///
    /// # Errors
    /// It does not in time.
    pub fn wait(&self) -> Result<()> {
        wait_until("etcd", WAIT_MAX, || {
            let mut command = self.ctl_command();
            command.args(["--command-timeout=5s", "get", "ready"]);
            let output = command.output().context("etcdctl")?;
            // A cluster with users says no to who is none: it is there.
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            Ok(output.status.success() || told.contains("user name is empty"))
        })
    }

    /// Takes a backup.
    ///
    /// # Errors
    /// `etcdctl` fails.
    pub fn save(&self, name: &str) -> Result<PathBuf> {
        let file = self.dir().join(name);
        let mut command = self.tools.command("etcdctl");
        let member = format!("--endpoints={}://127.0.0.1:{}", self.scheme, self.port(0));
        command.arg(member).args(&self.login);
        run(command.args(["snapshot", "save"]).arg(&file))?;
        Ok(file)
    }

    /// Ends all members, and has one begin with a backup, at the address of the first: a cluster of another id, if it is given another token, as
    /// the manual says; else of the same.
    ///
    /// # Errors
    /// `etcdctl` fails, or it does not start.
    pub fn restore(&mut self, backup: &Path, token: Option<&str>) -> Result<()> {
        for member in &mut self.members {
            if let Some(mut process) = member.process.take() {
                process.kill()?;
                process.wait()?;
            }
        }
        self.members.truncate(1);
        let dir = self.data_dir(0);
        fs::remove_dir_all(&dir)?;
        let mut command = self.tools.command("etcdctl");
        command.args(["snapshot", "restore"]).arg(backup);
        command.arg(format!("--data-dir={}", dir.display()));
        command.args(self.identity(0)?);
        command.args(token.map(|token| format!("--initial-cluster-token={token}")));
        run(&mut command)?;
        self.spawn(0)?;
        self.wait()
    }

    fn dir(&self) -> &Path {
        self.scratch.path()
    }

    fn data_dir(&self, at: usize) -> PathBuf {
        self.dir().join(format!("member-{at}"))
    }

    fn ctl_command(&self) -> Command {
        let members = self
            .members
            .iter()
            .map(|its| format!("{}://127.0.0.1:{}", self.scheme, its.port));
        let members: Vec<String> = members.collect();
        let mut command = self.tools.command("etcdctl");
        command
            .arg(format!("--endpoints={}", members.join(",")))
            .args(["--command-timeout=60s", "--dial-timeout=60s"])
            .args(&self.login);
        command
    }

    /// Who a member is among the others.
    fn identity(&self, at: usize) -> Result<Vec<String>> {
        let member = self.members.get(at).context("no such member")?;
        let all = self.members.iter().enumerate();
        let all = all.map(|(at, its)| format!("m{at}=http://127.0.0.1:{}", its.peer_port));
        let all: Vec<String> = all.collect();
        Ok(vec![
            format!("--name=m{at}"),
            format!("--initial-cluster={}", all.join(",")),
            format!(
                "--initial-advertise-peer-urls=http://127.0.0.1:{}",
                member.peer_port
            ),
        ])
    }

    fn spawn(&mut self, at: usize) -> Result<()> {
        let identity = self.identity(at)?;
        let dir = self.data_dir(at);
        let log = self.dir().join(format!("log-{at}"));
        let log = File::options().create(true).append(true).open(log)?;
        let member = self.members.get_mut(at).context("no such member")?;
        let url = format!("{}://127.0.0.1:{}", self.scheme, member.port);
        let peer = format!("http://127.0.0.1:{}", member.peer_port);
        let mut command = self.tools.command("etcd");
        command
            .arg(format!("--data-dir={}", dir.display()))
            .arg(format!("--listen-client-urls={url}"))
            .arg(format!("--advertise-client-urls={url}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .args(identity)
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        member.process = Some(command.spawn().context("starting etcd")?);
        Ok(())
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        for member in &mut self.members {
            if let Some(mut process) = member.process.take() {
                // Nothing to be done about one that has ended already.
                let _ = process.kill();
                let _ = process.wait();
            }
        }
    }
}
