//! What a program does on servers when tables go over to keys or back; what the store decides about it is
//! `keywright_store::switch`.

mod brought;
mod carry;
mod claim;
mod conduct;
mod fence;
mod finish;
mod held_back;
mod later;
mod left;
mod lifted;
mod own_time;
mod servers;
mod silences;
mod standings;

pub use claim::Claim;
pub use conduct::{Ahead, ClientConnections, Conductor, Limits};
pub use fence::{Blocker, Outcome, Reading, SwitchError, fence, lift, probe};
pub use left::{Left, left_the_switch, with_tables_here};
pub use servers::{identities as server_identities, name_of as rule_name};
pub(crate) use standings::KeyStandings;
