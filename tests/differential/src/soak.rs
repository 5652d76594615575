//! Every form of the programs of a range of seeds on every engine: interpreted, as machine code, and as C, which is
//! compiled once for all of them.

use crate::c;
use crate::compare::compare_runs;
use crate::generate::{Sample, generate};
use crate::interpret::{Behaviour, Local, compile, run_locally};
use crate::machine::Compiler;
use crate::modes::{Agreement, Mode, agree, same, transform};
use quaject_esp_exec::step::{Checks, Step};
use quaject_esp_ir::ir::Program;
use std::ops::Range;
use std::path::Path;

/// Every form.
const MODES: [Mode; 5] = [Mode::Process, Mode::Direct, Mode::Automata, Mode::Auto, Mode::FastPath];

/// A maximum of IR steps that no sample reaches.
const BUDGET: u64 = 20_000_000;

/// The results of a range of seeds.
#[derive(Default, Debug)]
pub struct Soak {
    /// Pairs of a program and a form, each compared on every engine.
    pub pairs: u64,
    /// Runs that could not be compared, because there are too many states.
    pub unknown: u64,
    /// Seeds and their failures.
    pub failures: Vec<(u64, String)>,
}

/// One form of a program.
struct Form<'p> {
    mode: Mode,
    sample: &'p Sample,
    program: &'p Program,
    plain: &'p Behaviour,
    made: Program,
}

impl Form<'_> {
    /// Whether the behaviour is one of the program; `Unknown` if there are too many states.
    fn judge(&self, behaviour: &Behaviour) -> Result<Agreement, String> {
        match self.mode {
            Mode::Process | Mode::Auto => same(self.program, self.plain, behaviour).map(|()| Agreement::Included),
            Mode::Direct | Mode::Automata | Mode::FastPath => agree(self.sample, self.program, self.plain, behaviour),
        }
    }

    /// The runs in this process: the choices of machine code are the interpreter's, and the behaviour is the program's.
    fn run_here(&self) -> Result<Agreement, String> {
        let [interpreted, native] =
            [Local::Interpreted, Local::Native].map(|local| run(self.sample, &self.made, local));
        if native != interpreted {
            return Err(format!("as machine code: {native:?}\ninterpreted: {interpreted:?}"));
        }
        self.judge(&interpreted.0?)
    }

    /// The run of the C program.
    fn run_in_c(&self, c_run: &c::CRun) -> Result<Agreement, String> {
        // Passes and direct hand-off change no choice: the original program can replay the run of C.
        let like = if matches!(self.mode, Mode::Process | Mode::Direct) { self.program } else { &self.made };
        let (_, behaviour) = compare_runs(self.sample, like, c_run)?;
        // Both engines follow the reference schedule, except where an object is used after its release.
        if self.mode == Mode::Process { Ok(Agreement::Included) } else { self.judge(&behaviour) }
    }
}

fn run(sample: &Sample, program: &Program, local: Local) -> (Result<Behaviour, String>, Vec<Step>) {
    run_locally(sample, program, Checks::Off, local, BUDGET)
}

/// Compares every form of the programs of these seeds, with C compiled in the folder.
pub fn soak(seeds: Range<u64>, compiler: &Compiler, folder: &Path) -> Soak {
    let mut found = Soak::default();
    let mut programs = Vec::new();
    for sample in seeds.map(generate) {
        let compiled = compile(&sample).map_err(|error| format!("refused: {error}"));
        match compiled.and_then(|program| Ok((run(&sample, &program, Local::Interpreted).0?, program))) {
            Ok((plain, program)) => programs.push((sample, program, plain)),
            Err(error) => found.failures.push((sample.seed, error)),
        }
    }
    let mut forms: Vec<Form<'_>> = Vec::new();
    for (sample, program, plain) in &programs {
        for mode in MODES {
            match transform(sample.seed, program, mode) {
                Ok(Some(made)) => forms.push(Form { mode, sample, program, plain, made }),
                Ok(None) => {}
                Err(error) => found.failures.push((sample.seed, error)),
            }
        }
    }
    found.pairs = forms.len() as u64;
    let mut note = |form: &Form<'_>, engine: &str, result: Result<Agreement, String>| match result {
        Ok(Agreement::Included) => {}
        Ok(Agreement::Unknown) => found.unknown += 1,
        Err(error) => found.failures.push((form.sample.seed, format!("{:?}, {engine}: {error}", form.mode))),
    };
    for form in &forms {
        note(form, "in this process", form.run_here());
    }
    let in_c: Vec<_> = forms.iter().map(|form| (form.sample, &form.made)).collect();
    let all = c::run(compiler, folder, &in_c);
    for (index, form) in forms.iter().enumerate() {
        let c_run = match &all {
            Ok(results) => results[index].clone(),
            // To find the program that the compiler does not accept.
            Err(_) => c::run(compiler, folder, &in_c[index..=index]).and_then(|mut results| results.remove(0)),
        };
        note(form, "C", c_run.and_then(|c_run| form.run_in_c(&c_run)));
    }
    found
}
