//! Makes the abstract syntax from the lossless tree: items here, the rest in the submodules. Never fails; what is
//! missing in the tree becomes an `Error` node or an empty name. Reports nothing: the parser has done that.

mod cursor;
mod expressions;
mod fast_paths;
mod models;
mod patterns;
mod statements;
mod types;

use crate::ast;
use crate::literal;
use crate::span::FileId;
use crate::tree::{Green, SyntaxKind};
use cursor::{Exactly, NodeCursor};

/// The abstract syntax of a file.
pub(crate) fn file(file: FileId, root: &Green) -> ast::File {
    let root = NodeCursor::root(file, root);
    let mut file = ast::File::default();
    let mut items = Vec::new();
    for node in root.nodes() {
        items.extend(item(node, &mut file));
    }
    items.shrink_to_fit();
    file.items = items;
    file
}

/// The node as an item, if it is one; `file` collects the names of items with `pub` or `param`.
fn item(node: NodeCursor, file: &mut ast::File) -> Option<ast::Item> {
    let item = match node.kind() {
        SyntaxKind::Import => {
            let (path, span) = bytes(node)?;
            ast::Item::Import(ast::Import {
                path,
                span,
                arguments: node.nodes().filter_map(import_argument).exactly(),
                name: node.token(SyntaxKind::AsWord).map(|_| node.name_behind(SyntaxKind::AsWord)),
            })
        }
        SyntaxKind::PartOf => {
            let (path, span) = bytes(node)?;
            ast::Item::PartOf(ast::PartOf { path, span })
        }
        SyntaxKind::ModifiedItem => {
            let item = node.nodes().find_map(|inner| item(inner, file))?;
            let name = item.name()?.span;
            if node.token(SyntaxKind::PublicWord).is_some() {
                file.public.push(name);
            }
            if node.token(SyntaxKind::ParameterWord).is_some() {
                file.parameters.push(name);
            }
            item
        }
        SyntaxKind::TypeItem => ast::Item::Type(ast::TypeItem { name: node.name(), ty: types::first(node) }),
        SyntaxKind::Const => ast::Item::Const(constant(node)),
        SyntaxKind::Channel => ast::Item::Channel(channel(node)),
        SyntaxKind::Interface => ast::Item::Interface(interface(node)),
        SyntaxKind::Extern => ast::Item::Extern(external_function(node)),
        SyntaxKind::Fn => ast::Item::Fn(function(node)),
        SyntaxKind::Layout => ast::Item::Layout(layout(node)),
        SyntaxKind::Process => ast::Item::Process(process(node)),
        SyntaxKind::Procedure => ast::Item::Procedure(ast::Procedure {
            name: node.name(),
            parameters: parameters(node),
            result: node.nodes().find_map(types::optional),
            body: statements::body(node),
        }),
        SyntaxKind::Template => ast::Item::Template(ast::Template {
            name: node.name(),
            parameters: parameters(node),
            body: statements::body(node),
        }),
        SyntaxKind::Instance => ast::Item::Instance(instantiation(node)),
        SyntaxKind::ConditionalItems => ast::Item::Conditional(conditional_items(node, file)),
        SyntaxKind::AssertItem => ast::Item::Assert(ast::StaticAssertion {
            condition: expressions::first(node),
            message: statements::message(node),
        }),
        SyntaxKind::Pool => ast::Item::Pool(ast::Pool { ty: node.name(), capacity: expressions::first(node) }),
        SyntaxKind::Memory => ast::Item::Memory(ast::Memory {
            mode: match node.token(SyntaxKind::ManualWord) {
                Some(_) => ast::MemoryMode::Manual,
                None => ast::MemoryMode::Automatic,
            },
            span: node.span(),
        }),
        SyntaxKind::FastPath => ast::Item::FastPath(fast_paths::fast_path(node)),
        SyntaxKind::Model => ast::Item::Model(models::model(node)),
        _ => return None,
    };
    Some(item)
}

/// The decoded string literal among the tokens of a node.
fn bytes(node: NodeCursor) -> Option<(Vec<u8>, crate::span::Span)> {
    let token = node.token(SyntaxKind::String)?;
    Some((literal::unescape(literal::between_quotes(token.text()), |_, _| {}), token.span()))
}

fn constant(node: NodeCursor) -> ast::Const {
    ast::Const {
        name: node.name(),
        ty: node.nodes().find_map(types::optional),
        value: Box::new(expressions::first(node)),
    }
}

fn channel(node: NodeCursor) -> ast::Channel {
    let attribute = |child: NodeCursor| {
        let attribute = if child.token(SyntaxKind::SharedWord).is_some() {
            ast::ChannelAttribute::Shared
        } else if child.token(SyntaxKind::InKeyword).is_some() {
            ast::ChannelAttribute::ExternalIn
        } else if child.token(SyntaxKind::OutKeyword).is_some() {
            ast::ChannelAttribute::ExternalOut
        } else if child.token(SyntaxKind::SenderWord).is_some() {
            ast::ChannelAttribute::Policy(ast::Policy::Sender)
        } else if child.token(SyntaxKind::ReceiverWord).is_some() {
            ast::ChannelAttribute::Policy(ast::Policy::Receiver)
        } else if child.token(SyntaxKind::QueueWord).is_some() {
            ast::ChannelAttribute::Policy(ast::Policy::Queue)
        } else {
            return None;
        };
        Some((attribute, child.span()))
    };
    let (types, value_names) = node.nodes().filter_map(channel_value).unzip();
    ast::Channel {
        name: node.name(),
        types,
        value_names,
        attributes: node.nodes().filter(|n| n.kind() == SyntaxKind::ChannelAttribute).filter_map(attribute).exactly(),
        driver: node.node(SyntaxKind::ChannelDriver).and_then(bytes),
        span: node.span(),
    }
}

