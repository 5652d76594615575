//! The requests of an editor, and what the server says that it can do.

use super::convert::{
    completion_kind, diagnostic, document_symbol, edits, fold_kind, locations, offset, path_of, range, symbol_kind,
    token_legend, tokens, uri_of,
};
use super::server::Server;
use lsp_server::ErrorCode;
use lsp_types as lsp;
use quaject_esp_ide::{Encoding, Lines};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Why a request has no answer.
pub(super) struct RequestError {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

type Answer = Result<Value, RequestError>;

/// What the server can do.
pub(super) fn capabilities(encoding: Encoding) -> Value {
    let encoding = match encoding {
        Encoding::Utf8 => "utf-8",
        Encoding::Utf16 => "utf-16",
    };
    json!({
        "positionEncoding": encoding,
        "textDocumentSync": { "openClose": true, "change": 2 },
        "hoverProvider": true,
        "definitionProvider": true,
        "typeDefinitionProvider": true,
        "implementationProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "documentSymbolProvider": true,
        "workspaceSymbolProvider": true,
        "foldingRangeProvider": true,
        "selectionRangeProvider": true,
        "documentFormattingProvider": true,
        "completionProvider": { "triggerCharacters": [".", "(", "#", "@"] },
        "renameProvider": { "prepareProvider": true },
        "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        "semanticTokensProvider": { "legend": token_legend(), "full": true, "range": true },
        "workspace": { "workspaceFolders": { "supported": true, "changeNotifications": true } },
    })
}

impl Server {
    /// Answers a request.
    pub(super) fn request(&mut self, method: &str, parameters: Value) -> Answer {
        match method {
            "textDocument/hover" => self.hover(parse(parameters)?),
            "textDocument/definition" => self.definition(parse(parameters)?),
            "textDocument/typeDefinition" => self.type_definition(parse(parameters)?),
            "textDocument/implementation" => self.peers(parse(parameters)?),
            "textDocument/references" => self.references(parse(parameters)?),
            "textDocument/documentHighlight" => self.highlights(parse(parameters)?),
            "textDocument/documentSymbol" => self.document_symbols(parse(parameters)?),
            "workspace/symbol" => self.workspace_symbols(parse(parameters)?),
            "textDocument/foldingRange" => self.folds(parse(parameters)?),
            "textDocument/selectionRange" => self.selection_ranges(parse(parameters)?),
            "textDocument/formatting" => self.format(parse(parameters)?),
            "textDocument/completion" => self.completions(parse(parameters)?),
            "textDocument/prepareRename" => self.prepare_rename(parse(parameters)?),
            "textDocument/rename" => self.rename(parse(parameters)?),
            "textDocument/codeAction" => self.code_actions(parse(parameters)?),
            "textDocument/semanticTokens/full" => {
                let lsp::SemanticTokensParams { text_document, .. } = parse(parameters)?;
                self.semantic_tokens(&text_document.uri, None)
            }
            "textDocument/semanticTokens/range" => {
                let lsp::SemanticTokensRangeParams { text_document, range, .. } = parse(parameters)?;
                self.semantic_tokens(&text_document.uri, Some(range))
            }
            _ => {
                let message = format!("`{method}` is not supported");
                Err(RequestError { code: ErrorCode::MethodNotFound, message })
            }
        }
    }

    fn hover(&self, parameters: lsp::HoverParams) -> Answer {
        let Some(place) = self.place(&parameters.text_document_position_params) else { return Ok(Value::Null) };
        let Some(hover) = self.workspace.hover(&place.path, place.offset) else { return Ok(Value::Null) };
        let contents = lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: hover.text };
        let range = range(&place.lines(self.encoding), hover.range);
        answer(lsp::Hover { contents: lsp::HoverContents::Markup(contents), range: Some(range) })
    }

    fn definition(&self, parameters: lsp::GotoDefinitionParams) -> Answer {
        let Some(place) = self.place(&parameters.text_document_position_params) else { return Ok(Value::Null) };
        let found = self.workspace.definition(&place.path, place.offset);
        answer(locations(&self.workspace, self.encoding, found.as_slice()).pop())
    }

    fn type_definition(&self, parameters: lsp::GotoDefinitionParams) -> Answer {
        let Some(place) = self.place(&parameters.text_document_position_params) else { return Ok(Value::Null) };
        let found = self.workspace.type_definition(&place.path, place.offset);
        answer(locations(&self.workspace, self.encoding, found.as_slice()).pop())
    }

