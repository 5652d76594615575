//! From a name to its declaration, its type, its uses, and the other ends of its channel.

use crate::program::{Location, Program};
use crate::scopes::Resolution;
use crate::workspace::Workspace;
use quaject_esp_syntax::check::DefinitionKind;
use quaject_esp_syntax::hir::{ChannelId, Direction, Process};
use quaject_esp_syntax::span::{FileId, Span};
use quaject_esp_syntax::types::{Type, TypeId};
use std::collections::BTreeSet;

/// A use of the name at the cursor in the same file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Highlight {
    /// First byte and one past the last.
    pub range: (u32, u32),
    /// Whether it is the declaration.
    pub is_declaration: bool,
}

impl Workspace {
    /// The declaration of the name at a place, or the file of an import.
    pub fn definition(&self, path: &str, offset: u32) -> Option<Location> {
        self.imported_file(path, offset).or_else(|| Some(self.symbol(path, offset)?.declared()))
    }

    /// The declaration of the name at a place as the checker resolves it: none where errors keep it from that.
    pub fn declaration(&self, path: &str, offset: u32) -> Option<Location> {
        Some(self.resolved(path, offset)?.declared())
    }

    fn imported_file(&self, path: &str, offset: u32) -> Option<Location> {
        self.programs_with(path).find_map(|(program, file)| {
            let holds = |span: Span| span.file == file && (span.start..=span.end).contains(&offset);
            let import = program.inspection.names.imports.iter().find(|import| holds(import.path))?;
            Some(program.location(Span::new(import.file, 0, 0)))
        })
    }

    /// The declaration of the type of the name at a place, if the type has a name.
    pub fn type_definition(&self, path: &str, offset: u32) -> Option<Location> {
        let symbol = self.symbol(path, offset)?;
        if symbol.definition().kind == DefinitionKind::Type {
            return Some(symbol.declared());
        }
        let name = type_name(symbol.program, symbol.definition().ty?)?;
        let definitions = symbol.program.inspection.names.definitions.iter();
        let mut types = definitions.filter(|known| known.kind == DefinitionKind::Type);
        // The name of a type of a module has that of the module in front.
        let found = types.find(|known| name == known.name || name.ends_with(&format!("_{}", known.name)))?;
        Some(symbol.program.location(found.span))
    }

    /// The places where partners communicate with the operation at a place; at the name of a channel elsewhere, all
    /// operations on it. Sorted.
    pub fn peers(&self, path: &str, offset: u32) -> Vec<Location> {
        let mut peers = BTreeSet::new();
        for (program, file) in self.programs_with(path) {
            let (channels, direction) = channels_at(program, file, offset);
            let sites = processes(program).flat_map(|process| &process.sites);
            let wanted = sites.filter(|site| channels.contains(&site.channel) && Some(site.direction) != direction);
            peers.extend(wanted.map(|site| program.location(site.span)));
        }
        peers.into_iter().collect()
    }

    /// The places of the name at a place in all programs, sorted.
    pub fn references(&self, path: &str, offset: u32, with_declaration: bool) -> Vec<Location> {
        self.symbol(path, offset).map_or_else(Vec::new, |symbol| self.references_to(&symbol, with_declaration))
    }

    pub(crate) fn references_to(&self, symbol: &Resolution, with_declaration: bool) -> Vec<Location> {
        let declared = symbol.declared();
        let mut places = BTreeSet::new();
        for program in self.programs() {
            let names = &program.inspection.names;
            let number = program.span(&declared).and_then(|span| names.definition(span));
            places
                .extend(number.into_iter().flat_map(|number| names.uses_of(number)).map(|span| program.location(span)));
        }
        if with_declaration {
            places.insert(declared);
        }
        places.into_iter().collect()
    }

    /// The places of the name at a place in its own file, sorted.
    pub fn highlights(&self, path: &str, offset: u32) -> Vec<Highlight> {
        let Some(symbol) = self.symbol(path, offset) else { return Vec::new() };
        let declared = symbol.declared();
        let own = self.references_to(&symbol, true).into_iter().filter(|place| place.path == path);
        own.map(|place| Highlight { range: place.range, is_declaration: place == declared }).collect()
    }
}

/// The channels of the operation at a place and its direction, or those that the name there means.
fn channels_at(program: &Program, file: FileId, offset: u32) -> (BTreeSet<ChannelId>, Option<Direction>) {
    let sites = || processes(program).flat_map(|process| &process.sites);
    let place = |span: Span| program.sources.origin(span);
    let around = sites().filter(|site| {
        let span = place(site.span);
        span.file == file && (span.start..=span.end).contains(&offset)
    });
    // Of operations inside of each other, the innermost.
    let length = |span: Span| span.end - span.start;
    if let Some(inner) = around.clone().min_by_key(|site| length(site.span)) {
        let same = around.filter(|site| place(site.span) == place(inner.span));
        return (same.map(|site| site.channel).collect(), Some(inner.direction));
    }
    let Some((number, _)) = program.inspection.names.at(file, offset) else { return (BTreeSet::new(), None) };
    let declared = program.inspection.names.definitions[number].span;
    let channels = program.inspection.program.channels.iter().enumerate();
    let named = channels.filter(|(_, channel)| place(channel.span) == declared);
    (named.map(|(number, _)| ChannelId(number as u32)).collect(), None)
}

/// All processes of a program, environments of models included.
pub(crate) fn processes(program: &Program) -> impl Iterator<Item = &Process> + Clone {
    let known = &program.inspection.program;
    known.processes.iter().chain(known.models.iter().flat_map(|model| &model.environment))
}

/// The name of a type, or of the elements of an array.
fn type_name(program: &Program, ty: TypeId) -> Option<String> {
    let types = &program.inspection.program.types;
    if let Some(enumeration) = types.enumeration(ty) {
        return Some(enumeration.name.to_string());
    }
    match types.get(ty) {
        Type::Boxed(pool) => Some(types.pool(*pool).name.to_string()),
        Type::Record(id) | Type::Union(id) => types.aggregate(*id).name.as_ref().map(ToString::to_string),
        Type::Array { element, .. } => type_name(program, *element),
        Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => None,
    }
}
