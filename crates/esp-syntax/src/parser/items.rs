//! The file and its items.

use super::{Parser, expressions, fast_paths, models, patterns, statements, types};
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::foreign;
use crate::literal::shorten;
use crate::tree::SyntaxKind;

/// The words that begin an item without being reserved.
const ITEM_WORDS: &[&str] =
    &["import", "external", "layout", "fastpath", "model", "pool", "memory", "proc", "pub", "param", "part"];
/// The reserved words that begin an item.
const ITEM_KEYWORDS: &[&str] = &["type", "const", "channel", "extern", "fn", "process"];

/// `program = { item }`
pub(super) fn source_file(p: &mut Parser) {
    file(p, item);
}

/// `{ fastpath | import }`
pub(super) fn fast_path_file(p: &mut Parser) {
    file(p, |p| {
        let begin = p.current_span();
        let foreign = at_item(p) && !p.at_word("fastpath") && !p.at_word("import");
        if foreign {
            p.report(
                Diagnostic::new(Code::E0201, begin, "a `.fp` file holds only `fastpath` items and imports")
                    .help("move this item to an `.esp` file"),
            );
        }
        item(p)
    });
}

fn file(p: &mut Parser, item: fn(&mut Parser) -> bool) {
    let marker = p.start();
    while !p.at_end() {
        if !item(p) {
            not_an_item(p);
        }
    }
    p.complete(marker, SyntaxKind::SourceFile);
}

/// Whether the current token can only mean that an item begins here, even inside a block that was never closed.
pub(super) fn at_certain_item(p: &Parser) -> bool {
    match p.current() {
        SyntaxKind::ChannelKeyword | SyntaxKind::TypeKeyword | SyntaxKind::FnKeyword | SyntaxKind::ExternKeyword => {
            true
        }
        SyntaxKind::ProcessKeyword => {
            // In a fast path or model `process` is a part.
            let begins = matches!(p.nth(2), SyntaxKind::LeftBrace | SyntaxKind::LeftParen | SyntaxKind::Equal);
            p.nth(1) == SyntaxKind::Ident && begins && !p.in_specification
        }
        SyntaxKind::Ident => {
            let behind_name = match p.current_text() {
                "fastpath" | "layout" | "model" => SyntaxKind::LeftBrace,
                "proc" => SyntaxKind::LeftParen,
                _ => return false,
            };
            p.nth(1) == SyntaxKind::Ident && p.nth(2) == behind_name
        }
        _ => false,
    }
}

/// Whether an item can begin with the current token.
fn at_item(p: &Parser) -> bool {
    match p.current() {
        SyntaxKind::TypeKeyword
        | SyntaxKind::ConstKeyword
        | SyntaxKind::ConstantKeyword
        | SyntaxKind::ChannelKeyword
        | SyntaxKind::ExternKeyword
        | SyntaxKind::FnKeyword
        | SyntaxKind::AssertKeyword
        | SyntaxKind::ProcessKeyword => true,
        SyntaxKind::IfKeyword => p.open_items > 0,
        SyntaxKind::Ident => ITEM_WORDS.contains(&p.current_text()),
        _ => false,
    }
}

/// `item`. False if none begins here; then nothing was taken or reported.
fn item(p: &mut Parser) -> bool {
    match p.current() {
        SyntaxKind::TypeKeyword => type_item(p),
        SyntaxKind::ConstKeyword | SyntaxKind::ConstantKeyword => constant(p),
        SyntaxKind::ChannelKeyword => channel(p),
        SyntaxKind::ExternKeyword => external_function(p),
        SyntaxKind::FnKeyword => function(p),
        SyntaxKind::ProcessKeyword => process(p),
        SyntaxKind::AssertKeyword => static_assertion(p),
        SyntaxKind::IfKeyword => return p.nested(conditional_items).unwrap_or(true),
        SyntaxKind::Ident => match p.current_text() {
            "import" => import(p),
            "external" => interface(p),
            "layout" => layout(p),
            "pool" => pool(p),
            "memory" => memory(p),
            "proc" => procedure(p),
            "fastpath" => fast_paths::fast_path(p),
            "model" => models::model(p),
            "part" => part_of(p),
            "pub" | "param" => modified(p),
            _ => return false,
        },
        _ => return false,
    }
    true
}

