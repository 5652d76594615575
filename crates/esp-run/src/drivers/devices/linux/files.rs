//! `file:DIR`: the files of a folder, as messages. A program opens, reads and writes by sending a request and receives
//! exactly one answer for each, in order:
//!
//! ```text
//!   open name          to read                                   done
//!   edit name          to read and write; made if it is not there  done
//!   create name        a new one, which appears complete at `close` done
//!   replace name       likewise, in the place of an old one        done
//!   read  at, count    at most `count` bytes, none at the end     data bytes
//!   write at, bytes                                              done
//!   size                                                         size n
//!   close, discard     `discard` forgets what `create` has begun  done
//!                      instead of any of them:                   failed code, reason
//! ```
//!
//! A number or a `pid` before the request identifies the open file. Names are resolved below the folder (`openat2`,
//! `RESOLVE_BENEATH`): no `..` and no link leads out of it.

use crate::drivers::devices::{Device, Ends, Received};
use crate::drivers::failure::Failure;
use crate::drivers::message_codec::FieldKind::{Bytes, Cases, Id, Number};
use crate::drivers::message_codec::{Case, MessageCodec, TooLarge, Value};
use crate::error::{HostCode, HostError};
use crate::poller::Interest;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Channel, Program};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Answers held before further requests wait.
const HELD: usize = 256;

const OPEN: usize = 0;
const EDIT: usize = 1;
const CREATE: usize = 2;
const REPLACE: usize = 3;
const READ: usize = 4;
const WRITE: usize = 5;
const SIZE: usize = 6;
const CLOSE: usize = 7;
const DISCARD: usize = 8;
/// By the numbers above.
const REQUESTS: &[Case<'_>] = &[
    Case::new("open", &[Bytes]),
    Case::new("edit", &[Bytes]),
    Case::new("create", &[Bytes]),
    Case::new("replace", &[Bytes]),
    Case::new("read", &[Number(0xffff), Number(0xff)]),
    Case::new("write", &[Number(0xffff), Bytes]),
    Case::new("size", &[]),
    Case::new("close", &[]),
    Case::new("discard", &[]),
];

const DONE: usize = 0;
const DATA: usize = 1;
const LENGTH: usize = 2;
const FAILED: usize = 3;
/// By the numbers above.
const ANSWERS: &[Case<'_>] = &[
    Case::new("done", &[]),
    Case::new("data", &[Bytes]),
    Case::new("size", &[Number(0xffff)]),
    Case { name: "failed", fields: &[Number(0x7f), Bytes], least: 1 },
];

/// The files that a program has open.
pub(super) struct Files {
    folder: OwnedFd,
    /// The name of the folder in messages.
    name: String,
    requests: Option<MessageCodec>,
    answers: Option<MessageCodec>,
    open: HashMap<i128, OpenFile>,
    held: VecDeque<Vec<Datum>>,
}

enum OpenFile {
    /// Named and there.
    File(File),
    /// To appear as `leaf` in `folder` when it is closed.
    Draft { file: NamedTempFile, folder: OwnedFd, leaf: PathBuf, over: Over },
}

/// The treatment of an existing file of this name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Refuse,
    Replace,
}

