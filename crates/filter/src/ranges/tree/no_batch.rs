//! Batch classification on machines for which it is not implemented: there is none, so that packets are classified one
//! by one.

use super::{RECORD, Tree, VectorWindow};
use crate::packet::Packet;
use std::convert::Infallible;
use std::marker::PhantomData;

/// Packets that are processed together.
pub(in crate::ranges) const MAX_PACKETS: usize = 1;

/// What a tree has for vectors: nothing.
#[derive(Debug)]
pub(super) struct Vectors;

impl Vectors {
    pub(super) fn new(_windows: Vec<VectorWindow>, _masks: [u16; RECORD]) -> Vectors {
        Vectors
    }

    /// The tree on a processor with vectors: this is none.
    pub(super) fn batch<'t>(&self, _tree: &'t Tree) -> Option<Batch<'t>> {
        None
    }
}

/// A tree on a processor that has the vectors; a value does not exist.
pub(in crate::ranges) struct Batch<'t>(Infallible, PhantomData<&'t Tree>);

impl Batch<'_> {
    pub(in crate::ranges) fn find_many(&self, _packets: &[Packet<'_>], _found: &mut [u32; MAX_PACKETS]) -> u64 {
        match self.0 {}
    }

    pub(in crate::ranges) fn entry(&self, _number: u32) -> u32 {
        match self.0 {}
    }
}
