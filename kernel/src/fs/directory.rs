//! Changes of directories: new names, and names that end.

use super::location::Location;
use super::name_cache;
use super::node::{Node, NodeKind};
use alloc::rc::Rc;
use alloc::vec::Vec;
use syscalls::Errno;

/// Gives a node a name in a directory, which must not have the name yet.
pub(crate) fn insert(directory: &Node, name: &[u8], node: Rc<Node>) -> Result<(), Errno> {
    let mut names = directory.names()?.borrow_mut();
    if names.contains_key(name) {
        return Err(Errno::EEXIST);
    }
    names.insert(name.to_vec(), node);
    name_cache::forget_all();
    Ok(())
}

/// What may be removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Removal {
    /// Everything but directories (`unlink`).
    File,
    /// An empty directory (`rmdir`).
    Directory,
}

/// Removes a name. The node stays as long as a descriptor leads to it.
pub(crate) fn remove(location: &Location, removal: Removal) -> Result<(), Errno> {
    match (&location.node().kind, removal) {
        (NodeKind::Directory(_), Removal::File) => return Err(Errno::EISDIR),
        (NodeKind::Directory(names), Removal::Directory) => {
            if !names.borrow().is_empty() {
                return Err(Errno::ENOTEMPTY);
            }
            if location.name().is_empty() {
                return Err(Errno::EBUSY);
            }
        }
        (NodeKind::Regular(_) | NodeKind::SymbolicLink(_) | NodeKind::Device(_), Removal::Directory) => {
            return Err(Errno::ENOTDIR);
        }
        (NodeKind::Regular(_) | NodeKind::SymbolicLink(_) | NodeKind::Device(_), Removal::File) => {}
    }
    let parent = location.parent();
    let mut names = parent.node().names()?.borrow_mut();
    let is_same = names.get(location.name()).is_some_and(|node| Rc::ptr_eq(node, location.node()));
    if !is_same {
        return Err(Errno::ENOENT);
    }
    let removed = names.remove(location.name());
    drop(names);
    name_cache::forget_all();
    drop(removed);
    Ok(())
}

/// A name as `getdents64` reports it.
pub(crate) struct Listed {
    pub(crate) name: Vec<u8>,
    pub(crate) node: Rc<Node>,
}

/// The names of a directory from the one with the number `first` on, `.` and `..` at the start.
pub(crate) fn list(location: &Location, first: u64) -> Result<Vec<Listed>, Errno> {
    let names = location.node().names()?.borrow();
    let dots = [(b".".to_vec(), location.node().clone()), (b"..".to_vec(), location.parent().node().clone())];
    let others = names.iter().map(|(name, node)| (name.clone(), node.clone()));
    let all = dots.into_iter().chain(others).skip(usize::try_from(first).unwrap_or(usize::MAX));
    Ok(all.map(|(name, node)| Listed { name, node }).collect())
}
