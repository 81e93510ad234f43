//! How clients of the Redis protocol say the password.

use keywright_core::Cause;
use keywright_resp::command::Login;
use keywright_store::Failure;

use crate::port::password::{USER, is_same};

/// Looks at what a client says; `password`: what it must be, if there is one.
///
/// # Errors
/// It is another, or there is none.
pub(super) fn check(login: &Login<'_>, password: Option<&str>) -> Result<(), Failure> {
    let Some(password) = password else {
        return Err(Failure::new(
            Cause::CommandRefused,
            "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
        ));
    };
    if login.user == USER && is_same(login.password, password.as_bytes()) {
        return Ok(());
    }
    Err(Failure::new(
        Cause::PasswordWrong,
        "invalid username-password pair or user is disabled.",
    ))
}

#[cfg(test)]
mod tests {
    use keywright_core::Cause;
    use keywright_resp::command::Login;

    use super::check;

    #[test]
    fn only_the_password_opens() {
        let login = |user: &'static str, password: &'static str| Login {
            user: user.as_bytes(),
            password: password.as_bytes(),
        };
        assert!(check(&login("default", "secret"), Some("secret")).is_ok());
        for wrong in [
            login("default", "secreT"),
            login("default", "secret1"),
            login("default", "secre"),
            login("default", ""),
            login("app", "secret"),
        ] {
            let failure = check(&wrong, Some("secret")).unwrap_err();
            assert_eq!(failure.cause(), Cause::PasswordWrong, "{wrong:?}");
        }
        let failure = check(&login("default", ""), None).unwrap_err();
        assert_eq!(failure.cause(), Cause::CommandRefused);
    }
}
