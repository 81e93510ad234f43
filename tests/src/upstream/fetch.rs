//! Oracle's MySQL server: Debian has it in its unstable suite only. Its packages and the libraries that they need are
//! downloaded with a private configuration of apt, verified by apt, and unpacked below `target/`; the system's own
//! package lists, packages and settings are not touched.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::scratch::Scratch;
use crate::server::run;
use crate::{Account, Result, workspace_root};

const PACKAGE: &str = "mysql-server-core";
const SUITE: &str = "unstable";

/// How long a step of apt may take, in seconds: the lists are about 20 MB, the packages about 50 MB.
const APT_S_MAX: &str = "240";

/// Whom apt runs as when we are root: it needs no rights to download.
const ACCOUNTS: &[&str] = &["_apt", "nobody"];

/// Packages that are taken for installed: the server's scripts are written in Perl, and no test runs them.
const ASSUMED: &str = "Package: perl\nStatus: install ok installed\nArchitecture: all\nMulti-Arch: allowed\n\
    Version: 1:99\nMaintainer: nobody\nDescription: assumed\n\n";

/// The root of the unpacked tree, kept below `target/`; fetched when it is not there yet.
pub(super) fn mysql_tree() -> Result<PathBuf> {
    let cache = workspace_root().join("target/mysql");
    let tree = cache.join("tree");
    if tree.join("usr/sbin/mysqld").exists() {
        return Ok(tree);
    }
    fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
    // Other test processes may want the same now; the lock goes with the file.
    let lock = File::create(cache.join("lock")).context("making the lock of target/mysql")?;
    lock.lock().context("locking target/mysql")?;
    if tree.join("usr/sbin/mysqld").exists() {
        return Ok(tree);
    }
    fetch_into(&cache, &tree).with_context(|| {
        format!(
            "MySQL is wanted and could not be fetched; with {}=mariadb tests run on MariaDB only",
            super::Flavour::VARIABLE
        )
    })?;
    Ok(tree)
}

fn fetch_into(cache: &Path, tree: &Path) -> Result<()> {
    eprintln!("fetching {PACKAGE} from Debian's {SUITE} suite (lists 20 MB, packages 50 MB)");
    let account = Account::for_servers(ACCOUNTS)?;
    let scratch = Scratch::new("apt", account)?;
    let apt = Apt {
        account,
        dir: scratch.path(),
    };
    apt.configure()?;
    apt.run(&["update"])?;
    apt.run(&[
        "install",
        "--yes",
        "--download-only",
        "--no-install-recommends",
        PACKAGE,
    ])?;
    let unpacked = tempfile::tempdir_in(cache).context("making a directory to unpack in")?;
    for entry in fs::read_dir(scratch.path().join("cache/archives"))? {
        let package = entry?.path();
        if package.extension().is_some_and(|ending| ending == "deb") {
            run(Command::new("dpkg-deb")
                .arg("--extract")
                .arg(&package)
                .arg(unpacked.path()))?;
        }
    }
    if !unpacked.path().join("usr/sbin/mysqld").exists() {
        bail!("{PACKAGE} brought no usr/sbin/mysqld");
    }
    // In one step, so that an interrupted unpacking is never taken for a tree.
    fs::rename(unpacked.keep(), tree)
        .with_context(|| format!("putting {} into place", tree.display()))
}

struct Apt<'a> {
    account: Account,
    dir: &'a Path,
}

