//! A body under check: its scopes, variables, labels and channel operations. The other modules check its statements.

use super::constants::Constant;
use super::names::Checker;
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
}

/// Names that the pattern under check declares or assigns.
#[derive(Default)]
pub(super) struct PatternState {
    pub(super) assigned: FxHashSet<LocalId>,
    pub(super) declared: FxHashSet<LocalId>,
    /// Whether `$` names of this pattern may be read: after `if` only.
    pub(super) condition_depth: u32,
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
    pub(super) loops: u32,
    pub(super) pure_context: Option<PureContext>,
    pub(super) pattern: PatternState,
    pub(super) calls: Vec<(FnId, Span)>,
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
            loops: 0,
            pure_context: None,
            pattern: PatternState::default(),
            calls: Vec::new(),
        }
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

    pub(super) fn find(&self, name: &str) -> Option<Binding> {
        self.visible.get(name).map(|index| self.facts.declarations[*index as usize].binding)
    }

    /// The type of an `ast::Type` inside the body: its lengths may name local constants.
    pub(super) fn resolve_type(&mut self, ty: &'a ast::Type) -> TypeId {
        let mut names = Vec::new();
        super::order::names_in_type(ty, &mut names);
        for name in names {
            if let Some(binding) = self.find(&name.text) {
                let constant = match binding {
                    Binding::Const(index) => Some(self.facts.constants[index as usize].clone()),
                    Binding::Local(_) => None,
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
        let hidden = self.visible.get(&name.text).copied();
        if !self.checker.reject_predeclared(name) {
            match hidden {
                Some(hidden) => self.report_hidden(name, hidden, role),
                None => self.warn_hidden_item(name),
            }
        }
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
            Binding::Local(id) => match self.facts.locals[id.0 as usize].role {
                Role::Parameter => "parameter",
                Role::Variable | Role::Received | Role::Counter => "variable",
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
        if let Some(named) = self.checker.find(&name.text) {
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
        self.bind(name, Binding::Local(id), Some(role));
        id
    }

    /// A new constant, visible from here on.
    pub(super) fn declare_constant(&mut self, name: &ast::Name, value: Constant) {
        let index = self.facts.constants.len() as u32;
        self.facts.constants.push(value);
        self.bind(name, Binding::Const(index), None);
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

    pub(super) fn add_label(&mut self, label: &ast::Label) -> LabelId {
        let id = LabelId(self.labels.len() as u32);
        self.labels.push((label.text.clone(), label.span));
        self.facts.label_scopes.push(self.head);
        self.facts.label_names.entry(label.text.clone()).or_insert(id);
        id
    }

    /// The variables as the checked program lists them.
    pub(super) fn hir_locals(&mut self) -> Vec<hir::Local> {
        for local in &mut self.facts.locals {
            // "and `int` if there is none" (section 4).
            local.ty.get_or_insert(TypeTable::I32);
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
