//! Views through which rows get no key, or may not.

use keywright_session::{OnUnsupported, ROWS_FIRST, View, ViewKey};

use crate::schema::finding::{Finding, OfTable, Severity};
use crate::schema::matched::Matched;
use crate::schema::snapshot::ListedView;
use crate::schema::views::may_call;

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let unseen = unseen(matched).map(|what| Severity::Warning.of(what));
    let other = Severity::Warning.of_each(other(matched).into_iter());
    let unsupported = Severity::Warning.of_each(unsupported(matched));
    let findings = unseen.into_iter().chain(calling(matched)).chain(other);
    findings.chain(unsupported).collect()
}

/// Views whose definitions may not be seen: what is behind them is not known.
fn unseen(matched: &Matched<'_>) -> Option<String> {
    let views = &matched.snapshot.context.as_ref()?.views;
    let mut unseen = views.iter().filter(|view| view.definition.is_empty());
    let ListedView { schema, name, .. } = unseen.next()?;
    let more = unseen.count();
    Some(format!(
        "{schema}.{name} and {more} more views may not be seen, which takes SHOW VIEW: an INSERT through one gets no key from \
         the program, and INSERT … SELECT and LOAD DATA are not tried twice"
    ))
}

/// Views that call functions: for a single one no statement is tried again, whatever it reads.
fn calling(matched: &Matched<'_>) -> Option<Finding> {
    let mut rules = matched.config.rules.iter();
    let refuses = rules.any(|its| its.rule.on_unsupported == OnUnsupported::Refuse);
    let context = matched.snapshot.context.as_ref().filter(|_| refuses)?;
    let views = context.views.iter();
    let names: Vec<String> = views
        .filter(|view| !view.definition.is_empty())
        .filter(|view| may_call(&view.definition, &context.functions))
        .map(|view| format!("{}.{}", view.schema, view.name))
        .collect();
    let what = format!(
        "views call stored functions, or others whose effect stays, so that INSERT … SELECT without a LIMIT of {ROWS_FIRST} at most, and LOAD DATA of a \
         file of the server's, are refused on all tables with a rule"
    );
    (!names.is_empty()).then(|| Severity::Warning.of_all(&what, names))
}

/// Views that a rule matches, of no table with one.
fn other(matched: &Matched<'_>) -> Vec<OfTable> {
    let others = matched.other_views().into_iter();
    others
        .filter(|other| other.has_column)
        .filter_map(|other| {
            let ListedView { schema, name, .. } = other.view;
            let rule = matched.rules.rules().get(other.rule)?;
            let view = format!("{schema}.{name}");
            let message = format!(
                "{view} matches a rule and is a view, of no table with one: what it shows as {} gets keys, \
                 and has no fence",
                rule.column
            );
            Some(OfTable::new(&view, message))
        })
        .collect()
}

/// Views through which no row can get a key.
fn unsupported(matched: &Matched<'_>) -> impl Iterator<Item = OfTable> {
    matched.views.iter().filter_map(|view| {
        let View { schema, name, .. } = view;
        let ViewKey::Unsupported(what) = view.key else {
            return None;
        };
        let rule = matched.rules.rules().get(view.rule);
        let becomes = match rule.map(|rule| rule.on_unsupported) {
            Some(OnUnsupported::Pass) => "is passed on without one",
            Some(OnUnsupported::Refuse) | None => "is refused",
        };
        let view = format!("{schema}.{name}");
        let message = format!("an INSERT through {view}, a view {what}, gets no key and {becomes}");
        Some(OfTable::new(&view, message))
    })
}
