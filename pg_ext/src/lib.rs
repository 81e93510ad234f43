//! Keywright for PostgreSQL: `snowflake_id()` and `next_biz_id(tag)` in column DEFAULTs.
//!
//! What an id may be is decided in `keywright-core`; here it meets the server. The SQL surface is
//! `sql/postgres/keywright--*.sql`; ARCHITECTURE.md has the map.

mod adopt;
mod backend;
mod bucket;
mod catalog;
mod changes;
mod claims;
mod clock;
mod column;
mod decode;
mod definition;
mod drops;
mod entry;
mod extend;
mod failure;
mod figures;
mod filler;
mod gate;
mod grant;
mod guard;
mod handover;
mod health;
mod identity;
mod identity_label;
mod ids;
mod keys;
mod labels;
mod locks;
mod lower;
mod manage;
mod promoted;
mod query;
mod received;
mod register;
mod relatives;
mod release;
mod restored;
mod reuse;
mod session;
mod settings;
mod shm;
mod snowflake;
mod store;
mod suggest;
mod sys;
mod tag;
mod takeover;
mod text;
mod upgrade;
mod utility;
mod words;
mod zone;

use failure::OrRaise;

pgrx::pg_module_magic!();

/// Called by the server when it loads the library: settings always, shared memory only at server start.
#[allow(non_snake_case, reason = "the server looks for this name")]
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    failure::keep_backtraces_in_the_log();
    let preloading = sys::is_preloading();
    if !preloading {
        upgrade::require_preload().or_raise();
    }
    settings::define();
    utility::watch_statements();
    if preloading {
        settings::define_sizes();
        shm::install_hooks();
        labels::watch_drops();
    }
}
