//! The protocol: requests in, answers out, one after the other.
//!
//! Work that needs the constants may take seconds, so a thread of its own does it.

use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types as lsp;
use lsp_types::notification::{
    Cancel, DidChangeTextDocument, DidChangeWatchedFiles, DidCloseTextDocument,
    DidOpenTextDocument, DidSaveTextDocument, Exit, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{
    CodeActionRequest, Completion, DocumentHighlightRequest, DocumentSymbolRequest, Formatting,
    GotoDefinition, HoverRequest, Initialize, InlayHintRequest, PrepareRenameRequest, References,
    Rename, Request as _, Shutdown,
};
use lsp_types::{
    DocumentHighlight, DocumentHighlightKind, DocumentSymbolResponse, GotoDefinitionResponse,
    HoverContents, InitializeParams, OneOf, PositionEncodingKind, PrepareRenameResponse, Range,
    ServerCapabilities, TextDocumentPositionParams, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::bound::{Hint, bind, hints};
use super::completion::completions;
use super::describe::hover;
use super::document::Document;
use super::outline::outline;
use super::protocol::{Places, diagnostics, markdown, path};
use super::rename::{rename, renamed};
use super::text::Encoding;
use crate::check::on_deep_stack;
use crate::syntax::{Diagnostic, Span};

/// How the conversation came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The editor said `shutdown` and then `exit`.
    Orderly,
    /// It said `exit` alone, or nothing more.
    Abrupt,
}

/// Serves an editor over standard input and output.
///
/// # Errors
///
/// The input is not the protocol, or the output is closed.
pub fn serve() -> std::io::Result<End> {
    let (Connection { sender, receiver }, threads) = Connection::stdio();
    let (events, incoming) = channel();
    let messages = events.clone();
    thread::spawn(move || {
        for message in receiver {
            if messages.send(Event::Message(message)).is_err() {
                return;
            }
        }
        let _ = messages.send(Event::Closed);
    });
    let (jobs, todo) = channel();
    thread::spawn(move || work(&todo, &events));
    // A program may be as deep as the checker allows.
    let end = on_deep_stack(move || {
        let say = |message| sender.send(message).is_ok();
        Server::new(&say, jobs).run(&incoming)
    });
    match end {
        // Somebody may still hold the input open.
        None => Err(std::io::ErrorKind::BrokenPipe.into()),
        Some(end) => threads.join().map(|()| end),
    }
}

enum Event {
    Message(Message),
    /// There is no more input.
    Closed,
    Done(Box<Done>),
}

/// A program to be bound to its constants.
struct Job {
    uri: Uri,
    stamp: u64,
    source: String,
    /// Whether sensitivity is asked for.
    with_hints: bool,
}

struct Done {
    uri: Uri,
    stamp: u64,
    /// The constants do not fit.
    problem: Option<Diagnostic>,
    hints: Option<Vec<Hint>>,
}

fn work(todo: &Receiver<Job>, events: &Sender<Event>) {
    while let Ok(first) = todo.recv() {
        let mut jobs: VecDeque<Job> = std::iter::once(first).chain(todo.try_iter()).collect();
        while let Some(job) = jobs.pop_front() {
            jobs.extend(todo.try_iter());
            let replaces = |later: &Job| {
                let covers = later.stamp != job.stamp || later.with_hints || !job.with_hints;
                later.uri == job.uri && covers
            };
            if jobs.iter().any(replaces) {
                continue;
            }
            let (problem, found) = match bind(&job.source, path(&job.uri).as_deref()) {
                Some(Ok(model)) => (None, job.with_hints.then(|| hints(&model))),
                Some(Err(problem)) => (Some(problem), None),
                None => (None, None),
            };
            let done = Done {
                hints: found.or(job.with_hints.then(Vec::new)),
                uri: job.uri,
                stamp: job.stamp,
                problem,
            };
            if events.send(Event::Done(Box::new(done))).is_err() {
                return;
            }
        }
    }
}

/// A document that is open in the editor.
struct Open {
    uri: Uri,
    version: i32,
    /// Another for each text that was ever open: versions begin anew.
    stamp: u64,
    source: String,
    /// Made when something is asked of it.
    document: OnceCell<Document>,
    /// Whether its diagnostics have been published.
    is_shown: bool,
    problem: Option<Diagnostic>,
    hints: Option<Vec<Hint>>,
    /// Requests that wait for the hints.
    waiting: Vec<(RequestId, Range)>,
}

impl Open {
    fn document(&self) -> &Document {
        self.document
            .get_or_init(|| Document::new(self.source.clone()))
    }

    fn places(&self, encoding: Encoding) -> Places<'_> {
        Places {
            uri: &self.uri,
            text: &self.document().text,
            encoding,
        }
    }

    fn hints_in(&self, range: Range, encoding: Encoding) -> Vec<lsp::InlayHint> {
        let places = self.places(encoding);
        let hints = self.hints.iter().flatten().map(|hint| places.hint(hint));
        let inside = |h: &lsp::InlayHint| range.start <= h.position && h.position <= range.end;
        hints.filter(inside).collect()
    }
}

