//! Debian packages that are not installed: apt with a configuration of its own downloads and verifies them, and they are unpacked
//! below `target/`. The system's package lists, packages and settings are not touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::machine::cargo::workspace_root;
use crate::machine::kept::kept;
use crate::machine::process::run;
use crate::machine::scratch::Scratch;
use crate::{Account, Result};

/// How long a step of apt may take, in seconds: the lists are about 20 MB, the packages about 50 MB.
const APT_S_MAX: &str = "240";

/// Whom apt runs as when we are root: it needs no rights to download.
const ACCOUNTS: &[&str] = &["_apt", "nobody"];

/// apt with sources, lists, caches and a list of what is installed of its own; removed when dropped.
pub(crate) struct Apt {
    account: Account,
    scratch: Scratch,
}

impl Apt {
    /// The main archive of a suite of Debian (none: of the release that this machine has, without its updates), with the
    /// sources of packages if they are wanted. What `installed` lists, in the format of dpkg's, is taken for installed.
    ///
    /// # Errors
    /// No source of the main archive is configured on this machine, or the lists cannot be fetched.
    pub(crate) fn new(suite: Option<&str>, with_sources: bool, installed: &str) -> Result<Apt> {
        let account = Account::for_servers(ACCOUNTS)?;
        let apt = Apt {
            account,
            scratch: Scratch::new("apt", account)?,
        };
        let release = codename()?;
        let source = Source::find(&read_system_sources()?, &release)
            .context("no source of Debian's main archive in /etc/apt to take the suite from")?;
        let suite = suite.unwrap_or(&release);
        let mut lines = source.line("deb", suite);
        if with_sources {
            lines.push_str(&source.line("deb-src", suite));
        }
        apt.configure(&lines, installed)?;
        apt.run(&["update"])?;
        Ok(apt)
    }

    /// Settings of the machine (a proxy, say) stay in force: only sources, lists, caches and the list of what is
    /// installed are replaced.
    fn configure(&self, sources: &str, installed: &str) -> Result<()> {
        let dir = self.scratch.path();
        for sub in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(dir.join(sub))?;
        }
        fs::write(dir.join("sources.list"), sources)?;
        fs::write(dir.join("state/status"), installed)?;
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

    /// Runs `apt-get` in the directory of [`Apt::archives`].
    ///
    /// # Errors
    /// It fails; the error shows what it said.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.account.command("timeout");
        command
            .current_dir(self.archives())
            .env("APT_CONFIG", self.scratch.path().join("apt.conf"))
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["--kill-after=5", APT_S_MAX, "apt-get", "--quiet=2"])
            .args(arguments);
        run(&mut command)
    }

    /// Where packages are downloaded to.
    pub(crate) fn archives(&self) -> PathBuf {
        self.scratch.path().join("cache/archives")
    }

    /// The downloaded file whose name ends so.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn downloaded(&self, ending: &str) -> Result<PathBuf> {
        let found = self.files()?.into_iter().find(|file| {
            let name = file.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.ends_with(ending))
        });
        found.with_context(|| format!("apt brought no file that ends in {ending}"))
    }

    /// Unpacks all packages that were downloaded.
    ///
    /// # Errors
    /// One is damaged.
    pub(crate) fn unpack(&self, into: &Path) -> Result<()> {
        for package in self.files()? {
            if package.extension().is_some_and(|ending| ending == "deb") {
                run(Command::new("dpkg-deb")
                    .arg("--extract")
                    .arg(&package)
                    .arg(into))?;
            }
        }
        Ok(())
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(self.archives()).context("listing what apt downloaded")?;
        entries.map(|entry| Ok(entry?.path())).collect()
    }
}

/// Downloads packages of this machine's release, without what they depend on, and unpacks them.
///
/// # Errors
/// They cannot be had.
pub fn unpack_packages(names: &[&str], into: &Path) -> Result<()> {
    let apt = Apt::new(None, false, "")?;
    apt.run(&[&["download"], names].concat())?;
    apt.unpack(into)
}

/// The same, once for all: the directory of that name below `target/`, with what the packages have.
///
/// # Errors
/// They cannot be had.
pub(crate) fn unpacked(name: &str, packages: &[&str]) -> Result<PathBuf> {
    kept(&workspace_root().join("target"), (name, name), |dir| {
        fs::create_dir(dir)?;
        unpack_packages(packages, dir)
    })
}

/// Downloads the source package of that name and version, and unpacks what its authors published.
///
/// # Errors
/// It cannot be had.
pub fn unpack_source(name: &str, version: &str, into: &Path) -> Result<()> {
    let apt = Apt::new(None, true, "")?;
    let wanted = format!("{name}={version}");
    apt.run(&["source", "--download-only", &wanted])?;
    let mut command = Command::new("tar");
    command.args(["--extract", "--strip-components=1", "--directory"]);
    command.arg(into).arg("--file");
    run(command.arg(apt.downloaded(".orig.tar.xz")?))
}

/// Where this machine gets Debian from.
#[derive(Debug)]
pub struct DebianArchive {
    /// The release that this machine has.
    pub codename: String,
    /// The main archive.
    pub uri: String,
    /// Who signs it, if the sources say so.
    pub keyring: Option<String>,
}

impl DebianArchive {
    /// As the sources in /etc/apt say.
    ///
    /// # Errors
    /// This is no Debian, or none of them is the main archive.
    pub fn of_this_machine() -> Result<DebianArchive> {
        let codename = codename()?;
        let source = Source::find(&read_system_sources()?, &codename)
            .context("no source of Debian's main archive in /etc/apt")?;
        Ok(DebianArchive {
            codename,
            uri: source.uri,
            keyring: source.signed_by,
        })
    }

    /// The files of sources in /etc/apt that name it.
    #[must_use]
    pub fn source_files(&self) -> Vec<PathBuf> {
        let mut files = system_source_files();
        files.retain(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&self.uri)));
        files
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
    let files = system_source_files();
    let texts = files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok());
    Ok(texts.collect::<Vec<_>>().join("\n\n"))
}

fn system_source_files() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(parts) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(parts.flatten().map(|entry| entry.path()));
    }
    files
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

    fn line(&self, kind: &str, suite: &str) -> String {
        let options = match &self.signed_by {
            Some(key) => format!("[signed-by={key}] "),
            None => String::new(),
        };
        format!("{kind} {options}{} {suite} main\n", self.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_of_sources_are_read() {
        let stanzas = "Types: deb\nURIs: http://a/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\
            Signed-By: /key.gpg\n\nTypes: deb\nURIs: http://a/security\nSuites: bookworm-security\n";
        let found = Source::find(stanzas, "bookworm").map(|source| source.line("deb", "unstable"));
        let expected = "deb [signed-by=/key.gpg] http://a/debian unstable main\n";
        assert_eq!(found.as_deref(), Some(expected));

        let lines = "# deb http://no bookworm main\ndeb http://b bookworm-updates main\ndeb [arch=amd64 signed-by=/k] http://b bookworm main\n";
        let found = Source::find(lines, "bookworm").map(|source| source.line("deb", "unstable"));
        assert_eq!(
            found.as_deref(),
            Some("deb [signed-by=/k] http://b unstable main\n")
        );
        assert_eq!(Source::find(lines, "trixie"), None);
    }
}
