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
            format!(
                "{option}: others on this machine may read or change \"{path}\" (mode {mode:04o}): chmod 600 {path}, as a file of the user that the \
                 program runs as"
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

/// All that a configuration names.
pub(super) fn secret_files(raw: &Raw) -> Vec<SecretFile> {
    let mut files = Vec::new();
    let mut add = |option: String, path: Option<&Path>| {
        files.extend(path.map(|path| SecretFile {
            option,
            path: path.to_owned(),
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

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::{SecretFile, is_open, secret_files};

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
        let named: Vec<String> = secret_files(&toml::from_str(text).unwrap())
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
}
