//! Rules that have left the switch: their tables have keys of which it knows nothing. So nobody is to lift a fence there by what the store says of the ids that
//! they had before: the server would make ids that were given since.

use std::time::Duration;

use anyhow::{Result, anyhow};
use keywright_proxy::config::{Config, Configured};
use keywright_proxy::switch::{Left, left_the_switch, with_tables_here};
use keywright_session::Mode;
use keywright_store::Failure;
use keywright_store::switch::{RuleName, Switchboard};
use tokio::time::timeout;

/// How long the store is waited for each time, milliseconds: nobody who starts, or looks at tables, is to wait for one that is away.
const STORE_MS_MAX: u64 = 1_000;

/// Has the store forget above what counters went on of rules that have left the switch. `before`: the configuration in whose place this one comes. To be done
/// before fences are set by it, and before anybody gets a key by it.
///
/// # Errors
/// The store cannot be used, or does not answer in time; or a server cannot be looked at that may have tables of such a rule.
pub(super) async fn forget_left(
    config: &Config,
    before: Option<&Config>,
    board: &Switchboard,
) -> Result<()> {
    if !may_have_left(config) && !before.is_some_and(may_have_left) {
        return Ok(());
    }
    // The program's part in the switch does not go by what is read here.
    let board = board.apart();
    let standing = in_time(board.standing()).await?;
    let Left {
        mut rules,
        in_doubt,
    } = left_the_switch(config, before, &standing);
    let (here, looked) = with_tables_here((config, before), in_doubt).await;
    rules.extend(here);
    if !rules.is_empty() {
        forget(rules, &board).await?;
    }
    looked
}

async fn in_time<T>(answer: impl Future<Output = Result<T, Failure>>) -> Result<T> {
    match timeout(Duration::from_millis(STORE_MS_MAX), answer).await {
        Ok(answer) => answer.map_err(|failure| anyhow!("{failure}")),
        Err(_) => Err(anyhow!(
            "the store has not answered within {STORE_MS_MAX} ms"
        )),
    }
}

async fn forget(rules: Vec<RuleName>, board: &Switchboard) -> Result<()> {
    in_time(board.forget_above(rules.clone())).await?;
    for rule in rules {
        tracing::info!(
            rule = rule.tables,
            "the rule has left the switch: fences that are left of it are lifted by no program any more"
        );
    }
    Ok(())
}

/// The same where the store may be away: each schema refresh tries it again.
pub(super) async fn try_to_forget_left(config: &Config, board: &Switchboard) {
    if let Err(error) = forget_left(config, None, board).await {
        tracing::debug!("whether rules have left the switch is not known: {error:#}");
    }
}

/// Whether a rule gives keys past the switch, beside a store that has one.
fn may_have_left(config: &Config) -> bool {
    let gives_keys = |rule: &Configured| !rule.is_switched && rule.rule.mode == Mode::Rewrite;
    // One with tags of another system has its tables where it is needed.
    let has_switch = config.store.has_own_tags() || config.follows_the_switch();
    has_switch && config.rules.iter().any(gives_keys)
}
