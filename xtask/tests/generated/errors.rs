//! The page of errors is made of the table of causes: names and codes by its functions, what they mean by its comments.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context as _;
use keywright_core::Cause;
use keywright_testkit::docs::{generated_part, table};
use keywright_testkit::{Result, workspace_root};
use syn::{Expr, ExprLit, Item, Lit, Meta};

#[test]
fn every_cause_is_documented() -> Result<()> {
    let meanings = meanings()?;
    let mut text = String::from("## PostgreSQL\n\n");
    text += &causes(&Cause::OF_POSTGRES, &meanings, &ON_POSTGRES)?;
    text += "\n## MySQL\n\n";
    // What the store's sources share with the extension comes to clients of the program, too.
    let shared = [
        Cause::TagUnknown,
        Cause::TagExhausted,
        Cause::RefillTimeout,
        Cause::Suspended,
    ];
    let of_proxy: Vec<Cause> = Cause::OF_PROXY.iter().chain(&shared).copied().collect();
    text += &causes(&of_proxy, &meanings, &ON_MYSQL)?;
    text += "\n## Key port\n\n";
    // And so do those that other listeners have.
    let shared = [
        Cause::TagUnknown,
        Cause::TagExists,
        Cause::TagInvalid,
        Cause::TagExhausted,
        Cause::RefillTimeout,
        Cause::Suspended,
        Cause::StoreUnavailable,
        Cause::TagOrdered,
        Cause::ArgumentOutOfRange,
        Cause::IdForeign,
        Cause::WorkerIdUnset,
        Cause::LeadExceeded,
        Cause::ClockBehind,
        Cause::MemoryFull,
        Cause::PacketTooLarge,
        Cause::ConnectionsFull,
        Cause::PacketMalformed,
        Cause::Draining,
    ];
    let of_port: Vec<Cause> = Cause::OF_PORT.iter().chain(&shared).copied().collect();
    text += &causes(&of_port, &meanings, &ON_PORT)?;
    generated_part("docs/reference/errors.md", "causes", &text)
}

/// How a cause is told, and what that is called.
struct Code {
    title: &'static str,
    of: fn(Cause) -> String,
}

const ON_POSTGRES: Code = Code {
    title: "SQLSTATE",
    of: |cause| cause.sqlstate().to_owned(),
};
const ON_MYSQL: Code = Code {
    title: "error, SQLSTATE",
    of: |cause| format!("{}, {}", cause.mysql_errno(), cause.sqlstate()),
};
const ON_PORT: Code = Code {
    title: "first word, HTTP",
    of: |cause| format!("`{}`, {}", cause.redis_code(), cause.http_status()),
};

fn causes(of: &[Cause], meanings: &BTreeMap<String, String>, code: &Code) -> Result<String> {
    let mut rows = Vec::new();
    for cause in of {
        let meaning = meanings.get(&format!("{cause:?}"));
        let meaning = meaning.filter(|text| !text.is_empty());
        let meaning = meaning.with_context(|| format!("{cause:?} has no comment"))?;
        let retry = if cause.retryable() { "yes" } else { "no" };
        rows.push([
            format!("`{}`", cause.name()),
            (code.of)(*cause),
            retry.to_owned(),
            meaning.clone(),
        ]);
    }
    Ok(table(["cause", code.title, "retry helps", "meaning"], rows))
}

/// The comments on causes.
fn meanings() -> Result<BTreeMap<String, String>> {
    let source = fs::read_to_string(workspace_root().join("core/src/cause.rs"))?;
    let items = syn::parse_file(&source)?.items;
    let causes = items.into_iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == "Cause" => Some(item),
        _ => None,
    });
    let variants = causes.context("no enum Cause")?.variants;
    let meaning = |variant: &syn::Variant| {
        let lines = variant
            .attrs
            .iter()
            .filter_map(|attribute| match &attribute.meta {
                Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                    Expr::Lit(ExprLit {
                        lit: Lit::Str(line),
                        ..
                    }) => Some(line.value().trim().to_owned()),
                    _ => None,
                },
                _ => None,
            });
        lines.collect::<Vec<_>>().join(" ")
    };
    Ok(variants
        .iter()
        .map(|variant| (variant.ident.to_string(), meaning(variant)))
        .collect())
}
