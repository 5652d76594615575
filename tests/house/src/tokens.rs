//! A Rust file as a flat list of tokens with line numbers, test modules left out. Checks on tokens see through comments
//! and strings and into macro calls, where a search in the text or a syntax tree does not.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One token; groups are flattened to their brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The identifier, the punctuation character, the bracket or the literal.
    pub text: String,
    /// Counted from 1.
    pub line: usize,
}

/// The tokens of a file without its `#[cfg(test)]` modules, and the names of those that live in files of their own.
pub struct ProductionCode {
    /// What is compiled into the product.
    pub tokens: Vec<Token>,
    /// `#[cfg(test)] mod NAME;`
    pub test_modules: Vec<String>,
}

/// Reads one file.
///
/// # Panics
/// When the text is not a sequence of Rust tokens.
pub fn production_code(source: &str) -> ProductionCode {
    let stream: TokenStream = source.parse().expect("the compiler has read this file");
    let mut all = Vec::new();
    flatten(stream, &mut all);
    let mut code = ProductionCode { tokens: Vec::new(), test_modules: Vec::new() };
    let mut rest = all.as_slice();
    while let Some(token) = rest.first() {
        if let Some(after_attribute) = strip(rest, &["#", "[", "cfg", "(", "test", ")", "]"])
            && let Some(name) = strip(after_attribute, &["mod"])
        {
            if let Some(body) = strip(&name[1..], &["{"]) {
                rest = after_group(body);
            } else {
                code.test_modules.push(name[0].text.clone());
                rest = &name[2..];
            }
        } else {
            code.tokens.push(token.clone());
            rest = &rest[1..];
        }
    }
    code
}

/// What follows `words` at the head of `tokens`, if they stand there.
pub fn strip<'t>(tokens: &'t [Token], words: &[&str]) -> Option<&'t [Token]> {
    let (head, rest) = tokens.split_at_checked(words.len())?;
    head.iter().zip(words).all(|(token, word)| token.text == *word).then_some(rest)
}

/// What follows the bracket that closes the group `tokens` stands in.
fn after_group(tokens: &[Token]) -> &[Token] {
    let mut depth = 1;
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return &tokens[index + 1..];
        }
    }
    &[]
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(Token { text: open.into(), line });
                flatten(group.stream(), tokens);
                tokens.push(Token { text: close.into(), line: group.span_close().start().line });
            }
            TokenTree::Ident(ident) => tokens.push(Token { text: ident.to_string(), line }),
            TokenTree::Punct(punct) => tokens.push(Token { text: punct.as_char().into(), line }),
            TokenTree::Literal(literal) => tokens.push(Token { text: literal.to_string(), line }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_are_left_out() {
        let code =
            production_code("fn a() {} #[cfg(test)] mod tests { fn b() { {} } } #[cfg(test)] mod more; fn c() {}");
        let names: Vec<_> = code.tokens.iter().map(|token| token.text.as_str()).collect();
        assert_eq!(names.join(" "), "fn a ( ) { } fn c ( ) { }");
        assert_eq!(code.test_modules, ["more"]);
    }
}