impl Files {
    pub(super) fn open(program: &Program, root: &Path, ends: Ends<'_>) -> Result<Files, HostError> {
        let requests = ends.output.map(|channel| {
            MessageCodec::of_channel(program, channel, "file", &[Id, Cases(REQUESTS)], REQUESTS_EXAMPLE)
        });
        let answers = ends
            .input
            .map(|channel| MessageCodec::of_channel(program, channel, "file", &[Id, Cases(ANSWERS)], ANSWERS_EXAMPLE));
        let (requests, answers) = (requests.transpose()?, answers.transpose()?);
        if let (Some(requests), Some(answers), Some(channel)) = (&requests, &answers, ends.input) {
            complete(requests, answers, channel)?;
        }
        let folder = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| HostError::file("open", root.display(), &error.into()))?;
        let name = root.display().to_string();
        Ok(Files { folder, name, requests, answers, open: HashMap::new(), held: VecDeque::new() })
    }

    fn perform(&mut self, id: i128, case: usize, values: Vec<Value>) -> Result<(usize, Vec<Value>), Failure> {
        let mut values = values.into_iter();
        let mut next = || values.next().unwrap_or(Value::Number(0));
        let position = |value: Value| u64::try_from(value.number()).map_err(|_| Failure::wrong("a negative position"));
        match case {
            OPEN | EDIT | CREATE | REPLACE => {
                let name = next().into_bytes();
                let opened = self.start(case, Path::new(OsStr::from_bytes(&name)))?;
                self.open.insert(id, opened);
                Ok((DONE, Vec::new()))
            }
            READ => {
                let (at, count) = (position(next())?, next().number().max(0));
                let room = self.answers.as_ref().map_or(0, |answers| answers.bytes_bound_in(DATA));
                let mut content = vec![0; room.min(usize::try_from(count).unwrap_or(room))];
                let mut length = 0;
                while length < content.len() {
                    match self.file(id)?.read_at(&mut content[length..], at.saturating_add(length as u64)) {
                        Ok(0) => break,
                        Ok(count) => length += count,
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(Failure::of(&error)),
                    }
                }
                content.truncate(length);
                Ok((DATA, vec![Value::Bytes(content)]))
            }
            WRITE => {
                let (at, content) = (position(next())?, next().into_bytes());
                self.file(id)?.write_all_at(&content, at)?;
                Ok((DONE, Vec::new()))
            }
            SIZE => {
                let length = self.file(id)?.metadata()?.len();
                Ok((LENGTH, vec![Value::Number(i128::from(length))]))
            }
            CLOSE => {
                self.close(id)?;
                Ok((DONE, Vec::new()))
            }
            _ => {
                debug_assert_eq!(case, DISCARD, "the cases are numbered above");
                self.open.remove(&id).ok_or_else(Failure::not_open)?;
                Ok((DONE, Vec::new()))
            }
        }
    }

    fn file(&self, id: i128) -> Result<&File, Failure> {
        match self.open.get(&id) {
            Some(OpenFile::File(file)) => Ok(file),
            Some(OpenFile::Draft { file, .. }) => Ok(file.as_file()),
            None => Err(Failure::not_open()),
        }
    }

    fn start(&self, case: usize, name: &Path) -> Result<OpenFile, Failure> {
        let open = |flags| self.below(name, flags | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from);
        match case {
            OPEN => regular(open(OFlags::RDONLY)?).map(OpenFile::File),
            EDIT => regular(open(OFlags::RDWR | OFlags::CREATE)?).map(OpenFile::File),
            _ => {
                let leaf = name.file_name().ok_or_else(|| Failure::wrong("no name of a file"))?;
                let over = if case == REPLACE { Over::Replace } else { Over::Refuse };
                let parent = match name.parent() {
                    Some(parent) if !parent.as_os_str().is_empty() => parent,
                    Some(_) | None => Path::new("."),
                };
                let folder = self.below(parent, OFlags::DIRECTORY | OFlags::RDONLY)?;
                let place = place_of(&folder);
                match std::fs::symlink_metadata(place.join(leaf)) {
                    Ok(_) if over == Over::Refuse => return Err(Failure::exists()),
                    Ok(there) if there.is_dir() => return Err(Failure::wrong("it is a directory")),
                    Ok(_) | Err(_) => {}
                }
                let mode = std::fs::Permissions::from_mode(0o666);
                let file = tempfile::Builder::new().prefix(".qj-").permissions(mode).tempfile_in(place)?;
                Ok(OpenFile::Draft { file, folder, leaf: leaf.into(), over })
            }
        }
    }

    /// Opens a path below the folder (`openat2`, `RESOLVE_BENEATH`).
    fn below(&self, name: &Path, flags: OFlags) -> Result<OwnedFd, Failure> {
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.folder, name, flags | OFlags::CLOEXEC, mode, inside).map_err(|error| Failure::of(&error.into()))
    }

    fn close(&mut self, id: i128) -> Result<(), Failure> {
        match self.open.remove(&id).ok_or_else(Failure::not_open)? {
            OpenFile::File(_) => Ok(()),
            OpenFile::Draft { file, folder, leaf, over } => {
                let path = place_of(&folder).join(leaf);
                let kept = match over {
                    Over::Refuse => file.persist_noclobber(path),
                    Over::Replace => file.persist(path),
                };
                kept.map(drop).map_err(|error| Failure::of(&error.error))
            }
        }
    }

    fn answer(&mut self, id: i128, case: usize, values: Vec<Value>) -> Result<(), TooLarge> {
        let Some(answers) = &self.answers else { return Ok(()) };
        self.held.push_back(answers.encode(vec![Value::Number(id), Value::Case(case, values)])?);
        Ok(())
    }
}