/// Says that no item begins here, and skips to where one does.
fn not_an_item(p: &mut Parser) {
    let text = p.current_text();
    let help = match p.current() {
        SyntaxKind::RightBrace => Some("no block is open here; leave it out".to_string()),
        SyntaxKind::Semicolon => Some("leave it out".to_string()),
        SyntaxKind::VarKeyword => Some("variables are declared inside a process".to_string()),
        kind if types::is_int_type(kind) || kind == SyntaxKind::BoolKeyword => Some(match p.nth(2) {
            SyntaxKind::LeftParen => foreign::instead_of_item("void").unwrap_or_default().to_string(),
            _ => "variables are declared inside a process".to_string(),
        }),
        SyntaxKind::Hash => match p.text_at((p.position + 1).min(p.significant.len() - 1)) {
            "define" => Some("a constant is `const N = 3;`, a function `fn f(a: int) -> int { .. }`".to_string()),
            "include" => Some("other files are read with `import \"file.esp\";`".to_string()),
            "if" | "ifdef" | "ifndef" | "else" | "elif" | "endif" => {
                Some("items that depend on a constant are written `if DEBUG { .. } else { .. }`".to_string())
            }
            _ => None,
        },
        SyntaxKind::Ident if foreign::instead_of_item(text).is_some() => {
            foreign::instead_of_item(text).map(str::to_string)
        }
        SyntaxKind::Ident => {
            nearest(text, ITEM_WORDS.iter().chain(ITEM_KEYWORDS).copied()).map(|word| format!("did you mean `{word}`?"))
        }
        _ => None,
    };
    let help = help.unwrap_or_else(|| {
        "an item begins with `process`, `channel`, `type`, `const`, `fn`, `extern`, `import`, ..".to_string()
    });
    p.error_here(format!("expected an item, found {}", p.found()), Some(help));
    let marker = p.start();
    let mut open = 0u32;
    while !p.at_end() {
        match p.current() {
            SyntaxKind::LeftBrace => open += 1,
            SyntaxKind::RightBrace if open <= 1 => {
                p.bump();
                p.eat(SyntaxKind::Semicolon);
                break;
            }
            SyntaxKind::RightBrace => open -= 1,
            SyntaxKind::Semicolon if open == 0 => {
                p.bump();
                break;
            }
            _ => {}
        }
        p.bump();
        if (open == 0 && at_item(p) && p.starts_something_new()) || at_certain_item(p) {
            break;
        }
    }
    p.complete(marker, SyntaxKind::Error);
}

/// `["pub"] ["param"] item`
fn modified(p: &mut Parser) {
    let marker = p.start();
    p.eat_word("pub", SyntaxKind::PublicWord);
    let is_parameter = p.eat_word("param", SyntaxKind::ParameterWord);
    let declares = match p.current() {
        SyntaxKind::TypeKeyword | SyntaxKind::ConstKeyword | SyntaxKind::ConstantKeyword => true,
        SyntaxKind::ChannelKeyword | SyntaxKind::ExternKeyword | SyntaxKind::FnKeyword | SyntaxKind::ProcessKeyword => {
            !is_parameter
        }
        SyntaxKind::Ident => !is_parameter && matches!(p.current_text(), "layout" | "proc"),
        _ => false,
    };
    if declares {
        item(p);
    } else if is_parameter {
        p.expected("`type` or `const`", Some("a parameter is written `param const N = 64;`".to_string()));
    } else {
        let help = "`pub` precedes `type`, `const`, `channel`, `fn`, `extern`, `layout`, `proc` or `process`";
        p.expected("an item with a name", Some(help.to_string()));
    }
    p.complete(marker, SyntaxKind::ModifiedItem);
}

/// `"part" "of" STRING ";"`
fn part_of(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::PartWord);
    if !p.eat_word("of", SyntaxKind::OfWord) {
        p.missing("`of`", Some("the program of a file is named by `part of \"main.esp\";`"));
    }
    p.expect_string("the name of a file, as in `\"main.esp\"`");
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::PartOf);
}

/// `"import" STRING [ ["(" list(argument) ")"] "as" ID ] ";"`
fn import(p: &mut Parser) {
    const HELP: &str = "a module with arguments has a name: `import \"ring.esp\"(N = 64) as ring;`";
    let marker = p.start();
    p.bump_as(SyntaxKind::ImportWord);
    if p.at(SyntaxKind::Ident) {
        let name = p.current_text();
        let help = format!("write `import \"{name}.esp\" as {name};`");
        p.unexpected(format!("expected the name of a file, found `{name}`"), Some(help));
    } else {
        p.expect_string("the name of a file, as in `\"ethernet.esp\"`");
    }
    let has_arguments = p.eat(SyntaxKind::LeftParen);
    if has_arguments {
        p.list(SyntaxKind::RightParen, "an argument, as in `N = 64`", import_argument);
    }
    if p.eat_word("as", SyntaxKind::AsWord) {
        p.expect_name("a name for the module");
    } else if has_arguments {
        p.missing("`as` and a name", Some(HELP));
    }
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::Import);
}

