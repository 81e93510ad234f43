//! Plays a conversation as the proxy does: bytes of both sides are shown to the session, in whole or in parts, and its steps are
//! carried out until nobody has anything to say.

mod driver;

use std::sync::Arc;

use keywright_rewrite::KeyForm;
use keywright_session::{Rules, RulesUpdate, SchemaChanges, Session, Step, Traffic};
use keywright_wire::capability::QUERY_ATTRIBUTES;

use crate::circumstances::{Chunks, Circumstances, Version};
use crate::client::{Act, OnStatement, What, file, prepare, shown};
use crate::reach::Reach;
use crate::server::Server;

/// Steps in a row that take no byte of either side.
const IDLE_STEPS_MAX: usize = 64;
/// In how many parts long bytes come.
const PARTS_MAX: usize = 100;
/// Statements that the client remembers.
const STATEMENTS_MAX: usize = 3;

/// What happens in one connection.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) seed: u64,
    pub(crate) circumstances: Circumstances,
    pub(crate) acts: Vec<Act>,
}

/// One side's bytes: those that are shown to the session, and those that are still to come.
#[derive(Default)]
struct Side {
    shown: Vec<u8>,
    coming: Vec<u8>,
}

impl Side {
    /// False when there is nothing to show.
    fn show(&mut self, chunks: Chunks, at_least: usize, random: &mut fastrand::Rng) -> bool {
        let count = match chunks {
            Chunks::Whole => usize::MAX,
            Chunks::Asked => at_least.saturating_sub(self.shown.len()).max(1),
            // Long ones in few parts all the same.
            Chunks::UpTo(most) => random.usize(1..=most).max(self.coming.len() / PARTS_MAX),
        };
        let count = count.min(self.coming.len());
        self.shown.extend(self.coming.drain(..count));
        count > 0
    }
}

struct Player<'a> {
    of: &'a Conversation,
    session: Session,
    server: Server,
    client: Side,
    upstream: Side,
    random: fastrand::Rng,
    schema: Arc<SchemaChanges>,
    traffic: Arc<Traffic>,
    forms: Vec<KeyForm>,
    /// The last version of the rules, and those that are to be taken.
    version: u64,
    to_take: Option<Arc<Rules>>,
    /// Numbers and parameters of the statements that were prepared last.
    statements: Vec<(u32, usize)>,
    /// What the client got since its last act.
    got: Vec<u8>,
    key_requests: u64,
    questions: u64,
    files: u64,
    is_waiting: bool,
    is_closed: bool,
    reach: &'a mut Reach,
    log: &'a mut Option<Vec<String>>,
}

/// Plays all of it.
pub(crate) fn play(of: &Conversation, reach: &mut Reach, log: &mut Option<Vec<String>>) {
    let (schema, traffic) = (Arc::default(), Arc::default());
    let circumstances = &of.circumstances;
    let version = circumstances.begins_with.map(|version| (0, version));
    let rules = circumstances.rules(version, &schema, &traffic);
    let mut session = Session::new(rules, circumstances.facts.clone());
    if circumstances.must_see_change_user {
        session = session.must_see_change_user();
    }
    if let Some(budget) = circumstances.budget() {
        session = session.with_budget(budget);
    }
    session.allow_status(circumstances.sees_status);
    let mut player = Player {
        of,
        session,
        server: Server::new(of.seed, circumstances),
        client: Side::default(),
        upstream: Side::default(),
        random: fastrand::Rng::with_seed(of.seed),
        schema,
        traffic,
        forms: circumstances.forms(),
        version: 0,
        to_take: None,
        statements: Vec::new(),
        got: Vec::new(),
        key_requests: 0,
        questions: 0,
        files: 0,
        is_waiting: false,
        is_closed: false,
        reach,
        log,
    };
    for act in &of.acts {
        player.act(act);
        if player.is_closed {
            return;
        }
    }
    player.run();
    if player.is_waiting && !player.is_closed {
        player.session.on_waited();
        player.run();
    }
}

