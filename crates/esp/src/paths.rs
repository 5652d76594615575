//! Path specifications for the optimiser, from the `fastpath` declarations of a checked program.

use quaject_esp_ir::ir;
use quaject_esp_opt::path_spec::{MemberSpec, PathElement, PathRegex, PathSpec, PathStatement};
use quaject_esp_syntax::hir;
use quaject_esp_syntax::span::SourceMap;

/// The specifications of a program, in order. `ir` is the program lowered, with its predicates.
pub(crate) fn specifications(program: &[hir::FastPath], ir: &ir::Program, sources: &SourceMap) -> Vec<PathSpec> {
    // Predicates are numbered as `lower::predicates` lists them.
    let mut predicates = 0;
    program
        .iter()
        .map(|path| {
            let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            let start = sources.start(path.span);
            let location =
                ir::Location { file: path.span.file.0, line: start.line, column: start.column, member: None };
            PathSpec {
                name: path.name.clone(),
                max_iterations: number(path.bound),
                bypass_interval: number(path.bypass_interval),
                retry_limit: number(path.retry_limit),
                members: path.processes.iter().map(|part| member(part, ir, &mut predicates)).collect(),
                function: path.function.clone(),
                location,
            }
        })
        .collect()
}

fn member(part: &hir::FastPathProcess, ir: &ir::Program, predicates: &mut u32) -> MemberSpec {
    let instance = ir.first_instance(part.process) + part.replica;
    let start = element(&part.start, predicates);
    let follows = part.follows.as_ref().map(|follows| regex(follows, predicates));
    let exit = part.exit.iter().map(|exit| element(exit, predicates)).collect();
    MemberSpec { instance, statements: part.statements.iter().copied().map(statement).collect(), start, follows, exit }
}

fn statement(point: hir::ControlPoint) -> PathStatement {
    match point {
        hir::ControlPoint::Site(site) => PathStatement::Site(site),
        hir::ControlPoint::Label(label) => PathStatement::Label(label),
    }
}

fn element(element: &hir::Element, predicates: &mut u32) -> PathElement {
    let predicate = element.predicate.as_ref().map(|_| {
        *predicates += 1;
        *predicates - 1
    });
    PathElement {
        statement: statement(element.point),
        predicate,
        peer: element.peer.map(|(member, site)| (member as usize, site)),
        yield_to: element.yield_to.map(|member| member as usize),
    }
}

fn regex(of: &hir::PathRegex, predicates: &mut u32) -> PathRegex {
    match of {
        hir::PathRegex::Element(one) => PathRegex::Element(element(one, predicates)),
        hir::PathRegex::Sequence(parts) => {
            PathRegex::Sequence(parts.iter().map(|part| regex(part, predicates)).collect())
        }
        hir::PathRegex::Choice(parts) => PathRegex::Choice(parts.iter().map(|part| regex(part, predicates)).collect()),
        hir::PathRegex::Repeat(part, min, max) => PathRegex::Repeat(Box::new(regex(part, predicates)), *min, *max),
    }
}