/// `ID "=" ( type | expr )`; a name alone is read as an expression.
fn import_argument(p: &mut Parser) -> bool {
    if !p.at(SyntaxKind::Ident) {
        return false;
    }
    let marker = p.start();
    p.bump();
    if p.expect_help(SyntaxKind::Equal, Some("an argument is written `N = 64` or `T = u8`")) {
        if types::begins_type_only(p) {
            types::expect_type(p);
        } else {
            expressions::expression(p);
        }
    }
    p.complete(marker, SyntaxKind::ImportArgument);
    true
}

/// `"type" ID "=" type ";"`
fn type_item(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    p.expect_name("a name for the type");
    p.expect(SyntaxKind::Equal);
    types::expect_type(p);
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::TypeItem);
}

/// `const = ("const" | "constant") ID [":" type] "=" expr ";"`
pub(super) fn constant(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    p.type_before_name("const");
    p.expect_name("a name for the constant");
    if p.eat(SyntaxKind::Colon) {
        types::expect_type(p);
    }
    if p.expect_help(SyntaxKind::Equal, Some("a constant is written `const N = 4;`")) {
        expressions::expression(p);
    }
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::Const);
}

/// `channel = "channel" ID ( "(" [list([ID ":"] type)] ")" | ":" type ) { cattr } [ "=" STRING ] ";"`
fn channel(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    if p.nth(1) == SyntaxKind::Ident && (types::is_int_type(p.current()) || p.at(SyntaxKind::BoolKeyword)) {
        let (ty, name) = (p.current_text(), p.text_at(p.position + 1));
        let help = format!("the types of a channel follow its name: `channel {name}({ty});`");
        p.unexpected(format!("expected a name for the channel, found `{ty}`"), Some(help));
        p.bump();
        p.expect_semicolon();
        p.complete(marker, SyntaxKind::Error);
        return;
    }
    p.expect_name("a name for the channel");
    if p.at(SyntaxKind::LeftBracket) {
        channel_array(p);
    }
    match p.current() {
        SyntaxKind::LeftParen => {
            p.bump();
            p.list(SyntaxKind::RightParen, "a type", channel_value);
        }
        SyntaxKind::Colon => {
            p.bump();
            types::expect_type(p);
        }
        _ => p.missing("`(` or `:`", Some("a channel is written `channel c(int, u8);` or `channel c: T;`")),
    }
    while p.at(SyntaxKind::Ident) {
        channel_attribute(p);
    }
    if p.at(SyntaxKind::InKeyword) || p.at(SyntaxKind::OutKeyword) {
        let help = format!("write `external {}`", p.current_text());
        p.unexpected(format!("expected `;`, found `{}`", p.current_text()), Some(help));
    }
    if p.at(SyntaxKind::ExternKeyword) && matches!(p.nth(1), SyntaxKind::InKeyword | SyntaxKind::OutKeyword) {
        p.unexpected("`extern` is not an attribute of a channel".to_string(), Some("write `external`".to_string()));
        p.bump();
    }
    if p.at(SyntaxKind::Equal) {
        let driver = p.start();
        p.bump();
        p.expect_string("the channel's driver, as in `\"text:-\"`");
        p.complete(driver, SyntaxKind::ChannelDriver);
    }
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::Channel);
}

/// The `[n]` behind the name of a channel, of a mistake that is reported once.
pub(super) fn channel_array(p: &mut Parser) {
    if !p.has_channel_array {
        let help = "declare a channel for each, or send the id of the reader first, as in `channel c(pid(p), int);`";
        p.error_here("there are no arrays of channels".to_string(), Some(help.to_string()));
    }
    p.has_channel_array = true;
    // Without a node, which would be taken for a part of what the name belongs to.
    while !matches!(p.current(), SyntaxKind::RightBracket | SyntaxKind::Semicolon | SyntaxKind::EndOfFile) {
        p.bump();
    }
    p.eat(SyntaxKind::RightBracket);
}

