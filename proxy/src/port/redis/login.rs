//! How clients of the Redis protocol say who they are.

use keywright_core::Cause;
use keywright_resp::command::Login;
use keywright_resp::reply::Writer;
use keywright_store::Failure;

use crate::port::access::Who;
use crate::port::keys::PortKeys;
use crate::port::password::{USER, is_same};
use crate::port::redis::client::Client;
use crate::port::redis::outcome::{Greeting, Outcome};
use crate::port::redis::refused;
use crate::users::login;

/// Who a client is that has not said anything.
pub(super) fn at_first(keys: &PortKeys) -> Who {
    match (&keys.users, &keys.port.password) {
        (Some(_), _) | (None, Some(_)) => Who::Stranger,
        (None, None) => Who::Anybody,
    }
}

/// Looks at what a client says, and answers, unless that takes time.
pub(super) fn log_in(
    said: &Login<'_>,
    greeting: Greeting,
    client: &mut Client,
    keys: &PortKeys,
    to: &mut Writer<'_>,
) -> Outcome {
    let Some(users) = &keys.users else {
        return match check(said, keys.port.password.as_deref()) {
            Ok(()) => {
                client.let_in();
                greeting.write(client, keys, to);
                Outcome::Answered
            }
            Err(failure) => failed(&failure, client, keys, to),
        };
    };
    match users.log_in(client.line(), said.user, said.password) {
        login::Login::Coming(coming) => Outcome::Login(coming, greeting),
        login::Login::Decided(Ok(user)) => {
            client.is_user(user);
            greeting.write(client, keys, to);
            Outcome::Answered
        }
        login::Login::Decided(Err(failure)) => failed(&failure, client, keys, to),
    }
}

/// It is not let in. Who it was before it stays.
pub(super) fn failed(
    failure: &Failure,
    client: &mut Client,
    keys: &PortKeys,
    to: &mut Writer<'_>,
) -> Outcome {
    refused::refuse(keys, b"", failure, to);
    match failure.cause() == Cause::PasswordWrong && client.has_failed() {
        true => Outcome::Guesses,
        false => Outcome::Answered,
    }
}

/// Looks at what a client says where there are no users; `password`: what it must be, if there is one.
fn check(login: &Login<'_>, password: Option<&str>) -> Result<(), Failure> {
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
