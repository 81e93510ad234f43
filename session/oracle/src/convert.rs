//! Values of the interface as the earlier commit has them, and its answers as the one that stands has them.

use std::sync::Arc;

use keywright_core::KeyBatch;

pub(crate) fn form(form: keywright_rewrite::KeyForm) -> before_rewrite::KeyForm {
    match form {
        keywright_rewrite::KeyForm::Integer => before_rewrite::KeyForm::Integer,
        keywright_rewrite::KeyForm::Text => before_rewrite::KeyForm::Text,
        keywright_rewrite::KeyForm::Bytes => before_rewrite::KeyForm::Bytes,
    }
}

pub(crate) fn mode(mode: now::Mode) -> before::Mode {
    match mode {
        now::Mode::Rewrite => before::Mode::Rewrite,
        now::Mode::Observe => before::Mode::Observe,
    }
}

pub(crate) fn pattern(pattern: &now::Pattern) -> before::Pattern {
    let text = format!("{}.{}", pattern.schema(), pattern.table());
    before::Pattern::parse(&text).expect("it was a pattern")
}

pub(crate) fn rule(rule: &now::Rule) -> before::Rule {
    before::Rule {
        table: pattern(&rule.table),
        column: rule.column.clone(),
        form: form(rule.form),
        on_explicit: match rule.on_explicit {
            now::OnExplicit::Keep => before::OnExplicit::Keep,
            now::OnExplicit::Refuse => before::OnExplicit::Refuse,
        },
        on_unsupported: match rule.on_unsupported {
            now::OnUnsupported::Refuse => before::OnUnsupported::Refuse,
            now::OnUnsupported::Pass => before::OnUnsupported::Pass,
        },
        on_ambiguous_id: match rule.on_ambiguous_id {
            now::OnAmbiguousId::First => before::OnAmbiguousId::First,
            now::OnAmbiguousId::Refuse => before::OnAmbiguousId::Refuse,
        },
        several_rows: match rule.several_rows {
            now::SeveralRows::Spaced => before::SeveralRows::Spaced,
            now::SeveralRows::Refused => before::SeveralRows::Refused,
            now::SeveralRows::Apart => before::SeveralRows::Apart,
        },
        mode: mode(rule.mode),
        bits_max: rule.bits_max,
        keys_max: rule.keys_max,
        watched: rule.watched,
        repeatable: rule.repeatable,
        is_steady: rule.is_steady,
        is_signed: rule.is_signed,
        is_auto_increment: rule.is_auto_increment,
    }
}

pub(crate) fn view(view: &now::View) -> before::View {
    before::View {
        schema: view.schema.clone(),
        name: view.name.clone(),
        rule: view.rule,
        key: match &view.key {
            now::ViewKey::Column(name) => before::ViewKey::Column(name.clone()),
            now::ViewKey::Unsupported(what) => before::ViewKey::Unsupported(what),
        },
    }
}

pub(crate) fn table(table: &now::TableSnapshot) -> before::TableSnapshot {
    before::TableSnapshot {
        schema: table.schema.clone(),
        name: table.name.clone(),
        key_column: match table.key_column {
            now::KeyColumnState::Present => before::KeyColumnState::Present,
            now::KeyColumnState::TooNarrow => before::KeyColumnState::TooNarrow,
            now::KeyColumnState::Missing => before::KeyColumnState::Missing,
            now::KeyColumnState::NoTable => before::KeyColumnState::NoTable,
        },
        is_not_null: table.is_not_null,
        traits: table.traits.map(|of| before::TableTraits {
            watched: of.watched,
            repeatable: of.repeatable,
            is_steady: of.is_steady,
            is_signed: of.is_signed,
            is_auto_increment: of.is_auto_increment,
        }),
    }
}

pub(crate) fn met(table: &now::MetTable) -> before::MetTable {
    before::MetTable {
        server: Arc::clone(&table.server),
        schema: table.schema.clone(),
        name: table.name.clone(),
        column: table.column.clone(),
    }
}

pub(crate) fn admission(admission: &now::RuleAdmission) -> before::RuleAdmission {
    before::RuleAdmission {
        name: admission.name.clone(),
        is_held: admission.is_held,
        waits_for_store: admission.waits_for_store,
        is_switched: admission.is_switched,
        servers: admission.servers.clone(),
    }
}

