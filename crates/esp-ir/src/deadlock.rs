//! What the blocked instances of a deadlock wait for. A fused process carries this for its members, because a fault is
//! reported in terms of the processes of the source program.

use crate::ir::{ChannelId, Direction, Location};

/// One thing an instance waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitForEdge {
    /// Who waits.
    pub instance: u32,
    /// Where.
    pub location: Location,
    /// On which channel, in which direction; nothing for one whose guards are all false.
    pub operation: Option<(ChannelId, Direction)>,
    /// The instances that could be its partners and have not ended.
    pub partners: Vec<u32>,
}

/// What the instances of a deadlock wait for, those of fused processes told by their members, in order of instances.
/// `fused` are the fused instances, each with one of the things that their members wait for.
pub fn edges_by_member(mut waits: Vec<WaitForEdge>, fused: &[(u32, &WaitForEdge)]) -> Vec<WaitForEdge> {
    waits.retain(|wait| fused.iter().all(|(instance, _)| *instance != wait.instance));
    waits.extend(fused.iter().map(|(_, wait)| (*wait).clone()));
    waits.sort_by_key(|wait| wait.instance);
    waits
}
