//! What the extension says is ASCII. A server takes its texts for texts in the database's encoding: where that is not UTF-8, other characters are garbled, or
//! the client gets an error about them in place of the text.

use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Sources whose texts go through a PostgreSQL server.
const SOURCES: [&str; 2] = ["pg_ext/src", "core/src"];
/// What such a server reads itself.
const SCRIPTS: [&str; 1] = ["sql/postgres"];

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Whether these are the tokens of an attribute that documents something, which a comment is, too.
fn is_documentation(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket && first.is_some_and(|first| first.to_string() == "doc")
}

/// Adds the literals that are not ASCII, with their lines.
fn add_literals(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                if !is_documentation(&group) {
                    add_literals(group.stream(), found);
                }
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if !text.is_ascii() {
                    found.push((literal.span().start().line, text));
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// The literals of a source that are not ASCII, with their lines.
fn literals(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    add_literals(source.parse().unwrap(), &mut found);
    found
}

/// Calls `look` with the name and the text of each file below a directory that has the extension.
fn each_file(dir: &Path, extension: &str, look: &mut impl FnMut(String, String)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, extension, look);
        } else if path.extension().is_some_and(|its| its == extension) {
            let name = path.strip_prefix(workspace()).unwrap().to_string_lossy();
            look(name.into_owned(), fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn what_the_extension_says_is_ascii() {
    let (mut files, mut found) = (0, Vec::new());
    for dir in SOURCES {
        each_file(
            &workspace().join(dir),
            "rs",
            &mut |name: String, text: String| {
                files += 1;
                let here = literals(&text).into_iter();
                found.extend(here.map(|(line, literal)| format!("{name}:{line}: {literal}")));
            },
        );
    }
    for dir in SCRIPTS {
        each_file(
            &workspace().join(dir),
            "sql",
            &mut |name: String, text: String| {
                files += 1;
                let lines = text.lines().zip(1..).filter(|(line, _)| !line.is_ascii());
                found.extend(lines.map(|(line, number)| format!("{name}:{number}: {line}")));
            },
        );
    }
    assert!(files > 100, "only {files} files were read");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_literal_is_found_wherever_it_stands() {
    let source = "//! Of this and that, …\n/// likewise …\n#[error(\"a …\")]\nstruct A; // …\nfn f() {\n    g!(\"b\", 'é', \"…\")\n}";
    let found = literals(source);
    assert_eq!(
        found,
        [
            (3, "\"a …\"".to_owned()),
            (6, "'é'".to_owned()),
            (6, "\"…\"".to_owned())
        ]
    );
}
