//! Fast paths: what their statement references, predicates and peers mean (reference, section 10). Whether a path can
//! be formed is decided by the optimiser.

use super::body::{Body, BodyKind};
use super::load::Integrity;
use super::names::Checker;
use super::uses::{DefinitionKind, Rank, label_text};
use super::walk;
use crate::ast::{self, FastPathSetting, StatementRefKind};
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::hir::{self, ChannelId, ControlPoint, Direction, ExprKind, Operation, PatternKind, ProcessId, SiteId};
use crate::span::Span;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// Checks every fast path.
pub(super) fn check(checker: &mut Checker) {
    for item in checker.fast_path_items.clone() {
        let mut path = PathCheck { checker, item, members: Vec::new(), aliases: FxHashMap::default() };
        if let Some(hir) = path.check() {
            checker.fast_paths.push(hir);
        }
    }
}

/// A listed process.
struct Member {
    process: ProcessId,
    replica: u32,
    statements: Vec<ControlPoint>,
}

pub(super) struct PathCheck<'c, 'a> {
    pub(super) checker: &'c mut Checker<'a>,
    pub(super) item: &'a ast::FastPath,
    /// None for a process that is not known.
    members: Vec<Option<Member>>,
    /// Which process an alias belongs to, by number in the fast path; what it names; where it is declared.
    aliases: FxHashMap<SmolStr, (usize, Option<ControlPoint>, Span)>,
}

