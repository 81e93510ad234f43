//! Keywright for PostgreSQL: `snowflake_id()` and `next_biz_id(tag)` in column DEFAULTs.
//!
//! What an id may be is decided in `keywright-core`; here it meets the server. The SQL surface is
//! `sql/postgres/keywright--*.sql`; ARCHITECTURE.md has the map.

mod arguments;
mod cache;
mod catalog;
mod columns;
mod durable;
mod entry;
mod failure;
mod guard;
mod identity;
mod inspect;
mod issue;
mod manage;
mod refill;
mod server;
mod settings;
mod shmem;

use entry::{object_access, process_utility};
use failure::OrRaise;
use server::process;
use shmem::startup;

pgrx::pg_module_magic!();

/// Called by the server when it loads the library: settings always, shared memory only at server start.
#[allow(non_snake_case, reason = "the server looks for this name")]
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    failure::keep_backtraces_in_the_log();
    let preloading = process::is_preloading();
    if !preloading {
        guard::require_preload_in_upgrade().or_raise();
    }
    settings::define();
    process_utility::watch_statements();
    if preloading {
        settings::define_for_life().or_raise();
        startup::install_hooks();
        object_access::watch_drops();
    }
}
