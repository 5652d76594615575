//! A body under check: its scopes, variables, labels and channel operations. The other modules check its statements.

use super::constants::Constant;
use super::expand::{ChannelEnd, Frame};
use super::names::Checker;
use super::uses::{DefinitionKind, Rank, label_text};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, FnId, LabelId, LocalId, Mutability, ProcessId, SiteId};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

/// What kind of text is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BodyKind {
    /// A constant expression outside any process.
    Constant,
    /// A pure function.
    Function(FnId),
    /// A process.
    Process(ProcessId),
    /// An environment of a model: a process on the environment's side.
    Environment,
    /// A pattern of a C interface.
    Interface,
    /// A fast path's predicate, over a process's variables.
    Predicate(ProcessId),
}

/// Why an impure function may not be called here (reference, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PureContext {
    Guard,
    Pattern,
    AltPayload,
}

impl PureContext {
    pub(super) fn place(self) -> &'static str {
        match self {
            PureContext::Guard => "a guard",
            PureContext::Pattern => "a pattern",
            PureContext::AltPayload => "the payload of an `alt`",
        }
    }
}

/// How a variable came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Variable,
    /// `$x`
    Received,
    Parameter,
    /// Of a `for`.
    Counter,
    /// Of a procedure, for a call.
    Result,
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct LocalFacts {
    pub(super) name: SmolStr,
    /// None until the first assignment in program text gives it a type.
    pub(super) ty: Option<TypeId>,
    pub(super) mutability: Mutability,
    pub(super) span: Span,
    pub(super) role: Role,
    pub(super) reads: u32,
    /// E0503 has been reported.
    pub(super) reported: bool,
}

/// What a local name refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Binding {
    Local(LocalId),
    Const(u32),
    /// A parameter that stands for a channel; none after an error.
    Channel(Option<ChannelEnd>),
}

/// One declaration, linked to the one before it: from any point, the chain is what is visible there.
#[derive(Clone, Debug)]
struct Declaration {
    name: SmolStr,
    binding: Binding,
    span: Span,
    parent: Option<u32>,
    /// What the name referred to before; only after an E0205.
    hidden: Option<u32>,
}

/// What outlives the check of a body: later passes report on its variables and resolve names in its scopes.
#[derive(Clone, Debug, Default)]
pub(super) struct BodyFacts {
    pub(super) locals: Vec<LocalFacts>,
    pub(super) constants: Vec<Constant>,
    declarations: Vec<Declaration>,
    /// The innermost declaration visible at each site, after its patterns.
    pub(super) site_scopes: Vec<Option<u32>>,
    /// The innermost declaration visible at each label.
    pub(super) label_scopes: Vec<Option<u32>>,
    /// Labels by text.
    pub(super) label_names: FxHashMap<SmolStr, LabelId>,
    /// Labels that expansions repeat: no statement is named by one.
    pub(super) repeated_labels: FxHashSet<SmolStr>,
}

/// Names that the pattern under check declares or assigns.
#[derive(Default)]
pub(super) struct PatternState {
    pub(super) assigned: FxHashSet<LocalId>,
    pub(super) declared: FxHashSet<LocalId>,
    /// Whether `$` names of this pattern may be read: after `if` only.
    pub(super) condition_depth: u32,
    /// Whether an alternative is checked, which binds nothing.
    pub(super) in_alternatives: bool,
    pub(super) active: bool,
}

/// A body under check.
pub(super) struct Body<'c, 'a> {
    pub(super) checker: &'c mut Checker<'a>,
    pub(super) kind: BodyKind,
    pub(super) facts: BodyFacts,
    head: Option<u32>,
    visible: FxHashMap<SmolStr, u32>,
    pub(super) sites: Vec<hir::Site>,
    pub(super) labels: Vec<(SmolStr, Span)>,
    /// The labels of each loop around the statement under check, the outermost first.
    pub(super) loops: Vec<Vec<SmolStr>>,
    /// The labels directly before the statement under check.
    pub(super) labels_before: Vec<SmolStr>,
    pub(super) pure_context: Option<PureContext>,
    pub(super) pattern: PatternState,
    pub(super) calls: Vec<(FnId, Span)>,
    /// The procedures that are being expanded, the innermost last.
    pub(super) frames: Vec<Frame>,
    /// The result of a call that was expanded before the statement that it is part of, by the place of the call.
    pub(super) expanded: Option<(Span, hir::Expr)>,
}

