//! Fast paths of a checked program, as the optimiser is asked for them. Says nothing of what becomes of them.

use quaject_esp_ir::ir;
use quaject_esp_opt::path::{Element, Part, Point, Regex, Specification};
use quaject_esp_syntax::hir;
use quaject_esp_syntax::span::SourceMap;

/// The specifications of a program, in order. `ir` is the program lowered, with its predicates.
pub(crate) fn specifications(program: &[hir::FastPath], ir: &ir::Program, sources: &SourceMap) -> Vec<Specification> {
    // Predicates are numbered as `lower::predicates` lists them.
    let mut tests = 0;
    program
        .iter()
        .map(|path| {
            let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
            let start = sources.start(path.span);
            let location =
                ir::Location { file: path.span.file.0, line: start.line, column: start.column, member: None };
            Specification {
                name: path.name.clone(),
                bound: number(path.bound),
                decline: number(path.decline),
                settle: number(path.settle),
                members: path.processes.iter().map(|part| member(part, ir, &mut tests)).collect(),
                function: path.function.clone(),
                location,
            }
        })
        .collect()
}

fn member(part: &hir::FastPathProcess, ir: &ir::Program, tests: &mut u32) -> Part {
    let instance = ir.first_instance(part.process) + part.replica;
    let start = element(&part.start, tests);
    let follows = part.follows.as_ref().map(|follows| regex(follows, tests));
    let exit = part.exit.iter().map(|exit| element(exit, tests)).collect();
    Part { instance, statements: part.statements.iter().copied().map(point).collect(), start, follows, exit }
}

fn point(point: hir::ControlPoint) -> Point {
    match point {
        hir::ControlPoint::Site(site) => Point::Site(site),
        hir::ControlPoint::Label(label) => Point::Label(label),
    }
}

fn element(element: &hir::Element, tests: &mut u32) -> Element {
    let test = element.predicate.as_ref().map(|_| {
        *tests += 1;
        *tests - 1
    });
    Element {
        point: point(element.point),
        test,
        peer: element.peer.map(|(member, site)| (member as usize, site)),
        yield_to: element.yield_to.map(|member| member as usize),
    }
}

fn regex(of: &hir::PathRegex, tests: &mut u32) -> Regex {
    match of {
        hir::PathRegex::Element(one) => Regex::Element(element(one, tests)),
        hir::PathRegex::Sequence(parts) => Regex::Sequence(parts.iter().map(|part| regex(part, tests)).collect()),
        hir::PathRegex::Choice(parts) => Regex::Choice(parts.iter().map(|part| regex(part, tests)).collect()),
        hir::PathRegex::Repeat(part, least, most) => Regex::Repeat(Box::new(regex(part, tests)), *least, *most),
    }
}
