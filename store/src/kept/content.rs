//! What a file of kept ranges says, as bytes: a line with a checksum, then JSON that people can read, then blanks.

use std::fmt::Write as _;
use std::sync::Arc;

use keywright_core::Tag;
use keywright_core::hiding::Hiding;
use keywright_core::residue::Residue;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::engine::file::place::Place;
use crate::switch::space::KeySpace;
use crate::switch::state::{InForce, Phase, RuleName, Standing};

/// How the first line begins; another form has another number.
const MAGIC: &str = "keywright ranges 1 sha256 ";
/// What is written is so long, or a multiple of it, bytes: one page, which a process that is killed has written as a whole or not at all.
pub(crate) const PAGE_BYTES: usize = 4_096;
/// Nothing longer is written or read, bytes: some thousand tags.
pub(crate) const KEPT_BYTES_MAX: usize = 1_048_576;

/// All that a file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Content {
    /// Where the file was when this was written, and in which run of the machine.
    pub(crate) place: Place,
    /// A digest of the configuration.
    pub(crate) configuration: String,
    /// When it was written, unix milliseconds.
    pub(crate) written_ms: i64,
    /// Nothing is given after this moment of `CLOCK_BOOTTIME`, milliseconds.
    pub(crate) until_boot_ms: u64,
    /// What was in force; nothing while tables are switched.
    pub(crate) standing: Option<KeptStanding>,
    /// What may be given.
    pub(crate) ranges: Vec<KeptRange>,
    /// How far tags had come, as far as `ranges` do not tell it.
    #[serde(default)]
    pub(crate) seen: Vec<SeenBound>,
}

/// A tag's bound, whose commit was known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeenBound {
    pub(crate) tag: String,
    pub(crate) key_space: String,
    /// First id that was not reserved.
    pub(crate) bound: u64,
}

/// A range that was reserved in the store, whose commit is known, and of which nothing at or above `mark` was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawRange", into = "RawRange")]
pub(crate) struct KeptRange {
    pub(crate) tag: Tag,
    pub(crate) residue: Residue,
    /// The first id that nobody was given.
    pub(crate) mark: u64,
    /// First id after the range.
    pub(crate) end: u64,
    /// The tag's generation, and its key space.
    pub(crate) generation: u64,
    pub(crate) key_space: Arc<str>,
    /// The server on which it was reserved.
    pub(crate) server: String,
    /// The fingerprint of the permutation that its ids go through.
    pub(crate) hidden: Option<String>,
    pub(crate) refill_percent: u32,
    /// The tag's bound behind the reservation: a store that says less has gone back.
    pub(crate) bound: u64,
}

/// The same as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRange {
    tag: String,
    modulus: u64,
    remainder: u64,
    mark: u64,
    end: u64,
    generation: u64,
    key_space: String,
    server: String,
    hidden: Option<String>,
    refill_percent: u32,
    bound: u64,
}

impl From<KeptRange> for RawRange {
    fn from(range: KeptRange) -> Self {
        Self {
            tag: range.tag.as_str().to_owned(),
            modulus: range.residue.modulus(),
            remainder: range.residue.remainder(),
            mark: range.mark,
            end: range.end,
            generation: range.generation,
            key_space: range.key_space.to_string(),
            server: range.server,
            hidden: range.hidden,
            refill_percent: range.refill_percent,
            bound: range.bound,
        }
    }
}

impl TryFrom<RawRange> for KeptRange {
    type Error = String;

    fn try_from(raw: RawRange) -> Result<Self, String> {
        let tag = Tag::parse(&raw.tag).map_err(|error| error.to_string())?;
        let of_i64 = |number: u64| i64::try_from(number).map_err(|error| error.to_string());
        let residue = Residue::new(of_i64(raw.modulus)?, of_i64(raw.remainder)?)
            .map_err(|error| error.to_string())?;
        let is_range = 0 < raw.mark && raw.mark < raw.end && raw.end <= raw.bound;
        if !is_range || !(1..=99).contains(&raw.refill_percent) {
            return Err(format!("no range: {} to {}", raw.mark, raw.end));
        }
        Ok(Self {
            tag,
            residue,
            mark: raw.mark,
            end: raw.end,
            generation: raw.generation,
            key_space: raw.key_space.into(),
            server: raw.server,
            hidden: raw.hidden,
            refill_percent: raw.refill_percent,
            bound: raw.bound,
        })
    }
}

/// Which tables have keys, as the store said it last, while none was switched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawStanding", into = "RawStanding")]
pub(crate) struct KeptStanding(Standing);

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStanding {
    attempt: u64,
    rules: Vec<RawRule>,
    generations: Vec<(String, u64)>,
    key_space_ids: Vec<(String, String)>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    tables: String,
    column: String,
    keys: Option<String>,
    above: Option<u64>,
    servers: Vec<String>,
}

