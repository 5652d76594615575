//! The profile of a run in the terms of its source: the number of executions of each operation, the most frequent
//! sequences of communications (rounds) behind the operation that sets the pace, and the first operation of every other
//! instance in a round. Stored as JSON, so that a run can be profiled once and applied to another version of the
//! program.

use quaject_esp_exec::profile::{Communication, InstanceOperation, Profile as Run};
use quaject_esp_ir::ir::{Boundary, Direction, Program, Site, SiteId};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::fmt::{Display, Formatter, Result as FormatResult};

/// The number of rounds for each execution of an operation above which it is off the path.
pub(crate) const RARE: u64 = 64;

/// The communications of a round that are stored.
const MAX_STEPS: usize = 64;

/// The rounds that are distinguished, and those of them that are stored.
const MAX_ROUNDS: usize = 10_000;
const KEPT_ROUNDS: usize = 8;

/// The format identifier.
const KIND: &str = "qj profile 1";

/// An operation in the terms of the source.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Operation {
    /// The instance: `read`, `worker[2]`.
    pub process: String,
    /// As fast paths name it: `readC`, `readC/out@2`.
    pub statement: String,
}

/// The communications of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The operation that starts a round; none without communication.
    pub entry: Option<Operation>,
    /// The number of executions of each operation, in source order.
    pub operations: Vec<(Operation, u64)>,
    /// The first operation of each other instance in a round, and how many times: there it waits before a round.
    pub first: Vec<(Operation, u64)>,
    /// The most frequent rounds: the count and the communications.
    pub rounds: Vec<(u64, Vec<String>)>,
}

/// Why a text is not a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidProfile(String);

impl Display for InvalidProfile {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FormatResult {
        formatter.write_str(&self.0)
    }
}

impl Error for InvalidProfile {}

impl Profile {
    /// The profile of a run of this program.
    pub fn new(program: &Program, run: &Run) -> Profile {
        let entry = entry(program, run);
        let named = |done: InstanceOperation| operation(program, done);
        let (first, rounds) = entry.map_or_else(Default::default, |entry| rounds(program, run.order(), entry));
        Profile {
            entry: entry.map(named),
            operations: run.operations().map(|(done, count)| (named(done), count)).collect(),
            first: first.into_iter().map(|(done, count)| (named(done), count)).collect(),
            rounds,
        }
    }

    /// The number of rounds.
    pub fn round_count(&self) -> u64 {
        let count = |entry: &Operation| self.operations.iter().find(|(operation, _)| operation == entry);
        self.entry.as_ref().and_then(count).map_or(0, |(_, count)| *count)
    }

    /// Its JSON.
    pub fn text(&self) -> String {
        let one = |operation: &Operation| json!({ "process": operation.process, "statement": operation.statement });
        let counted = |all: &[(Operation, u64)]| -> Vec<Value> {
            let with = |(operation, count): &(Operation, u64)| json!({ "process": operation.process, "statement": operation.statement, "count": count });
            all.iter().map(with).collect()
        };
        let rounds: Vec<Value> =
            self.rounds.iter().map(|(count, steps)| json!({ "count": count, "steps": steps })).collect();
        let value = json!({
            "kind": KIND,
            "entry": self.entry.as_ref().map(one),
            "operations": counted(&self.operations),
            "first": counted(&self.first),
            "rounds": rounds,
        });
        format!("{value:#}\n")
    }

    /// Parses the output of [`Profile::text`].
    ///
    /// # Errors
    /// The reason why the text is not a profile.
    pub fn parse(text: &str) -> Result<Profile, InvalidProfile> {
        Profile::parse_object(text).map_err(InvalidProfile)
    }

