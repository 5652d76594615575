//! The tree of files at the start: `/dev`, `/tmp`, and what the initial ramdisk holds.

use super::device;
use super::directory::insert;
use super::location::Location;
use super::node::{Node, NodeKind};
use super::path::{LastLink, Target, resolve};
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use linux_raw_sys::general::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use quaject_image_formats::cpio;

/// A tree with the devices and an empty `/tmp`.
pub(crate) fn initial_tree() -> Location {
    let root = Node::directory(0o755);
    let devices = Node::directory(0o755);
    for (name, device) in device::NAMES {
        insert(&devices, name, Node::new(NodeKind::Device(*device), 0o666)).expect("the names of devices differ");
    }
    insert(&root, b"dev", devices).expect("the root is empty");
    insert(&root, b"tmp", Node::directory(0o1777)).expect("the root has no such name");
    Location::root(root)
}

/// Puts the files of an archive into the tree. What the archive has that is neither file, directory nor link is passed
/// over: devices exist already.
pub(crate) fn unpack(root: &Location, archive: &[u8]) -> Result<(), String> {
    for entry in cpio::entries(archive) {
        let entry = entry.map_err(|error| alloc::format!("the archive {error}"))?;
        let node = match entry.mode & S_IFMT {
            S_IFDIR => Node::directory(entry.mode & 0o7777),
            S_IFREG => Node::regular(entry.contents.to_vec(), entry.mode & 0o7777),
            S_IFLNK => Node::new(NodeKind::SymbolicLink(entry.contents.to_vec()), 0o777),
            _ => continue,
        };
        place(root, entry.name, node)?;
    }
    Ok(())
}

/// Puts a node at a path, and makes the directories that lead there.
pub(crate) fn place(root: &Location, path: &[u8], node: Rc<Node>) -> Result<(), String> {
    let shown = || String::from_utf8_lossy(path).into_owned();
    let mut at = Vec::new();
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    for (index, name) in names.iter().enumerate() {
        at.push(b'/');
        at.extend_from_slice(name);
        let is_last = index + 1 == names.len();
        let target = resolve(root, &at, LastLink::Keep).map_err(|error| alloc::format!("`{}`: {error}", shown()))?;
        let (new, parent, name) = match target {
            // A directory may be listed again; a later file replaces an earlier one.
            Target::Found(found) if is_last && node.names().is_err() => {
                let parent = found.parent();
                let _ = parent.node().names().map(|names| names.borrow_mut().remove(*name));
                (node.clone(), parent, name.to_vec())
            }
            Target::Found(_) => continue,
            Target::Missing { parent, name } => {
                (if is_last { node.clone() } else { Node::directory(0o755) }, parent, name)
            }
        };
        insert(parent.node(), &name, new).map_err(|error| alloc::format!("`{}`: {error}", shown()))?;
    }
    Ok(())
}