impl Player<'_> {
    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = self.log.as_mut() {
            log.push(line());
        }
    }

    fn act(&mut self, act: &Act) {
        self.note(|| format!("* {act:?}"));
        if act.hears {
            self.take_rules();
        }
        self.got.clear();
        match &act.what {
            What::Command(bytes) => self.client.coming.extend(&bytes.0),
            What::Prepare(text) => self.client.coming.extend(prepare(text)),
            What::OnStatement(at, what) => self.on_statement(*at, what),
            What::Bytes { of_client, bytes } => match of_client {
                true => self.client.coming.extend(&bytes.0),
                false => self.upstream.coming.extend(&bytes.0),
            },
            What::Publish(version, hears) => self.publish(*version, *hears),
            What::Waited => self.session.on_waited(),
            What::AskWhetherOpen => {
                let asks = self.session.ask_whether_open();
                self.reach.note("asks whether open", asks);
            }
            What::MemoryFull => self.session.memory_full(),
            What::Defined => self.schema.note_defined(),
            What::Looked(is_other) => self
                .schema
                .note_schema_refresh(self.schema.defined(), *is_other),
        }
        if act.is_pipelined {
            return;
        }
        self.run();
        if matches!(act.what, What::Prepare(_)) {
            self.note_prepared();
        }
        while !self.is_closed && self.send_file() {}
    }

    fn on_statement(&mut self, at: usize, what: &OnStatement) {
        let (id, parameters) = match self.statements.get(at).or(self.statements.first()) {
            // What was prepared last.
            Some((_, parameters)) if at + 1 == STATEMENTS_MAX => (u32::MAX, *parameters),
            Some(known) => *known,
            None => (1, 1),
        };
        let has_attributes = self.of.circumstances.has(QUERY_ATTRIBUTES);
        let packet = what.packet(id, parameters, has_attributes);
        self.client.coming.extend(packet);
    }

    fn publish(&mut self, version: Version, hears: bool) {
        if self.of.circumstances.begins_with.is_none() {
            return;
        }
        self.version += 1;
        self.traffic.publish(self.version);
        let version = Some((self.version, version));
        let rules = self
            .of
            .circumstances
            .rules(version, &self.schema, &self.traffic);
        self.to_take = Some(rules);
        if hears {
            self.take_rules();
        }
    }

    fn take_rules(&mut self) {
        let Some(rules) = self.to_take.take() else {
            return;
        };
        let update = self.session.update_rules(&rules);
        self.note(|| format!("  rules: {update:?}"));
        self.reach
            .note("takes other rules", update == RulesUpdate::Taken);
        match update {
            RulesUpdate::Taken => {}
            RulesUpdate::AfterTransaction | RulesUpdate::AfterCommand => {
                self.reach
                    .note("goes on", update == RulesUpdate::AfterTransaction);
                self.to_take = Some(rules);
            }
            RulesUpdate::Impossible => {
                self.reach.note("cannot take other rules", true);
                self.is_closed = true;
            }
        }
    }

    /// The number of a statement that was prepared.
    fn note_prepared(&mut self) {
        let [12, 0, 0, _, 0, a, b, c, d, _, _, low, high, ..] = self.got[..] else {
            return;
        };
        let number = u32::from_le_bytes([a, b, c, d]);
        let parameters = u16::from_le_bytes([low, high]);
        self.statements.insert(0, (number, parameters.into()));
        self.statements.truncate(STATEMENTS_MAX);
    }

    /// The client's file, if it was asked for one.
    fn send_file(&mut self) -> bool {
        let mut last = &self.got[..];
        while let [a, b, c, _, rest @ ..] = last {
            let len = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            match rest.get(len..) {
                Some(next) if !next.is_empty() => last = next,
                Some(_) | None => break,
            }
        }
        let [_, 0, 0, sequence, 0xFB, ..] = *last else {
            return false;
        };
        self.got.clear();
        self.files += 1;
        let mut bytes = file(sequence.wrapping_add(1), self.of.seed ^ self.files);
        if self.of.seed.wrapping_add(self.files).is_multiple_of(8) {
            let rest = bytes.split_off(bytes.len() / 2);
            self.client.coming.extend(bytes);
            self.run();
            self.session.memory_full();
            bytes = rest;
        }
        self.client.coming.extend(bytes);
        self.run();
        true
    }

    /// Asks the session until nobody has anything to say.
    fn run(&mut self) {
        let mut idle = 0;
        self.is_waiting = false;
        if self.of.circumstances.chunks == Chunks::Whole {
            self.client.show(Chunks::Whole, 0, &mut self.random);
        }
        'said: while !self.is_closed {
            for of_client in [true, false] {
                let before = self.client.shown.len() + self.upstream.shown.len();
                let has_more = self.step(of_client);
                let after = self.client.shown.len() + self.upstream.shown.len();
                idle = if before == after { idle + 1 } else { 0 };
                if has_more {
                    assert!(idle <= IDLE_STEPS_MAX, "steps without end");
                    continue 'said;
                }
            }
            return;
        }
    }

    /// One step of a side; whether something has moved.
    fn step(&mut self, of_client: bool) -> bool {
        let there = match of_client {
            true => &mut self.client.shown,
            false => &mut self.upstream.shown,
        };
        let shown = there.len();
        let is_over = of_client && shown == 0 && self.session.needs_client_bytes();
        let said = [
            self.session.to_upstream().len(),
            self.session.to_client().len(),
        ];
        let step = match of_client {
            true if self.of.circumstances.in_place => self.session.on_client_in_place(there),
            true => self.session.on_client(there),
            false => self.session.on_upstream(there),
        };
        self.reach.step(step);
        let name = if of_client { "client" } else { "upstream" };
        self.note(|| format!("  {name}, {shown} bytes: {step:?}"));
        let mut to_upstream = std::mem::take(self.session.to_upstream());
        let mut to_client = std::mem::take(self.session.to_client());
        // A driver need not have asked.
        let is_silent = said == [to_upstream.len(), to_client.len()];
        let is_silent = is_silent && matches!(step, Step::More { .. } | Step::Blocked);
        assert!(is_silent || !is_over, "says {step:?} to nothing");
        for event in self.session.events().drain(..) {
            self.reach.event(event.outcome);
        }
        let out = (&mut to_upstream, &mut to_client);
        let moved = self.carry_out(step, (of_client, shown), out);
        self.pass_on(&to_upstream, &to_client);
        moved || !to_upstream.is_empty()
    }

    /// Does what the session has said of so many bytes of a side; whether something has moved.
    fn carry_out(
        &mut self,
        step: Step,
        (of_client, shown): (bool, usize),
        (to_upstream, to_client): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> bool {
        match step {
            Step::Forward(count) => {
                assert!(count > 0, "nothing is forwarded for ever");
                self.reach.note("rewrites where it lies", count > shown);
                let (side, out) = match of_client {
                    true => (&mut self.client, to_upstream),
                    false => (&mut self.upstream, to_client),
                };
                out.extend(side.shown.drain(..count));
                true
            }
            Step::Consumed(count) => {
                self.drop_front(of_client, count);
                true
            }
            Step::More { at_least } => {
                assert!(at_least > shown, "{at_least} bytes wanted, {shown} there");
                let chunks = self.of.circumstances.chunks;
                let (side, random) = match of_client {
                    true => (&mut self.client, &mut self.random),
                    false => (&mut self.upstream, &mut self.random),
                };
                side.show(chunks, at_least, random)
            }
            Step::Blocked => false,
            Step::Wait if self.session.awaited_answer().is_some() => {
                self.ask_about_new_tables();
                true
            }
            Step::Wait => {
                self.is_waiting = true;
                false
            }
            Step::Keys(request) => {
                let keys = self.keys(request);
                self.session.on_keys(keys);
                true
            }
            Step::Authenticate(count) => {
                self.drop_front(true, count);
                self.authenticate();
                true
            }
            Step::Show(count) => {
                self.drop_front(true, count);
                self.show();
                to_client.append(self.session.to_client());
                true
            }
            Step::Close => {
                self.is_closed = true;
                false
            }
        }
    }

    fn drop_front(&mut self, of_client: bool, count: usize) {
        let side = match of_client {
            true => &mut self.client,
            false => &mut self.upstream,
        };
        assert!(
            count <= side.shown.len(),
            "{count} bytes of {}",
            side.shown.len()
        );
        side.shown.drain(..count);
    }

    fn pass_on(&mut self, to_upstream: &[u8], to_client: &[u8]) {
        if !to_client.is_empty() {
            self.note(|| format!("    to the client: {}", shown(to_client)));
            self.got.extend(to_client);
        }
        if to_upstream.is_empty() {
            return;
        }
        self.note(|| format!("    to the upstream: {}", shown(to_upstream)));
        self.reach.upstream(to_upstream);
        let answers = &mut self.upstream.coming;
        self.server.hear(to_upstream, answers);
        if self.of.circumstances.chunks == Chunks::Whole {
            self.upstream.show(Chunks::Whole, 0, &mut self.random);
        }
    }
}