/// What is visible to a caller, and the loops around the call.
pub(super) struct CallerScope {
    head: Option<u32>,
    visible: FxHashMap<SmolStr, u32>,
    loops: Vec<Vec<SmolStr>>,
}

impl<'c, 'a> Body<'c, 'a> {
    pub(super) fn new(checker: &'c mut Checker<'a>, kind: BodyKind) -> Body<'c, 'a> {
        Body::resume(checker, kind, BodyFacts::default(), None)
    }

    /// A body in which the declarations up to `head` are visible.
    pub(super) fn resume(
        checker: &'c mut Checker<'a>,
        kind: BodyKind,
        facts: BodyFacts,
        head: Option<u32>,
    ) -> Body<'c, 'a> {
        let mut visible = FxHashMap::default();
        let mut next = head;
        while let Some(index) = next {
            let declaration = &facts.declarations[index as usize];
            visible.entry(declaration.name.clone()).or_insert(index);
            next = declaration.parent;
        }
        Body {
            checker,
            kind,
            facts,
            head,
            visible,
            sites: Vec::new(),
            labels: Vec::new(),
            loops: Vec::new(),
            labels_before: Vec::new(),
            pure_context: None,
            pattern: PatternState::default(),
            calls: Vec::new(),
            frames: Vec::new(),
            expanded: None,
        }
    }

    /// Hides everything that is visible: the text of a procedure does not see the names of its caller.
    pub(super) fn enter_expansion(&mut self) -> CallerScope {
        self.labels_before.clear();
        CallerScope {
            head: self.head.take(),
            visible: std::mem::take(&mut self.visible),
            loops: std::mem::take(&mut self.loops),
        }
    }

    /// Ends the scope of an expansion.
    pub(super) fn leave_expansion(&mut self, caller: CallerScope) {
        CallerScope { head: self.head, visible: self.visible, loops: self.loops } = caller;
    }

    /// The scope to go back to at the end of a block.
    pub(super) fn enter(&self) -> Option<u32> {
        self.head
    }

    /// Ends the scope of everything declared since `enter`.
    pub(super) fn leave(&mut self, scope: Option<u32>) {
        while self.head != scope {
            let Some(index) = self.head else { break };
            let declaration = &self.facts.declarations[index as usize];
            match declaration.hidden {
                Some(hidden) => self.visible.insert(declaration.name.clone(), hidden),
                None => self.visible.remove(&declaration.name),
            };
            self.head = declaration.parent;
        }
    }

    /// What a local name means, which is a use of it.
    pub(super) fn find(&self, name: &ast::Name) -> Option<Binding> {
        let declaration = &self.facts.declarations[*self.visible.get(&name.text)? as usize];
        self.checker.record_use(name.span, Rank::Local, declaration.span);
        Some(declaration.binding)
    }

    /// The type of an `ast::Type` inside the body: its lengths may name local constants.
    pub(super) fn resolve_type(&mut self, ty: &'a ast::Type) -> TypeId {
        let mut names = Vec::new();
        super::order::names_in_type(ty, &mut names);
        for name in names {
            if let Some(binding) = self.find(name) {
                let constant = match binding {
                    Binding::Const(index) => Some(self.facts.constants[index as usize].clone()),
                    Binding::Local(_) => None,
                    // Not a constant either; its name as a type or length means the item.
                    Binding::Channel(_) => continue,
                };
                self.checker.outer_names.insert(name.text.clone(), constant);
            }
        }
        let resolved = self.checker.resolve_type(ty);
        self.checker.outer_names.clear();
        resolved
    }

    /// Names of visible variables and constants, for suggestions.
    pub(super) fn visible_names(&self) -> Vec<SmolStr> {
        let mut names: Vec<SmolStr> = self.visible.keys().cloned().collect();
        names.sort();
        names
    }

