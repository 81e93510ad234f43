//! How logins are looked at: argon2 once per user and password, in turn and outside the event loop, and from memory after that.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use keywright_core::Cause;
use keywright_store::Failure;
use keywright_store::users::{PasswordHash, User, UserTable};
use tokio::time::timeout;

use crate::users::remembered::{Remembered, Tried, wrong};
use crate::users::secret::{HashMemory, PASSWORD_BYTES_MAX};
use crate::users::turns::{Line, Place, Turn, Turns};

/// How long one waits, milliseconds.
const LOGIN_WAIT_MS_MAX: u64 = 5_000;
/// Of so many processors one may hash passwords, and one always may: each takes some hundredths of a second, and keeps 19 MiB.
const PROCESSORS_PER_HASH: usize = 4;
/// A longer name is nobody's, bytes.
const NAME_BYTES_MAX: usize = 64;
/// What unknown users' passwords are compared with, so that they take as long as those of others: a hash of nothing, as costly as those that
/// are made.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// What a login needs to be decided.
pub(crate) enum Login {
    /// Nothing.
    Decided(Result<Arc<User>, Failure>),
    /// Time.
    Coming(ComingUser),
}

/// A login that is being decided.
pub(crate) type ComingUser = Pin<Box<dyn Future<Output = Result<Arc<User>, Failure>> + Send>>;

/// Passwords that were right, and those that are looked at.
pub(crate) struct Logins {
    remembered: Remembered,
    turns: Arc<Turns>,
    nobodys: PasswordHash,
}

/// Without what is remembered.
impl fmt::Debug for Logins {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Logins").finish_non_exhaustive()
    }
}

fn full() -> Failure {
    Failure::new(
        Cause::LoginsFull,
        "too many passwords are being looked at: try again later",
    )
}

/// Away from the thread that serves clients, until it is done, whether or not anybody waits for it.
async fn off_the_loop<T: Send + 'static>(
    mut turn: Turn,
    work: impl FnOnce(&mut HashMemory) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(move || work(turn.memory()));
    done.await.unwrap_or_else(|_| Err(full()))
}