/// `[ID ":"] type`
fn channel_value(p: &mut Parser) -> bool {
    if !(p.at(SyntaxKind::Ident) && p.nth(1) == SyntaxKind::Colon) {
        return types::ty(p);
    }
    let marker = p.start();
    p.bump();
    p.bump();
    types::expect_type(p);
    p.complete(marker, SyntaxKind::TypeField);
    true
}

fn channel_attribute(p: &mut Parser) {
    let marker = p.start();
    match p.current_text() {
        "external" => {
            p.bump_as(SyntaxKind::ExternalWord);
            if !p.eat(SyntaxKind::InKeyword) && !p.eat(SyntaxKind::OutKeyword) {
                p.missing(
                    "`in` or `out`",
                    Some("`external out`: the environment writes; `external in`: the environment reads"),
                );
            }
        }
        "shared" => p.bump_as(SyntaxKind::SharedWord),
        "policy" => {
            p.bump_as(SyntaxKind::PolicyWord);
            let known = p.eat_word("sender", SyntaxKind::SenderWord)
                || p.eat_word("receiver", SyntaxKind::ReceiverWord)
                || p.eat_word("queue", SyntaxKind::QueueWord);
            if !known {
                p.missing(
                    "`sender`, `receiver` or `queue`",
                    Some("it names the process that continues after a message"),
                );
            }
        }
        _ => {
            if p.starts_something_new() {
                // Probably a `;` is missing; the caller reports that.
                p.missing("`;`", None);
            }
            p.unexpected(
                format!("`{}` is not an attribute of a channel", shorten(p.current_text())),
                Some("the attributes are `external in`, `external out`, `shared` and `policy`".to_string()),
            );
        }
    }
    p.complete(marker, SyntaxKind::ChannelAttribute);
}

/// `iface = "external" "interface" ID "(" ("in" | "out") ID ")" "{" list(entry) "}"`
fn interface(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::ExternalWord);
    if !p.eat_word("interface", SyntaxKind::InterfaceWord) {
        p.missing("`interface`", Some("an external channel is written `channel c(int) external out;`"));
    }
    p.expect_name("a name for the interface");
    if p.expect(SyntaxKind::LeftParen) {
        if !p.eat(SyntaxKind::InKeyword) && !p.eat(SyntaxKind::OutKeyword) {
            p.missing("`in` or `out`", Some("`out`: the C program sends; `in`: it receives"));
        }
        p.expect_item_name("the name of a channel");
        p.expect(SyntaxKind::RightParen);
    }
    if p.expect(SyntaxKind::LeftBrace) {
        const ENTRY: &str = "an entry, as in `Send(send |> $m)`";
        if p.at(SyntaxKind::RightBrace) {
            p.expected(ENTRY, None);
        }
        p.list(SyntaxKind::RightBrace, ENTRY, |p| {
            if !p.at(SyntaxKind::Ident) {
                return false;
            }
            let entry = p.start();
            p.bump();
            if p.expect(SyntaxKind::LeftParen) {
                p.list(SyntaxKind::RightParen, "a pattern", patterns::pattern);
            }
            p.complete(entry, SyntaxKind::InterfaceEntry);
            true
        });
    }
    p.complete(marker, SyntaxKind::Interface);
}

/// `extern = "extern" ["pure"] "fn" ID "(" [list(xparam)] ")" ["->" type] ";"`
fn external_function(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    p.eat_word("pure", SyntaxKind::PureWord);
    if p.nth(1) == SyntaxKind::Ident && p.nth(2) == SyntaxKind::LeftParen && !p.at(SyntaxKind::FnKeyword) {
        let (result, name) = (p.current_text(), p.text_at(p.position + 1));
        let help = match result {
            "void" => format!("a C function is written `extern fn {name}(..);`"),
            _ => format!("a C function is written `extern fn {name}(..) -> {result};`"),
        };
        p.expected("`fn`", Some(help));
        if result == "void" || !types::ty(p) {
            p.bump_error();
        }
    } else {
        p.expect_help(SyntaxKind::FnKeyword, Some("a C function is written `extern fn f(int) -> int;`"));
    }
    p.expect_name("the name of a C function");
    if p.expect(SyntaxKind::LeftParen) {
        p.list(SyntaxKind::RightParen, "a parameter", |p| {
            let parameter = p.start();
            let named = p.at(SyntaxKind::Ident) && p.nth(1) == SyntaxKind::Colon;
            if named {
                p.bump();
                p.bump();
                types::expect_value_type(p);
            } else if !types::value_type(p) {
                p.abandon(parameter);
                return false;
            }
            p.complete(parameter, SyntaxKind::ExternParameter);
            true
        });
    }
    if p.eat(SyntaxKind::ThinArrow) {
        types::expect_type(p);
    }
    if p.at(SyntaxKind::LeftBrace) {
        p.error_here(
            "an `extern fn` has no body".to_string(),
            Some("its body is written in C; a function in ESP is a plain `fn`".to_string()),
        );
        p.skip_braces();
    } else {
        p.expect_semicolon();
    }
    p.complete(marker, SyntaxKind::Extern);
}