impl Apt<'_> {
    /// Settings of the machine (a proxy, say) stay in force: only sources, lists, caches and the list of what is
    /// installed are replaced.
    fn configure(&self) -> Result<()> {
        let dir = self.dir;
        for sub in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(dir.join(sub))?;
        }
        let sources = read_system_sources()?;
        let source = Source::find(&sources, &codename()?)
            .context("no source of Debian's main archive in /etc/apt to take the suite from")?;
        fs::write(dir.join("sources.list"), source.line(SUITE))?;
        fs::write(dir.join("state/status"), ASSUMED)?;
        let shown = dir.display();
        let config = format!(
            "Dir::Etc::sourcelist \"{shown}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::preferences \"/dev/null\";\nDir::Etc::preferencesparts \"/dev/null\";\n\
             Dir::State \"{shown}/state\";\nDir::State::status \"{shown}/state/status\";\n\
             Dir::Cache \"{shown}/cache\";\nAcquire::Languages \"none\";\n\
             Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\nAcquire::Retries \"2\";\n"
        );
        fs::write(dir.join("apt.conf"), config)?;
        for sub in [
            "state",
            "state/lists",
            "state/lists/partial",
            "cache",
            "cache/archives",
            "cache/archives/partial",
        ] {
            self.account.own(&dir.join(sub))?;
        }
        Ok(())
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.account.command("timeout");
        command
            .env("APT_CONFIG", self.dir.join("apt.conf"))
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["--kill-after=5", APT_S_MAX, "apt-get", "--quiet=2"])
            .args(arguments);
        run(&mut command)
    }
}

fn codename() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    line.map(|name| name.trim_matches('"').to_owned())
        .context("/etc/os-release names no VERSION_CODENAME")
}

/// Everything in sources.list and sources.list.d.
fn read_system_sources() -> Result<String> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(parts) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(parts.flatten().map(|entry| entry.path()));
    }
    let texts = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    Ok(texts.collect::<Vec<_>>().join("\n\n"))
}

/// Where packages come from.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    uri: String,
    signed_by: Option<String>,
}

impl Source {
    /// The source whose suites include this release itself (not its updates), in either of apt's formats.
    fn find(sources: &str, codename: &str) -> Option<Source> {
        Source::find_stanza(sources, codename).or_else(|| Source::find_line(sources, codename))
    }

    fn find_stanza(sources: &str, codename: &str) -> Option<Source> {
        sources.split("\n\n").find_map(|stanza| {
            let field = |name: &str| {
                let value = stanza.lines().find_map(|line| line.strip_prefix(name));
                value.map(str::trim)
            };
            let has_suite = field("Suites:")?.split_whitespace().any(|s| s == codename);
            let uri = field("URIs:")?.split_whitespace().next()?;
            has_suite.then(|| Source {
                uri: uri.to_owned(),
                signed_by: field("Signed-By:").map(str::to_owned),
            })
        })
    }

    fn find_line(sources: &str, codename: &str) -> Option<Source> {
        sources.lines().find_map(|line| {
            let rest = line.trim().strip_prefix("deb ")?.trim_start();
            let (options, rest) = match rest.strip_prefix('[') {
                Some(rest) => rest.split_once(']')?,
                None => ("", rest),
            };
            let mut words = rest.split_whitespace();
            let (uri, suite) = (words.next()?, words.next()?);
            let signed_by = options
                .split_whitespace()
                .find_map(|option| option.strip_prefix("signed-by="));
            (suite == codename).then(|| Source {
                uri: uri.to_owned(),
                signed_by: signed_by.map(str::to_owned),
            })
        })
    }

    fn line(&self, suite: &str) -> String {
        let options = match &self.signed_by {
            Some(key) => format!("[signed-by={key}] "),
            None => String::new(),
        };
        format!("deb {options}{} {suite} main\n", self.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_of_sources_are_read() {
        let stanzas = "Types: deb\nURIs: http://a/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\
            Signed-By: /key.gpg\n\nTypes: deb\nURIs: http://a/security\nSuites: bookworm-security\n";
        let found = Source::find(stanzas, "bookworm").map(|source| source.line(SUITE));
        let expected = "deb [signed-by=/key.gpg] http://a/debian unstable main\n";
        assert_eq!(found.as_deref(), Some(expected));

        let lines = "# deb http://no bookworm main\ndeb http://b bookworm-updates main\ndeb [arch=amd64 signed-by=/k] http://b bookworm main\n";
        let found = Source::find(lines, "bookworm").map(|source| source.line(SUITE));
        assert_eq!(
            found.as_deref(),
            Some("deb [signed-by=/k] http://b unstable main\n")
        );
        assert_eq!(Source::find(lines, "trixie"), None);
    }
}