/// A type in the list of a channel, with the name of the value.
fn channel_value(node: NodeCursor) -> Option<(ast::Type, Option<ast::Name>)> {
    if node.kind() != SyntaxKind::TypeField {
        return Some((types::optional(node)?, None));
    }
    Some((node.nodes().find_map(types::optional)?, Some(node.name())))
}

fn interface(node: NodeCursor) -> ast::Interface {
    let entry = |node: NodeCursor| ast::InterfaceEntry {
        name: node.name(),
        patterns: node.nodes().filter_map(patterns::optional).exactly(),
        span: node.span(),
    };
    let direction = match node.token(SyntaxKind::InKeyword) {
        Some(_) => ast::Direction::In,
        None => ast::Direction::Out,
    };
    ast::Interface {
        name: node.name_before(SyntaxKind::LeftParen),
        direction,
        channel: node.name_behind(SyntaxKind::LeftParen),
        entries: node.nodes().filter(|n| n.kind() == SyntaxKind::InterfaceEntry).map(entry).exactly(),
        span: node.span(),
    }
}

fn external_function(node: NodeCursor) -> ast::Extern {
    let parameter = |node: NodeCursor| {
        let name = node.token(SyntaxKind::Ident).map(|token| token.name());
        (name, types::first_value(node))
    };
    ast::Extern {
        name: node.name(),
        purity: match node.token(SyntaxKind::PureWord) {
            Some(_) => ast::Purity::Pure,
            None => ast::Purity::Impure,
        },
        parameters: node.nodes().filter(|n| n.kind() == SyntaxKind::ExternParameter).map(parameter).exactly(),
        result: node.nodes().find_map(types::optional),
    }
}

fn function(node: NodeCursor) -> ast::Fn {
    let parameter = |node: NodeCursor| (node.name(), types::first(node));
    ast::Fn {
        name: node.name(),
        parameters: node.nodes().filter(|n| n.kind() == SyntaxKind::Parameter).map(parameter).exactly(),
        result: types::first(node),
        body: statements::body(node),
    }
}

fn layout(node: NodeCursor) -> ast::Layout {
    let field = |node: NodeCursor| ast::LayoutField {
        name: node.name(),
        width: expressions::first(node),
        order: match node.token(SyntaxKind::LittleWord) {
            Some(_) => ast::ByteOrder::Little,
            None => ast::ByteOrder::Big,
        },
    };
    ast::Layout {
        name: node.name(),
        fields: node.nodes().filter(|n| n.kind() == SyntaxKind::LayoutField).map(field).exactly(),
        span: node.span(),
    }
}

fn parameters(node: NodeCursor) -> Vec<ast::Parameter> {
    let parameter = |node: NodeCursor| {
        let direction = match (node.token(SyntaxKind::InKeyword), node.token(SyntaxKind::OutKeyword)) {
            (Some(_), _) => Some(ast::Direction::In),
            (None, Some(_)) => Some(ast::Direction::Out),
            (None, None) => None,
        };
        let kind = match direction {
            Some(direction) => {
                ast::ParameterKind::Channel(direction, node.nodes().filter_map(types::optional).exactly())
            }
            None => ast::ParameterKind::Value(types::first_value(node)),
        };
        ast::Parameter { name: node.name(), kind, span: node.span() }
    };
    node.nodes().filter(|n| n.kind() == SyntaxKind::ProcedureParameter).map(parameter).exactly()
}

fn instantiation(node: NodeCursor) -> ast::Instantiation {
    let replicated = node.token(SyntaxKind::LeftBracket).is_some();
    let mut expressions = expressions::all(node).into_iter();
    ast::Instantiation {
        name: node.name_before(SyntaxKind::Equal),
        replicas: if replicated { expressions.next() } else { None },
        template: node.name_behind(SyntaxKind::Equal),
        arguments: expressions.exactly(),
        span: node.span(),
    }
}

fn import_argument(node: NodeCursor) -> Option<ast::ImportArgument> {
    if node.kind() != SyntaxKind::ImportArgument {
        return None;
    }
    let value = match node.nodes().find_map(types::optional) {
        Some(ty) => ast::ImportValue::Type(ty),
        None => ast::ImportValue::Value(expressions::first(node)),
    };
    Some(ast::ImportArgument { name: node.name(), value })
}

fn conditional_items(node: NodeCursor, file: &mut ast::File) -> ast::ConditionalItems {
    let mut branches = node.nodes().filter_map(|child| match child.kind() {
        SyntaxKind::ItemBlock => Some(child.nodes().filter_map(|node| item(node, file)).exactly()),
        SyntaxKind::ConditionalItems => Some(vec![ast::Item::Conditional(conditional_items(child, file))]),
        _ => None,
    });
    ast::ConditionalItems {
        condition: expressions::first(node),
        then: branches.next().unwrap_or_default(),
        otherwise: branches.next().unwrap_or_default(),
    }
}

/// A process, or the `env` of a model.
fn process(node: NodeCursor) -> ast::Process {
    ast::Process {
        name: node.name(),
        replicas: node.nodes().find_map(expressions::optional),
        body: statements::body(node),
    }
}
