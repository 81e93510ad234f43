//! The two families of servers, and tests that run on both.

/// Which of the two families a server is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flavour {
    /// MariaDB, Debian's.
    MariaDb,
    /// Oracle's MySQL, from Debian's unstable suite, kept below `target/`; nothing of it is installed.
    MySql,
}

/// How servers refuse to make a key of their own where the fence stands: MariaDB says 167 for most types.
pub const AT_FENCE: [u16; 2] = [1467, 167];

impl Flavour {
    /// Both.
    pub const ALL: [Flavour; 2] = [Flavour::MariaDb, Flavour::MySql];

    /// The variable that restricts tests to one flavour, for a machine that cannot have the other.
    pub const VARIABLE: &'static str = "KEYWRIGHT_UPSTREAM";

    /// As the variable and files spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Flavour::MariaDb => "mariadb",
            Flavour::MySql => "mysql",
        }
    }

    /// The flavour of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Flavour> {
        Flavour::ALL
            .into_iter()
            .find(|flavour| flavour.name() == name)
    }

    /// Whether tests on this flavour are wanted: they are unless [`Flavour::VARIABLE`] names the other one, and then it is
    /// said that they did not run. A server that is wanted and cannot be had is an error, never a test that passes.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        let Ok(only) = std::env::var(Flavour::VARIABLE) else {
            return true;
        };
        let wanted = only == self.name();
        if !wanted {
            eprintln!(
                "NOT RUN on {}: {} is {only:?}",
                self.name(),
                Flavour::VARIABLE
            );
        }
        wanted
    }
}

/// Makes of each function `fn name(flavour: Flavour) -> Result<()>` a test on MariaDB and one on MySQL.
#[macro_export]
macro_rules! on_both_flavours {
    ($($name:ident),* $(,)?) => {
        mod mariadb {
            $(#[test] fn $name() -> $crate::Result<()> { super::run_on($crate::Flavour::MariaDb, super::$name) })*
        }
        mod mysql {
            $(#[test] fn $name() -> $crate::Result<()> { super::run_on($crate::Flavour::MySql, super::$name) })*
        }
        fn run_on(
            flavour: $crate::Flavour,
            test: fn($crate::Flavour) -> $crate::Result<()>,
        ) -> $crate::Result<()> {
            if flavour.is_wanted() { test(flavour) } else { Ok(()) }
        }
    };
}