impl<'a> PathCheck<'_, 'a> {
    fn check(&mut self) -> Option<hir::FastPath> {
        let [bound, bypass_interval, retry_limit] = self.settings();
        for (index, process) in self.item.processes.iter().enumerate() {
            let member = self.member(process);
            self.members.push(member);
            self.statements(index, process);
        }
        let mut processes = Vec::new();
        for (index, process) in self.item.processes.iter().enumerate() {
            processes.extend(self.process(index, process));
        }
        if processes.len() != self.item.processes.len() {
            return None;
        }
        let function = self.item.function.as_ref().map(|(name, span)| self.manual(name, *span));
        let name = &self.item.name;
        Some(hir::FastPath {
            name: name.text.clone(),
            function,
            bound,
            bypass_interval,
            retry_limit,
            processes,
            span: name.span,
        })
    }

    /// `bound`, `bypass`, `retries`.
    fn settings(&mut self) -> [u64; 3] {
        let mut values = [1024, 64, 8];
        let mut given: [Option<Span>; 3] = [None; 3];
        for (setting, value, span) in &self.item.settings {
            let (index, name, minimum) = match setting {
                FastPathSetting::Bound => (0, "bound", 1),
                FastPathSetting::Bypass => (1, "bypass", 1),
                FastPathSetting::Retries => (2, "retries", 0),
            };
            if let Some(first) = given[index].replace(*span) {
                let diagnostic = Diagnostic::new(Code::E0204, *span, format!("`{name}` is given twice"))
                    .label(first, "first given here");
                self.checker.report(diagnostic);
            }
            if *value < minimum {
                self.checker.error(Code::E0309, *span, format!("`{name}` {value} is below {minimum}"));
            }
            values[index] = *value;
        }
        values
    }

    /// E0702, with the nearest of some names.
    fn unknown<'n>(&mut self, message: String, name: &ast::Name, candidates: impl Iterator<Item = &'n str>) {
        if name.text.is_empty() || self.checker.integrity == Integrity::Missing {
            return;
        }
        let diagnostic = Diagnostic::new(Code::E0702, name.span, message);
        self.checker.report(match nearest(&name.text, candidates) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic,
        });
    }

    /// A process by its name, with its replica.
    fn instance(&mut self, name: &'a ast::Name, replica: Option<(u64, Span)>) -> Option<(ProcessId, u32)> {
        let found = self.checker.find(name).map(|named| named.entity);
        let Some(super::names::Entity::Process(process)) = found else {
            let names: Vec<SmolStr> = self.checker.processes.iter().map(|entry| entry.item.name.text.clone()).collect();
            let message = format!("no process named `{}`", name.text);
            if names.is_empty() && self.checker.integrity != Integrity::Missing {
                let help = "check it with its program: `qj check PROGRAM.esp --fast-paths FILE.fp`";
                self.checker.report(Diagnostic::new(Code::E0702, name.span, message).help(help));
                return None;
            }
            self.unknown(message, name, names.iter().map(|name| name.as_str()));
            return None;
        };
        let entry = &self.checker.processes[process.0 as usize];
        let (replicas, replicated) = (entry.replicas, entry.item.replicas.is_some());
        match replica {
            None if replicated => {
                let diagnostic =
                    Diagnostic::new(Code::E0702, name.span, format!("`{}` is replicated: which one?", name.text))
                        .help(format!("write `{}[0]`", name.text));
                self.checker.report(diagnostic);
                None
            }
            None => Some((process, 0)),
            Some((_, span)) if !replicated => {
                self.checker.error(Code::E0702, span, format!("`{}` is not replicated", name.text));
                None
            }
            Some((replica, span)) => match u32::try_from(replica).ok().filter(|replica| *replica < replicas) {
                Some(replica) => Some((process, replica)),
                None => {
                    let message = format!("`{}` has {replicas} replicas, no number {replica}", name.text);
                    self.checker.error(Code::E0702, span, message);
                    None
                }
            },
        }
    }

    fn member(&mut self, process: &'a ast::FastPathProcess) -> Option<Member> {
        let (id, replica) = self.instance(&process.process, process.replica)?;
        if self.members.iter().flatten().any(|other| other.process == id && other.replica == replica) {
            let message = format!("process `{}` is listed twice", process.process.text);
            self.checker.error(Code::E0702, process.process.span, message);
            return None;
        }
        Some(Member { process: id, replica, statements: Vec::new() })
    }

    /// The `statement` field: interesting statements and their aliases.
    fn statements(&mut self, index: usize, process: &'a ast::FastPathProcess) {
        for (reference, alias) in &process.statements {
            let point = match self.members[index].as_ref().map(|member| member.process) {
                Some(id) => self.point(id, reference),
                None => None,
            };
            if let (Some(point), Some(member)) = (point, &mut self.members[index])
                && !member.statements.contains(&point)
            {
                member.statements.push(point);
            }
            let Some(alias) = alias else { continue };
            if let Some((.., first)) = self.aliases.get(&alias.text) {
                let message = format!("alias `{}` is declared twice", alias.text);
                let diagnostic = Diagnostic::new(Code::E0204, alias.span, message).label(*first, "first declared here");
                self.checker.report(diagnostic);
                continue;
            }
            self.checker.record_definition(alias.span, DefinitionKind::Alias);
            self.aliases.insert(alias.text.clone(), (index, point, alias.span));
        }
    }

    /// What a reference names in a process: a label or an operation.
    fn point(&mut self, process: ProcessId, reference: &'a ast::StatementRef) -> Option<ControlPoint> {
        match &reference.kind {
            StatementRefKind::Label(label) => {
                let entry = &self.checker.processes[process.0 as usize];
                if entry.facts.repeated_labels.contains(&label.text) {
                    let message = format!("`#{}` is in several calls in `{}`", label.text, entry.item.name.text);
                    let help = "name one of the channel operations there, as in `c/out@1`";
                    self.checker.report(Diagnostic::new(Code::E0701, label.span, message).help(help));
                    return None;
                }
                if let Some(id) = entry.facts.label_names.get(&label.text) {
                    let declared = entry.hir.as_ref().and_then(|process| process.labels.get(id.0 as usize));
                    if let Some((text, declared)) = declared {
                        let declared = label_text(*declared, text);
                        self.checker.record_use(label_text(label.span, text), Rank::Part, declared);
                    }
                    return Some(ControlPoint::Label(*id));
                }
                let message = format!("`#{}` is not a label of `{}`", label.text, entry.item.name.text);
                let labels: Vec<SmolStr> = entry.facts.label_names.keys().cloned().collect();
                let mut diagnostic = Diagnostic::new(Code::E0702, label.span, message);
                if let Some(near) = nearest(&label.text, labels.iter().map(|label| label.as_str())) {
                    diagnostic = diagnostic.help(format!("did you mean `#{near}`?"));
                }
                if !label.text.is_empty() {
                    self.checker.report(diagnostic);
                }
                None
            }
            StatementRefKind::Channel(name, direction, number) => {
                let channel = self.channel(name)?;
                let sites = self.sites(process, channel, *direction);
                let process_name = self.checker.processes[process.0 as usize].item.name.text.clone();
                self.choose(&sites, name, *number, reference.span, &process_name).map(ControlPoint::Site)
            }
        }
    }

    fn channel(&mut self, name: &'a ast::Name) -> Option<ChannelId> {
        if let Some(super::names::Entity::Channel(id)) = self.checker.find(name).map(|named| named.entity) {
            return Some(id);
        }
        let mut names: Vec<SmolStr> = self.checker.channels.iter().map(|entry| entry.hir.name.clone()).collect();
        names.extend(self.aliases.keys().cloned());
        names.sort();
        let message = format!("`{}` is neither a channel nor an alias", name.text);
        self.unknown(message, name, names.iter().map(|name| name.as_str()));
        None
    }

    /// The operations of a process on a channel, in order of text.
    fn sites(&self, process: ProcessId, channel: ChannelId, direction: Option<Direction>) -> Vec<(SiteId, Direction)> {
        let hir = self.checker.processes[process.0 as usize].hir.as_ref();
        let sites = hir.iter().flat_map(|process| process.sites.iter().enumerate());
        sites
            .filter(|(_, site)| site.channel == channel && direction.is_none_or(|wanted| wanted == site.direction))
            .map(|(index, site)| (SiteId(index as u32), site.direction))
            .collect()
    }

    /// The only one, or the one with this number.
    fn choose(
        &mut self,
        sites: &[(SiteId, Direction)],
        name: &ast::Name,
        number: Option<u64>,
        span: Span,
        process: &str,
    ) -> Option<SiteId> {
        match (sites, number) {
            ([], _) => {
                let message = format!("`{process}` has no such operation on `{}`", name.text);
                self.checker.error(Code::E0702, span, message);
                None
            }
            ([(site, _)], None) => Some(*site),
            (_, Some(number)) => {
                let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                let found = index.and_then(|index| sites.get(index)).map(|(site, _)| *site);
                if found.is_none() {
                    let message = format!(
                        "`{process}` has {} such operations on `{}`, no number {number}",
                        sites.len(),
                        name.text
                    );
                    self.checker.error(Code::E0702, span, message);
                }
                found
            }
            ([(_, first), ..], None) => {
                let message = format!("`{}` names {} statements in `{process}`", name.text, sites.len());
                let same = sites.iter().all(|(_, direction)| direction == first);
                let word = match first {
                    Direction::In => "in",
                    Direction::Out => "out",
                };
                let example = if same { format!("{}/{word}@1", name.text) } else { format!("{}/{word}", name.text) };
                let help = format!("write `{example}` or use a label");
                self.checker.report(Diagnostic::new(Code::E0701, span, message).help(help));
                None
            }
        }
    }

    fn process(&mut self, index: usize, process: &'a ast::FastPathProcess) -> Option<hir::FastPathProcess> {
        self.members[index].as_ref()?;
        let start = self.element(index, &process.start);
        if let ast::StatementRef { kind: StatementRefKind::Label(label), span } = &process.start.statement {
            let message = format!("`#{}` is a label, and a path starts at a channel operation", label.text);
            self.checker.error(Code::E0702, *span, message);
        }
        let follows = process.follows.as_ref().map(|regex| self.regex(index, regex));
        let exit: Vec<Option<hir::Element>> = process.exit.iter().map(|element| self.element(index, element)).collect();
        if let Some(follows) = &process.follows {
            self.reject_exit_steps(index, process, follows);
        }
        let member = self.members[index].as_ref()?;
        Some(hir::FastPathProcess {
            process: member.process,
            replica: member.replica,
            statements: member.statements.clone(),
            start: start?,
            follows: match follows {
                Some(regex) => Some(regex?),
                None => None,
            },
            exit: exit.into_iter().collect::<Option<Vec<_>>>()?,
        })
    }

    /// E0703. References that are not understood have been reported.
    fn reject_exit_steps(&mut self, index: usize, process: &'a ast::FastPathProcess, follows: &'a ast::PathRegex) {
        let mut steps: Vec<&'a ast::Element> = Vec::new();
        collect_elements(follows, &mut steps);
        for exit in &process.exit {
            let Some(point) = self.known_point(index, &exit.statement) else { continue };
            let step = steps.iter().find(|step| self.known_point(index, &step.statement) == Some(point));
            if let Some(step) = step {
                let text = self.checker.text(exit.statement.span).to_string();
                let message = format!("`{text}` is both the exit and a step of `follows`");
                let diagnostic = Diagnostic::new(Code::E0703, exit.span, message).label(step.span, "the step is here");
                self.checker.report(diagnostic);
            }
        }
    }

    /// What a reference in an element means, if it is clear.
    fn known_point(&self, index: usize, reference: &ast::StatementRef) -> Option<ControlPoint> {
        let process = self.members[index].as_ref()?.process;
        let entry = &self.checker.processes[process.0 as usize];
        match &reference.kind {
            StatementRefKind::Label(label) => {
                let is_unique = !entry.facts.repeated_labels.contains(&label.text);
                entry.facts.label_names.get(&label.text).copied().filter(|_| is_unique).map(ControlPoint::Label)
            }
            StatementRefKind::Channel(name, direction, number) => {
                if let (Some((_, point, declared)), None, None) = (self.aliases.get(&name.text), direction, number) {
                    self.checker.record_use(name.span, Rank::Local, *declared);
                    return *point;
                }
                let Some(super::names::Entity::Channel(channel)) = self.checker.find(name).map(|named| named.entity)
                else {
                    return None;
                };
                let sites = self.sites(process, channel, *direction);
                match number {
                    Some(number) => sites.get(usize::try_from(*number).ok()?.checked_sub(1)?),
                    None if sites.len() == 1 => sites.first(),
                    None => None,
                }
                .map(|(site, _)| ControlPoint::Site(*site))
            }
        }
    }

    fn regex(&mut self, index: usize, regex: &'a ast::PathRegex) -> Option<hir::PathRegex> {
        match regex {
            ast::PathRegex::Element(element) => {
                self.element(index, element).map(|element| hir::PathRegex::Element(Box::new(element)))
            }
            ast::PathRegex::Sequence(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.regex(index, part)).collect();
                parts.into_iter().collect::<Option<Vec<_>>>().map(hir::PathRegex::Sequence)
            }
            ast::PathRegex::Choice(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.regex(index, part)).collect();
                parts.into_iter().collect::<Option<Vec<_>>>().map(hir::PathRegex::Choice)
            }
            ast::PathRegex::Repeat(part, min, max) => {
                if let Some(max) = max.filter(|max| *max < *min || *max == 0) {
                    let mut elements = Vec::new();
                    collect_elements(part, &mut elements);
                    if let Some(element) = elements.first() {
                        let message = format!("a repetition of {min} to {max} times is empty");
                        self.checker.error(Code::E0309, element.span, message);
                    }
                }
                let part = self.regex(index, part)?;
                Some(hir::PathRegex::Repeat(Box::new(part), *min, *max))
            }
        }
    }

    fn element(&mut self, index: usize, element: &'a ast::Element) -> Option<hir::Element> {
        let point = self.element_point(index, &element.statement);
        let predicate = match (&element.predicate, point) {
            (Some(predicate), Some(point)) => Some(self.predicate(index, point, predicate)),
            (Some(_), None) | (None, _) => None,
        };
        let peer = element.peer.as_ref().map(|peer| self.peer(index, point, peer, element));
        let yield_to = element.yield_to.as_deref().map(|(name, replica)| self.yield_to(index, name, *replica));
        Some(hir::Element {
            point: point?,
            predicate,
            peer: match peer {
                Some(peer) => Some(peer?),
                None => None,
            },
            yield_to: match yield_to {
                Some(target) => Some(target?),
                None => None,
            },
            span: element.span,
        })
    }

    /// The statement of an element: an alias of this process, or a reference. One that `statement` does not list
    /// counts as listed: section 10 requires the list and does not define an omission.
    fn element_point(&mut self, index: usize, reference: &'a ast::StatementRef) -> Option<ControlPoint> {
        let process = self.members[index].as_ref()?.process;
        let point = match &reference.kind {
            StatementRefKind::Channel(name, None, None) if self.aliases.contains_key(&name.text) => {
                let (owner, point, declared) = self.aliases[&name.text];
                if owner != index {
                    let other = &self.item.processes[owner].process.text;
                    let message = format!("`{}` is a statement of `{other}`", name.text);
                    let diagnostic = Diagnostic::new(Code::E0702, reference.span, message)
                        .label(declared, "the alias is declared here")
                        .help(format!("write `<=> {}` after a statement of this process", name.text));
                    self.checker.report(diagnostic);
                    return None;
                }
                self.checker.record_use(name.span, Rank::Local, declared);
                point?
            }
            StatementRefKind::Label(_) | StatementRefKind::Channel(..) => self.point(process, reference)?,
        };
        if let Some(member) = &mut self.members[index]
            && !member.statements.contains(&point)
        {
            member.statements.push(point);
        }
        Some(point)
    }

    /// `<=> s`
    fn peer(
        &mut self,
        index: usize,
        point: Option<ControlPoint>,
        peer: &'a ast::StatementRef,
        element: &'a ast::Element,
    ) -> Option<(u32, SiteId)> {
        let own = self.members[index].as_ref()?.process;
        let (owner, peer_point) = match &peer.kind {
            StatementRefKind::Label(_) => return self.never(element, peer),
            StatementRefKind::Channel(name, None, None) if self.aliases.contains_key(&name.text) => {
                let (owner, point, declared) = self.aliases[&name.text];
                self.checker.record_use(name.span, Rank::Local, declared);
                (owner, point?)
            }
            StatementRefKind::Channel(name, direction, number) => {
                let channel = self.channel(name)?;
                let ControlPoint::Site(site) = point? else { return self.never(element, peer) };
                let wanted = match self.site(own, site)?.direction {
                    Direction::In => Direction::Out,
                    Direction::Out => Direction::In,
                };
                if direction.is_some_and(|direction| direction != wanted) {
                    return self.never(element, peer);
                }
                let mut found: Vec<(usize, SiteId)> = Vec::new();
                for other in (0..self.members.len()).filter(|other| *other != index) {
                    let Some(process) = self.members[other].as_ref().map(|member| member.process) else { continue };
                    let sites = self.sites(process, channel, Some(wanted));
                    let sites = match number {
                        Some(number) => usize::try_from(*number)
                            .ok()
                            .and_then(|n| sites.get(n.wrapping_sub(1)))
                            .copied()
                            .into_iter()
                            .collect(),
                        None => sites,
                    };
                    found.extend(sites.into_iter().map(|(site, _)| (other, site)));
                }
                match found.as_slice() {
                    [] => return self.never(element, peer),
                    [(owner, site)] => (*owner, ControlPoint::Site(*site)),
                    _ => {
                        let message =
                            format!("`{}` names {} statements of the listed processes", name.text, found.len());
                        let diagnostic =
                            Diagnostic::new(Code::E0701, peer.span, message).help("give the peer an alias");
                        self.checker.report(diagnostic);
                        return None;
                    }
                }
            }
        };
        let (ControlPoint::Site(site), ControlPoint::Site(peer_site)) = (point?, peer_point) else {
            return self.never(element, peer);
        };
        let other = self.members[owner].as_ref()?.process;
        if owner == index || !self.can_meet(own, site, other, peer_site) {
            return self.never(element, peer);
        }
        Some((owner as u32, peer_site))
    }

    /// E0704.
    fn never(&mut self, element: &ast::Element, peer: &ast::StatementRef) -> Option<(u32, SiteId)> {
        let (left, right) = (self.checker.text(element.statement.span), self.checker.text(peer.span));
        let message = format!("`{left} <=> {right}`: these statements never communicate");
        let help = "the two sides of `<=>` are an `in` and an `out` on one channel";
        self.checker.report(Diagnostic::new(Code::E0704, element.statement.span.to(peer.span), message).help(help));
        None
    }

    fn site(&self, process: ProcessId, site: SiteId) -> Option<&hir::Site> {
        self.checker.processes[process.0 as usize].hir.as_ref()?.sites.get(site.0 as usize)
    }

    fn operation(&self, process: ProcessId, wanted: SiteId) -> Option<&Operation> {
        let mut found = None;
        let hir = self.checker.processes[process.0 as usize].hir.as_ref()?;
        walk::communications(&hir.body, &mut |communicate| {
            for branch in &communicate.branches {
                match &branch.operation {
                    Operation::In(site, ..) | Operation::Out(site, ..) if *site == wanted => {
                        found = Some(&branch.operation);
                    }
                    Operation::In(..) | Operation::Out(..) | Operation::After(..) | Operation::Until(..) => {}
                }
            }
        });
        found
    }

    /// Whether an `in` and an `out` can be partners, as far as constants show.
    fn can_meet(&self, own: ProcessId, site: SiteId, other: ProcessId, peer: SiteId) -> bool {
        match (self.operation(own, site), self.operation(other, peer)) {
            (Some(Operation::In(_, a, patterns)), Some(Operation::Out(_, b, values)))
            | (Some(Operation::Out(_, a, values)), Some(Operation::In(_, b, patterns))) => {
                a == b && patterns.iter().zip(values).all(|(pattern, value)| can_match(pattern, value))
            }
            (_, _) => false,
        }
    }

    /// A predicate over the variables visible at a point.
    fn predicate(&mut self, index: usize, point: ControlPoint, predicate: &'a ast::Expr) -> hir::Expr {
        let error = super::constants::error_expr(predicate.span);
        let Some(process) = self.members[index].as_ref().map(|member| member.process) else { return error };
        let entry = &mut self.checker.processes[process.0 as usize];
        let facts = std::mem::take(&mut entry.facts);
        let scope = match point {
            ControlPoint::Site(site) => facts.site_scopes.get(site.0 as usize).copied().flatten(),
            ControlPoint::Label(label) => facts.label_scopes.get(label.0 as usize).copied().flatten(),
        };
        let mut body = Body::resume(self.checker, BodyKind::Predicate(process), facts, scope);
        let mut names = Vec::new();
        super::order::names_in_expr(predicate, &mut names);
        let foreign = names.into_iter().find(|name| {
            body.find(name).is_none() && body.checker.find(name).is_none() && {
                let mut others = body.checker.processes.iter();
                others.any(|other| other.facts.locals.iter().any(|local| local.name == name.text))
            }
        });
        let value = match foreign {
            Some(name) => {
                let text = match body.checker.text(predicate.span) {
                    "e" => "this predicate",
                    text => &format!("`{text}`"),
                };
                let message = format!("{text} reads a variable of another process");
                let own = &body.checker.processes[process.0 as usize].item.name.text;
                let diagnostic = Diagnostic::new(Code::E0705, predicate.span, message)
                    .label(name.span, format!("`{}` is not a variable of `{own}`", name.text))
                    .help("a predicate sees the variables of its own process");
                body.checker.report(diagnostic);
                error
            }
            None => body.condition(predicate),
        };
        let facts = std::mem::take(&mut body.facts);
        self.checker.processes[process.0 as usize].facts = facts;
        value
    }

    /// `s yield P`: P must be able to be in the FIFO then, which takes an `out` to, or a `yield` for, a listed process.
    fn yield_to(&mut self, index: usize, name: &'a ast::Name, replica: Option<(u64, Span)>) -> Option<u32> {
        let (process, replica) = self.instance(name, replica)?;
        let target = self
            .members
            .iter()
            .position(|member| member.as_ref().is_some_and(|m| m.process == process && m.replica == replica));
        let Some(target) = target else {
            let message = format!("`{}` is not a process of this fast path", name.text);
            self.checker.error(Code::E0702, name.span, message);
            return None;
        };
        if target == index || !self.can_be_ready(target) {
            let message = format!("`{}` can never be ready at this `yield`", name.text);
            let help = "a process is ready after it has sent to a listed one";
            self.checker.report(Diagnostic::new(Code::E0707, name.span, message).help(help));
            return None;
        }
        Some(target as u32)
    }

    fn can_be_ready(&self, target: usize) -> bool {
        let yields = |process: &ast::FastPathProcess| {
            let mut elements = vec![&process.start];
            process.follows.iter().for_each(|regex| collect_elements(regex, &mut elements));
            elements.extend(&process.exit);
            elements.iter().any(|element| element.yield_to.is_some())
        };
        let sites = |index: usize| {
            let process = self.members[index].as_ref().map(|member| member.process);
            let hir = process.and_then(|process| self.checker.processes[process.0 as usize].hir.as_ref());
            hir.map_or(&[] as &[hir::Site], |process| process.sites.as_slice())
        };
        yields(&self.item.processes[target])
            || sites(target).iter().filter(|site| site.direction == Direction::Out).any(|sent| {
                (0..self.members.len()).filter(|other| *other != target).any(|other| {
                    sites(other).iter().any(|site| site.direction == Direction::In && site.channel == sent.channel)
                })
            })
    }
}

