//! Which file of a crate needs which, as its sources say.
//!
//! A path is followed to the file that has the item: through re-exports, which are no need of whoever hands on. What is
//! compiled for tests only is not looked at. Of methods those are followed whose type is seen: see [`methods`](crate::methods).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

use crate::methods::Methods;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
/// The names of modules from the root on.
pub(crate) type Module = Vec<String>;

/// Paths deeper than this lead back to themselves.
const DEPTH_MAX: usize = 16;

/// The modules of a crate, and what each names.
#[derive(Default)]
pub(crate) struct Crate {
    base: PathBuf,
    /// The file of each module.
    files: BTreeMap<Module, PathBuf>,
    /// Names of what modules have of their own.
    items: BTreeMap<Module, BTreeSet<String>>,
    /// Names that modules import or hand on, with the path that each stands for.
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
    /// Modules of which all is imported.
    globs: BTreeMap<Module, Vec<Vec<String>>>,
    /// Paths that the code of a module names, imports that are not handed on among them.
    named: Vec<(Module, Vec<String>)>,
    methods: Methods,
}

/// Files that need one another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Circle {
    pub(crate) files: Vec<String>,
    /// Which needs which, and by what path.
    pub(crate) needs: Vec<String>,
}

/// What counts as needing another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Imports,
    ImportsAndCalls,
}

/// The circles of a crate.
pub(crate) fn circles(of: &Crate, needs: Needs) -> Vec<Circle> {
    let edges = of.edges(needs);
    let mut graph = DiGraphMap::<&str, ()>::new();
    for (from, to) in edges.keys() {
        graph.add_edge(from, to, ());
    }
    let parts = tarjan_scc(&graph).into_iter();
    let mut circles: Vec<Circle> = parts
        .filter(|files| files.len() > 1)
        .map(|part| {
            let mut files: Vec<String> = part.iter().map(ToString::to_string).collect();
            files.sort();
            let within = edges
                .iter()
                .filter(|((from, to), _)| files.contains(from) && files.contains(to));
            let needs = within.map(|((from, to), path)| format!("{from} -> {to}: {path}"));
            let needs = needs.collect();
            Circle { files, needs }
        })
        .collect();
    circles.sort();
    circles
}

impl Crate {
    /// Reads all files of the crate whose root this is.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let base = root.parent().ok_or("a root without a directory")?;
        let mut of = Self {
            base: base.to_owned(),
            ..Self::default()
        };
        of.file(root, base, Vec::new())?;
        Ok(of)
    }

    fn name(&self, file: &Path) -> String {
        let name = file.strip_prefix(&self.base).unwrap_or(file);
        name.to_string_lossy().into_owned()
    }

    /// Reads a module's file; the files of its children lie in `children`.
    fn file(&mut self, path: &Path, children: &Path, module: Module) -> Result<()> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let parsed =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        self.module(&parsed.items, path, children, module)
    }

    fn module(
        &mut self,
        items: &[Item],
        path: &Path,
        children: &Path,
        module: Module,
    ) -> Result<()> {
        self.files.insert(module.clone(), path.to_owned());
        for item in items {
            let Item::Mod(child) = item else { continue };
            if is_for_tests(&child.attrs) {
                continue;
            }
            let name = child.ident.to_string();
            let of_child = [module.as_slice(), std::slice::from_ref(&name)].concat();
            let below = children.join(&name);
            match &child.content {
                Some((_, items)) => self.module(items, path, &below, of_child)?,
                None => {
                    let beside = children.join(format!("{name}.rs"));
                    let file = if beside.exists() {
                        beside
                    } else {
                        below.join("mod.rs")
                    };
                    self.file(&file, &below, of_child)?;
                }
            }
        }
        let own = items.iter().filter_map(name_of).map(ToString::to_string);
        self.items.insert(module.clone(), own.collect());
        for item in items {
            self.methods.read(&module, item);
        }
        let mut reader = Reader { of: self, module };
        for item in items {
            reader.visit_item(item);
        }
        Ok(())
    }

    /// Which file needs which other, with a path that says so.
    fn edges(&self, needs: Needs) -> BTreeMap<(String, String), String> {
        let mut edges = BTreeMap::new();
        for (module, path) in &self.named {
            let Some(Target::Item(target)) = self.resolve(module, path, 0) else {
                continue;
            };
            if let (Some(from), Some(to)) = (self.files.get(module), self.files.get(&target))
                && from != to
            {
                edges.insert((self.name(from), self.name(to)), path.join("::"));
            }
        }
        let called = match needs {
            Needs::Imports => Vec::new(),
            Needs::ImportsAndCalls => self.methods.needs(self),
        };
        for (module, target, call) in called {
            if let (Some(from), Some(to)) = (self.files.get(&module), self.files.get(&target))
                && from != to
            {
                edges.insert((self.name(from), self.name(to)), call);
            }
        }
        edges
    }

    /// The module that has the type of this path.
    pub(crate) fn home(&self, module: &Module, path: &[String]) -> Option<Module> {
        let name = path.last()?;
        match self.resolve(module, path, 0) {
            Some(Target::Item(home)) => self.has(&home, name).then_some(home),
            Some(Target::Module) => None,
            None => (path.len() == 1 && self.has(module, name)).then(|| module.clone()),
        }
    }

    /// What a path stands for that begins in this module; `None`: something of another crate.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        if depth > DEPTH_MAX {
            return None;
        }
        match first.as_str() {
            "crate" => self.walk(Vec::new(), rest, depth),
            "self" => self.walk(module.clone(), rest, depth),
            "super" => {
                let mut above = module.clone();
                above.pop()?;
                match rest.first().map(String::as_str) {
                    Some("super") => self.resolve(&above, rest, depth + 1),
                    Some(_) | None => self.walk(above, rest, depth),
                }
            }
            _ => match self.imports.get(module).and_then(|names| names.get(first)) {
                Some(import) if import.first() != Some(first) || import.len() > 1 => {
                    let whole = [import.as_slice(), rest].concat();
                    self.resolve_import(module, &whole, depth + 1)
                }
                Some(_) | None => self
                    .child(module, first)
                    .and_then(|child| self.walk(child, rest, depth)),
            },
        }
    }

    /// An import's path, which may begin with a module beside it.
    fn resolve_import(&self, module: &Module, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" | "self" | "super" => self.resolve(module, path, depth),
            _ => self
                .child(module, first)
                .and_then(|child| self.walk(child, rest, depth)),
        }
    }

    fn has(&self, module: &Module, name: &str) -> bool {
        let items = self.items.get(module);
        items.is_some_and(|items| items.contains(name))
    }

    fn child(&self, module: &Module, name: &str) -> Option<Module> {
        let child = [module.as_slice(), &[name.to_owned()]].concat();
        self.files.contains_key(&child).then_some(child)
    }

    /// From a module on, by the rest of a path.
    fn walk(&self, module: Module, path: &[String], depth: usize) -> Option<Target> {
        let Some((first, rest)) = path.split_first() else {
            return Some(Target::Module);
        };
        if depth > DEPTH_MAX {
            return None;
        }
        if let Some(child) = self.child(&module, first) {
            return self.walk(child, rest, depth);
        }
        if self.has(&module, first) {
            return Some(Target::Item(module));
        }
        if let Some(import) = self.imports.get(&module).and_then(|names| names.get(first)) {
            let whole = [import.as_slice(), rest].concat();
            return self.resolve_import(&module, &whole, depth + 1);
        }
        for glob in self.globs.get(&module).into_iter().flatten() {
            let whole = [glob.as_slice(), path].concat();
            match self.resolve_import(&module, &whole, depth + 1) {
                Some(Target::Item(from)) if self.has(&from, first) => {
                    return Some(Target::Item(from));
                }
                Some(_) | None => {}
            }
        }
        Some(Target::Item(module))
    }
}

