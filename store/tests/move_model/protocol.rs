//! What may happen next, and what comes of it.

use keywright_store::moving::{Comer, Heir, Leaver, Lineage, plan_close, plan_open};

use crate::world::{Catalogue, MOVERS, Phase, SERVERS, Server, Source, World};

/// What is done otherwise than it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// The store opens its tag before the database has committed that it issues natively no more.
    OpenBeforeCommit,
    /// A tag is opened whatever it gave before.
    OpenWithoutLooking,
    /// A native catalogue issues whatever the setting says.
    NoSetting,
    /// The setting is counted up where the tag moves, and not on the other server.
    SettingOnOneServer,
    /// It stays at 1 whatever comes, and a native row that was ever returned issues.
    NumberNotCounted,
    /// The database is native again before the store has closed its tag.
    ReturnBeforeClose,
    /// Whoever asks returns, whatever heir the store has named.
    AnyHeir,
    /// The heir is a database, and not one life of its memory.
    HeirOfTheLineage,
    /// A tag that is closed is opened for any catalogue of the heir's database.
    AnyCatalogueComesBack,
}

/// One step of anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// The setting is counted up on both, and they start anew.
    Tell(usize),
    /// A program has the database commit that it is fed.
    Leave(usize, usize),
    /// It asks the store; the answer may be lost.
    Ask(usize, bool),
    /// It tells the server what the store has done; the answer does not matter.
    Answer(usize),
    /// A program begins to move the tag back.
    ComeBack(usize, usize),
    /// A program ends where it is.
    GiveUp(usize),
    /// The server issues natively.
    Issue(usize),
    /// It is handed an id of the store.
    Feed(usize),
    /// It issues that.
    IssueFed(usize),
    /// Another program reserves an id of the store, and issues it.
    Reserve,
    Crash(usize),
    Backup(usize),
    /// A server starts with the catalogue of the backup.
    Restore(usize),
}

pub fn actions(actions: &mut Vec<Action>) {
    for server in 0..SERVERS {
        actions.extend([
            Action::Tell(server),
            Action::Issue(server),
            Action::Feed(server),
            Action::IssueFed(server),
            Action::Crash(server),
            Action::Backup(server),
            Action::Restore(server),
        ]);
        for mover in 0..MOVERS {
            actions.extend([
                Action::Leave(mover, server),
                Action::ComeBack(mover, server),
            ]);
        }
    }
    for mover in 0..MOVERS {
        actions.extend([
            Action::Ask(mover, true),
            Action::Ask(mover, false),
            Action::Answer(mover),
            Action::GiveUp(mover),
        ]);
    }
    actions.push(Action::Reserve);
}

/// `None`: it cannot happen now, or changes nothing.
pub fn next(world: &World, action: Action, flaw: Option<Flaw>) -> Option<World> {
    let mut next = world.clone();
    match action {
        Action::Tell(server) => tell(&mut next, server, flaw)?,
        Action::Leave(mover, server) => leave(&mut next, mover, server, flaw)?,
        Action::Ask(mover, is_answered) => ask(&mut next, mover, is_answered, flaw)?,
        Action::Answer(mover) => answer(&mut next, mover, flaw)?,
        Action::ComeBack(mover, server) => come_back(&mut next, mover, server, flaw)?,
        Action::GiveUp(mover) => {
            spend(&mut next.left.losses)?;
            next.movers[mover] = Phase::Idle;
        }
        Action::Issue(server) => issue(&mut next, server, flaw)?,
        Action::Feed(server) => {
            let its = next.servers[server].as_mut()?;
            let is_fed = its.catalogue.source == Source::Fed { is_opened: true };
            if !is_fed || its.stock.is_some() || next.store.heir.is_some() {
                return None;
            }
            its.stock = Some(next.store.free.max(its.catalogue.end));
            next.store.free = its.stock? + 1;
        }
        Action::IssueFed(server) => {
            let its = next.servers[server].as_mut()?;
            let id = its.stock.take()?;
            its.catalogue.end = its.catalogue.end.max(id + 1);
            give(&mut next, id, false)?;
            next.stage += u8::from(next.stage == 1);
        }
        Action::Reserve => {
            spend(&mut next.left.reservations)?;
            if next.store.heir.is_some() {
                return None;
            }
            let id = next.store.free;
            next.store.free += 1;
            next.left.issues += 1;
            give(&mut next, id, false)?;
        }
        Action::Crash(server) => {
            spend(&mut next.left.crashes)?;
            let its = next.servers[server]?;
            start(&mut next, server, its.catalogue, its.setting);
        }
        Action::Backup(server) => {
            spend(&mut next.left.backups)?;
            next.backup = Some(next.servers[server]?.catalogue);
        }
        Action::Restore(server) => {
            spend(&mut next.left.restores)?;
            let backup = next.backup?;
            // What is configured is kept, or was set on the standby.
            let settings = next.servers.iter().flatten().map(|its| its.setting);
            let setting = match flaw {
                Some(Flaw::SettingOnOneServer) => next.servers[server].map_or(0, |its| its.setting),
                _ => settings.max()?,
            };
            start(&mut next, server, backup, setting);
        }
    }
    (next != *world).then_some(next)
}

fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

fn give(world: &mut World, id: u64, is_native: bool) -> Option<()> {
    spend(&mut world.left.issues)?;
    let issued = match is_native {
        true => &mut world.native,
        false => &mut world.stored,
    };
    let bit = 1 << id;
    world.twice |= *issued & bit != 0;
    *issued |= bit;
    look_for_both(world);
    Some(())
}

/// Since the database has come to the store's tag their ids are of one.
fn look_for_both(world: &mut World) {
    world.twice |= world.store.known.is_some() && world.native & world.stored != 0;
}

/// A server starts: nothing of its memory is there.
fn start(world: &mut World, server: usize, catalogue: Catalogue, setting: u32) {
    world.servers[server] = Some(Server {
        catalogue,
        incarnation: world.next_incarnation,
        setting,
        stock: None,
    });
    world.next_incarnation += 1;
}

fn tell(world: &mut World, server: usize, flaw: Option<Flaw>) -> Option<()> {
    let asked = world.servers[server]?;
    let is_native = matches!(asked.catalogue.source, Source::Native { .. });
    if !is_native || asked.setting > asked.catalogue.number {
        return None;
    }
    spend(&mut world.left.moves)?;
    let number = match flaw {
        Some(Flaw::NumberNotCounted) => 1,
        _ => asked.setting + 1,
    };
    for other in 0..SERVERS {
        let is_told = other == server || flaw != Some(Flaw::SettingOnOneServer);
        if let Some(its) = world.servers[other].filter(|_| is_told) {
            start(world, other, its.catalogue, its.setting.max(number));
        }
    }
    Some(())
}

fn may_issue(server: &Server, flaw: Option<Flaw>) -> bool {
    let Server {
        catalogue, setting, ..
    } = server;
    match flaw {
        Some(Flaw::NoSetting) => true,
        Some(Flaw::NumberNotCounted) => *setting == 0 || catalogue.number > 0,
        _ => catalogue.number == *setting,
    }
}

fn issue(world: &mut World, server: usize, flaw: Option<Flaw>) -> Option<()> {
    let its = world.servers[server]?;
    let Source::Native { life } = its.catalogue.source else {
        return None;
    };
    if !may_issue(&its, flaw) {
        return None;
    }
    let id = world.lives[life];
    world.lives[life] += 1;
    give(world, id, true)?;
    world.stage += u8::from(world.stage == 0 || world.stage == 2);
    world.went_around |= world.stage == 3;
    Some(())
}

fn lineage() -> Lineage {
    Lineage {
        system: "7".to_owned(),
        database: 5,
    }
}

/// The first step that a program has a database take: it is fed, when that has committed.
fn leave(world: &mut World, mover: usize, server: usize, flaw: Option<Flaw>) -> Option<()> {
    if world.movers[mover] != Phase::Idle {
        return None;
    }
    let its = world.servers[server].as_mut()?;
    let catalogue = its.catalogue;
    let moved = match catalogue.source {
        Source::Native { life } => Catalogue {
            source: Source::Fed { is_opened: false },
            number: its.setting.max(1),
            before: catalogue.number,
            end: world.lives[life],
        },
        // Again.
        Source::Fed { .. } => catalogue,
    };
    let is_counted = its.setting > catalogue.number || flaw == Some(Flaw::NumberNotCounted);
    let is_first = catalogue != moved;
    if is_first && !is_counted && flaw != Some(Flaw::NoSetting) {
        return None;
    }
    // With this flaw it is done when the store has opened.
    if flaw != Some(Flaw::OpenBeforeCommit) {
        its.catalogue = moved;
    }
    world.movers[mover] = Phase::Open(
        server,
        Comer {
            lineage: lineage(),
            number: moved.number,
            before: moved.before,
            end: moved.end,
        },
    );
    Some(())
}