pub(super) fn collect_elements<'r>(regex: &'r ast::PathRegex, elements: &mut Vec<&'r ast::Element>) {
    match regex {
        ast::PathRegex::Element(element) => elements.push(element),
        ast::PathRegex::Sequence(parts) | ast::PathRegex::Choice(parts) => {
            parts.iter().for_each(|part| collect_elements(part, elements));
        }
        ast::PathRegex::Repeat(part, ..) => collect_elements(part, elements),
    }
}

/// Whether a value can match a pattern, as far as both are constant.
fn can_match(pattern: &hir::Pattern, value: &hir::Expr) -> bool {
    match (&pattern.kind, &value.kind) {
        (_, ExprKind::Box(inner) | ExprKind::Fit(inner) | ExprKind::WidenPid(inner)) => can_match(pattern, inner),
        (PatternKind::Constant(a), ExprKind::Constant(b)) => a == b,
        (PatternKind::Among(ranges), ExprKind::Constant(value)) => {
            ranges.iter().any(|(low, high)| (*low..*high).contains(value))
        }
        (PatternKind::Either(alternatives), _) => alternatives.iter().any(|pattern| can_match(pattern, value)),
        (PatternKind::Bytes(a), ExprKind::Bytes(b)) => a == b,
        (PatternKind::Tag(a, x), ExprKind::Union(b, y)) => {
            a == b
                && match (x, y) {
                    (Some(x), Some(y)) => can_match(x, y),
                    (_, _) => true,
                }
        }
        (PatternKind::Record(parts), ExprKind::Record(fields)) => {
            fields.iter().all(|(field, value)| parts.get(*field as usize).is_none_or(|part| can_match(part, value)))
        }
        (_, _) => true,
    }
}

impl Checker<'_> {
    /// Whether a type is an integer. The types of the clock are none.
    pub(super) fn is_integer(&self, ty: crate::types::TypeId) -> bool {
        self.int_type(ty).is_some()
    }
}