    fn peers(&self, parameters: lsp::GotoDefinitionParams) -> Answer {
        let Some(place) = self.place(&parameters.text_document_position_params) else { return Ok(Value::Null) };
        let peers = self.workspace.peers(&place.path, place.offset);
        answer(locations(&self.workspace, self.encoding, &peers))
    }

    fn references(&self, parameters: lsp::ReferenceParams) -> Answer {
        let Some(place) = self.place(&parameters.text_document_position) else { return Ok(Value::Null) };
        let found = self.workspace.references(&place.path, place.offset, parameters.context.include_declaration);
        answer(locations(&self.workspace, self.encoding, &found))
    }

    fn highlights(&self, parameters: lsp::DocumentHighlightParams) -> Answer {
        let Some(place) = self.place(&parameters.text_document_position_params) else { return Ok(Value::Null) };
        let lines = place.lines(self.encoding);
        let highlight = |known: &quaject_esp_ide::Highlight| lsp::DocumentHighlight {
            range: range(&lines, known.range),
            kind: Some(if known.is_declaration {
                lsp::DocumentHighlightKind::WRITE
            } else {
                lsp::DocumentHighlightKind::READ
            }),
        };
        let found = self.workspace.highlights(&place.path, place.offset);
        answer(found.iter().map(highlight).collect::<Vec<_>>())
    }

    fn document_symbols(&self, parameters: lsp::DocumentSymbolParams) -> Answer {
        let Some(file) = self.file(&parameters.text_document.uri) else { return Ok(Value::Null) };
        let lines = file.lines(self.encoding);
        let symbols = self.workspace.document_symbols(&file.path);
        answer(symbols.iter().map(|symbol| document_symbol(&lines, symbol)).collect::<Vec<_>>())
    }

    fn workspace_symbols(&self, parameters: lsp::WorkspaceSymbolParams) -> Answer {
        let found = self.workspace.workspace_symbols(&parameters.query);
        let symbols = found.iter().filter_map(|(symbol, location)| {
            let location = locations(&self.workspace, self.encoding, std::slice::from_ref(location)).pop()?;
            Some(json!({ "name": symbol.name, "kind": symbol_kind(symbol.kind), "location": location }))
        });
        answer(symbols.collect::<Vec<_>>())
    }

    fn folds(&self, parameters: lsp::FoldingRangeParams) -> Answer {
        let Some(file) = self.file(&parameters.text_document.uri) else { return Ok(Value::Null) };
        let lines = file.lines(self.encoding);
        let fold = |fold: quaject_esp_ide::Fold| {
            let place = range(&lines, fold.range);
            lsp::FoldingRange {
                start_line: place.start.line,
                end_line: place.end.line,
                start_character: Some(place.start.character),
                end_character: Some(place.end.character),
                kind: fold_kind(fold.kind),
                collapsed_text: None,
            }
        };
        answer(self.workspace.folds(&file.path).into_iter().map(fold).collect::<Vec<_>>())
    }

    fn selection_ranges(&self, parameters: lsp::SelectionRangeParams) -> Answer {
        let Some(file) = self.file(&parameters.text_document.uri) else { return Ok(Value::Null) };
        let lines = file.lines(self.encoding);
        let selection = |position: &lsp::Position| {
            let ranges = self.workspace.selection_ranges(&file.path, offset(&lines, *position));
            ranges.into_iter().rev().fold(None, |parent: Option<lsp::SelectionRange>, inner| {
                Some(lsp::SelectionRange { range: range(&lines, inner), parent: parent.map(Box::new) })
            })
        };
        let here = |position: &lsp::Position| lsp::SelectionRange {
            range: lsp::Range { start: *position, end: *position },
            parent: None,
        };
        let found = parameters.positions.iter().map(|position| selection(position).unwrap_or_else(|| here(position)));
        answer(found.collect::<Vec<_>>())
    }

    fn format(&self, parameters: lsp::DocumentFormattingParams) -> Answer {
        let Some(file) = self.file(&parameters.text_document.uri) else { return Ok(Value::Null) };
        let Some(changes) = self.workspace.format(&file.path) else {
            return refuse("a file with a syntax error is not formatted: correct it first");
        };
        answer(edits(&file.lines(self.encoding), &changes))
    }

