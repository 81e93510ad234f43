//! Files that hold passwords and keys, and whether others of the machine may read them: as ssh and PostgreSQL look at theirs, but only to warn.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::raw::Raw;

/// Where the bits of a mode begin that are for a file's group.
const GROUP: u32 = 3;
/// The same for everybody.
const OTHERS: u32 = 0;
/// To read a file, or to write it.
const READ_OR_WRITE: u32 = 0o6;
/// To reach what is in a directory.
const SEARCH: u32 = 0o1;
/// The bits that `chmod` sets.
const MODE: u32 = 0o7777;

/// A file that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFile {
    option: String,
    path: PathBuf,
    /// Whether it is the configuration.
    is_configuration: bool,
}

impl SecretFile {
    /// That others of the machine may read it, or write it. What cannot be looked at is told elsewhere, and what is no file of the disk is nobody's for
    /// long.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let path = fs::canonicalize(&self.path).ok()?;
        let file = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let directories = path.ancestors().skip(1);
        let directories = directories
            .map(|directory| fs::metadata(directory).map_or(MODE, |directory| directory.mode()));
        let directories: Vec<u32> = directories.collect();
        let mode = file.mode() & MODE;
        is_open((mode, file.uid()), &directories).then(|| {
            let (option, path) = (&self.option, self.path.display());
            let instead = match self.is_configuration {
                true => ", or write passwords into files of their own",
                false => "",
            };
            format!(
                "{option}: others on this machine may read or change \"{path}\" (mode {mode:04o}): chmod 600 {path}, as a file of the user that the \
                 program runs as{instead}"
            )
        })
    }
}

/// Whether others than its owner get at a file of this mode and owner, in directories of these modes. What root gives to a group is for the program:
/// service managers do so, and packages.
fn is_open((mode, owner): (u32, u32), directories: &[u32]) -> bool {
    let may = |of: u32, bits: u32, class: u32| (of >> class) & bits != 0;
    let others_reach = directories.iter().all(|of| may(*of, SEARCH, OTHERS));
    let reaches = |of: &u32| may(*of, SEARCH, GROUP) || may(*of, SEARCH, OTHERS);
    let group_reaches = directories.iter().all(reaches);
    others_reach && may(mode, READ_OR_WRITE, OTHERS)
        || group_reaches && owner != 0 && may(mode, READ_OR_WRITE, GROUP)
}

/// All that a configuration names, and itself if it has a password. `file`: where it stands.
pub(super) fn secret_files(raw: &Raw, file: Option<&Path>) -> Vec<SecretFile> {
    let mut files = Vec::new();
    if let Some(file) = file {
        files.extend(configuration(raw, file));
    }
    let mut add = |option: String, path: Option<&Path>| {
        files.extend(path.map(|path| SecretFile {
            option,
            path: path.to_owned(),
            is_configuration: false,
        }));
    };
    let stores = &raw.store.0;
    for store in stores {
        let place = match stores.len() {
            1 => "store.".to_owned(),
            _ => format!("store \"{}\": ", store.name),
        };
        add(
            format!("{place}password_file"),
            store.password_file.as_deref(),
        );
        add(
            format!("{place}tls_key_file"),
            store.tls_key_file.as_deref(),
        );
    }
    for (number, listener) in (1..).zip(&raw.listener) {
        for (option, path) in [
            ("admin_password_file", &listener.admin_password_file),
            ("password_file", &listener.password_file),
            ("key", &listener.key),
            ("rsa_key", &listener.rsa_key),
        ] {
            let path = path.as_deref().map(Path::new);
            add(format!("listener {number}: {option}"), path);
        }
    }
    for (number, tag) in (1..).zip(&raw.hidden_tag) {
        let path = tag.hide_key_file.as_deref();
        add(format!("hidden_tag {number}: hide_key_file"), path);
    }
    for (number, feed) in (1..).zip(&raw.feed) {
        let path = feed.password_file.as_deref();
        add(format!("feed {number}: password_file"), path);
    }
    files
}

