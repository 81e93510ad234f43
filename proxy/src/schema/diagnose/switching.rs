//! What would end a switch: what is in its way on the server, and what the listener's own account is not allowed to do.

use crate::schema::finding::{Finding, OfTable, Severity};
use crate::schema::matched::Matched;
use crate::schema::obstacles::{Obstacles, obstacles};
use crate::schema::snapshot::{Denied, SwitchContext, Unshown};

/// MariaDB's server_id unless somebody sets it.
const DEFAULT_ID: u64 = 1;

const NO_SWITCH: &str = "no table can be switched over to keys, or back";

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let surroundings = matched.snapshot.surroundings.as_ref();
    let Some(switch) = surroundings.and_then(|surroundings| surroundings.switch.as_ref()) else {
        return Vec::new();
    };
    let Obstacles { found, unknown } = obstacles(&switch.replication, matched.config);
    let privileges = || switch.privileges.iter();
    let found = found.into_iter();
    let in_the_way = found.map(|what| Severity::Warning.of(format!("{NO_SWITCH}: {what}")));
    let denied = privileges().flat_map(|its| &its.denied).map(denied);
    let in_the_way = in_the_way.chain(Severity::Warning.of_each(denied));
    let unshown = privileges().flat_map(|its| &its.unshown).map(unshown);
    let unknown = unknown
        .into_iter()
        .map(|what| format!("the listener's admin account may not see {what}"));
    let notes = unshown.chain(common_id(switch)).chain(unknown);
    let notes = notes.map(|what| Severity::Note.of(what));
    in_the_way.chain(notes).collect()
}

fn denied(denied: &Denied) -> OfTable {
    let Denied {
        privilege,
        table,
        message,
    } = denied;
    // LOCK TABLES is granted on schemas alone.
    let schema = table.split_once("`.`").map_or("", |(schema, _)| schema);
    let schema = format!("{schema}`");
    let message = format!(
        "{NO_SWITCH}: the listener's admin account lacks {privilege} on {table} (GRANT {privilege} ON {schema}.* TO it): {message}"
    );
    OfTable::alike(privilege, table, message)
}

fn unshown(unshown: &Unshown) -> String {
    let Unshown {
        what,
        privilege,
        schema,
    } = unshown;
    format!(
        "the listener's admin account may not see all {what} of {schema}, which takes {privilege}: one that inserts fails at \
         the fence"
    )
}

/// MariaDB servers have no identity of their own, and many have the id that is the default.
fn common_id(switch: &SwitchContext) -> Option<String> {
    let is_common = !switch.has_uuid && switch.server_id == Some(DEFAULT_ID);
    is_common.then(|| {
        format!("server_id is {DEFAULT_ID}, as by default: servers of one id, host name, port and data directory are taken for one, so give each an id of its own")
    })
}