pub(crate) fn facts(facts: &now::SessionFacts) -> before::SessionFacts {
    before::SessionFacts {
        server: before_rewrite::Server {
            flavour: match facts.server.flavour {
                keywright_rewrite::Flavour::MySql => before_rewrite::Flavour::MySql,
                keywright_rewrite::Flavour::MariaDb => before_rewrite::Flavour::MariaDb,
            },
            version: facts.server.version,
        },
        capabilities: facts.capabilities,
        collation: facts.collation,
        user: facts.user.clone(),
        database: facts.database.clone(),
        status: facts.status,
        limits: before::Limits {
            rewrite_bytes_max: facts.limits.rewrite_bytes_max,
            statements_max: facts.limits.statements_max,
            select_rows_max: facts.limits.select_rows_max,
        },
    }
}

pub(crate) fn keys(
    keys: &Result<KeyBatch, now::KeyFailure>,
) -> Result<before_core::KeyBatch, before::KeyFailure> {
    match keys {
        Ok(KeyBatch::Numbers {
            first,
            spacing,
            count,
        }) => Ok(before_core::KeyBatch::Numbers {
            first: *first,
            spacing: *spacing,
            count: *count,
        }),
        Ok(KeyBatch::Listed(numbers)) => Ok(before_core::KeyBatch::Listed(numbers.clone())),
        Ok(KeyBatch::Texts(texts)) => Ok(before_core::KeyBatch::Texts(texts.clone())),
        Ok(KeyBatch::Bytes(bytes)) => Ok(before_core::KeyBatch::Bytes(bytes.clone())),
        Err(failure) => Err(before::KeyFailure {
            cause: cause(failure.cause),
            message: failure.message.clone(),
        }),
    }
}

fn cause(cause: keywright_core::Cause) -> before_core::Cause {
    let mut causes = before_core::Cause::OF_PROXY.into_iter();
    let same = causes.find(|other| other.name() == cause.name());
    same.expect("sources of keys fail for causes of the proxy")
}

pub(crate) fn list(list: &now::List) -> before::List {
    before::List {
        columns: list.columns,
        rows: list.rows.clone(),
    }
}

pub(crate) fn step(step: before::Step) -> now::Step {
    match step {
        before::Step::Forward(count) => now::Step::Forward(count),
        before::Step::Consumed(count) => now::Step::Consumed(count),
        before::Step::More { at_least } => now::Step::More { at_least },
        before::Step::Blocked => now::Step::Blocked,
        before::Step::Keys(request) => now::Step::Keys(now::KeyRequest {
            rule: request.rule,
            count: request.count,
            contiguous: request.contiguous,
        }),
        before::Step::Wait => now::Step::Wait,
        before::Step::Authenticate(count) => now::Step::Authenticate(count),
        before::Step::Show(count) => now::Step::Show(count),
        before::Step::Close => now::Step::Close,
    }
}

pub(crate) fn event(event: before::Event) -> now::Event {
    now::Event {
        rule: event.rule,
        outcome: match event.outcome {
            before::StatementOutcome::Rewritten => now::StatementOutcome::Rewritten,
            before::StatementOutcome::Observed => now::StatementOutcome::Observed,
            before::StatementOutcome::Native(rows) => now::StatementOutcome::Native(rows),
            before::StatementOutcome::Refused(construct) => {
                now::StatementOutcome::Refused(construct)
            }
            before::StatementOutcome::Passed(construct) => now::StatementOutcome::Passed(construct),
        },
    }
}

pub(crate) fn update(update: before::RulesUpdate) -> now::RulesUpdate {
    match update {
        before::RulesUpdate::Taken => now::RulesUpdate::Taken,
        before::RulesUpdate::AfterTransaction => now::RulesUpdate::AfterTransaction,
        before::RulesUpdate::AfterCommand => now::RulesUpdate::AfterCommand,
        before::RulesUpdate::Impossible => now::RulesUpdate::Impossible,
    }
}

pub(crate) fn rest(rest: before::Rest) -> now::Rest {
    match rest {
        before::Rest::Busy => now::Rest::Busy,
        before::Rest::Perhaps(parts) => now::Rest::Perhaps(parts),
        before::Rest::Yes => now::Rest::Yes,
    }
}

pub(crate) fn listing(listing: before::Listing) -> now::Listing {
    match listing {
        before::Listing::Status => now::Listing::Status,
        before::Listing::Rules => now::Listing::Rules,
        before::Listing::Sources => now::Listing::Sources,
        before::Listing::Connections => now::Listing::Connections,
    }
}
