//! Locations: nodes with the way to them from the root.

use super::node::Node;
use alloc::rc::Rc;
use alloc::vec::Vec;

/// A node and the way to it from the root.
#[derive(Clone)]
pub(crate) struct Location(Rc<Place>);

/// A node with the name that it has in the directory above; the root has neither.
struct Place {
    above: Option<Location>,
    name: Vec<u8>,
    node: Rc<Node>,
}

impl Location {
    /// A node without a name: the root of a tree.
    pub(crate) fn root(node: Rc<Node>) -> Location {
        Location(Rc::new(Place { above: None, name: Vec::new(), node }))
    }

    pub(crate) fn node(&self) -> &Rc<Node> {
        &self.0.node
    }

    /// The last name; empty for the root.
    pub(crate) fn name(&self) -> &[u8] {
        &self.0.name
    }

    /// The directory in which the node has its name; the root's is the root.
    pub(crate) fn parent(&self) -> Location {
        self.0.above.as_ref().unwrap_or(self).clone()
    }

    pub(super) fn top(&self) -> Location {
        let mut at = self;
        while let Some(above) = &at.0.above {
            at = above;
        }
        at.clone()
    }

    pub(super) fn child(&self, name: &[u8], node: Rc<Node>) -> Location {
        Location(Rc::new(Place { above: Some(self.clone()), name: name.to_vec(), node }))
    }

    /// The absolute path.
    pub(crate) fn path(&self) -> Vec<u8> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = self;
        while let Some(above) = &at.0.above {
            names.push(&at.0.name);
            at = above;
        }
        names.reverse();
        [b"/", names.join(b"/".as_slice()).as_slice()].concat()
    }
}
