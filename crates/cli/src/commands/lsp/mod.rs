//! `qj lsp`: a language server on standard input and output. One loop reads messages, applies edits in their order,
//! analyses what they concern once, and answers. Translates only; `quaject-esp-ide` finds the answers.

mod convert;
mod folders;
mod requests;
mod server;

use crate::arguments::Lsp;
use crate::terminal::{CliError, Status};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use quaject_esp_run::{HostCode, HostError};
use serde_json::json;
use server::Server;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) fn lsp(_arguments: Lsp) -> Result<Status, CliError> {
    let (connection, threads) = Connection::stdio();
    let end = serve(&connection);
    drop(connection);
    let ended = threads.join();
    match (end, ended) {
        (Ok(status), Ok(())) => Ok(status),
        (Err(cause), _) => Err(CliError::from(
            HostError::new(HostCode::File, format!("the editor broke the protocol: {cause}"))
                .help("`qj lsp` is started by an editor; the book's chapter on editors shows how"),
        )),
        (_, Err(error)) => {
            Err(CliError::from(HostError::new(HostCode::File, format!("the editor does not answer: {error}"))))
        }
    }
}

/// Answers messages until the editor ends the session.
fn serve(connection: &Connection) -> Result<Status, String> {
    let (id, parameters) = connection.initialize_start().map_err(|error| error.to_string())?;
    let mut server = Server::new(&parameters);
    let information = json!({ "name": "qj", "version": env!("CARGO_PKG_VERSION") });
    let offer = json!({ "capabilities": requests::capabilities(server.encoding), "serverInfo": information });
    connection.initialize_finish(id, offer).map_err(|error| error.to_string())?;
    send(connection, server.watch_files().map(Message::from));
    loop {
        // What an edit changes is analysed when no further message waits.
        if connection.receiver.is_empty() {
            refresh(connection, &mut server);
        }
        let Ok(message) = connection.receiver.recv() else { return Ok(Status::Failed) };
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request).map_err(|error| error.to_string())? {
                    return Ok(Status::Done);
                }
                refresh(connection, &mut server);
                let response = answer(&mut server, request);
                send(connection, [Message::from(response)]);
            }
            Message::Notification(notification) => note(&mut server, &notification),
            // The editor's answers are about what it was asked to watch.
            Message::Response(_) => {}
        }
    }
}

/// Answers a request. If the analysis panics, so does no more than the answer.
fn answer(server: &mut Server, request: Request) -> Response {
    let outcome = catch_unwind(AssertUnwindSafe(|| server.request(&request.method, request.params)));
    match outcome {
        Ok(Ok(result)) => Response { id: request.id, response_result: Ok(result) },
        Ok(Err(error)) => Response::new_err(request.id, error.code as i32, error.message),
        Err(_) => {
            server.restart();
            let message = format!("`{}` failed in the compiler: please report it with the text", request.method);
            Response::new_err(request.id, ErrorCode::InternalError as i32, message)
        }
    }
}

fn note(server: &mut Server, notification: &Notification) {
    let applied = catch_unwind(AssertUnwindSafe(|| server.notification(&notification.method, &notification.params)));
    if applied.is_err() {
        server.restart();
    }
}

/// Analyses what has changed, and sends the problems that are new or solved.
fn refresh(connection: &Connection, server: &mut Server) {
    match catch_unwind(AssertUnwindSafe(|| server.refresh())) {
        Ok(news) => send(connection, news.into_iter().map(Message::from)),
        Err(_) => server.restart(),
    }
}

fn send(connection: &Connection, messages: impl IntoIterator<Item = Message>) {
    // An editor that reads no more ends the session by the next message that is not there.
    messages.into_iter().for_each(|message| drop(connection.sender.send(message)));
}
