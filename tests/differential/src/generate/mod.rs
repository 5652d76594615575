//! Random well-typed programs, small ones first. Processes follow a common script of communications, so that most
//! programs terminate; choices, guards, pools and arithmetic vary their runs.

pub mod body;
pub mod items;
pub mod modules;
pub mod script;
pub mod shared;
pub mod types;

use crate::environment::Script as EnvironmentScript;
use fastrand::Rng;
use modules::Modules;
use quaject_esp_syntax::check::Loader;
use quaject_esp_syntax::span::FileId;
use script::Script;
use shared::{Memory, Shared};
use types::{Additions, Types};

/// A random program and its environment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its seed.
    pub seed: u64,
    /// The text of its first file.
    pub source: String,
    /// The other files: their names and texts.
    pub files: Vec<(String, String)>,
    /// The script of its environment.
    pub script: EnvironmentScript,
    /// Whether all runs without a fault have the same messages on each channel.
    pub outcome: Outcome,
}

/// Whether a program's choices are observable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// They are not.
    Determined,
    /// They can be.
    Open,
}

/// Limits on the size of programs.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The maximum number of processes.
    pub processes: usize,
    /// The maximum number of communications per round.
    pub events: usize,
    /// The maximum number of successive statements.
    pub statements: u32,
}

impl Size {
    /// Sizes from empty up: the first seeds give the smallest programs, later ones all sizes.
    pub fn of_seed(seed: u64) -> Size {
        let level = if seed < 64 { seed / 8 } else { 1 + seed % 7 } as usize;
        Size { processes: level.min(5), events: level, statements: 1 + level as u32 / 2 }
    }

    /// Two thirds of the communications and statements.
    fn reduced(self) -> Size {
        Size { events: self.events - self.events / 3, statements: self.statements - self.statements / 3, ..self }
    }
}

impl Sample {
    /// What reads the files that the program imports.
    pub fn loader(&self) -> impl Loader + '_ {
        SampleFiles { files: &self.files }
    }

    /// The text of all files, for reports.
    pub fn text(&self) -> String {
        let files = self.files.iter().map(|(name, text)| format!("// {name}\n{text}"));
        let head = if self.files.is_empty() { "" } else { "// sample.esp\n" };
        files.collect::<String>() + head + &self.source
    }
}

struct SampleFiles<'s> {
    files: &'s [(String, String)],
}

impl Loader for SampleFiles<'_> {
    fn load(&mut self, path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        let file = self.files.iter().find(|(name, _)| name == path);
        let (name, text) = file.ok_or("the sample has no such file")?;
        Ok((name.clone(), text.clone().into_bytes()))
    }
}

/// Whether the program of a seed uses what the language has beyond the papers: two of three do.
fn additions(seed: u64) -> Additions {
    match seed % 12 {
        6..=9 => Additions::Off,
        _ => Additions::On,
    }
}

/// The program of a seed.
pub fn generate(seed: u64) -> Sample {
    let mut rng = Rng::with_seed(seed);
    let additions = additions(seed);
    let size = match additions {
        Additions::Off => Size::of_seed(seed),
        // They have more items, so that fewer communications make a program as large.
        Additions::On => Size::of_seed(seed).reduced(),
    };
    let named = rng.usize(0..=size.events.min(4));
    let memory = if rng.u32(0..4) == 0 { Memory::Manual } else { Memory::Automatic };
    // Objects that are never released need larger pools.
    let plenty = if memory == Memory::Manual { 8 } else { 1 };
    let types = Types::new(additions);
    let mut shared = Shared { types, memory, ..Shared::default() };
    let mut modules = Modules::default();
    if size.events > 1 && shared.adds(&mut rng, 3) {
        for _ in 0..[1, 1, 2][rng.usize(0..3)] {
            modules.add(&mut rng, &mut shared, size, plenty);
        }
    }
    shared.types.extend(&mut rng, named, plenty);
    let mut declarations = shared.types.declarations();
    if size.events > 1 && shared.adds(&mut rng, 4) {
        modules.add_ring(&mut rng, &mut shared);
    }
    if shared.adds(&mut rng, 6) {
        modules.imports += "import \"std:format\" as text;\n";
        shared.format = Some("text".into());
    }
    if memory == Memory::Manual {
        declarations += "memory manual;\n";
    }
    if size.events > 0 && rng.u32(0..3) == 0 {
        declarations += &items::externs(&mut rng, &mut shared, size);
    }
    if size.events > 1 && rng.u32(0..3) == 0 {
        declarations += &items::layout(&mut rng, &mut shared);
    }
    // From numbers of its own, so that the rest of the program does not depend on it.
    if seed.is_multiple_of(3) {
        declarations += &items::constants(&mut Rng::with_seed(!seed), &mut shared);
    } else if shared.adds(&mut rng, 3) {
        declarations += &items::table(&mut rng, &mut shared);
    }
    if shared.adds(&mut rng, 3) {
        declarations += &items::limits(&mut rng, &mut shared);
    }
    for index in 0..rng.usize(0..=size.events.min(3)) {
        declarations += &items::function(&mut rng, &mut shared, index, size);
    }
    if shared.adds(&mut rng, 2) {
        for index in 0..[1, 1, 2][rng.usize(0..3)] {
            declarations += &items::procedure(&mut rng, &mut shared, index, size);
        }
    }
    let (source, environment, outcome) = Script::new(rng, shared, size, declarations).play();
    Sample { seed, source: modules.imports + &source, files: modules.files, script: environment, outcome }
}
