//! Files of one crate need one another in one direction only: no file imports or calls, by way of others, a file that needs it.

mod graph;
mod methods;

use std::fs;
use std::path::Path;

use graph::{Crate, Needs, circles};
use tempfile::TempDir;

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The directories of the workspace that hold a crate's sources, and the roots of its library and program.
fn roots() -> Vec<(String, std::path::PathBuf)> {
    let mut roots = Vec::new();
    for entry in fs::read_dir(workspace()).unwrap() {
        let dir = entry.unwrap().path();
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        for root in ["src/lib.rs", "src/main.rs"] {
            let root = dir.join(root);
            if root.exists() {
                roots.push((name.clone(), root));
            }
        }
    }
    roots.sort();
    roots
}

#[test]
fn no_crate_has_a_circle_of_imports() {
    let roots = roots();
    assert!(roots.len() >= 8, "{roots:?}");
    let mut found = Vec::new();
    for (name, root) in roots {
        let circles = circles(&Crate::read(&root).unwrap(), Needs::Imports);
        found.extend(circles.into_iter().map(|circle| (name.clone(), circle)));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Some sixty of its files have methods of one type: without this, any of them may call any other.
#[test]
fn the_session_has_no_circle_of_calls() {
    let root = workspace().join("session/src/lib.rs");
    let found = circles(&Crate::read(&root).unwrap(), Needs::ImportsAndCalls);
    assert!(found.is_empty(), "{found:#?}");
}

/// The files of a crate made for the purpose that lie in circles.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let dir = TempDir::new().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let read = Crate::read(&dir.path().join("lib.rs")).unwrap();
    let circles = circles(&read, Needs::ImportsAndCalls);
    circles.into_iter().map(|circle| circle.files).collect()
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let ways = [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use super::b;\nfn f() { b::g() }", "use crate::a::A;"),
        ("fn f() -> crate::b::B { loop {} }", "use super::{a::A};"),
        ("fn f() { assert!(crate::b::g()) }", "use crate::a::*;"),
        ("fn f() { super::b::g() }", "use crate::A;"),
    ];
    for (a, b) in ways {
        let found = circles_of(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::A;"),
            ("a.rs", a),
            ("b.rs", b),
        ]);
        assert_eq!(found, [["a.rs", "b.rs"]], "{a} {b}");
    }
    // A parent that needs its child's items, and the child the parent's.
    let found = circles_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod c;\nuse c::C;\npub struct A(C);"),
        ("a/c.rs", "use super::A;\npub struct C(Option<Box<A>>);"),
    ]);
    assert_eq!(found, [["a.rs", "a/c.rs"]]);
}

#[test]
fn a_circle_of_calls_is_found_where_a_type_has_methods_in_several_files() {
    let a = "use crate::of::Of;\nimpl Of { pub fn a(&self) { self.b() } }";
    let ways = [
        "use crate::of::Of;\nimpl Of { pub fn b(&self) { self.a() } }",
        "use crate::of::Of;\nimpl Of { pub fn b(&self) { Self::a(self) } }",
        "use crate::of::Of;\nimpl Of { pub fn b(&self) {} }\nfn g(of: &Of) { of.a() }",
        "use crate::of::Of;\nimpl Of { pub fn b(&self) {} }\nfn g(x: &X) { x.of.a() }",
        "use crate::of::Of;\nimpl Of { pub fn b(&self) { Of::a(self) } }",
    ];
    for b in ways {
        let found = circles_of(&[
            ("lib.rs", "mod of;\nmod a;\nmod b;"),
            ("of.rs", "pub struct Of;"),
            ("a.rs", a),
            ("b.rs", b),
        ]);
        assert_eq!(found, [["a.rs", "b.rs"]], "{b}");
    }
    // Another type's method of that name, and one of its own file.
    let others = [
        "pub struct Other;\nimpl Other { pub fn a(&self) { self.a() } }",
        "use crate::of::Of;\nimpl Of { pub fn b(&self) { self.c() }\nfn c(&self) {} }",
    ];
    for b in others {
        let found = circles_of(&[
            ("lib.rs", "mod of;\nmod a;\nmod b;"),
            ("of.rs", "pub struct Of;"),
            ("a.rs", a),
            ("b.rs", b),
        ]);
        assert_eq!(found, Vec::<Vec<String>>::new(), "{b}");
    }
}

#[test]
fn what_is_no_circle_is_not_taken_for_one() {
    // A facade hands on what its children have; they see each other past it. Tests may look anywhere.
    let found = circles_of(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b;\nmod c;\npub use b::B;\npub use c::C;"),
        (
            "a/b.rs",
            "pub struct B;\n#[cfg(test)]\nmod tests { use crate::a::c::C; }",
        ),
        ("a/c.rs", "use super::B;\npub struct C(B);"),
    ]);
    assert_eq!(found, Vec::<Vec<String>>::new());
}
