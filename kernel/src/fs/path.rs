//! Paths: from a name to a node. Knows nothing of permissions: every program is root.

use super::location::Location;
use super::name_cache;
use super::node::NodeKind;
use alloc::vec::Vec;
use syscalls::Errno;

const MAX_NAME_BYTES: usize = 255;
/// Symbolic links that one path may lead through.
const MAX_LINKS: u32 = 40;

/// What the last name of a path leads to.
pub(crate) enum Target {
    /// A node that exists.
    Found(Location),
    /// No such name in this directory.
    Missing { parent: Location, name: Vec<u8> },
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastLink {
    Follow,
    Keep,
}

/// Finds what `path` leads to, from `start` unless it is absolute.
pub(crate) fn resolve(start: &Location, path: &[u8], last_link: LastLink) -> Result<Target, Errno> {
    let is_cached = last_link == LastLink::Follow && path.first() == Some(&b'/');
    if is_cached && let Some(location) = name_cache::look_up(path) {
        return Ok(Target::Found(location));
    }
    let target = resolve_links(start, path, last_link, 0)?;
    if is_cached && let Target::Found(location) = &target {
        name_cache::remember(path, location);
    }
    Ok(target)
}

/// The node that `path` leads to.
pub(crate) fn find(start: &Location, path: &[u8], last_link: LastLink) -> Result<Location, Errno> {
    match resolve(start, path, last_link)? {
        Target::Found(location) => Ok(location),
        Target::Missing { .. } => Err(Errno::ENOENT),
    }
}

fn resolve_links(start: &Location, path: &[u8], last_link: LastLink, links: u32) -> Result<Target, Errno> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    if links > MAX_LINKS {
        return Err(Errno::ELOOP);
    }
    let mut at = if path[0] == b'/' { start.top() } else { start.clone() };
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
    let needs_directory = path.ends_with(b"/");
    for (index, name) in names.iter().enumerate() {
        let is_last = index + 1 == names.len();
        if name.len() > MAX_NAME_BYTES {
            return Err(Errno::ENAMETOOLONG);
        }
        let names_here = at.node().names()?;
        match *name {
            b"." => continue,
            b".." => {
                at = at.parent();
                continue;
            }
            _ => {}
        }
        let Some(node) = names_here.borrow().get(*name).cloned() else {
            return if is_last {
                Ok(Target::Missing { name: name.to_vec(), parent: at.clone() })
            } else {
                Err(Errno::ENOENT)
            };
        };
        match &node.kind {
            NodeKind::SymbolicLink(target) if !is_last || needs_directory || last_link == LastLink::Follow => {
                match resolve_links(&at, target, LastLink::Follow, links + 1)? {
                    Target::Found(location) => at = location,
                    missing @ Target::Missing { .. } => return if is_last { Ok(missing) } else { Err(Errno::ENOENT) },
                }
            }
            NodeKind::SymbolicLink(_) | NodeKind::Directory(_) | NodeKind::Regular(_) | NodeKind::Device(_) => {
                at = at.child(name, node.clone());
            }
        }
    }
    if needs_directory {
        at.node().names()?;
    }
    Ok(Target::Found(at))
}
