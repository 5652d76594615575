//! The state of a session: the texts of the editor, the folders, and the workspace over both. Notifications change it.

use super::convert::{diagnostic, offset, path_of, range, uri_of};
use super::folders::{self, Disk, ProjectError};
use lsp_server::{Notification, Request};
use lsp_types as lsp;
use quaject_esp_ide::{Encoding, Lines, Roots, Workspace};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A session.
pub(super) struct Server {
    pub(super) workspace: Workspace,
    pub(super) encoding: Encoding,
    folders: Vec<PathBuf>,
    /// Whether folders have to be read again.
    are_folders_stale: bool,
    /// The open texts, with the versions that the editor gave them.
    texts: BTreeMap<String, (i32, String)>,
    /// Files whose problems the editor shows.
    shown: BTreeSet<String>,
    can_watch: bool,
}

impl Server {
    /// A session as the editor asks for it.
    pub(super) fn new(parameters: &Value) -> Server {
        let encodings = parameters["capabilities"]["general"]["positionEncodings"].as_array();
        let is_utf8 = encodings.is_some_and(|all| all.first() == Some(&json!("utf-8")));
        let encoding = if is_utf8 { Encoding::Utf8 } else { Encoding::Utf16 };
        let several = parameters["workspaceFolders"].as_array().map(Vec::as_slice).unwrap_or_default();
        let uris =
            several.iter().map(|folder| &folder["uri"]).chain(several.is_empty().then_some(&parameters["rootUri"]));
        let folders = uris.filter_map(|uri| path_of(&serde_json::from_value(uri.clone()).ok()?)).map(PathBuf::from);
        let watching = &parameters["capabilities"]["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"];
        Server {
            workspace: Workspace::new(Box::new(Disk), Roots::default()),
            encoding,
            folders: folders.collect(),
            are_folders_stale: true,
            texts: BTreeMap::new(),
            shown: BTreeSet::new(),
            can_watch: watching.as_bool().unwrap_or(false),
        }
    }

    /// The request that the editor reports changes of files, if it can.
    pub(super) fn watch_files(&self) -> Option<Request> {
        let watchers = json!([{ "globPattern": "**/*.esp" }, { "globPattern": "**/qj.toml" }]);
        let registration = json!({
            "id": "files",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": { "watchers": watchers }
        });
        let parameters = json!({ "registrations": [registration] });
        let method = "client/registerCapability".to_string();
        self.can_watch.then(|| Request::new("watch".to_string().into(), method, parameters))
    }

    /// Forgets all analyses and begins anew with the texts.
    pub(super) fn restart(&mut self) {
        self.workspace = Workspace::new(Box::new(Disk), Roots::default());
        self.are_folders_stale = true;
        for (path, (_, text)) in &self.texts {
            self.workspace.set_text(path, text.clone());
        }
    }

    /// Applies what the editor reports. What is not understood is passed over, as the protocol has it.
    pub(super) fn notification(&mut self, method: &str, parameters: &Value) {
        let document = &parameters["textDocument"];
        let path = serde_json::from_value(document["uri"].clone()).ok().and_then(|uri| path_of(&uri));
        let version = document["version"].as_i64().unwrap_or_default() as i32;
        match (method, path) {
            ("textDocument/didOpen", Some(path)) => {
                let text = document["text"].as_str().unwrap_or_default().to_string();
                self.note_folder_of(&path);
                self.set_text(path, version, text);
            }
            ("textDocument/didChange", Some(path)) => {
                let Some((_, mut text)) = self.texts.remove(&path) else { return };
                for change in parameters["contentChanges"].as_array().into_iter().flatten() {
                    self.change(&mut text, change);
                }
                self.set_text(path, version, text);
            }
            ("textDocument/didClose", Some(path)) => {
                self.texts.remove(&path);
                self.workspace.close(&path);
            }
            ("workspace/didChangeWatchedFiles", _) => {
                for change in parameters["changes"].as_array().into_iter().flatten() {
                    let Ok(uri) = serde_json::from_value(change["uri"].clone()) else { continue };
                    let Some(path) = path_of(&uri) else { continue };
                    self.workspace.note_change(&path);
                    // A file that was created or removed can change the roots.
                    self.are_folders_stale |= change["type"] != json!(2) || path.ends_with(crate::project::FILE_NAME);
                }
            }
            ("workspace/didChangeWorkspaceFolders", _) => {
                let folders = |value: &Value| -> Vec<PathBuf> {
                    let uris = value.as_array().into_iter().flatten().map(|folder| folder["uri"].clone());
                    uris.filter_map(|uri| path_of(&serde_json::from_value(uri).ok()?)).map(PathBuf::from).collect()
                };
                let removed = folders(&parameters["event"]["removed"]);
                self.folders.retain(|folder| !removed.contains(folder));
                self.folders.extend(folders(&parameters["event"]["added"]));
                self.are_folders_stale = true;
            }
            _ => {}
        }
    }

