//! Renaming. The texts as they would be are analysed: every name has to mean afterwards what it meant before, and there
//! may be no problem more. So a name that would hide another or be hidden is refused, however scopes work.

use crate::edits::{Edit, apply, moved};
use crate::program::{Location, Program};
use crate::scopes::Resolution;
use crate::workspace::Workspace;
use quaject_esp_syntax::check::DefinitionKind;
use quaject_esp_syntax::lexer::tokenize;
use quaject_esp_syntax::span::{FileId, Span};
use quaject_esp_syntax::standard;
use quaject_esp_syntax::tree::SyntaxKind;
use std::collections::{BTreeMap, BTreeSet};

/// Why a name cannot be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenameError {
    /// The cause.
    pub cause: String,
    /// The way out.
    pub help: String,
}

impl RenameError {
    fn new(cause: impl Into<String>, help: impl Into<String>) -> RenameError {
        RenameError { cause: cause.into(), help: help.into() }
    }
}

impl Workspace {
    /// The name at a place that can be changed: its range.
    pub fn prepare_rename(&self, path: &str, offset: u32) -> Result<(u32, u32), RenameError> {
        let symbol = self.renamed(path, offset)?;
        Ok((symbol.span.start, symbol.span.end))
    }

    /// The replacements that give a declaration another name, by file.
    pub fn rename(&self, path: &str, offset: u32, name: &str) -> Result<BTreeMap<String, Vec<Edit>>, RenameError> {
        let symbol = self.renamed(path, offset)?;
        let definition = symbol.definition();
        check_name(name, definition.kind)?;
        let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
        if definition.name == name {
            return Ok(edits);
        }
        for Location { path, range } in self.references_to(&symbol, true) {
            edits.entry(path).or_default().push(Edit::new(range.0..range.1, name));
        }
        self.verify(&symbol, name, &edits)?;
        Ok(edits)
    }

    fn renamed<'w>(&'w self, path: &'w str, offset: u32) -> Result<Resolution<'w>, RenameError> {
        let Some(symbol) = self.resolved(path, offset) else {
            return Err(RenameError::new("there is no declared name here", "put the cursor on a name of the program"));
        };
        let (definition, declared) = (symbol.definition(), symbol.declared());
        if declared.path.starts_with(standard::PREFIX) {
            let cause = format!("`{}` belongs to the standard module `{}`", definition.name, declared.path);
            return Err(RenameError::new(cause, "standard modules are part of the compiler"));
        }
        if definition.kind == DefinitionKind::Extern {
            let cause = format!("`{}` is the name of a C function", definition.name);
            return Err(RenameError::new(cause, "rename it in C and here by hand"));
        }
        Ok(symbol)
    }

    /// Whether the programs mean the same with other names.
    fn verify(&self, symbol: &Resolution, name: &str, edits: &BTreeMap<String, Vec<Edit>>) -> Result<(), RenameError> {
        let old = &symbol.definition().name;
        let texts: Option<BTreeMap<String, String>> =
            edits.iter().map(|(path, edits)| Some((path.clone(), apply(&self.text(path)?, edits)))).collect();
        let Some(texts) = texts else {
            return Err(RenameError::new("a file with this name cannot be read", "save it, and try again"));
        };
        for (before, after) in self.with_texts(&texts) {
            if let Some((property, span)) = property_with(before, old, name) {
                let location = before.location(span);
                let cause = format!("`{old}` or `{name}` is in a property: {property}");
                return Err(RenameError::new(
                    cause,
                    format!("rename by hand, with the property in `{}`", location.path),
                ));
            }
            if codes(&before.inspection.diagnostics) != codes(&after.inspection.diagnostics) {
                let news = after.inspection.diagnostics.iter().find(|news| {
                    let same = |known: &&_| known_message(known) == known_message(news);
                    !before.inspection.diagnostics.iter().any(|known| same(&known))
                });
                let problem = news.map_or_else(String::new, |news| format!(": {}", news.message));
                let cause = format!("with the name `{name}`, `{}` would have a problem{problem}", before.root);
                return Err(RenameError::new(cause, "choose another name"));
            }
            if meanings(before, |path, offset| edits.get(path).map_or(offset, |edits| moved(offset, edits)))
                != meanings(&after, |_, offset| offset)
            {
                let cause = format!("with the name `{name}`, some names would mean another declaration than before");
                return Err(RenameError::new(cause, "choose another name"));
            }
        }
        Ok(())
    }
}

fn known_message(diagnostic: &quaject_esp_syntax::diagnostics::Diagnostic) -> (&'static str, &str) {
    (diagnostic.code.name(), &diagnostic.message)
}

/// A name is an identifier that is no reserved word.
fn check_name(name: &str, kind: DefinitionKind) -> Result<(), RenameError> {
    let (tokens, faults) = tokenize(FileId(0), name);
    let is_number = kind == DefinitionKind::Label && matches!(tokens.first(), Some(t) if t.kind == SyntaxKind::Int);
    let is_name = matches!(tokens.as_slice(), [first, end] if end.kind == SyntaxKind::EndOfFile
        && (first.kind == SyntaxKind::Ident || is_number));
    if is_name && faults.is_empty() {
        return Ok(());
    }
    let cause = format!("`{name}` is not a name");
    Err(RenameError::new(cause, "a name has letters, digits and `_`, no digit first, and is no reserved word"))
}

/// The first property of a model that has one of two words: its text names processes, variables and labels.
fn property_with<'p>(program: &'p Program, old: &str, new: &str) -> Option<(&'p str, Span)> {
    let models = program.inspection.program.models.iter();
    let mut properties = models.flat_map(|model| model.properties.iter().zip(&model.property_spans));
    let has_word = |text: &str| {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == old || word == new)
    };
    properties.find(|(text, _)| has_word(text)).map(|(text, span)| (text.as_str(), *span))
}

fn codes(diagnostics: &[quaject_esp_syntax::diagnostics::Diagnostic]) -> BTreeMap<&'static str, usize> {
    let mut codes = BTreeMap::new();
    for diagnostic in diagnostics {
        *codes.entry(diagnostic.code.name()).or_default() += 1;
    }
    codes
}

/// Which place means which declaration, with offsets as a function gives them.
fn meanings(program: &Program, place: impl Fn(&str, u32) -> u32) -> BTreeSet<(&str, u32, &str, u32)> {
    let names = &program.inspection.names;
    let at = |span: Span| {
        let path = program.sources.file(span.file).name.as_str();
        (path, place(path, span.start))
    };
    let uses = names.uses.iter().map(|used| (used.span, names.definitions[used.definition].span));
    let declarations = names.definitions.iter().map(|known| (known.span, known.span));
    uses.chain(declarations)
        .map(|(used, declared)| {
            let ((path, offset), (declared_path, declared)) = (at(used), at(declared));
            (path, offset, declared_path, declared)
        })
        .collect()
}
