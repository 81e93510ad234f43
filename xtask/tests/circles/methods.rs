//! Methods of types that have some in several files: which file calls one of another.
//!
//! A call shows no type. It is taken for a method of a type where the receiver is `self` in a block of the type, or a
//! variable or field that is named as the type is (`connection` for `Connection`), or where a path names the type.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, ImplItem, Item, ItemImpl, ItemMod, Member};

use crate::graph::{Crate, Module, attributes, is_for_tests};

/// A type as a module names it.
type Path = Vec<String>;

/// What the modules of a crate have of methods.
#[derive(Default)]
pub(crate) struct Methods {
    /// Methods of blocks without a trait.
    written: Vec<(Module, Path, String)>,
    called: Vec<(Module, Path, String)>,
}

impl Methods {
    /// Reads an item of a module.
    pub(crate) fn read(&mut self, module: &Module, item: &Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        let mut reader = Reader {
            of: self,
            module,
            within: None,
        };
        reader.visit_item(item);
    }

    /// Who calls what of whom: a module, the module that has the method, and the call.
    pub(crate) fn needs(&self, of: &Crate) -> Vec<(Module, Module, String)> {
        let mut homes: BTreeMap<(Module, &str), BTreeMap<&str, BTreeSet<&Module>>> =
            BTreeMap::new();
        for (module, path, method) in &self.written {
            if let (Some(home), Some(name)) = (of.home(module, path), path.last()) {
                let methods = homes.entry((home, name)).or_default();
                methods.entry(method).or_default().insert(module);
            }
        }
        let mut needs = Vec::new();
        for (module, path, method) in &self.called {
            let (Some(home), Some(name)) = (of.home(module, path), path.last()) else {
                continue;
            };
            let written = homes
                .get(&(home, name.as_str()))
                .and_then(|methods| methods.get(method.as_str()));
            for target in written.into_iter().flatten() {
                needs.push((
                    module.clone(),
                    (*target).clone(),
                    format!("{name}::{method}()"),
                ));
            }
        }
        needs
    }
}

/// Reads what the code of one module writes and calls.
struct Reader<'a> {
    of: &'a mut Methods,
    module: &'a Module,
    /// The type whose block is read.
    within: Option<Path>,
}

impl Reader<'_> {
    fn call(&mut self, of: Path, method: String) {
        self.of.called.push((self.module.clone(), of, method));
    }

    /// The type that a receiver is taken for.
    fn type_of(&self, receiver: &Expr) -> Option<Path> {
        let name = match receiver {
            Expr::Path(path) => path.path.get_ident()?.to_string(),
            Expr::Field(field) => match &field.member {
                Member::Named(name) => name.to_string(),
                Member::Unnamed(_) => return None,
            },
            Expr::Reference(reference) => return self.type_of(&reference.expr),
            Expr::Paren(paren) => return self.type_of(&paren.expr),
            _ => return None,
        };
        match name.as_str() {
            "self" => self.within.clone(),
            _ => Some(vec![camel(&name)]),
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    /// Read by itself.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let syn::Type::Path(own) = &*item.self_ty else {
            return visit::visit_item_impl(self, item);
        };
        let path = names(&own.path);
        if item.trait_.is_none() {
            for method in &item.items {
                if let ImplItem::Fn(method) = method {
                    let name = method.sig.ident.to_string();
                    self.of
                        .written
                        .push((self.module.clone(), path.clone(), name));
                }
            }
        }
        let before = self.within.replace(path);
        visit::visit_item_impl(self, item);
        self.within = before;
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if let Some(path) = self.type_of(&call.receiver) {
            self.call(path, call.method.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let mut of = names(&path.path);
        if let (Some(method), Some(name)) = (of.pop(), of.last()) {
            let of = match (name.as_str(), &self.within) {
                ("Self", Some(own)) => own.clone(),
                _ => of,
            };
            self.call(of, method);
        }
        visit::visit_expr_path(self, path);
    }
}

fn names(path: &syn::Path) -> Path {
    let parts = path.segments.iter();
    parts.map(|part| part.ident.to_string()).collect()
}

/// A type's name from a variable's: `key_batch` is a `KeyBatch`.
fn camel(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}