    fn completions(&self, parameters: lsp::CompletionParams) -> Answer {
        let Some(place) = self.place(&parameters.text_document_position) else { return Ok(Value::Null) };
        let lines = place.lines(self.encoding);
        let items = self.workspace.completions(&place.path, place.offset);
        let item = |(number, known): (usize, quaject_esp_ide::Completion)| lsp::CompletionItem {
            kind: Some(completion_kind(known.kind)),
            detail: (!known.detail.is_empty()).then_some(known.detail),
            sort_text: Some(format!("{number:05}")),
            text_edit: Some(lsp::CompletionTextEdit::Edit(lsp::TextEdit {
                range: range(&lines, known.range),
                new_text: known.label.clone(),
            })),
            label: known.label,
            ..lsp::CompletionItem::default()
        };
        answer(items.into_iter().enumerate().map(item).collect::<Vec<_>>())
    }

    fn prepare_rename(&self, parameters: lsp::TextDocumentPositionParams) -> Answer {
        let Some(place) = self.place(&parameters) else { return Ok(Value::Null) };
        match self.workspace.prepare_rename(&place.path, place.offset) {
            Ok(name) => answer(range(&place.lines(self.encoding), name)),
            Err(error) => refuse(&format!("{}; {}", error.cause, error.help)),
        }
    }

    fn rename(&self, parameters: lsp::RenameParams) -> Answer {
        let Some(place) = self.place(&parameters.text_document_position) else { return Ok(Value::Null) };
        let changes = match self.workspace.rename(&place.path, place.offset, &parameters.new_name) {
            Ok(changes) => changes,
            Err(error) => return refuse(&format!("{}; {}", error.cause, error.help)),
        };
        let mut all = serde_json::Map::new();
        for (path, changes) in changes {
            if let (Some(text), Some(uri)) = (self.workspace.text(&path), uri_of(&path)) {
                all.insert(uri.as_str().to_string(), json!(edits(&Lines::new(&text, self.encoding), &changes)));
            }
        }
        answer(json!({ "changes": all }))
    }

    fn code_actions(&self, parameters: lsp::CodeActionParams) -> Answer {
        let uri = &parameters.text_document.uri;
        let Some(file) = self.file(uri) else { return Ok(Value::Null) };
        let lines = file.lines(self.encoding);
        let touched = (offset(&lines, parameters.range.start), offset(&lines, parameters.range.end));
        let corrections = self.workspace.corrections(&file.path, touched);
        let action = |known: &quaject_esp_ide::Correction| {
            let changes = json!({ uri.as_str(): edits(&lines, &known.edits) });
            let problem = diagnostic(&self.workspace, self.encoding, &lines, &known.problem);
            json!({
                "title": known.title,
                "kind": "quickfix",
                "diagnostics": [problem],
                "isPreferred": corrections.len() == 1,
                "edit": { "changes": changes },
            })
        };
        answer(corrections.iter().map(action).collect::<Vec<_>>())
    }

    fn semantic_tokens(&self, uri: &lsp::Uri, part: Option<lsp::Range>) -> Answer {
        let Some(file) = self.file(uri) else { return Ok(Value::Null) };
        let lines = file.lines(self.encoding);
        let part = part.map_or(0..u32::MAX, |part| offset(&lines, part.start)..offset(&lines, part.end));
        let found = self.workspace.tokens(&file.path, part);
        answer(lsp::SemanticTokens { result_id: None, data: tokens(&file.text, &lines, &found) })
    }

    /// The file and offset of a position; none for a text that is not open.
    fn place(&self, parameters: &lsp::TextDocumentPositionParams) -> Option<OpenFile> {
        let mut file = self.file(&parameters.text_document.uri)?;
        file.offset = offset(&file.lines(self.encoding), parameters.position);
        Some(file)
    }

    fn file(&self, uri: &lsp::Uri) -> Option<OpenFile> {
        let path = path_of(uri)?;
        let text = self.workspace.open_text(&path)?.to_string();
        Some(OpenFile { path, text, offset: 0 })
    }
}

/// A file of the editor, and a place in it.
struct OpenFile {
    path: String,
    text: String,
    offset: u32,
}

impl OpenFile {
    fn lines(&self, encoding: Encoding) -> Lines<'_> {
        Lines::new(&self.text, encoding)
    }
}

fn parse<T: DeserializeOwned>(parameters: Value) -> Result<T, RequestError> {
    serde_json::from_value(parameters)
        .map_err(|error| RequestError { code: ErrorCode::InvalidParams, message: error.to_string() })
}

fn answer(result: impl Serialize) -> Answer {
    serde_json::to_value(result)
        .map_err(|error| RequestError { code: ErrorCode::InternalError, message: error.to_string() })
}

fn refuse(message: &str) -> Answer {
    Err(RequestError { code: ErrorCode::RequestFailed, message: message.to_string() })
}