/// The file of a configuration that has passwords in urls.
fn configuration(raw: &Raw, file: &Path) -> Option<SecretFile> {
    let stores = &raw.store.0;
    let of_stores = stores.iter().map(|store| {
        let place = match stores.len() {
            1 => "store.url".to_owned(),
            _ => format!("store \"{}\": url", store.name),
        };
        (place, store.url.as_str())
    });
    let of_listeners = (1..).zip(&raw.listener).filter_map(|(number, listener)| {
        Some((
            format!("listener {number}: admin"),
            listener.admin.as_deref()?,
        ))
    });
    let of_feeds = (1..).zip(&raw.feed);
    let of_feeds =
        of_feeds.map(|(number, feed)| (format!("feed {number}: url"), feed.url.as_str()));
    let urls = of_stores.chain(of_listeners).chain(of_feeds);
    let with_password = urls.filter(|(_, url)| has_password(url));
    let places: Vec<String> = with_password.map(|(place, _)| place).collect();
    (!places.is_empty()).then(|| SecretFile {
        option: format!("password in {}", places.join(", ")),
        path: file.to_owned(),
        is_configuration: true,
    })
}

/// Whether a url has a password: behind the user, or among its parameters, as PostgreSQL's may.
fn has_password(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let hosts = place.split('/').next().unwrap_or_default();
    let user = hosts.rsplit_once('@').map(|(user, _)| user);
    let password = user.and_then(|user| user.split_once(':'));
    let mut parameters = parameters
        .split('&')
        .filter_map(|parameter| parameter.split_once('='));
    password.is_some_and(|(_, password)| !password.is_empty())
        || parameters.any(|(name, value)| name == "password" && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::{SecretFile, has_password, is_open, secret_files};
    use crate::config::Config;

    #[test]
    fn what_others_can_read_is_open() {
        const USER: u32 = 1_000;
        for (mode, owner, directories, expected) in [
            (0o600, USER, &[0o755, 0o755][..], false),
            (0o400, USER, &[0o755], false),
            (0o700, USER, &[0o755], false),
            (0o644, USER, &[0o755, 0o755], true),
            (0o604, USER, &[0o755], true),
            (0o602, USER, &[0o1777], true),
            (0o640, USER, &[0o755], true),
            (0o660, USER, &[0o750, 0o755], true),
            // As services get theirs.
            (0o440, 0, &[0o755], false),
            (0o640, 0, &[0o755], false),
            (0o444, 0, &[0o755], true),
            // Nobody else gets there.
            (0o644, USER, &[0o700, 0o755], false),
            (0o644, USER, &[0o755, 0o700], false),
            (0o604, USER, &[0o750, 0o755], false),
            (0o644, 0, &[0o750, 0o755], false),
        ] {
            let is_open = is_open((mode, owner), directories);
            assert_eq!(is_open, expected, "{mode:o} of {owner} in {directories:?}");
        }
    }

    #[test]
    fn a_file_is_looked_at_where_a_link_leads() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "open sesame\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let secret = |path| SecretFile {
            option: "store.password_file".to_owned(),
            path,
            is_configuration: false,
        };
        // The directory is the user's alone, whatever the file says.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(secret(link.clone()).warning(), None);
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(secret(link).warning(), None);
        for none in ["/none/store.password", "/dev/null", "/"] {
            assert_eq!(secret(none.into()).warning(), None, "{none}");
        }
        // This one is of every machine.
        let told = secret("/etc/passwd".into()).warning().unwrap();
        let expected = "store.password_file: others on this machine may read or change \"/etc/passwd\" (mode 0644): chmod 600 /etc/passwd";
        assert!(told.starts_with(expected), "{told}");
    }

    #[test]
    fn all_options_that_name_secrets_are_known() {
        let text = "[[store]]\nname = \"a\"\npassword_file = \"/1\"\n[[store]]\nname = \"b\"\ntls_key_file = \"/2\"\ntags = [\"x\"]\n\
                    [[listener]]\nbind = \"a:1\"\nadmin_password_file = \"/3\"\nkey = \"/4\"\nrsa_key = \"/5\"\n\
                    [[listener]]\nbind = \"a:2\"\npassword_file = \"/6\"\n\
                    [[hidden_tag]]\ntag = \"t\"\nhide_bits = 63\nhide_key_file = \"/7\"\n\
                    [[feed]]\nurl = \"postgres://a\"\ntags = [\"t\"]\npassword_file = \"/8\"\n";
        let named: Vec<String> = secret_files(&toml::from_str(text).unwrap(), None)
            .iter()
            .map(|file| format!("{} {}", file.option, file.path.display()))
            .collect();
        let expected = [
            "store \"a\": password_file /1",
            "store \"b\": tls_key_file /2",
            "listener 1: admin_password_file /3",
            "listener 1: key /4",
            "listener 1: rsa_key /5",
            "listener 2: password_file /6",
            "hidden_tag 1: hide_key_file /7",
            "feed 1: password_file /8",
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn a_configuration_with_passwords_is_a_secret() {
        let listener = "[[listener]]\nprotocol = \"redis\"\nbind = \"127.0.0.1:6399\"\nkeys = { id = \"uuid_v7\" }\n";
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keywright.toml");
        let load = |user: &str| {
            let url = format!("mysql://{user}@127.0.0.1:3306/keywright");
            fs::write(&file, format!("[store]\nurl = \"{url}\"\n{listener}")).unwrap();
            Config::load(&file).unwrap().secret_files
        };
        assert!(load("keywright").is_empty());
        let expected = SecretFile {
            option: "password in store.url".to_owned(),
            path: file.clone(),
            is_configuration: true,
        };
        assert_eq!(load("keywright:sesame"), [expected]);

        let text = "[[store]]\nname = \"a\"\nurl = \"file:/a\"\n[[store]]\nname = \"b\"\nurl = \"redis://:x@b\"\ntags = [\"x\"]\n\
                    [[listener]]\nbind = \"a:1\"\nadmin = \"mysql://kw@a\"\n[[listener]]\nbind = \"a:2\"\nadmin = \"mysql://kw:x@a\"\n\
                    [[feed]]\nurl = \"postgres://kw:x@a/b\"\ntags = [\"t\"]\n";
        let raw = toml::from_str(text).unwrap();
        // This one is of every machine.
        let files = secret_files(&raw, Some(Path::new("/etc/passwd")));
        assert_eq!(files.len(), 1);
        let told = files[0].warning().unwrap();
        let expected = "password in store \"b\": url, listener 2: admin, feed 1: url: others on this machine may read or change \"/etc/passwd\" (mode 0644): chmod 600";
        assert!(told.starts_with(expected), "{told}");
    }

    #[test]
    fn passwords_of_urls_are_found() {
        for (url, expected) in [
            ("mysql://kw:secret@127.0.0.1:3306/keywright", true),
            ("mysql://kw@127.0.0.1:3306/keywright", false),
            ("mysql://kw:@127.0.0.1:3306", false),
            ("mysql://127.0.0.1:3306/a:b@c", false),
            ("mysql://kw:a@b@127.0.0.1", true),
            ("etcd://kw:secret@a:2379,b:2379/keywright", true),
            ("etcd://a:2379,b:2379/keywright", false),
            ("redis://:secret@a", true),
            ("postgres://kw@a/b?sslmode=require&password=secret", true),
            ("postgres://kw@a/b?sslmode=require&password=", false),
            ("file:/var/lib/keywright/store.db", false),
        ] {
            assert_eq!(has_password(url), expected, "{url}");
        }
    }
}