/// `fn = "fn" ID "(" [list(param)] ")" "->" type block`
fn function(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    p.expect_name("a name for the function");
    if p.expect(SyntaxKind::LeftParen) {
        p.list(SyntaxKind::RightParen, "a parameter, as in `a: int`", |p| {
            if !p.at(SyntaxKind::Ident) {
                return false;
            }
            let parameter = p.start();
            p.bump();
            if p.expect_help(SyntaxKind::Colon, Some("a parameter is written `a: int`")) {
                types::expect_type(p);
            }
            p.complete(parameter, SyntaxKind::Parameter);
            true
        });
    }
    if p.expect_help(SyntaxKind::ThinArrow, Some("every `fn` has a result, as in `fn f(a: int) -> int { .. }`")) {
        types::expect_type(p);
    } else if !p.at(SyntaxKind::LeftBrace) {
        p.skip_until(|p| p.at(SyntaxKind::LeftBrace) || p.starts_something_new());
    }
    statements::expect_block(p, "the body of a `fn` is a block; a C function is declared with `extern fn`");
    p.complete(marker, SyntaxKind::Fn);
}

/// `layout = "layout" ID "{" list(lfield) "}"`
fn layout(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::LayoutWord);
    p.expect_name("a name for the layout");
    if p.expect(SyntaxKind::LeftBrace) {
        const FIELD: &str = "a field, as in `port: 16`";
        if p.at(SyntaxKind::RightBrace) {
            p.expected(FIELD, Some("a layout has at least one field".to_string()));
        }
        p.list(SyntaxKind::RightBrace, FIELD, |p| {
            if !p.at(SyntaxKind::Ident) {
                return false;
            }
            let field = p.start();
            p.bump();
            if p.expect_help(SyntaxKind::Colon, Some("a field is written `port: 16`, its width in bits")) {
                expressions::expression(p);
                p.eat_word("le", SyntaxKind::LittleWord);
            }
            p.complete(field, SyntaxKind::LayoutField);
            true
        });
    }
    p.complete(marker, SyntaxKind::Layout);
}

/// `process = "process" ID ( ["[" expr "]"] block | parameters block | ["[" expr "]"] "=" ID arguments ";" )`
fn process(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    p.expect_name("a name for the process");
    if p.at(SyntaxKind::LeftParen) {
        if p.nth(1) == SyntaxKind::RightParen {
            p.error_here(
                "a process without parameters has no parentheses".to_string(),
                Some("write `process p { .. }`, or `process p[4] { .. }` for four replicas".to_string()),
            );
        }
        parameters(p);
        if p.at(SyntaxKind::LeftBracket) {
            p.error_here(
                "a template has no replicas".to_string(),
                Some("its instances have, as in `process w[4] = worker(c);`".to_string()),
            );
            p.skip_until(|p| p.at(SyntaxKind::LeftBrace));
        }
        statements::expect_block(p, "a template is written `process p(in c: T, n: int) { .. }`");
        p.complete(marker, SyntaxKind::Template);
        return;
    }
    replicas(p);
    if !p.eat(SyntaxKind::Equal) {
        statements::expect_block(p, "a process is written `process p { .. }`");
        p.complete(marker, SyntaxKind::Process);
        return;
    }
    const HELP: &str = "an instance of a template is written `process w = worker(c, 3);`";
    p.expect_item_name("the name of a template");
    if p.at(SyntaxKind::LeftParen) {
        expressions::arguments(p);
    } else {
        p.missing("`(`", Some(HELP));
    }
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::Instance);
}

