//! The text of a prepared statement: the key becomes a parameter, put in at most once where that can be.

use crate::plan::insert_plan::{LastInsertId, Plan};
use crate::plan::site::{Site, SiteKind};
use crate::refusal::{Unread, Unsupported};
use crate::splice::error::SpliceError;
use crate::splice::writer::Writer;

/// Which of a prepared statement's texts is meant: it differs by the row whose key is reported as LAST_INSERT_ID().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Variant {
    wrapped: Option<u32>,
}

impl Variant {
    /// The text that reports nothing.
    pub const LITERAL: Self = Self { wrapped: None };
}

/// A text to prepare in place of the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The text.
    pub text: Vec<u8>,
    /// Parameters that the client does not know of, ascending.
    pub injected: Vec<Injected>,
    /// All injected parameters are the first key; the text makes the keys of the other rows out of it.
    pub keys_in_text: bool,
}

/// A parameter that was put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injected {
    /// Which of the server's parameters it is, from 0.
    pub at: u16,
    /// The row whose key it is, from 0.
    pub row: u32,
}

/// Parameters that a prepared statement may have.
const PARAMETERS_MAX: usize = 65_535;

impl Plan {
    /// The variant for an execution. `asking` is the first row of [`Plan::key_parameters`] whose bound value asks for a
    /// key, `None` if there is none.
    pub fn variant(&self, asking: Option<u32>) -> Variant {
        let always = self
            .sites
            .iter()
            .find(|site| site.kind != SiteKind::Parameter)
            .map(|site| site.row);
        let first = match (always, asking) {
            (Some(always), Some(asking)) => Some(always.min(asking)),
            (always, asking) => always.or(asking),
        };
        Variant {
            wrapped: first.filter(|_| self.last_insert_id == LastInsertId::Wrapped),
        }
    }

    /// The text to prepare for a variant. `spacing` is the distance of neighbouring keys.
    ///
    /// # Errors
    /// [`Unread::Unsupported`] when there are too many parameters, or `text` is not the one that was planned.
    pub fn prepare(&self, text: &[u8], variant: Variant, spacing: u64) -> Result<Prepared, Unread> {
        let keys_in_text = variant.wrapped.is_some() && self.keys_in_text();
        // The server reads the second row only when the first went in.
        let in_second = keys_in_text && self.keys() > 1;
        let mut out = Vec::with_capacity(text.len().saturating_add(64));
        let mut injected = Vec::new();
        let mut writer = Writer::new(self, text, &mut out);
        let mut key = 0_u64;
        for site in &self.sites {
            writer.open(site).map_err(another)?;
            let wraps_second = in_second && key == 1;
            let later = keys_in_text && key > 0;
            let front: &[u8] = match (later, wraps_second) {
                (_, true) => b"LAST_INSERT_ID(?)+",
                (true, false) => b"LAST_INSERT_ID()+",
                (false, false) if variant.wrapped == Some(site.row) && !in_second => {
                    b"LAST_INSERT_ID(?)"
                }
                (false, false) => b"?",
            };
            writer.out.extend_from_slice(front);
            if later {
                let distance = spacing.saturating_mul(key);
                writer
                    .out
                    .extend_from_slice(distance.to_string().as_bytes());
            }
            writer.close(site);
            if site.kind != SiteKind::Parameter {
                key += 1;
                if wraps_second {
                    let row = injected
                        .first()
                        .map_or(site.row, |first: &Injected| first.row);
                    injected.push(Injected {
                        row,
                        ..injection(site, injected.len())?
                    });
                } else if !later {
                    injected.push(injection(site, injected.len())?);
                }
            }
        }
        writer.finish().map_err(another)?;
        let own = usize::try_from(self.parameters).unwrap_or(usize::MAX);
        if own.saturating_add(injected.len()) > PARAMETERS_MAX {
            return Err(Unsupported::Parameters.into());
        }
        Ok(Prepared {
            text: out,
            injected,
            keys_in_text,
        })
    }

    /// Whether later keys can be computed from the first: no row can turn out not to need its key.
    fn keys_in_text(&self) -> bool {
        self.sites
            .iter()
            .all(|site| !matches!(site.kind, SiteKind::Parameter | SiteKind::UnlessZeroIsValue))
    }
}

fn injection(site: &Site, before: usize) -> Result<Injected, Unread> {
    let before = u32::try_from(before).map_err(|_| Unsupported::Parameters)?;
    let at = site.parameters.saturating_add(before);
    Ok(Injected {
        at: u16::try_from(at).map_err(|_| Unsupported::Parameters)?,
        row: site.row,
    })
}

fn another(_: SpliceError) -> Unread {
    Unsupported::NotAsPlanned.into()
}