    fn bind(&mut self, name: &ast::Name, binding: Binding, role: Option<Role>) {
        if name.text.is_empty() {
            return;
        }
        if !self.checker.reject_import_name(name) {
            match self.visible.get(&name.text).copied() {
                Some(hidden) => self.report_hidden(name, hidden, role),
                None => self.warn_hidden_item(name),
            }
        }
        let kind = match (role, binding) {
            (Some(Role::Parameter), _) => DefinitionKind::Parameter,
            (_, Binding::Const(_)) => DefinitionKind::Constant,
            (_, Binding::Local(_) | Binding::Channel(_)) => DefinitionKind::Variable,
        };
        self.make_visible(name, binding, kind);
    }

    /// Makes a parameter of a procedure or template visible. It may hide an item: a procedure does not know the items
    /// of all programs that call it.
    pub(super) fn bind_parameter(&mut self, name: &ast::Name, binding: Binding) {
        if name.text.is_empty() {
            return;
        }
        if !self.checker.reject_import_name(name)
            && let Some(hidden) = self.visible.get(&name.text).copied()
        {
            self.report_hidden(name, hidden, None);
        }
        self.make_visible(name, binding, DefinitionKind::Parameter);
    }

    fn make_visible(&mut self, name: &ast::Name, binding: Binding, kind: DefinitionKind) {
        self.checker.record_definition(name.span, kind);
        let hidden = self.visible.get(&name.text).copied();
        let index = self.facts.declarations.len() as u32;
        self.facts.declarations.push(Declaration {
            name: name.text.clone(),
            binding,
            span: name.span,
            parent: self.head,
            hidden,
        });
        self.visible.insert(name.text.clone(), index);
        self.head = Some(index);
    }

    fn report_hidden(&mut self, name: &ast::Name, hidden: u32, role: Option<Role>) {
        let hidden = &self.facts.declarations[hidden as usize];
        let noun = match hidden.binding {
            Binding::Const(_) => "constant",
            Binding::Channel(_) => "channel",
            Binding::Local(id) => match self.facts.locals[id.0 as usize].role {
                Role::Parameter => "parameter",
                Role::Variable | Role::Received | Role::Counter | Role::Result => "variable",
            },
        };
        let text = &name.text;
        let (shown, help) = match (role, noun) {
            (Some(Role::Received), "variable") => {
                (format!("${text}"), format!("drop the `$` to assign `{text}`, write `=={text}` to compare"))
            }
            (Some(Role::Received), _) => (format!("${text}"), format!("write `=={text}` to compare")),
            (Some(_) | None, _) => (text.to_string(), "choose another name".to_string()),
        };
        let diagnostic = Diagnostic::new(Code::E0205, name.span, format!("`{shown}` hides the {noun} `{text}`"))
            .label(hidden.span, format!("`{text}` is declared here"))
            .help(help);
        self.checker.report(diagnostic);
    }

    fn warn_hidden_item(&mut self, name: &ast::Name) {
        if let Some(named) = self.checker.lookup(name) {
            let message = format!("`{}` hides the {} `{}`", name.text, named.entity.noun(), name.text);
            let diagnostic = Diagnostic::new(Code::W0901, name.span, message)
                .label(named.span, format!("the {} is declared here", named.entity.noun()));
            self.checker.report(diagnostic);
        }
    }

    /// A new variable, visible from here on.
    pub(super) fn declare(
        &mut self,
        name: &ast::Name,
        ty: Option<TypeId>,
        mutability: Mutability,
        role: Role,
    ) -> LocalId {
        let id = self.add_local(name, ty, mutability, role);
        self.bind(name, Binding::Local(id), Some(role));
        id
    }

    /// A new variable that no name refers to.
    pub(super) fn add_local(
        &mut self,
        name: &ast::Name,
        ty: Option<TypeId>,
        mutability: Mutability,
        role: Role,
    ) -> LocalId {
        let id = LocalId(self.facts.locals.len() as u32);
        self.facts.locals.push(LocalFacts {
            name: name.text.clone(),
            ty,
            mutability,
            span: name.span,
            role,
            reads: 0,
            reported: false,
        });
        id
    }

    /// A new constant, visible from here on.
    pub(super) fn declare_constant(&mut self, name: &ast::Name, value: Constant) {
        let index = self.facts.constants.len() as u32;
        if let Constant::Typed(value) = &value {
            self.checker.record_type(name.span, value.ty, Mutability::Immutable);
        }
        self.facts.constants.push(value);
        self.bind(name, Binding::Const(index), None);
    }

