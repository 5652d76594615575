//! Makes the lossless tree from the parser's events and all tokens. White space and comments between two tokens go
//! to the outermost node that is open between them, so that a node begins and ends with a token of its own.

use super::Event;
use crate::lexer::Token;
use crate::tree::{Green, SyntaxKind};
use rowan::GreenNodeBuilder;

/// The tree of a whole file.
pub(super) fn tree(text: &str, tokens: &[Token], mut events: Vec<Event>) -> Green {
    let mut builder = Builder { text, tokens, position: 0, builder: GreenNodeBuilder::new() };
    let mut parents = Vec::new();
    let mut depth = 0u32;
    for index in 0..events.len() {
        match std::mem::replace(&mut events[index], Event::Tombstone) {
            Event::Start { kind, forward_parent } => {
                if depth > 0 {
                    builder.trivia();
                }
                parents.push(kind);
                let (mut at, mut distance) = (index, forward_parent);
                while distance != 0 {
                    at += distance as usize;
                    distance = match std::mem::replace(&mut events[at], Event::Tombstone) {
                        Event::Start { kind, forward_parent } => {
                            parents.push(kind);
                            forward_parent
                        }
                        Event::Token { .. } | Event::Finish | Event::Tombstone => 0,
                    };
                }
                for kind in parents.drain(..).rev() {
                    builder.builder.start_node(kind.into());
                    depth += 1;
                }
            }
            Event::Token { kind } => {
                builder.trivia();
                builder.token(kind);
            }
            Event::Finish => {
                depth -= 1;
                if depth == 0 {
                    builder.trivia();
                }
                builder.builder.finish_node();
            }
            Event::Tombstone => {}
        }
    }
    builder.builder.finish()
}

struct Builder<'t> {
    text: &'t str,
    tokens: &'t [Token],
    position: usize,
    builder: GreenNodeBuilder<'static>,
}

impl Builder<'_> {
    fn trivia(&mut self) {
        while self.tokens[self.position].kind.is_trivia() {
            self.token(self.tokens[self.position].kind);
        }
    }

    fn token(&mut self, kind: SyntaxKind) {
        let start = self.tokens[self.position].start as usize;
        let end = self.tokens[self.position + 1].start as usize;
        self.builder.token(kind.into(), &self.text[start..end]);
        self.position += 1;
    }
}
