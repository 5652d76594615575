//! The specification of a fast path ("Fast Paths in Concurrent Programs", section 4.2; reference, section 10): per
//! process its statements of interest, the start, the path expression and the exits. Data only.

use quaject_esp_ir::ir::{LabelId, Location, SiteId};
use smol_str::SmolStr;

/// The specification of a fast path.
#[derive(Clone, Debug)]
pub struct PathSpec {
    /// Its name.
    pub name: SmolStr,
    /// The maximal iterations of a run.
    pub max_iterations: u32,
    /// The interval, in entry tests, at which a path that makes a choice is bypassed, so that the general code makes
    /// the other choices.
    pub bypass_interval: u32,
    /// How many times the entry test yields and retries until every member is in position.
    pub retry_limit: u32,
    /// Its members, the trigger first.
    pub members: Vec<MemberSpec>,
    /// The C function that implements the path, if it is manual.
    pub function: Option<SmolStr>,
    /// Its location in the source.
    pub location: Location,
}

/// The part of a specification for one instance.
#[derive(Clone, Debug)]
pub struct MemberSpec {
    /// The instance.
    pub instance: u32,
    /// Its statements of interest: the alphabet of the path expression.
    pub statements: Vec<PathStatement>,
    /// Where it starts.
    pub start: PathElement,
    /// The path expression after the start; none: the empty word.
    pub follows: Option<PathRegex>,
    /// Where it ends.
    pub exit: Vec<PathElement>,
}

/// A statement of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum PathStatement {
    /// A channel operation.
    Site(SiteId),
    /// A label.
    Label(LabelId),
}

/// A statement with the conditions under which a path takes it.
#[derive(Clone, Debug)]
pub struct PathElement {
    /// The statement.
    pub statement: PathStatement,
    /// The number of its predicate in the program.
    pub predicate: Option<u32>,
    /// The partner: index into [`PathSpec::members`], and its operation.
    pub peer: Option<(usize, SiteId)>,
    /// The member that runs next: index into [`PathSpec::members`].
    pub yield_to: Option<usize>,
}

/// A regular expression over elements.
#[derive(Clone, Debug)]
pub enum PathRegex {
    /// One element.
    Element(PathElement),
    /// A concatenation.
    Sequence(Vec<PathRegex>),
    /// An alternative.
    Choice(Vec<PathRegex>),
    /// A repetition: minimum, maximum (none: unbounded).
    Repeat(Box<PathRegex>, u64, Option<u64>),
}