#[derive(PartialEq)]
enum Phase {
    New,
    Ready,
    ShutDown,
}

struct Server<'a> {
    /// Whether the message could be sent.
    say: &'a dyn Fn(Message) -> bool,
    jobs: Sender<Job>,
    phase: Phase,
    encoding: Encoding,
    /// By URI.
    open: HashMap<String, Open>,
    /// Of the latest text.
    stamp: u64,
    is_cut_off: bool,
}

/// Why a request has no answer.
type Refusal = (ErrorCode, String);

impl<'a> Server<'a> {
    fn new(say: &'a dyn Fn(Message) -> bool, jobs: Sender<Job>) -> Self {
        Server {
            say,
            jobs,
            phase: Phase::New,
            encoding: Encoding::default(),
            open: HashMap::new(),
            stamp: 0,
            is_cut_off: false,
        }
    }

    /// `None` where the editor no longer listens.
    fn run(mut self, incoming: &Receiver<Event>) -> Option<End> {
        let mut queue = VecDeque::new();
        loop {
            queue.extend(incoming.try_iter());
            if queue.is_empty() {
                // Diagnostics of every keystroke would come too late for the last.
                self.show();
                queue.push_back(incoming.recv().unwrap_or(Event::Closed));
                queue.extend(incoming.try_iter());
            }
            match queue.pop_front() {
                Some(Event::Message(message)) => match message {
                    Message::Request(request) if is_cancelled(&request.id, &queue) => {
                        self.refuse(request.id, cancelled());
                    }
                    Message::Request(request) => self.request(request),
                    Message::Notification(n) if n.method == Exit::METHOD => {
                        return Some(match self.phase {
                            Phase::ShutDown => End::Orderly,
                            _ => End::Abrupt,
                        });
                    }
                    Message::Notification(notification) => self.notification(notification),
                    // The server asks nothing.
                    Message::Response(_) => {}
                },
                Some(Event::Done(done)) => self.done(*done),
                Some(Event::Closed) => return Some(End::Abrupt),
                None => {}
            }
            if self.is_cut_off {
                return None;
            }
        }
    }

    fn send(&mut self, message: impl Into<Message>) {
        self.is_cut_off |= !(self.say)(message.into());
    }

    fn refuse(&mut self, id: RequestId, (code, why): Refusal) {
        self.send(Response::new_err(id, code as i32, why));
    }

    fn request(&mut self, request: Request) {
        match (&self.phase, request.method.as_str()) {
            (Phase::New, Initialize::METHOD) => return self.initialize(request),
            (Phase::New, _) => {
                let why = (
                    ErrorCode::ServerNotInitialized,
                    "`initialize` comes first".into(),
                );
                return self.refuse(request.id, why);
            }
            (Phase::Ready, Shutdown::METHOD) => {
                self.phase = Phase::ShutDown;
                return self.send(Response::new_ok(request.id, Value::Null));
            }
            (Phase::Ready, method) if method != Initialize::METHOD => {}
            _ => {
                let why = (ErrorCode::InvalidRequest, "not at this time".into());
                return self.refuse(request.id, why);
            }
        }
        let id = request.id.clone();
        let answer = match request.method.as_str() {
            HoverRequest::METHOD => self.hover(request),
            Completion::METHOD => self.completion(request),
            GotoDefinition::METHOD => self.definition(request),
            References::METHOD => self.references(request),
            DocumentHighlightRequest::METHOD => self.highlight(request),
            DocumentSymbolRequest::METHOD => self.symbols(request),
            PrepareRenameRequest::METHOD => self.prepare_rename(request),
            Rename::METHOD => self.rename(request),
            Formatting::METHOD => self.formatting(request),
            CodeActionRequest::METHOD => self.code_actions(request),
            InlayHintRequest::METHOD => match self.inlay_hints(request) {
                Some(answer) => answer,
                None => return,
            },
            method => Err((ErrorCode::MethodNotFound, format!("there is no `{method}`"))),
        };
        match answer {
            Ok(result) => self.send(Response::new_ok(id, result)),
            Err(why) => self.refuse(id, why),
        }
    }