    fn set_text(&mut self, path: String, version: i32, text: String) {
        self.workspace.set_text(&path, text.clone());
        self.texts.insert(path, (version, text));
    }

    /// Replaces a range of a text, or all of it.
    fn change(&self, text: &mut String, change: &Value) {
        let new = change["text"].as_str().unwrap_or_default();
        match serde_json::from_value::<lsp::Range>(change["range"].clone()) {
            Ok(range) => {
                let lines = Lines::new(text, self.encoding);
                let (start, end) = (offset(&lines, range.start) as usize, offset(&lines, range.end) as usize);
                text.replace_range(start.min(end)..start.max(end), new);
            }
            Err(_) => *text = new.to_string(),
        }
    }

    /// A file outside of the folders brings its own: the nearest one upwards with a project file.
    fn note_folder_of(&mut self, path: &str) {
        if self.folders.iter().any(|folder| Path::new(path).starts_with(folder)) {
            return;
        }
        let has_project = |folder: &&Path| folder.join(crate::project::FILE_NAME).is_file();
        if let Some(folder) = Path::new(path).ancestors().skip(1).find(has_project) {
            self.folders.push(folder.to_path_buf());
            self.are_folders_stale = true;
        }
    }

    /// Analyses what has changed; the notifications about problems.
    pub(super) fn refresh(&mut self) -> Vec<Notification> {
        let mut errors: Vec<ProjectError> = Vec::new();
        if std::mem::take(&mut self.are_folders_stale) {
            let (roots, import_folders, found) = folders::programs(&self.folders);
            self.workspace.set_roots(roots, import_folders);
            errors = found;
        }
        let mut news = Vec::new();
        for (path, text, diagnostic) in errors {
            let lines = Lines::new(&text, self.encoding);
            let place = range(&lines, (diagnostic.span.start, diagnostic.span.end));
            let help = diagnostic.help.iter().map(|help| format!("\nhelp: {help}")).collect::<String>();
            let message = format!("{}{help}", diagnostic.message);
            let code = quaject_diagnostic::Code::name(diagnostic.code);
            let shown = json!([{ "range": place, "severity": 1, "code": code, "source": "qj", "message": message }]);
            self.publish(&folders::name(&path), shown, &mut news);
        }
        for (path, problems) in self.workspace.refresh() {
            let text = self.workspace.text(&path).unwrap_or_default();
            let lines = Lines::new(&text, self.encoding);
            let shown: Vec<lsp::Diagnostic> =
                problems.iter().map(|problem| diagnostic(&self.workspace, self.encoding, &lines, problem)).collect();
            self.publish(&path, json!(shown), &mut news);
        }
        news
    }

    fn publish(&mut self, path: &str, diagnostics: Value, news: &mut Vec<Notification>) {
        let is_empty = diagnostics.as_array().is_none_or(Vec::is_empty);
        // After a restart the editor may show what is there no more.
        let was_shown = if is_empty { self.shown.remove(path) } else { !self.shown.insert(path.to_string()) };
        let Some(uri) = uri_of(path).filter(|_| !is_empty || was_shown) else { return };
        let mut parameters = json!({ "uri": uri, "diagnostics": diagnostics });
        if let Some((version, _)) = self.texts.get(path) {
            parameters["version"] = json!(version);
        }
        news.push(Notification::new("textDocument/publishDiagnostics".to_string(), parameters));
    }
}