impl Logins {
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::hashing((processors / PROCESSORS_PER_HASH).max(1))
    }

    /// So many at once.
    fn hashing(at_once: usize) -> Self {
        Self {
            remembered: Remembered::new(),
            turns: Arc::new(Turns::new(at_once)),
            nobodys: PasswordHash::new(NOBODYS),
        }
    }

    /// Begins to look at one of a client who waits in this line.
    pub(crate) fn begin(
        self: &Arc<Self>,
        users: &UserTable,
        line: Line,
        (name, password): (&[u8], &[u8]),
    ) -> Login {
        // Nobody's: it costs nothing.
        if name.len() > NAME_BYTES_MAX || password.len() > PASSWORD_BYTES_MAX {
            return Login::Decided(Err(wrong()));
        }
        let user = std::str::from_utf8(name).ok();
        let tried = Tried {
            name: name.to_vec(),
            user: user.and_then(|name| users.get(name)).cloned(),
            password: password.to_vec(),
        };
        if let Some(known) = self.remembered.known(&tried) {
            return Login::Decided(known);
        }
        self.remembered.forget_others(users);
        let Some(place) = self.turns.join(line) else {
            return Login::Decided(Err(full()));
        };
        let logins = Arc::clone(self);
        Login::Coming(Box::pin(async move {
            let turn = match logins.turn(place, &tried).await {
                Ok(turn) => turn,
                Err(decided) => return decided,
            };
            off_the_loop(turn, move |memory| logins.look_at(&tried, memory)).await
        }))
    }

    /// Waits for the turn of this place.
    ///
    /// # Errors
    /// It is decided without one: others of the same user were looked at first, or it took too long.
    async fn turn(
        &self,
        mut place: Place,
        tried: &Tried,
    ) -> Result<Turn, Result<Arc<User>, Failure>> {
        let mut learned = self.remembered.learned();
        let comes = async {
            loop {
                if let Some(known) = self.remembered.known(tried) {
                    return Err(known);
                }
                tokio::select! {
                    biased;
                    turn = place.turn() => return turn.ok_or_else(|| Err(full())),
                    _ = learned.changed() => {}
                }
            }
        };
        let limit = Duration::from_millis(LOGIN_WAIT_MS_MAX);
        let turn = timeout(limit, comes).await;
        let turn = turn.unwrap_or_else(|_| Err(Err(full())))?;
        // Also wrong ones, of which nobody is told.
        match self.remembered.known(tried) {
            Some(known) => Err(known),
            None => Ok(turn),
        }
    }

    /// Does for an administrator what takes long when it is his turn.
    pub(crate) async fn in_turn<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut HashMemory) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let mut place = self.turns.join(Line::Administrators).ok_or_else(full)?;
        let limit = Duration::from_millis(LOGIN_WAIT_MS_MAX);
        match timeout(limit, place.turn()).await {
            Ok(Some(turn)) => off_the_loop(turn, work).await,
            Ok(None) | Err(_) => Err(full()),
        }
    }

    /// Takes long.
    fn look_at(&self, tried: &Tried, memory: &mut HashMemory) -> Result<Arc<User>, Failure> {
        let its = tried.user.as_ref().map(|user| &user.password);
        let is_right = memory.is_right(&tried.password, its.unwrap_or(&self.nobodys));
        match tried.user.as_ref().filter(|_| is_right) {
            Some(user) => {
                self.remembered.note_right(tried, user);
                Ok(Arc::clone(user))
            }
            None => {
                self.remembered.note_wrong(tried);
                Err(wrong())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use keywright_core::Cause;
    use keywright_store::users::{PasswordHash, User, UserName, UserTable};

    use super::{ComingUser, Login, Logins, NOBODYS};
    use crate::users::secret;
    use crate::users::turns::Line;

    fn user(name: &str, hash: PasswordHash) -> User {
        User {
            name: UserName::parse(name).unwrap(),
            password: hash,
            grants: Vec::new(),
        }
    }

    async fn log_in(
        logins: &Arc<Logins>,
        users: &UserTable,
        (name, password): (&str, &[u8]),
    ) -> (bool, Result<String, Cause>) {
        let (is_hashed, decided) =
            match logins.begin(users, Line::Unix, (name.as_bytes(), password)) {
                Login::Decided(decided) => (false, decided),
                Login::Coming(coming) => (true, coming.await),
            };
        let who = decided.map(|user| user.name.to_string());
        (is_hashed, who.map_err(|failure| failure.cause()))
    }

    #[tokio::test]
    async fn a_password_is_hashed_once() {
        let (one, other) = (b"open sesame", b"closed sesame");
        let hash = secret::hash(one).unwrap();
        let users = UserTable::new([user("app", hash.clone()), user("b", hash)]);
        let logins = Arc::new(Logins::new());
        let wrong = Err(Cause::PasswordWrong);
        let app = Ok("app".to_owned());
        for (said, expected) in [
            (("app", &one[..]), (true, app.clone())),
            (("app", &one[..]), (false, app.clone())),
            (("app", &other[..]), (true, wrong.clone())),
            (("app", &one[..]), (false, app.clone())),
            // Of the same hash, which nobody is told of twice.
            (("b", &one[..]), (true, Ok("b".to_owned()))),
            (("none", &one[..]), (true, wrong.clone())),
            // Wrong ones, too, so that whoever goes on with one costs nothing.
            (("none", &one[..]), (false, wrong.clone())),
            (("app", &other[..]), (false, wrong.clone())),
            (("none", &other[..]), (true, wrong.clone())),
            (("app", &[b'a'; 513][..]), (false, wrong.clone())),
        ] {
            assert_eq!(log_in(&logins, &users, said).await, expected, "{said:?}");
        }
        // With another password what was remembered of the first is worth nothing.
        let users = UserTable::new([user("app", secret::hash(other).unwrap())]);
        let old = log_in(&logins, &users, ("app", one)).await;
        assert_eq!(old, (true, wrong.clone()));
        let new = log_in(&logins, &users, ("app", other)).await;
        assert_eq!(new, (true, app.clone()));
        // And another of the same password was never looked at.
        let users = UserTable::new([user("app", secret::hash(other).unwrap())]);
        let again = log_in(&logins, &users, ("app", other)).await;
        assert_eq!(again, (true, app));
        assert_eq!(logins.remembered.users(), 1);
    }

    fn of_machine(number: u8) -> Line {
        Line::of(Some(([192, 0, 2, number], 6399).into()))
    }

    fn coming(login: Login) -> Option<ComingUser> {
        match login {
            Login::Coming(coming) => Some(coming),
            Login::Decided(decided) => {
                let cause = decided.map_err(|failure| failure.cause()).err();
                assert_eq!(cause, Some(Cause::LoginsFull));
                None
            }
        }
    }

    /// They were refused while somebody else's wrong passwords waited.
    #[tokio::test]
    async fn nobody_of_another_address_waits_for_all_of_a_strangers_passwords() {
        let right = b"open sesame";
        let users = UserTable::new([user("app", secret::hash(right).unwrap())]);
        let logins = Arc::new(Logins::hashing(1));
        let guess = |number: usize| {
            let (name, password) = (format!("name {number}"), format!("password {number}"));
            let said = (name.as_bytes(), password.as_bytes());
            logins.begin(&users, of_machine(1), said)
        };
        let mut strangers: Vec<ComingUser> =
            (0..).map_while(|number| coming(guess(number))).collect();
        assert!(strangers.len() > 1_000);
        // A program begins with several connections.
        let log_in = || logins.begin(&users, of_machine(2), (b"app", right));
        let mut programs: Vec<ComingUser> = (0..3).filter_map(|_| coming(log_in())).collect();
        assert_eq!(programs.len(), 3);
        let others = programs.split_off(1);
        let others = others.into_iter().map(tokio::spawn).collect::<Vec<_>>();
        tokio::task::yield_now().await;
        // Two passwords of the stranger are looked at, and then one of the program, which is enough for all of them.
        strangers.drain(..2);
        for coming in programs {
            assert_eq!(coming.await.unwrap().name.as_str(), "app");
        }
        for coming in others {
            assert_eq!(coming.await.unwrap().unwrap().name.as_str(), "app");
        }
        assert!(strangers.len() > 900);
    }

    #[tokio::test]
    async fn whoever_goes_leaves_his_place() {
        let (logins, users) = (Arc::new(Logins::hashing(1)), UserTable::default());
        let first = logins.begin(&users, Line::Unix, (b"app", b"open sesame"));
        for number in 0_u32..3_000 {
            let password = number.to_be_bytes();
            let begun = logins.begin(&users, Line::Unix, (b"app", &password));
            assert!(matches!(begun, Login::Coming(_)), "{number}");
        }
        drop(first);
        let set = logins.in_turn(|memory| memory.hash(b"open sesame")).await;
        assert!(set.is_ok());
    }

    /// Else unknown users would be told by the time that it takes.
    #[test]
    fn what_nobody_has_costs_as_much_as_what_users_have() {
        let made = secret::hash(b"open sesame").unwrap();
        let costs = |hash: &str| hash.rsplitn(3, '$').nth(2).map(str::to_owned);
        assert_eq!(costs(made.as_str()), costs(NOBODYS));
        assert_eq!(made.as_str().len(), NOBODYS.len());
    }
}
