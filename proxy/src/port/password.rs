//! The password of a key port.

use keywright_core::Cause;
use keywright_resp::command::Login;
use keywright_store::Failure;

/// The only user.
const USER: &[u8] = b"default";

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

/// Takes as long for one that is nearly right as for any other of its length.
fn is_same(given: &[u8], password: &[u8]) -> bool {
    let differs = |(one, other): (&u8, &u8)| std::hint::black_box(one ^ other);
    let unlike = given.iter().zip(password).map(differs);
    let unlike = unlike.fold(0, |all, byte| std::hint::black_box(all | byte));
    given.len() == password.len() && unlike == 0
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