    fn parse_object(text: &str) -> Result<Profile, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if value["kind"] != KIND {
            return Err(format!("its `kind` is not `{KIND}`"));
        }
        let one = |value: &Value| -> Option<Operation> {
            let (process, statement) = (value["process"].as_str()?, value["statement"].as_str()?);
            Some(Operation { process: process.to_string(), statement: statement.to_string() })
        };
        let counted = |name: &str| -> Result<Vec<(Operation, u64)>, String> {
            let all = value[name].as_array().ok_or(format!("it has no list `{name}`"))?;
            let counted = all.iter().map(|value| Some((one(value)?, value["count"].as_u64()?)));
            counted.collect::<Option<_>>().ok_or(format!("`{name}` needs `process`, `statement` and `count` in each"))
        };
        let entry = match &value["entry"] {
            Value::Null => None,
            entry => Some(one(entry).ok_or("`entry` needs `process` and `statement`")?),
        };
        let round = |value: &Value| -> Option<(u64, Vec<String>)> {
            let steps = value["steps"].as_array()?.iter().map(|step| step.as_str().map(str::to_string));
            Some((value["count"].as_u64()?, steps.collect::<Option<_>>()?))
        };
        let rounds = value["rounds"].as_array().map(|rounds| rounds.iter().map(round).collect::<Option<_>>());
        let rounds = rounds.flatten().ok_or("`rounds` needs `count` and `steps` in each")?;
        Ok(Profile { entry, operations: counted("operations")?, first: counted("first")?, rounds })
    }

    /// A summary in one line.
    pub fn summary(&self) -> String {
        let Some(entry) = &self.entry else { return "nothing was communicated".to_string() };
        let mut text = format!("{} rounds begin with `{}` of `{}`", self.round_count(), entry.statement, entry.process);
        if let Some((count, steps)) = self.rounds.first() {
            text += &format!("; the most frequent, {count} times: {}", steps.join(", "));
        }
        text
    }
}

/// An operation in the terms of the source.
fn operation(program: &Program, done: InstanceOperation) -> Operation {
    Operation { process: program.instance_name(done.instance), statement: statement(program, done) }
}

/// An operation as fast paths name it.
pub(crate) fn statement(program: &Program, done: InstanceOperation) -> String {
    let (process, _) = program.process_of(done.instance).expect("a profile names instances of its program");
    let sites = &program.processes[process.0 as usize].sites;
    let site = &sites[done.site.0 as usize];
    let channel = &program.channels[site.channel.0 as usize].name;
    let same = || sites.iter().filter(|other| other.channel == site.channel);
    let is_alike = |other: &&Site| (other.channel, other.direction) == (site.channel, site.direction);
    let number = sites[..=done.site.0 as usize].iter().filter(is_alike).count();
    let word = match site.direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    match (same().count(), same().filter(|other| other.direction == site.direction).count()) {
        (1, _) => channel.to_string(),
        (_, 1) => format!("{channel}/{word}"),
        (_, _) => format!("{channel}/{word}@{number}"),
    }
}

/// The operations of a program by name.
pub(crate) fn by_name(program: &Program) -> HashMap<Operation, InstanceOperation> {
    let mut all = HashMap::new();
    for instance in 0..program.instance_count() {
        let (process, _) = program.process_of(instance).expect("instances are counted");
        for site in 0..program.processes[process.0 as usize].sites.len() as u32 {
            let done = InstanceOperation { instance, site: SiteId(site) };
            all.insert(operation(program, done), done);
        }
    }
    all
}

/// The channel of an operation, its direction and the channel's boundary.
pub(crate) fn end(program: &Program, done: InstanceOperation) -> (u32, Direction, Boundary) {
    let (process, _) = program.process_of(done.instance).expect("a profile names instances of its program");
    let site = &program.processes[process.0 as usize].sites[done.site.0 as usize];
    (site.channel.0, site.direction, program.channels[site.channel.0 as usize].boundary)
}

/// The operation that sets the pace: an input from the environment, unless inputs are rare; else an operation of an
/// instance that receives from no other; else the most frequent one. Among several the most frequent, then the first.
fn entry(program: &Program, run: &Run) -> Option<InstanceOperation> {
    let max_count = run.operations().map(|(_, count)| count).max().filter(|max_count| *max_count > 0)?;
    let often: Vec<(InstanceOperation, u64)> =
        run.operations().filter(|(_, count)| count.saturating_mul(RARE) >= max_count).collect();
    let reads = |done: InstanceOperation| match end(program, done) {
        (_, Direction::In, Boundary::Internal) => true,
        (_, Direction::In | Direction::Out, _) => false,
    };
    let waits_for_some = |instance: u32| often.iter().any(|(done, _)| done.instance == instance && reads(*done));
    let rank = |done: InstanceOperation| match end(program, done) {
        (_, Direction::In, Boundary::FromEnvironment) => 3,
        _ if !waits_for_some(done.instance) => 2,
        (_, Direction::In, _) => 1,
        (_, Direction::Out, _) => 0,
    };
    let key = |(done, count): &(InstanceOperation, u64)| (rank(*done), *count, std::cmp::Reverse(*done));
    often.iter().max_by_key(|one| key(one)).map(|(done, _)| *done)
}

