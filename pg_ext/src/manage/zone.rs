//! keywright.set_readable_zone: the time zone of this database's readable ids, a fixed offset from UTC.
//!
//! What must not come twice is the moment as it is written. So a zone is to a bucket what a layout is to a worker id: another zone
//! has a word of its own, and begins above all that was written before it.

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::register::{Floor, Held, Number, Use};
use pgrx::pg_extern;

use crate::cache;
use crate::catalog::{cached, node};
use crate::failure::{Failure, OrRaise};
use crate::identity::overlap::{self, Comes};
use crate::identity::{bounds, claims, numbers, register, uncommitted};
use crate::server::{changes, process};
use crate::shmem::key::TimeKind;
use crate::{arguments, guard};

#[pg_extern(sql = false)]
fn keywright_set_readable_zone(zone: Option<&[u8]>) {
    set_readable_zone(zone).or_raise();
}

fn set_readable_zone(text: Option<&[u8]>) -> Result<(), Failure> {
    guard::may_manage("set_readable_zone")?;
    let extension = cached::extension()?;
    let text = text.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the time zone must not be null")
            .hint(arguments::ZONE_HINT)
    })?;
    let zone = arguments::zone(text)?;
    let layout = zone.layout();
    register::lock()?;
    let node = node::read(&extension)?;
    let mut register = register::read()?;
    let ours = process::database().to_u32();
    let held: Vec<(Number, Held)> = register
        .held_by(ours)
        .filter(|(number, _)| TimeKind::of(*number) == TimeKind::Readable)
        .collect();
    let is_registered = held.iter().all(|(_, held)| held.layout == layout);
    if node.zone == zone && is_registered && !node.is_uncommitted {
        return Ok(());
    }
    uncommitted::has_past()?;
    if held.is_empty() && bounds::is_noted(TimeKind::Readable)? {
        // A dump brought back the bound of a bucket that it does not bring back.
        let bound_ms = bounds::hold(TimeKind::Readable)?;
        let floor = bound_ms.map(|bound_ms| Floor::below_ms(node.zone.layout(), bound_ms));
        overlap::refuse_if_written(Comes::Zone("this database"), floor, &layout)?;
    }
    if !is_registered {
        // Nobody extends the bound until this transaction ends, so what is noted here is the last.
        let bound_ms = bounds::hold(TimeKind::Readable)?;
        for (number, held) in held {
            let held = moved(number, held, bound_ms, layout)?;
            register.set(number, ours, Use::Held(held));
        }
        register::write(&register);
    }
    node::set("readable_zone", &zone.to_string())?;
    changes::announce(extension.node_table);
    cache::forget();
    Ok(())
}

/// What is to be noted of a bucket whose ids are written in another zone from now.
fn moved(
    number: Number,
    held: Held,
    bound_ms: Option<i64>,
    layout: Layout,
) -> Result<Held, Failure> {
    let recorded = claims::used_until(number, &held, bound_ms);
    let floor = match bounds::used_in_other_layouts(number, &held.layout) {
        Some(in_memory) => Some(in_memory.higher(recorded)),
        None => recorded,
    };
    overlap::refuse_if_written(Comes::Zone(&numbers::name_of(number)), floor, &layout)?;
    Ok(Held {
        from_ms: held.from_ms.max(bound_ms),
        floor,
        layout,
        ..held
    })
}
