//! What an editor shows of the name under the pointer: its declaration, its type, the ends of a channel, and the
//! comment above. Text in Markdown.

use crate::navigation::processes;
use crate::program::Program;
use crate::scopes::{Resolution, is_item, name_at};
use crate::workspace::Workspace;
use quaject_esp_syntax::check::DefinitionKind;
use quaject_esp_syntax::hir::{Boundary, ChannelId, Direction};
use quaject_esp_syntax::tree::{SyntaxKind, SyntaxNode, SyntaxToken};
use std::collections::BTreeSet;

/// What is known of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hover {
    /// The name: first byte and one past the last.
    pub range: (u32, u32),
    /// Markdown.
    pub text: String,
}

/// The number of lines of a declaration that are shown.
const MAX_LINES: usize = 12;

impl Workspace {
    /// What is known of the name at a place.
    pub fn hover(&self, path: &str, offset: u32) -> Option<Hover> {
        let symbol = self.symbol(path, offset)?;
        let definition = symbol.definition();
        let declared = symbol.declared();
        let tree = self.parse(&declared.path)?.tree();
        let token = name_at(&tree, declared.range.0);
        let mut text = format!("```esp\n{}\n```", declaration(&symbol, token.as_ref()));
        if definition.kind == DefinitionKind::Channel {
            text.push_str(&ends(symbol.program, &symbol));
        }
        if let Some(comment) = token.as_ref().and_then(comment_above) {
            text.push_str("\n\n");
            text.push_str(&comment);
        }
        Some(Hover { range: (symbol.span.start, symbol.span.end), text })
    }
}

/// The declaration in the words of the language.
fn declaration(symbol: &Resolution, token: Option<&SyntaxToken>) -> String {
    let definition = symbol.definition();
    let (noun, name, ty) = (definition.kind.noun(), &definition.name, &definition.type_text);
    let item = token.and_then(|token| token.parent_ancestors().find(|node| is_item(node.kind())));
    let own = token.and_then(SyntaxToken::parent);
    match definition.kind {
        DefinitionKind::Variable if !ty.is_empty() => format!("var {name}: {ty}"),
        DefinitionKind::Parameter | DefinitionKind::Field | DefinitionKind::LayoutField => match own {
            Some(node) if is_part(node.kind()) => format!("({noun}) {}", head(&node)),
            _ if !ty.is_empty() => format!("({noun}) {name}: {ty}"),
            _ => format!("({noun}) {name}"),
        },
        DefinitionKind::Case if !ty.is_empty() => format!("({noun}) {name}: {ty}"),
        DefinitionKind::Label => format!("#{name}"),
        DefinitionKind::Variable | DefinitionKind::Case | DefinitionKind::Alias => format!("({noun}) {name}"),
        DefinitionKind::Constant => own.map_or_else(|| format!("const {name}"), |node| head(&node)),
        DefinitionKind::Type
        | DefinitionKind::Channel
        | DefinitionKind::Interface
        | DefinitionKind::Extern
        | DefinitionKind::Function
        | DefinitionKind::Layout
        | DefinitionKind::Process
        | DefinitionKind::Template
        | DefinitionKind::Procedure
        | DefinitionKind::FastPath
        | DefinitionKind::Model
        | DefinitionKind::Module => item.map_or_else(|| format!("{noun} {name}"), |node| head(&node)),
    }
}

fn is_part(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::Parameter
            | SyntaxKind::ProcedureParameter
            | SyntaxKind::ExternParameter
            | SyntaxKind::TypeField
            | SyntaxKind::LayoutField
    )
}

/// The text of a declaration, without a body.
fn head(node: &SyntaxNode) -> String {
    let body = node.children().find(|child| {
        matches!(child.kind(), SyntaxKind::Block | SyntaxKind::FastPathProcess | SyntaxKind::ModelProcess)
    });
    let text = node.text().to_string();
    let first = node.children_with_tokens().find(|part| !part.kind().is_trivia());
    let start = first.map_or(node.text_range().start(), |part| part.text_range().start());
    let skipped = usize::from(start - node.text_range().start());
    let end = body.map_or(text.len(), |body| usize::from(body.text_range().start() - node.text_range().start()));
    let text = text.get(skipped..end.max(skipped)).unwrap_or_default().trim_end().trim_end_matches('{').trim_end();
    let mut lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    if text.lines().count() > MAX_LINES {
        lines.push("..");
    }
    lines.join("\n")
}

/// Which processes are at the ends of a channel.
fn ends(program: &Program, symbol: &Resolution) -> String {
    let place = symbol.definition().span;
    let channels = program.inspection.program.channels.iter().enumerate();
    let found = channels.filter(|(_, channel)| program.sources.origin(channel.span) == place);
    let mut text = String::new();
    for (number, channel) in found {
        let names = |direction: Direction| {
            let mut names = BTreeSet::new();
            for process in processes(program) {
                let uses = |site: &quaject_esp_syntax::hir::Site| {
                    site.channel == ChannelId(number as u32) && site.direction == direction
                };
                if process.sites.iter().any(uses) {
                    names.insert(format!("`{}`", process.name));
                }
            }
            let of_environment = match direction {
                Direction::In => Boundary::ToEnvironment,
                Direction::Out => Boundary::FromEnvironment,
            };
            if channel.boundary == of_environment {
                names.insert("the environment".to_string());
            }
            if names.is_empty() { "no process".to_string() } else { names.into_iter().collect::<Vec<_>>().join(", ") }
        };
        text.push_str(&format!("\n\nwritten by {}; read by {}", names(Direction::Out), names(Direction::In)));
    }
    text
}

/// The lines that begin with `//` directly above the item or declaration of a name.
fn comment_above(name: &SyntaxToken) -> Option<String> {
    let node = name.parent_ancestors().find(|node| is_item(node.kind()) || is_part(node.kind()))?;
    let outer = node.parent().filter(|parent| parent.kind() == SyntaxKind::ModifiedItem).unwrap_or(node);
    let first = outer.descendants_with_tokens().filter_map(|part| part.into_token()).find(|t| !t.kind().is_trivia())?;
    let mut lines = Vec::new();
    let mut token = first.prev_token();
    let mut breaks = 0;
    while let Some(before) = token {
        match before.kind() {
            SyntaxKind::Whitespace => {
                breaks += before.text().matches('\n').count();
                if breaks > 1 {
                    break;
                }
            }
            SyntaxKind::LineComment => {
                let is_alone = before.prev_token().is_none_or(|token| token.text().contains('\n'));
                if !is_alone {
                    break;
                }
                let text = before.text().trim_end().trim_start_matches('/');
                lines.push(text.strip_prefix(' ').unwrap_or(text).to_string());
                breaks = usize::from(before.text().ends_with('\n'));
            }
            _ => break,
        }
        token = before.prev_token();
    }
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