/// `"proc" ID parameters ["->" type] block`
fn procedure(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::ProcedureWord);
    p.expect_name("a name for the procedure");
    if p.at(SyntaxKind::LeftParen) {
        parameters(p);
    } else {
        p.missing("`(`", Some("a procedure is written `proc f(x: int, out c: T) { .. }`"));
    }
    if p.eat(SyntaxKind::ThinArrow) {
        types::expect_type(p);
    }
    p.in_procedure = true;
    statements::expect_block(p, "the body of a `proc` is a block");
    p.in_procedure = false;
    p.complete(marker, SyntaxKind::Procedure);
}

/// `parameters = "(" [list( ID ":" vtype | ("in" | "out") ID ( ":" type | "(" [list(type)] ")" ) )] ")"`
fn parameters(p: &mut Parser) {
    p.bump();
    p.list(SyntaxKind::RightParen, "a parameter, as in `n: int`, `x: #int` or `in c: T`", |p| {
        let parameter = p.start();
        match p.current() {
            SyntaxKind::Ident => {
                p.bump();
                if p.expect_help(SyntaxKind::Colon, Some("a parameter is written `n: int`")) {
                    if matches!(p.current(), SyntaxKind::Ampersand | SyntaxKind::Star) {
                        let help = "another name of the caller's variable is written `x: #int`";
                        p.expected("a type", Some(help.to_string()));
                        let ty = p.start();
                        p.bump_as(SyntaxKind::Hash);
                        types::ty(p);
                        p.complete(ty, SyntaxKind::ValueType);
                    } else {
                        types::expect_value_type(p);
                    }
                }
            }
            SyntaxKind::InKeyword | SyntaxKind::OutKeyword => {
                p.bump();
                p.expect_name("a name for the channel");
                match p.current() {
                    SyntaxKind::LeftParen => {
                        p.bump();
                        p.list(SyntaxKind::RightParen, "a type", types::ty);
                    }
                    SyntaxKind::Colon => {
                        p.bump();
                        types::expect_type(p);
                    }
                    _ => p.missing("`(` or `:`", Some("write `in c: T` or `in c(T, U)`, as the channel is declared")),
                }
            }
            _ => {
                p.abandon(parameter);
                return false;
            }
        }
        p.complete(parameter, SyntaxKind::ProcedureParameter);
        true
    });
}

/// `"if" expr "{" { item } "}" ["else" ( "{" { item } "}" | conditional )]`
fn conditional_items(p: &mut Parser) -> bool {
    let marker = p.start();
    p.bump();
    expressions::expression(p);
    item_block(p);
    if p.eat(SyntaxKind::ElseKeyword) {
        if p.at(SyntaxKind::IfKeyword) {
            p.nested(conditional_items);
        } else {
            item_block(p);
        }
    }
    p.complete(marker, SyntaxKind::ConditionalItems);
    true
}

/// `"assert" "(" expr ["," STRING] ")" ";"`
fn static_assertion(p: &mut Parser) {
    let marker = p.start();
    statements::assertion(p);
    p.complete(marker, SyntaxKind::AssertItem);
}

fn item_block(p: &mut Parser) {
    if !p.at(SyntaxKind::LeftBrace) {
        p.missing("`{`", Some("conditional items are written `if DEBUG { process p { .. } }`"));
        return;
    }
    let marker = p.start();
    let opening = p.current_span();
    p.bump();
    p.open_items += 1;
    while !p.at(SyntaxKind::RightBrace) && !p.at_end() {
        if p.at_word("import") {
            p.error_here("an import is not conditional".to_string(), Some("put it outside of the `if`".to_string()));
        }
        if !item(p) {
            not_an_item(p);
        }
    }
    p.open_items -= 1;
    p.close(opening, "these items");
    p.complete(marker, SyntaxKind::ItemBlock);
}

/// What follows `env` in a model.
pub(super) fn process_rest(p: &mut Parser) {
    p.expect_name("a name for the process");
    replicas(p);
    statements::expect_block(p, "a process is written `process p { .. }`");
}

fn replicas(p: &mut Parser) {
    if p.eat(SyntaxKind::LeftBracket) {
        expressions::expression(p);
        p.expect(SyntaxKind::RightBracket);
    }
}

/// `"pool" ID expr ";"`
fn pool(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::PoolWord);
    p.expect_item_name("the name of a type");
    expressions::expression(p);
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::Pool);
}

/// `"memory" ("auto" | "manual") ";"`
fn memory(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::MemoryWord);
    if !p.eat_word("auto", SyntaxKind::AutoWord) && !p.eat_word("manual", SyntaxKind::ManualWord) {
        p.missing("`auto` or `manual`", Some("write `memory auto;` or `memory manual;`"));
    }
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::Memory);
}