    fn initialize(&mut self, request: Request) {
        let params: InitializeParams = serde_json::from_value(request.params).unwrap_or_default();
        let offered = params
            .capabilities
            .general
            .and_then(|g| g.position_encodings);
        // Those of the editor are in its order.
        let known = |kind: &PositionEncodingKind| match kind.as_str() {
            "utf-8" => Some(Encoding::Utf8),
            "utf-16" => Some(Encoding::Utf16),
            "utf-32" => Some(Encoding::Utf32),
            _ => None,
        };
        self.encoding = offered.iter().flatten().find_map(known).unwrap_or_default();
        self.phase = Phase::Ready;
        let answer = json!({
            "capabilities": capabilities(self.encoding),
            "serverInfo": { "name": "dpm", "version": env!("CARGO_PKG_VERSION") },
        });
        self.send(Response::new_ok(request.id, answer));
    }

    fn notification(&mut self, notification: Notification) {
        if self.phase != Phase::Ready {
            return;
        }
        let Notification { method, params } = notification;
        match method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(p) = read::<lsp::DidOpenTextDocumentParams>(params) {
                    let opened = p.text_document;
                    self.change(opened.uri, opened.version, opened.text);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(p) = read::<lsp::DidChangeTextDocumentParams>(params) {
                    // Each change is the whole text, so that the last one counts.
                    if let Some(last) = p.content_changes.into_iter().next_back() {
                        self.change(p.text_document.uri, p.text_document.version, last.text);
                    }
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(p) = read::<lsp::DidCloseTextDocumentParams>(params) {
                    self.close(p.text_document.uri);
                }
            }
            // Of constants, which may be others now.
            DidSaveTextDocument::METHOD | DidChangeWatchedFiles::METHOD => self.bind_again(),
            Cancel::METHOD => {
                let cancelled_id = cancelled_id(&params);
                let waiting = |open: &mut Open| {
                    let at = open
                        .waiting
                        .iter()
                        .position(|w| Some(&w.0) == cancelled_id.as_ref())?;
                    Some(open.waiting.remove(at).0)
                };
                if let Some(id) = self.open.values_mut().find_map(waiting) {
                    self.refuse(id, cancelled());
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, uri: Uri, version: i32, source: String) {
        self.stamp += 1;
        let now = Open {
            uri: uri.clone(),
            version,
            stamp: self.stamp,
            source,
            document: OnceCell::new(),
            is_shown: false,
            problem: None,
            hints: None,
            waiting: Vec::new(),
        };
        if let Some(before) = self.open.insert(uri.as_str().to_owned(), now) {
            self.forget(before);
        }
    }

    fn close(&mut self, uri: Uri) {
        if let Some(before) = self.open.remove(uri.as_str()) {
            self.forget(before);
        }
        self.publish(uri, Vec::new(), None);
    }

    fn bind_again(&mut self) {
        for open in self.open.values_mut() {
            open.hints = None;
            if open.document().examined.checked.is_some() {
                let _ = self.jobs.send(job(open, !open.waiting.is_empty()));
            }
        }
    }

    /// Nothing can be said any more of a text that is another now.
    fn forget(&mut self, before: Open) {
        for (id, _) in before.waiting {
            self.refuse(
                id,
                (ErrorCode::ContentModified, "the text has changed".into()),
            );
        }
    }

    /// Publishes what has not been, and looks at the constants.
    fn show(&mut self) {
        let mut published = Vec::new();
        for open in self.open.values_mut().filter(|open| !open.is_shown) {
            open.is_shown = true;
            let said = diagnostics(&open.places(self.encoding), open.document());
            published.push((open.uri.clone(), said, open.version));
            if open.document().examined.checked.is_some() {
                let _ = self.jobs.send(job(open, false));
            }
        }
        for (uri, said, version) in published {
            self.publish(uri, said, Some(version));
        }
    }

    fn publish(&mut self, uri: Uri, said: Vec<lsp::Diagnostic>, version: Option<i32>) {
        let params = lsp::PublishDiagnosticsParams::new(uri, said, version);
        self.send(Notification::new(PublishDiagnostics::METHOD.into(), params));
    }

    fn done(&mut self, done: Done) {
        let encoding = self.encoding;
        let open = self.open.get_mut(done.uri.as_str());
        let Some(open) = open.filter(|open| open.stamp == done.stamp) else {
            return;
        };
        if open.problem != done.problem {
            open.problem = done.problem;
            let places = open.places(encoding);
            let mut said = diagnostics(&places, open.document());
            said.extend(open.problem.iter().map(|d| places.diagnostic(d)));
            let (uri, version) = (open.uri.clone(), open.version);
            self.publish(uri, said, Some(version));
        }
        let Some(open) = self.open.get_mut(done.uri.as_str()) else {
            return;
        };
        if done.hints.is_some() {
            open.hints = done.hints;
            let waiting = std::mem::take(&mut open.waiting);
            let answers: Vec<_> = waiting
                .into_iter()
                .map(|(id, range)| (id, open.hints_in(range, encoding)))
                .collect();
            for (id, hints) in answers {
                self.send(Response::new_ok(id, hints));
            }
        }
    }

    fn document(&self, uri: &Uri) -> Result<&Open, Refusal> {
        let open = self.open.get(uri.as_str());
        open.ok_or_else(|| invalid(format!("`{}` is not open", uri.as_str())))
    }

    /// The document, offset and places that belong to a position.
    fn at(
        &self,
        place: &TextDocumentPositionParams,
    ) -> Result<(&Document, usize, Places<'_>), Refusal> {
        let open = self.document(&place.text_document.uri)?;
        let places = open.places(self.encoding);
        Ok((open.document(), places.offset(place.position), places))
    }

    fn hover(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::HoverParams = parameters(request)?;
        let (document, offset, places) = self.at(&params.text_document_position_params)?;
        result(hover(document, offset).map(|found| lsp::Hover {
            contents: HoverContents::Markup(markdown(found.markdown)),
            range: Some(places.range(found.span)),
        }))
    }

    fn completion(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::CompletionParams = parameters(request)?;
        let (document, offset, places) = self.at(&params.text_document_position)?;
        result(places.completions(completions(document, offset)))
    }

    fn definition(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::GotoDefinitionParams = parameters(request)?;
        let (document, offset, places) = self.at(&params.text_document_position_params)?;
        let declared = document.definitions(offset).into_iter();
        let locations = declared.map(|span| places.location(span)).collect();
        result(GotoDefinitionResponse::Array(locations))
    }

    fn references(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::ReferenceParams = parameters(request)?;
        let (document, offset, places) = self.at(&params.text_document_position)?;
        let declared = if params.context.include_declaration {
            Vec::new()
        } else {
            document.definitions(offset)
        };
        let found = document.references(offset).into_iter();
        let locations: Vec<lsp::Location> = found
            .filter(|o| !declared.contains(&o.span))
            .map(|o| places.location(o.span))
            .collect();
        result(locations)
    }

    fn highlight(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::DocumentHighlightParams = parameters(request)?;
        let (document, offset, places) = self.at(&params.text_document_position_params)?;
        let found = document.references(offset).into_iter();
        let highlights: Vec<DocumentHighlight> = found
            .map(|o| DocumentHighlight {
                range: places.range(o.span),
                kind: Some(if o.writes {
                    DocumentHighlightKind::WRITE
                } else {
                    DocumentHighlightKind::READ
                }),
            })
            .collect();
        result(highlights)
    }

    fn symbols(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::DocumentSymbolParams = parameters(request)?;
        let open = self.document(&params.text_document.uri)?;
        let places = open.places(self.encoding);
        let parts = outline(open.document()).into_iter();
        let symbols = parts.map(|part| places.symbol(part)).collect();
        result(DocumentSymbolResponse::Nested(symbols))
    }

    fn prepare_rename(&self, request: Request) -> Result<Value, Refusal> {
        let params: TextDocumentPositionParams = parameters(request)?;
        let (document, offset, places) = self.at(&params)?;
        let found = renamed(document, offset).map_err(|why| (ErrorCode::RequestFailed, why))?;
        result(PrepareRenameResponse::RangeWithPlaceholder {
            range: places.range(found.span),
            placeholder: document.words(found.span),
        })
    }

    fn rename(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::RenameParams = parameters(request)?;
        let (document, offset, places) = self.at(&params.text_document_position)?;
        let edits = rename(document, offset, &params.new_name);
        let edits = edits.map_err(|why| (ErrorCode::RequestFailed, why))?;
        result(places.edits(edits))
    }

    fn formatting(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::DocumentFormattingParams = parameters(request)?;
        let open = self.document(&params.text_document.uri)?;
        let places = open.places(self.encoding);
        let edit = open.document().formatted();
        let edits: Vec<lsp::TextEdit> = edit
            .into_iter()
            .map(|(span, text)| places.edit(span, text))
            .collect();
        result(edits)
    }

    fn code_actions(&self, request: Request) -> Result<Value, Refusal> {
        let params: lsp::CodeActionParams = parameters(request)?;
        let open = self.document(&params.text_document.uri)?;
        let places = open.places(self.encoding);
        let wanted = Span::new(
            places.offset(params.range.start),
            places.offset(params.range.end),
        );
        let touches = |d: &&Diagnostic| d.span.start <= wanted.end && wanted.start <= d.span.end;
        let said = open.document().examined.diagnostics.iter().filter(touches);
        let actions: Vec<_> = said.filter_map(|d| places.correction(d)).collect();
        result(actions)
    }

    /// `None` where the answer is given later.
    fn inlay_hints(&mut self, request: Request) -> Option<Result<Value, Refusal>> {
        let id = request.id.clone();
        let params: lsp::InlayHintParams = match parameters(request) {
            Ok(params) => params,
            Err(why) => return Some(Err(why)),
        };
        let (uri, encoding) = (params.text_document.uri, self.encoding);
        let Some(open) = self.open.get_mut(uri.as_str()) else {
            return Some(self.document(&uri).and(Ok(Value::Null)));
        };
        let is_known = open.hints.is_some() || open.document().examined.checked.is_none();
        if is_known || self.jobs.send(job(open, true)).is_err() {
            return Some(result(open.hints_in(params.range, encoding)));
        }
        open.waiting.push((id, params.range));
        None
    }
}

fn job(open: &Open, with_hints: bool) -> Job {
    Job {
        uri: open.uri.clone(),
        stamp: open.stamp,
        source: open.source.clone(),
        with_hints,
    }
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }),
        text_document_sync: Some(lsp::TextDocumentSyncCapability::Options(
            lsp::TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(lsp::TextDocumentSyncKind::FULL),
                save: Some(true.into()),
                ..lsp::TextDocumentSyncOptions::default()
            },
        )),
        hover_provider: Some(true.into()),
        completion_provider: Some(lsp::CompletionOptions {
            trigger_characters: Some(vec!["~".to_owned()]),
            ..lsp::CompletionOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(lsp::RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: lsp::WorkDoneProgressOptions::default(),
        })),
        code_action_provider: Some(lsp::CodeActionProviderCapability::Options(
            lsp::CodeActionOptions {
                code_action_kinds: Some(vec![lsp::CodeActionKind::QUICKFIX]),
                ..lsp::CodeActionOptions::default()
            },
        )),
        inlay_hint_provider: Some(OneOf::Left(true)),
        ..ServerCapabilities::default()
    }
}

fn read<P: DeserializeOwned>(params: Value) -> Option<P> {
    serde_json::from_value(params).ok()
}

fn parameters<P: DeserializeOwned>(request: Request) -> Result<P, Refusal> {
    serde_json::from_value(request.params).map_err(|e| invalid(e.to_string()))
}

fn invalid(why: String) -> Refusal {
    (ErrorCode::InvalidParams, why)
}

fn cancelled() -> Refusal {
    (ErrorCode::RequestCanceled, "cancelled".into())
}

fn result(value: impl serde::Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(value).map_err(|e| (ErrorCode::InternalError, e.to_string()))
}

/// The request that is no longer wanted.
fn cancelled_id(params: &Value) -> Option<RequestId> {
    serde_json::from_value(params.get("id")?.clone()).ok()
}

fn is_cancelled(id: &RequestId, later: &VecDeque<Event>) -> bool {
    later.iter().any(|event| {
        let Event::Message(message) = event else {
            return false;
        };
        matches!(message, Message::Notification(n)
            if n.method == Cancel::METHOD && cancelled_id(&n.params).as_ref() == Some(id))
    })
}