const REQUESTS_EXAMPLE: &str = "(pid(P), union { open: bytes[<=255], read: record { at: u32, count: u16 }, close })`: whose file \
     it is, then any of `open`, `edit`, `create`, `replace`, `read`, `write: record { at: u32, content: bytes[<=512] }`, \
     `size`, `close`, `discard`";
const ANSWERS_EXAMPLE: &str = "(pid(P), union { done, data: bytes[<=512], size: u32, failed: u8 })`: whose file it is, then the \
     answer; without the case `failed` a failure stops the program";

/// Checks that every possible request has a possible answer.
fn complete(requests: &MessageCodec, answers: &MessageCodec, channel: &Channel) -> Result<(), HostError> {
    let pairs = [(&[OPEN, EDIT, CREATE, REPLACE, WRITE, CLOSE, DISCARD][..], DONE), (&[READ], DATA), (&[SIZE], LENGTH)];
    for (asked, answer) in pairs {
        let Some(request) = asked.iter().find(|request| requests.has(**request)) else { continue };
        if !answers.has(answer) {
            return Err(HostError::usage(
                HostCode::Type,
                format!(
                    "driver `file` cannot answer `{}` on channel `{}`: its union has no case `{}`",
                    REQUESTS[*request].name, channel.name, ANSWERS[answer].name
                ),
            )
            .help(format!("declare it `channel {}{ANSWERS_EXAMPLE}", channel.name)));
        }
    }
    if requests.instances() != answers.instances() {
        return Err(HostError::usage(HostCode::Type, "the two channels of one `file` driver name different processes")
            .help("let both begin with the same `pid(...)`, or with integers"));
    }
    Ok(())
}

/// A path to an open folder that does not depend on its name.
fn place_of(folder: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Refuses folders, and devices and pipes, whose reading may block or have effects.
fn regular(file: File) -> Result<File, Failure> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(Failure::wrong("it is a directory"));
    }
    if metadata.is_file() { Ok(file) } else { Err(Failure::wrong("it is no ordinary file")) }
}

impl Device for Files {
    fn receive(&mut self) -> Result<Received, HostError> {
        Ok(self.held.pop_front().map_or(Received::Nothing, Received::Message))
    }

    fn is_ready(&self) -> bool {
        self.held.len() < HELD
    }

    fn send(&mut self, message: &[Datum]) -> Result<(), HostError> {
        let Some(codec) = &self.requests else { return Ok(()) };
        let mut values = codec.decode(message).into_iter();
        let (Some(id), Some(Value::Case(case, values))) = (values.next(), values.next()) else { return Ok(()) };
        let id = id.number();
        let subject = match values.first() {
            Some(Value::Bytes(name)) => format!(" `{}`", String::from_utf8_lossy(name)),
            Some(Value::Number(_) | Value::Case(..) | Value::Address(_)) | None => String::new(),
        };
        let performed = self.perform(id, case, values);
        let failure = match performed {
            Ok((answer, values)) => match self.answer(id, answer, values) {
                Ok(()) => return Ok(()),
                Err(TooLarge) => Failure::too_large(),
            },
            Err(failure) => failure,
        };
        let text_bound =
            self.answers.as_ref().filter(|answers| answers.has(FAILED)).map(|answers| answers.bytes_bound_in(FAILED));
        match text_bound {
            Some(room) => match self.answer(id, FAILED, failure.values(room)) {
                Ok(()) => Ok(()),
                Err(TooLarge) => Err(HostError::new(HostCode::Type, "the answer `failed` does not hold its code")),
            },
            None => Err(HostError::new(
                HostCode::File,
                format!("cannot {}{subject} in `{}`: {}", REQUESTS[case].name, self.name, failure.reason),
            )
            .help("give the answers a case `failed: u8` to go on without it")),
        }
    }

    fn flush(&mut self) -> Result<(), HostError> {
        Ok(())
    }

    fn holds_output(&self) -> bool {
        false
    }

    fn holds_input(&self) -> bool {
        !self.held.is_empty()
    }

    fn watch<'d>(&'d self, _reading: bool, _watched: &mut Vec<Interest<'d>>) {}

    fn losses(&self) -> Vec<(u64, &'static str)> {
        Vec::new()
    }
}