impl KeptStanding {
    /// Nothing while tables are switched.
    pub(crate) fn of(standing: &Standing) -> Option<Self> {
        if standing.phase != Phase::None {
            return None;
        }
        let mut kept = Standing {
            leader: None,
            age_ms: 0,
            peers: Vec::new(),
            ..standing.clone()
        };
        // What the last attempt was about is over.
        kept.rules.iter_mut().for_each(|rule| rule.next = None);
        Some(Self(kept))
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.0
    }

    /// Whether a range is of the generation and the key space that were in force.
    pub(crate) fn has(&self, range: &KeptRange) -> bool {
        let space = KeySpace::Tag(range.tag.clone());
        let mut generations = self.0.generations.iter();
        let is_followed =
            generations.any(|(its, number)| *its == space && *number == range.generation);
        let mut ids = self.0.key_space_ids.iter();
        let is_other = ids.any(|(tag, id)| *tag == range.tag && **id != *range.key_space);
        is_followed && !is_other
    }
}

impl From<KeptStanding> for RawStanding {
    fn from(KeptStanding(standing): KeptStanding) -> Self {
        let rules = standing.rules.into_iter().map(|its| RawRule {
            tables: its.rule.tables,
            column: its.rule.column,
            keys: its.keys.map(|space| space.to_string()),
            above: its.above,
            servers: its.servers,
        });
        let generations = standing.generations.iter();
        let ids = standing.key_space_ids.into_iter();
        Self {
            attempt: standing.attempt,
            rules: rules.collect(),
            generations: generations
                .map(|(space, number)| (space.to_string(), *number))
                .collect(),
            key_space_ids: ids.map(|(tag, id)| (tag.as_str().to_owned(), id)).collect(),
        }
    }
}

impl TryFrom<RawStanding> for KeptStanding {
    type Error = String;

    fn try_from(raw: RawStanding) -> Result<Self, String> {
        let space = |text: &str| {
            KeySpace::parse(text).ok_or_else(|| format!("\"{text}\" is no source of keys"))
        };
        let rule = |raw: RawRule| {
            Ok(InForce {
                rule: RuleName {
                    tables: raw.tables,
                    column: raw.column,
                },
                keys: raw.keys.as_deref().map(space).transpose()?,
                next: None,
                above: raw.above,
                servers: raw.servers,
            })
        };
        let generations = raw.generations.iter();
        let ids = raw.key_space_ids.into_iter().map(|(tag, id)| {
            let tag = Tag::parse(&tag).map_err(|error| error.to_string())?;
            Ok((tag, id))
        });
        Ok(Self(Standing {
            attempt: raw.attempt,
            phase: Phase::None,
            leader: None,
            age_ms: 0,
            rules: raw
                .rules
                .into_iter()
                .map(rule)
                .collect::<Result<_, String>>()?,
            generations: generations
                .map(|(text, number)| Ok((space(text)?, *number)))
                .collect::<Result<_, String>>()?,
            key_space_ids: ids.collect::<Result<_, String>>()?,
            peers: Vec::new(),
        }))
    }
}

/// What tells apart what ids are sent through.
pub(crate) fn fingerprint(hiding: Option<&Hiding>) -> Option<String> {
    hiding.map(|hiding| format!("{} {}", hiding.bits().get(), hiding.fingerprint()))
}

/// Whether bytes are the beginning of such a file, or of one that was never written.
pub(crate) fn is_one(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes.starts_with(MAGIC.as_bytes())
}

fn sum(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes of a file, at least so many. Nothing: it is too long.
pub(crate) fn encode(content: &Content, bytes_min: usize) -> Option<Vec<u8>> {
    let mut body = serde_json::to_vec_pretty(content).ok()?;
    body.push(b'\n');
    let head = |body: &[u8]| format!("{MAGIC}{}\n", sum(body));
    let len = head(&body).len().saturating_add(body.len());
    let whole = len.max(bytes_min).next_multiple_of(PAGE_BYTES);
    // Blanks, so that whatever was longer before is overwritten; they are part of what is summed.
    body.resize(body.len().saturating_add(whole.saturating_sub(len)), b' ');
    let mut bytes = head(&body).into_bytes();
    bytes.extend_from_slice(&body);
    (bytes.len() <= KEPT_BYTES_MAX).then_some(bytes)
}

/// What a file's bytes say.
///
/// # Errors
/// They are not as they were written.
pub(crate) fn decode(bytes: &[u8]) -> Result<Content, String> {
    let rest = bytes.strip_prefix(MAGIC.as_bytes());
    let rest = rest.ok_or("its first line is not that of a file of kept ranges")?;
    let end = rest.iter().position(|byte| *byte == b'\n');
    let (noted, body) = rest
        .split_at_checked(end.unwrap_or(rest.len()))
        .unwrap_or((rest, &[]));
    let body = body.strip_prefix(b"\n").unwrap_or_default();
    if noted != sum(body).as_bytes() {
        return Err("it is not as it was written: its checksum is another".to_owned());
    }
    serde_json::from_slice(body).map_err(|error| error.to_string())
}
