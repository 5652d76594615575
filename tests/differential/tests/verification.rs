//! The checker against an oracle: a worklist search with whole states in a hash set, whose steps are those of the
//! interpreter's `Machine::step`. On random programs, both have the same verdict and, without a violation, the same
//! number of states; the reduced searches have the same verdict and no more states.

use quaject_differential::generate::generate;
use quaject_esp_check::{Limits, Options, Reduction, Report, Verdict, ViolationKind, check};
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Effect, Machine, State, Step};
use quaject_esp_ir::ir::{ChannelId, ExternId, Program, Type, TypeId};
use quaject_esp_ir::model::{ModelProgram, Values};
use quaject_esp_lower::lower_model;
use quaject_esp_syntax::check::analyze;
use quaject_esp_syntax::span::{SourceFile, SourceMap};
use quaject_test_support::Effort;
use std::collections::HashSet;

/// A random program in an environment with one message.
fn model(seed: u64) -> ModelProgram {
    let mut sources = SourceMap::default();
    let sample = generate(seed);
    let root = sources.add(SourceFile::new("sample.esp", sample.source.clone()));
    let program = analyze(&mut sources, root, &mut sample.loader()).program.expect("samples are well-typed");
    let mut model = lower_model(&program, None, None, &sources);
    model.messages.iter_mut().flatten().for_each(|values| *values = Values::One);
    model.results.iter_mut().for_each(|values| *values = Values::One);
    model
}

/// A constant environment whose time is after every deadline, so that states do not differ by deadlines.
struct ConstantEnvironment {
    messages: Vec<Vec<Datum>>,
    results: Vec<Option<Datum>>,
}

impl ConstantEnvironment {
    fn new(program: &Program) -> ConstantEnvironment {
        let message = |types: &[TypeId]| types.iter().map(|ty| zero(program, *ty)).collect();
        ConstantEnvironment {
            messages: program.channels.iter().map(|channel| message(&channel.payload)).collect(),
            results: program.externs.iter().map(|function| function.result.map(|ty| zero(program, ty))).collect(),
        }
    }
}

impl Environment for ConstantEnvironment {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        Offer::Message(&self.messages[channel.0 as usize])
    }

    fn take(&mut self, _channel: ChannelId) {}

    fn readiness(&mut self, _channel: ChannelId) -> Readiness {
        Readiness::Ready
    }

    fn put(&mut self, _channel: ChannelId, _message: &[Datum]) {}

    fn now_ns(&mut self) -> i64 {
        i64::MAX
    }

    fn call(&mut self, function: ExternId, _arguments: &mut [Datum]) -> Reply {
        Reply::Returned(self.results[function.0 as usize].clone())
    }
}

fn zero(program: &Program, ty: TypeId) -> Datum {
    match program.types.get(ty) {
        Type::Int(_) => Datum::Int(0),
        Type::Bool | Type::Error => Datum::Bool(false),
        Type::Pid(processes) => Datum::Pid(program.first_instance(processes[0])),
        Type::Bytes { .. } => Datum::Bytes(Vec::new()),
        Type::Array { length, element } => Datum::Array(vec![zero(program, *element); *length as usize]),
        Type::Record(id) => {
            let fields = program.types.aggregate(*id).parts.iter().filter_map(|(_, ty)| *ty);
            Datum::Record(fields.map(|ty| zero(program, ty)).collect())
        }
        Type::Union(id) => {
            let payload = program.types.aggregate(*id).parts[0].1;
            Datum::Union(0, payload.map(|ty| Box::new(zero(program, ty))))
        }
        Type::Boxed(pool) => zero(program, program.types.pool(*pool).content),
    }
}

/// The number of states, and whether one of them has a violation; none beyond `max_states`.
fn exhaustive_search(program: &Program, max_states: usize) -> Option<(usize, bool)> {
    let mut machine = Machine::new(program, Checks::On).expect("samples are small");
    let mut environment = ConstantEnvironment::new(program);
    let start = machine.start();
    let mut seen: HashSet<State> = HashSet::from([start.clone()]);
    let mut open = vec![start];
    let mut wrong = false;
    while let Some(mut state) = open.pop() {
        let mut steps = machine.enabled_under_open_environment(&mut state, &mut environment);
        steps.retain(|step| match step {
            Step::FromEnvironment { instance, branch } => {
                machine.environment_ready(&mut state, &mut environment, *instance, *branch)
            }
            _ => true,
        });
        let is_of_the_environment = |step: &Step| {
            matches!(step, Step::FromEnvironment { .. } | Step::ToEnvironment { .. } | Step::After { .. })
        };
        if steps.iter().all(is_of_the_environment) {
            wrong |= matches!(machine.classify_quiescence(&mut state, &mut environment), Outcome::Faulted(_));
        }
        for step in steps {
            let mut next = state.clone();
            match machine.step(step, &mut next, &mut environment, &mut (1 << 26)) {
                Effect::Done => {
                    if !seen.contains(&next) {
                        seen.insert(next.clone());
                        open.push(next);
                    }
                }
                Effect::Exited(_) => {}
                Effect::Faulted(_) | Effect::Unfinished => wrong = true,
            }
        }
        if seen.len() > max_states {
            return None;
        }
    }
    Some((seen.len(), wrong))
}

fn verdict(report: &Report) -> bool {
    match &report.verdict {
        Verdict::Holds => false,
        Verdict::Violated(_) => true,
        Verdict::Unfinished(limit) => panic!("{limit:?}"),
    }
}

#[test]
fn checker_agrees_with_the_exhaustive_search() {
    let (mut compared, mut failing, mut saved) = (0, 0, 0);
    for seed in 0..Effort::wanted().pick(400, 3_000, 50_000) {
        let model = model(seed);
        let Some((states, wrong)) = exhaustive_search(&model.program, 5_000) else { continue };
        let explore = |reduction, threads| {
            let options = Options { reduction, threads, limits: Limits::default(), ..Options::default() };
            check(&model, &options, &mut |_| {}).expect("the environment says one thing")
        };
        let (all, reduced) = (explore(Reduction::Off, 1), explore(Reduction::On, 1));
        // The exhaustive search does not find leaks.
        if matches!(&all.verdict, Verdict::Violated(found) if matches!(found.violation, ViolationKind::Leak { .. })) {
            continue;
        }
        assert_eq!(
            verdict(&all),
            wrong,
            "seed {seed}\n{}\n{}",
            generate(seed).text(),
            all.text(&model, &Options::default())
        );
        assert_eq!(verdict(&reduced), wrong, "seed {seed}, reduced\n{}", generate(seed).text());
        let merged = explore(Reduction::Communications, 1);
        assert_eq!(verdict(&merged), wrong, "seed {seed}, merged\n{}", generate(seed).text());
        if !wrong {
            assert!(reduced.states <= merged.states && merged.states <= all.states);
            assert_eq!(all.states as usize, states, "seed {seed}\n{}", generate(seed).text());
            assert_eq!(explore(Reduction::Off, 2).states as usize, states, "seed {seed}, two threads");
            assert!(reduced.states <= all.states);
            saved += states - reduced.states as usize;
        }
        compared += 1;
        failing += usize::from(wrong);
    }
    assert!(compared > 100 && failing > 5 && saved > 0, "{compared} compared, {failing} failing, {saved} saved");
}