type Counted<T> = Vec<(T, u64)>;

/// The first operation of each other instance in a round with its count, and the most frequent rounds.
///
/// Rounds overlap in a run: the entry instance may start the next before the others have completed one. A communication
/// belongs to the latest round of any of its participants, as if each round started at quiescence.
fn rounds(
    program: &Program,
    order: &[Communication],
    entry: InstanceOperation,
) -> (Counted<InstanceOperation>, Vec<(u64, Vec<String>)>) {
    let mut begun = 0u64;
    let mut last = vec![0u64; program.instance_count() as usize];
    // A path starts with the next operation of its trigger; the first operations of others follow from that.
    let (mut has_begun, mut next) = (false, 0u64);
    let mut last_next = vec![0u64; program.instance_count() as usize];
    let mut first: HashMap<InstanceOperation, u64> = HashMap::new();
    let mut by_round: Vec<(u64, Communication)> = Vec::with_capacity(order.len());
    for communication in order {
        let ends = [communication.0, communication.1];
        if ends.iter().flatten().any(|done| done.instance == entry.instance) && std::mem::take(&mut has_begun) {
            next += 1;
            last_next[entry.instance as usize] = next;
        }
        if ends.contains(&Some(entry)) {
            begun += 1;
            has_begun = true;
            last[entry.instance as usize] = begun;
        }
        let rounds = ends.iter().flatten().map(|done| last[done.instance as usize]);
        let round = rounds.max().unwrap_or_default();
        let nexts = ends.iter().flatten().map(|done| last_next[done.instance as usize]);
        let follows = nexts.max().unwrap_or_default();
        for done in ends.into_iter().flatten() {
            last[done.instance as usize] = round;
            if std::mem::replace(&mut last_next[done.instance as usize], follows) < follows {
                *first.entry(done).or_default() += 1;
            }
        }
        by_round.push((round, *communication));
    }
    // A stable sort keeps the order within a round.
    by_round.sort_by_key(|(round, _)| *round);
    let by_round = by_round.chunk_by(|a, b| a.0 == b.0).filter(|round| round[0].0 > 0);
    let mut rounds: HashMap<Vec<Communication>, u64> = HashMap::new();
    for round in by_round {
        let round: Vec<Communication> = round.iter().map(|(_, communication)| *communication).collect();
        if rounds.len() < MAX_ROUNDS || rounds.contains_key(&round) {
            *rounds.entry(round).or_default() += 1;
        }
    }
    let mut first: Vec<(InstanceOperation, u64)> = first.into_iter().collect();
    first.sort_unstable();
    let mut rounds: Vec<(Vec<Communication>, u64)> = rounds.into_iter().collect();
    rounds.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.len().cmp(&b.0.len())).then_with(|| a.0.cmp(&b.0)));
    let stored = rounds.into_iter().take(KEPT_ROUNDS).map(|(round, count)| {
        let mut steps: Vec<String> =
            round.iter().take(MAX_STEPS).map(|step| communication_text(program, step)).collect();
        if round.len() > MAX_STEPS {
            steps.push("...".to_string());
        }
        (count, steps)
    });
    (first, stored.collect())
}

/// `read readC/out@1 -> evener readC`
fn communication_text(program: &Program, communication: &Communication) -> String {
    let end = |done: Option<InstanceOperation>| match done {
        Some(done) => {
            let Operation { process, statement } = operation(program, done);
            format!("{process} {statement}")
        }
        None => "the environment".to_string(),
    };
    format!("{} -> {}", end(communication.0), end(communication.1))
}