    /// A parameter that is a constant, visible from here on.
    pub(super) fn declare_parameter(&mut self, name: &ast::Name, value: Constant) {
        let index = self.facts.constants.len() as u32;
        self.facts.constants.push(value);
        self.bind_parameter(name, Binding::Const(index));
    }

    pub(super) fn local(&self, id: LocalId) -> &LocalFacts {
        &self.facts.locals[id.0 as usize]
    }

    /// The type of a variable that is read. One that nothing has been assigned to so far has none: every path to here
    /// runs through earlier text, so it may be read before it is assigned.
    pub(super) fn read_local(&mut self, id: LocalId, span: Span) -> TypeId {
        let local = &mut self.facts.locals[id.0 as usize];
        local.reads += 1;
        if let Some(ty) = local.ty {
            return ty;
        }
        local.ty = Some(TypeTable::ERROR);
        local.reported = true;
        let diagnostic = unassigned(&local.name.clone(), local.span, span);
        self.checker.report(diagnostic);
        TypeTable::ERROR
    }

    /// Gives a variable its type at its first assignment; later ones find it set.
    pub(super) fn infer(&mut self, id: LocalId, ty: TypeId, mutability: Mutability) {
        let local = &mut self.facts.locals[id.0 as usize];
        if local.ty.is_none() {
            local.ty = Some(ty);
            local.mutability = mutability;
        }
    }

    /// Whether a variable of this type can be updated in place: `#` means nothing for values without parts.
    pub(super) fn effective(&self, ty: TypeId, mutability: Mutability) -> Mutability {
        match self.checker.types.get(ty) {
            Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Error => Mutability::Immutable,
            Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) | Type::Boxed(_) => mutability,
        }
    }

    /// Enters a channel operation.
    pub(super) fn add_site(&mut self, site: hir::Site) -> SiteId {
        self.sites.push(site);
        self.facts.site_scopes.push(self.head);
        SiteId(self.sites.len() as u32 - 1)
    }

    /// Records what is visible after an operation's patterns.
    pub(super) fn close_site(&mut self, site: SiteId) {
        self.facts.site_scopes[site.0 as usize] = self.head;
    }

    /// Records that a label of a loop around is named.
    pub(super) fn record_label(&self, label: &ast::Label) {
        let is_named = |(text, span): &&(SmolStr, Span)| *text == label.text && span.file == label.span.file;
        if let Some((text, declared)) = self.labels.iter().rev().find(is_named) {
            self.checker.record_use(label_text(label.span, text), Rank::Part, label_text(*declared, text));
        }
    }

    pub(super) fn add_label(&mut self, label: &ast::Label) -> LabelId {
        self.checker.record_definition(label_text(label.span, &label.text), DefinitionKind::Label);
        let id = LabelId(self.labels.len() as u32);
        self.labels.push((label.text.clone(), label.span));
        self.facts.label_scopes.push(self.head);
        if self.facts.label_names.insert(label.text.clone(), id).is_some() {
            self.facts.repeated_labels.insert(label.text.clone());
        }
        id
    }

    /// The variables as the checked program lists them.
    pub(super) fn hir_locals(&mut self) -> Vec<hir::Local> {
        for local in &mut self.facts.locals {
            // "and `int` if there is none" (section 4).
            local.ty.get_or_insert(TypeTable::I32);
        }
        for local in &self.facts.locals {
            self.checker.record_type(local.span, local.ty.unwrap_or(TypeTable::I32), local.mutability);
        }
        self.facts
            .locals
            .iter()
            .map(|local| hir::Local {
                name: local.name.clone(),
                ty: local.ty.unwrap_or(TypeTable::I32),
                mutability: local.mutability,
                span: local.span,
            })
            .collect()
    }
}

/// E0503.
pub(super) fn unassigned(name: &str, declared: Span, read: Span) -> Diagnostic {
    Diagnostic::new(Code::E0503, read, format!("`{name}` may be read before it is assigned"))
        .label(declared, format!("`{name}` is declared here"))
}