/// What a path stands for.
enum Target {
    /// Something in this module.
    Item(Module),
    /// A module, of which only what is named in it counts.
    Module,
}

/// Reads what the code of one module names.
struct Reader<'a> {
    of: &'a mut Crate,
    module: Module,
}

impl Reader<'_> {
    fn import(&mut self, tree: &UseTree, before: &[String], handed_on: bool) {
        match tree {
            UseTree::Path(path) => {
                let before = [before, &[path.ident.to_string()]].concat();
                self.import(&path.tree, &before, handed_on);
            }
            UseTree::Name(name) if name.ident == "self" => {
                let own = before.last().cloned().unwrap_or_default();
                self.imported(own, before.to_vec(), handed_on);
            }
            UseTree::Name(name) => {
                let own = name.ident.to_string();
                self.imported(own.clone(), [before, &[own]].concat(), handed_on);
            }
            UseTree::Rename(name) => {
                let path = [before, &[name.ident.to_string()]].concat();
                self.imported(name.rename.to_string(), path, handed_on);
            }
            UseTree::Glob(_) => {
                let globs = self.of.globs.entry(self.module.clone()).or_default();
                globs.push(before.to_vec());
                if !handed_on {
                    let something = [before, &["*".to_owned()]].concat();
                    self.of.named.push((self.module.clone(), something));
                }
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, handed_on);
                }
            }
        }
    }

    fn imported(&mut self, name: String, path: Vec<String>, handed_on: bool) {
        if !handed_on {
            self.of.named.push((self.module.clone(), path.clone()));
        }
        let imports = self.of.imports.entry(self.module.clone()).or_default();
        imports.insert(name, path);
    }

    /// Paths in the arguments of a macro, which nobody parses.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.named(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.named(&mut path);
                    self.tokens(group.stream());
                    colons = 0;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.named(&mut path);
                    colons = 0;
                }
            }
        }
        self.named(&mut path);
    }

    fn named(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.of.named.push((self.module.clone(), path));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    /// Read by itself.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let handed_on = !matches!(item.vis, syn::Visibility::Inherited);
        self.import(&item.tree, &[], handed_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut names = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        self.named(&mut names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

fn name_of(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Macro(item) => item.ident.as_ref(),
        // Others have no name that paths go by.
        _ => None,
    }
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        // Others stand in no test by themselves.
        _ => &[],
    }
}

pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|what| what.is_ident("test"))
    })
}
