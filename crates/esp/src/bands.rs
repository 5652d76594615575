//! Splits a graph that is wider than a page into bands, which are drawn below each other as the lines of a text: each
//! holds the nodes of some neighbouring columns of the whole. Where an edge connects two bands, one of them holds a
//! copy of the node at its other end.

use crate::layout::{self, Graph};
use std::cmp::Ordering;

/// A part of a graph.
pub(crate) struct Band {
    /// Its nodes, in the order of `graph`: first its own, then copies.
    pub(crate) nodes: Vec<BandNode>,
    pub(crate) graph: Graph,
}

/// A node of a band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BandNode {
    /// Its index in the whole graph.
    pub(crate) node: usize,
    pub(crate) place: Place,
}

/// Where the node itself is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In this band.
    Here,
    /// In an earlier band: this one has a copy.
    Above,
    /// In a later band: this one has a copy.
    Below,
}

/// Which end of an edge is copied to the band of the other end.
pub(crate) type CopiedEnd<'c> = &'c dyn Fn((usize, usize)) -> usize;

/// Splits a graph into bands that are at most `max_width` wide, if no column is wider by itself.
pub(crate) fn split(graph: &Graph, max_width: f64, copied_end: CopiedEnd<'_>) -> Vec<Band> {
    let columns = layout::columns(graph);
    let count = columns.iter().map(|column| column + 1).max().unwrap_or(0);
    let part = |first: usize, end: usize| band(graph, &|node| place(columns[node], first, end), copied_end);
    let mut bands = Vec::new();
    let mut first = 0;
    while first < count {
        let mut end = first + 1;
        let mut fitting = part(first, end);
        while end < count {
            let wider = part(first, end + 1);
            if layout::width(&wider.graph) > max_width {
                break;
            }
            fitting = wider;
            end += 1;
        }
        bands.push(fitting);
        first = end;
    }
    move_unconnected(&mut bands);
    bands
}

/// Moves each node whose edges all lead to other bands to the first of these, instead of a copy.
fn move_unconnected(bands: &mut [Band]) {
    for at in 0..bands.len() {
        let mut index = 0;
        while let Some(member) = bands[at].nodes.get(index).copied() {
            let is_connected = bands[at].graph.edges.iter().any(|(from, to)| *from == index || *to == index);
            let others = || (0..bands.len()).filter(|other| *other != at);
            let copied = others().find(|other| bands[*other].nodes.iter().any(|copy| copy.node == member.node));
            match copied {
                Some(target) if member.place == Place::Here && !is_connected => {
                    bands[at].remove(index);
                    for (number, band) in bands.iter_mut().enumerate() {
                        let place = match number.cmp(&target) {
                            Ordering::Less => Place::Below,
                            Ordering::Equal => Place::Here,
                            Ordering::Greater => Place::Above,
                        };
                        let copies = band.nodes.iter_mut().filter(|copy| copy.node == member.node);
                        copies.for_each(|copy| copy.place = place);
                    }
                }
                Some(_) | None => index += 1,
            }
        }
    }
}

impl Band {
    /// Removes a node without edges.
    fn remove(&mut self, index: usize) {
        self.nodes.remove(index);
        self.graph.sizes.remove(index);
        for (from, to) in &mut self.graph.edges {
            *from -= usize::from(*from > index);
            *to -= usize::from(*to > index);
        }
    }
}

/// Where a node of this column is for a band of the columns from `first` to before `end`.
fn place(column: usize, first: usize, end: usize) -> Place {
    if column < first {
        Place::Above
    } else if column < end {
        Place::Here
    } else {
        Place::Below
    }
}

fn band(graph: &Graph, place: &dyn Fn(usize) -> Place, copied_end: CopiedEnd<'_>) -> Band {
    let own = (0..graph.sizes.len()).filter(|node| place(*node) == Place::Here);
    let mut nodes: Vec<BandNode> = own.map(|node| BandNode { node, place: Place::Here }).collect();
    let mut edges = Vec::new();
    for (from, to) in graph.edges.iter().copied() {
        let copied = copied_end((from, to));
        let other = if copied == from { to } else { from };
        if place(other) != Place::Here {
            continue;
        }
        let mut index = |node: usize| {
            nodes.iter().position(|member| member.node == node).unwrap_or_else(|| {
                nodes.push(BandNode { node, place: place(node) });
                nodes.len() - 1
            })
        };
        edges.push((index(from), index(to)));
    }
    let sizes = nodes.iter().map(|member| graph.sizes[member.node]).collect();
    Band { nodes, graph: Graph { sizes, edges } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of five boxes of 100 by 30, the first of which the last leads back to.
    fn ring() -> Graph {
        Graph { sizes: vec![(100.0, 30.0); 5], edges: vec![(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)] }
    }

    #[test]
    fn a_graph_that_fits_is_one_band() {
        let bands = split(&ring(), 1_000.0, &|(_, to)| to);
        assert_eq!(bands.len(), 1);
        assert!(bands[0].nodes.iter().all(|member| member.place == Place::Here));
        assert_eq!(bands[0].graph.edges, ring().edges);
    }

    #[test]
    fn each_node_and_edge_is_in_one_band_and_copies_are_where_edges_lead() {
        let bands = split(&ring(), 420.0, &|(_, to)| to);
        assert!(bands.len() > 1 && bands.iter().all(|band| layout::width(&band.graph) <= 420.0));
        let mut own: Vec<usize> = Vec::new();
        let mut edges: Vec<(usize, usize)> = Vec::new();
        for band in &bands {
            own.extend(band.nodes.iter().filter(|member| member.place == Place::Here).map(|member| member.node));
            edges.extend(band.graph.edges.iter().map(|(from, to)| (band.nodes[*from].node, band.nodes[*to].node)));
        }
        own.sort_unstable();
        edges.sort_unstable();
        assert_eq!((own, edges), ((0..5).collect(), ring().edges));
        // The edge back to the first box ends at a copy of it.
        let last = bands.last().expect("there is a band");
        assert!(last.nodes.contains(&BandNode { node: 0, place: Place::Above }), "{:?}", last.nodes);
    }

    #[test]
    fn a_node_without_edges_in_its_band_is_moved_to_them() {
        let mut graph = ring();
        graph.sizes.push((100.0, 30.0));
        graph.edges = vec![(0, 1), (1, 2), (2, 3), (3, 4), (5, 4)];
        let bands = split(&graph, 420.0, &|(from, _)| from);
        let with = |band: &Band| band.nodes.contains(&BandNode { node: 5, place: Place::Here });
        let holder = bands.iter().position(with).expect("it is drawn");
        assert_eq!(
            bands[holder].graph.edges.iter().filter(|(from, _)| bands[holder].nodes[*from].node == 5).count(),
            1
        );
        let count = |band: &Band| band.nodes.iter().filter(|member| member.node == 5).count();
        assert_eq!(bands.iter().map(count).sum::<usize>(), 1);
    }

    #[test]
    fn a_column_that_is_too_wide_is_a_band_by_itself() {
        let graph = Graph { sizes: vec![(500.0, 30.0); 2], edges: Vec::new() };
        assert_eq!(split(&graph, 100.0, &|(_, to)| to).len(), 1);
        assert!(split(&Graph::default(), 100.0, &|(_, to)| to).is_empty());
    }
}
