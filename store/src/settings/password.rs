//! Passwords that do not stand in the configuration.

use std::io::ErrorKind;
use std::path::Path;

use super::problems::Problems;
use super::raw::RawStoreSettings;

/// Where a password may be: in one place at most.
#[derive(Debug, Clone, Copy)]
pub struct PasswordFrom<'a> {
    /// Whether the URL has one.
    pub in_url: bool,
    /// A file whose first line it is.
    pub file: Option<&'a Path>,
    /// The name of an environment variable that holds it.
    pub env: Option<&'a str>,
}

/// The password of a store that is not in its url; what is wrong is told.
pub(super) fn of_store(
    store: &RawStoreSettings,
    in_url: bool,
    problems: &mut Problems,
) -> Option<String> {
    let password = PasswordFrom {
        in_url,
        file: store.password_file.as_deref(),
        env: store.password_env.as_deref(),
    };
    password.read().unwrap_or_else(|(option, what)| {
        problems.add(&format!("store.{option}"), what);
        None
    })
}

/// The options, without what stands before them where there are several accounts.
const FILE: &str = "password_file";
const ENV: &str = "password_env";

impl PasswordFrom<'_> {
    /// The password, if it is not in the URL.
    ///
    /// # Errors
    /// The option that is wrong, and what is wrong with it.
    pub fn read(self) -> Result<Option<String>, (&'static str, String)> {
        match self {
            PasswordFrom {
                in_url: true,
                file: Some(_),
                ..
            } => Err((FILE, "the url has a password too".to_owned())),
            PasswordFrom {
                in_url: true,
                env: Some(_),
                ..
            } => Err((ENV, "the url has a password too".to_owned())),
            PasswordFrom {
                file: Some(_),
                env: Some(_),
                ..
            } => Err((ENV, "a file with the password is named too".to_owned())),
            PasswordFrom {
                file: Some(file), ..
            } => in_file(file).map(Some).map_err(|what| (FILE, what)),
            PasswordFrom {
                env: Some(name), ..
            } => in_variable(name).map(Some).map_err(|what| (ENV, what)),
            PasswordFrom {
                file: None,
                env: None,
                ..
            } => Ok(None),
        }
    }
}

/// The first line of a file.
pub(super) fn in_file(file: &Path) -> Result<String, String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        format!(
            "\"{name}\" cannot be read: {error}{}",
            hint(file, error.kind())
        )
    })?;
    let line = text.lines().next().filter(|line| !line.is_empty());
    line.map(str::to_owned)
        .ok_or_else(|| format!("\"{name}\" has no first line"))
}

/// What to look at where the file cannot be read.
fn hint(file: &Path, kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::PermissionDenied => {
            " (the user that the program runs as must be able to; what lies in /etc/keywright/secrets the package's unit hands over \
             as /run/credentials/keywright.service/secrets_FILE)"
        }
        ErrorKind::NotFound if file.starts_with("/run/credentials") => {
            " (it is there while the unit runs; before, by hand, name the file itself)"
        }
        _ => "",
    }
}

/// What is in a variable of the environment.
pub(super) fn in_variable(name: &str) -> Result<String, String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("names no environment variable".to_owned());
    }
    // What is in the variable is not shown, whatever it is.
    let value = std::env::var_os(name)
        .ok_or_else(|| format!("the environment has no variable \"{name}\""))?;
    let value = value
        .into_string()
        .map_err(|_| format!("the variable \"{name}\" is not UTF-8"))?;
    if value.is_empty() {
        return Err(format!("the variable \"{name}\" is empty"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_cannot_be_read_is_told_with_what_to_do() {
        let credential = Path::new("/run/credentials/none.service/secrets_store");
        let told = in_file(credential).unwrap_err();
        assert!(told.contains("it is there while the unit runs"), "{told}");
        let told = in_file(Path::new("/none/store.password")).unwrap_err();
        assert!(told.ends_with("(os error 2)"), "{told}");
        let told = hint(credential, ErrorKind::PermissionDenied);
        assert!(told.contains("/etc/keywright/secrets"), "{told}");
    }
}