fn come_back(world: &mut World, mover: usize, server: usize, flaw: Option<Flaw>) -> Option<()> {
    if world.movers[mover] != Phase::Idle {
        return None;
    }
    let its = world.servers[server]?;
    if its.catalogue.source != (Source::Fed { is_opened: true }) {
        return None;
    }
    let incarnation = match flaw {
        Some(Flaw::HeirOfTheLineage) => "any".to_owned(),
        _ => its.incarnation.to_string(),
    };
    let leaver = Leaver {
        heir: Heir {
            lineage: lineage(),
            incarnation,
        },
        number: its.setting,
        seen: its.catalogue.end,
    };
    world.movers[mover] = Phase::Close(server, leaver.clone());
    if flaw == Some(Flaw::ReturnBeforeClose) {
        // What is read now is the bound that it returns with.
        let free = world.store.free;
        become_native(world, server, &leaver, free, flaw);
    }
    Some(())
}

fn ask(world: &mut World, mover: usize, is_answered: bool, flaw: Option<Flaw>) -> Option<()> {
    if !is_answered {
        spend(&mut world.left.losses)?;
    }
    let phase = world.movers[mover].clone();
    world.movers[mover] = Phase::Idle;
    match phase {
        Phase::Open(server, comer) => {
            let plain = match flaw {
                Some(Flaw::AnyCatalogueComesBack) if world.store.heir.is_some() => Comer {
                    before: world.store.known.unwrap_or(0),
                    number: comer.number.max(world.store.known.unwrap_or(0) + 1),
                    ..comer.clone()
                },
                _ => comer.clone(),
            };
            let opening = match flaw {
                Some(Flaw::OpenWithoutLooking) if world.store.heir.is_none() => {
                    let mut unused = world.store.clone();
                    unused.start = unused.free;
                    plan_open(&unused, &Comer { end: 0, ..plain }, None)
                }
                _ => plan_open(&world.store, &plain, None),
            };
            let Ok(opening) = opening else {
                return Some(());
            };
            world.store.start = opening.start;
            world.store.free = opening.free;
            world.store.heir = None;
            world.store.known = Some(comer.number);
            look_for_both(world);
            if is_answered {
                world.movers[mover] = Phase::Opened(server, comer.number);
            }
        }
        Phase::Close(server, leaver) => {
            let Ok(free) = plan_close(&world.store, &leaver, None) else {
                return Some(());
            };
            world.store.free = free;
            world.store.heir = Some(leaver.heir.clone());
            world.store.known = Some(leaver.number);
            if is_answered && flaw != Some(Flaw::ReturnBeforeClose) {
                world.movers[mover] = Phase::Return(server, leaver, free);
            }
        }
        Phase::Idle | Phase::Opened(..) | Phase::Return(..) => return None,
    }
    Some(())
}

fn answer(world: &mut World, mover: usize, flaw: Option<Flaw>) -> Option<()> {
    let phase = world.movers[mover].clone();
    world.movers[mover] = Phase::Idle;
    match phase {
        Phase::Opened(server, number) => {
            let its = world.servers[server].as_mut()?;
            if let (Some(Flaw::OpenBeforeCommit), Source::Native { life }) =
                (flaw, its.catalogue.source)
            {
                its.catalogue = Catalogue {
                    source: Source::Fed { is_opened: false },
                    number,
                    before: its.catalogue.number,
                    end: world.lives[life],
                };
            }
            let is_fed = matches!(its.catalogue.source, Source::Fed { .. });
            if is_fed && its.catalogue.number == number {
                its.catalogue.source = Source::Fed { is_opened: true };
            }
        }
        Phase::Return(server, leaver, free) => become_native(world, server, &leaver, free, flaw),
        Phase::Idle | Phase::Open(..) | Phase::Close(..) => return None,
    }
    Some(())
}

/// The heir commits that it is native again.
fn become_native(world: &mut World, server: usize, leaver: &Leaver, free: u64, flaw: Option<Flaw>) {
    let life = world.lives.len();
    let Some(its) = world.servers[server].as_mut() else {
        return;
    };
    let is_heir = leaver.heir.incarnation == its.incarnation.to_string()
        || matches!(flaw, Some(Flaw::AnyHeir | Flaw::HeirOfTheLineage));
    let is_fed = matches!(its.catalogue.source, Source::Fed { .. });
    if !is_heir || !is_fed || its.setting != leaver.number || free < its.catalogue.end {
        return;
    }
    its.catalogue = Catalogue {
        source: Source::Native { life },
        number: leaver.number,
        before: its.catalogue.number,
        end: free,
    };
    its.stock = None;
    world.lives.push(free);
}
