//! Layered graph drawing: places the nodes of a directed graph in columns from left to right and routes its edges
//! (Sugiyama, Tagawa, Toda, "Methods for Visual Understanding of Hierarchical System Structures", 1981). Cycles are
//! broken, columns assigned, each column ordered to avoid crossings, then aligned. Knows boxes and arrows; nothing of
//! ESP or SVG.

/// A graph to be placed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// Width and height each node needs, without its ports.
    pub(crate) sizes: Vec<(f64, f64)>,
    /// Arrows, from node to node; several between the same two are allowed, an arrow to itself is not.
    pub(crate) edges: Vec<(usize, usize)>,
}

/// A placed graph.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Each node's rectangle.
    pub(crate) nodes: Vec<Rectangle>,
    /// Each edge's route, from its first node to its second.
    pub(crate) routes: Vec<Vec<Point>>,
    /// Width and height of the drawing.
    pub(crate) size: (f64, f64),
}

/// A rectangle by its corner and size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rectangle {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Rectangle {
    pub(crate) fn middle(&self) -> f64 {
        self.top + self.height / 2.0
    }
}

/// A point of a route. Routes are smooth curves through their points, horizontal at each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// Space between columns, between neighbours of a column, and between two ports of one side.
const COLUMN_GAP: f64 = 56.0;
const ROW_GAP: f64 = 18.0;
const PORT_GAP: f64 = 14.0;
/// Room a long edge takes where it passes a column.
const PASSAGE: f64 = 6.0;
const SWEEPS: usize = 24;

/// A node of the graph with long edges cut into pieces: a real node, or the passage of an edge through a column.
struct Cell {
    column: usize,
    width: f64,
    height: f64,
    /// Pieces that end here from the left and leave to the right: index into `pieces`.
    left: Vec<usize>,
    right: Vec<usize>,
}

/// A part of an edge between neighbouring columns, from left to right whatever the arrow's direction.
struct Piece {
    from: usize,
    to: usize,
}

/// Places `graph`.
pub(crate) fn place(graph: &Graph) -> Layout {
    let reversed = edges_against_the_flow(graph);
    let columns = assign_columns(graph, &reversed);
    let (mut cells, pieces, chains) = cut_long_edges(graph, &reversed, &columns);
    for cell in cells.iter_mut().take(graph.sizes.len()) {
        let ports = cell.left.len().max(cell.right.len());
        cell.height = cell.height.max((ports as f64 + 0.6) * PORT_GAP);
    }
    let order = order_columns(&cells, &pieces);
    let middles = align(&cells, &pieces, &order);
    draw(graph, &reversed, &cells, &pieces, &chains, &order, &middles)
}

/// The column of each node, from the left.
pub(crate) fn columns(graph: &Graph) -> Vec<usize> {
    assign_columns(graph, &edges_against_the_flow(graph))
}

/// The width that a graph has when placed.
pub(crate) fn width(graph: &Graph) -> f64 {
    let mut widths: Vec<f64> = Vec::new();
    for (column, (width, _)) in columns(graph).into_iter().zip(&graph.sizes) {
        if widths.len() <= column {
            widths.resize(column + 1, 0.0);
        }
        widths[column] = widths[column].max(*width);
    }
    widths.iter().sum::<f64>() + COLUMN_GAP * widths.len().saturating_sub(1) as f64
}

/// Which edges point from right to left: those that close a cycle in a depth-first walk which begins at nodes
/// nothing points to, in order.
fn edges_against_the_flow(graph: &Graph) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        Not,
        Open,
        Done,
    }
    let count = graph.sizes.len();
    let mut outgoing = vec![Vec::new(); count];
    let mut pointed_to = vec![false; count];
    for (index, (from, to)) in graph.edges.iter().enumerate() {
        outgoing[*from].push(index);
        pointed_to[*to] = true;
    }
    let mut reversed = vec![false; graph.edges.len()];
    let mut visit = vec![Visit::Not; count];
    let starts = (0..count).filter(|node| !pointed_to[*node]).chain(0..count).collect::<Vec<_>>();
    for start in starts {
        if visit[start] != Visit::Not {
            continue;
        }
        // An explicit stack: a ring of many processes must not exhaust the program's own.
        let mut stack = vec![(start, 0)];
        visit[start] = Visit::Open;
        while let Some((node, next)) = stack.pop() {
            let Some(edge) = outgoing[node].get(next) else {
                visit[node] = Visit::Done;
                continue;
            };
            stack.push((node, next + 1));
            let to = graph.edges[*edge].1;
            match visit[to] {
                Visit::Not => {
                    visit[to] = Visit::Open;
                    stack.push((to, 0));
                }
                Visit::Open => reversed[*edge] = true,
                Visit::Done => {}
            }
        }
    }
    reversed
}

/// The column of each node: as far left as its predecessors allow, then pulled towards its neighbours.
fn assign_columns(graph: &Graph, reversed: &[bool]) -> Vec<usize> {
    let count = graph.sizes.len();
    let mut before = vec![Vec::new(); count];
    let mut after = vec![Vec::new(); count];
    for ((from, to), reversed) in graph.edges.iter().zip(reversed) {
        let (left, right) = if *reversed { (*to, *from) } else { (*from, *to) };
        before[right].push(left);
        after[left].push(right);
    }
    let mut columns = vec![0usize; count];
    let mut open: Vec<usize> = before.iter().map(Vec::len).collect();
    let mut ready: Vec<usize> = (0..count).filter(|node| open[*node] == 0).collect();
    let mut sorted = Vec::with_capacity(count);
    while let Some(node) = ready.pop() {
        sorted.push(node);
        for next in &after[node] {
            columns[*next] = columns[*next].max(columns[node] + 1);
            open[*next] -= 1;
            if open[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    for _ in 0..4 {
        for node in sorted.iter().rev().copied() {
            let latest = after[node].iter().map(|next| columns[*next] - 1).min();
            if let Some(latest) = latest
                && after[node].len() > before[node].len()
            {
                columns[node] = columns[node].max(latest);
            }
        }
        for node in sorted.iter().copied() {
            let earliest = before[node].iter().map(|previous| columns[*previous] + 1).max();
            if let Some(earliest) = earliest
                && before[node].len() >= after[node].len()
            {
                columns[node] = columns[node].min(earliest);
            }
        }
    }
    let first = columns.iter().min().copied().unwrap_or(0);
    columns.iter().map(|column| column - first).collect()
}

/// Cells for nodes (first, in order) and passages, pieces between them, and each edge's pieces from left to right.
fn cut_long_edges(graph: &Graph, reversed: &[bool], columns: &[usize]) -> (Vec<Cell>, Vec<Piece>, Vec<Vec<usize>>) {
    let mut cells: Vec<Cell> = graph
        .sizes
        .iter()
        .zip(columns)
        .map(|(size, column)| Cell {
            column: *column,
            width: size.0,
            height: size.1,
            left: Vec::new(),
            right: Vec::new(),
        })
        .collect();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut chains = Vec::with_capacity(graph.edges.len());
    for ((from, to), reversed) in graph.edges.iter().zip(reversed) {
        let (left, right) = if *reversed { (*to, *from) } else { (*from, *to) };
        let mut chain = Vec::new();
        let mut previous = left;
        for column in columns[left] + 1..=columns[right] {
            let cell = if column == columns[right] {
                right
            } else {
                cells.push(Cell { column, width: 0.0, height: PASSAGE, left: Vec::new(), right: Vec::new() });
                cells.len() - 1
            };
            chain.push(pieces.len());
            cells[previous].right.push(pieces.len());
            cells[cell].left.push(pieces.len());
            pieces.push(Piece { from: previous, to: cell });
            previous = cell;
        }
        chains.push(chain);
    }
    (cells, pieces, chains)
}

/// The cells of each column from top to bottom: barycentre sweeps, the order with the fewest crossings kept.
fn order_columns(cells: &[Cell], pieces: &[Piece]) -> Vec<Vec<usize>> {
    let columns = cells.iter().map(|cell| cell.column + 1).max().unwrap_or(0);
    let mut order = vec![Vec::new(); columns];
    for (index, cell) in cells.iter().enumerate() {
        order[cell.column].push(index);
    }
    let mut best = order.clone();
    let mut min_crossings = crossings(cells, pieces, &order);
    for sweep in 0..SWEEPS {
        if min_crossings == 0 {
            break;
        }
        let mut position = positions(cells.len(), &order);
        for step in 0..columns {
            let (column, rightward) = if sweep % 2 == 0 { (step, true) } else { (columns - 1 - step, false) };
            let barycentre = |cell: usize| {
                let ends: Vec<f64> = if rightward {
                    cells[cell].left.iter().map(|piece| position[pieces[*piece].from]).collect()
                } else {
                    cells[cell].right.iter().map(|piece| position[pieces[*piece].to]).collect()
                };
                if ends.is_empty() { position[cell] } else { ends.iter().sum::<f64>() / ends.len() as f64 }
            };
            let mut barycentres: Vec<(f64, usize)> =
                order[column].iter().map(|cell| (barycentre(*cell), *cell)).collect();
            barycentres.sort_by(|a, b| a.0.total_cmp(&b.0));
            order[column] = barycentres.into_iter().map(|(_, cell)| cell).collect();
            let height = order[column].len() as f64;
            for (index, cell) in order[column].iter().enumerate() {
                position[*cell] = (index as f64 + 0.5) / height;
            }
        }
        let count = crossings(cells, pieces, &order);
        if count < min_crossings {
            min_crossings = count;
            best.clone_from(&order);
        }
    }
    best
}

/// The relative position of each cell in its column, from 0 to 1.
fn positions(count: usize, order: &[Vec<usize>]) -> Vec<f64> {
    let mut position = vec![0.0; count];
    for column in order {
        for (index, cell) in column.iter().enumerate() {
            position[*cell] = (index as f64 + 0.5) / column.len() as f64;
        }
    }
    position
}

/// How many pairs of pieces between neighbouring columns cross, counted with a binary indexed tree.
fn crossings(cells: &[Cell], pieces: &[Piece], order: &[Vec<usize>]) -> usize {
    let mut rank = vec![0usize; cells.len()];
    for column in order {
        for (index, cell) in column.iter().enumerate() {
            rank[*cell] = index;
        }
    }
    let mut total = 0;
    for (column, next) in order.iter().zip(order.iter().skip(1)) {
        let mut tree = vec![0usize; next.len() + 1];
        let mut seen = 0;
        for cell in column {
            let mut ends: Vec<usize> = cells[*cell].right.iter().map(|piece| rank[pieces[*piece].to]).collect();
            ends.sort_unstable();
            for end in &ends {
                let mut at = end + 1;
                let mut not_below = 0;
                while at > 0 {
                    not_below += tree[at];
                    at &= at - 1;
                }
                total += seen - not_below;
            }
            for end in ends {
                seen += 1;
                let mut at = end + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
            }
        }
    }
    total
}

/// The vertical middle of each cell. A cell is preferably level with the mean of its neighbours; each column comes as
/// close to that as its order and gaps allow.
fn align(cells: &[Cell], pieces: &[Piece], order: &[Vec<usize>]) -> Vec<f64> {
    let mut middle = vec![0.0; cells.len()];
    for column in order {
        let mut top = 0.0;
        for cell in column {
            middle[*cell] = top + cells[*cell].height / 2.0;
            top += cells[*cell].height + ROW_GAP;
        }
    }
    for sweep in 0..SWEEPS {
        for step in 0..order.len() {
            let column = if sweep % 2 == 0 { step } else { order.len() - 1 - step };
            let preferred: Vec<(f64, f64)> = order[column]
                .iter()
                .map(|cell| {
                    let left = cells[*cell].left.iter().map(|piece| middle[pieces[*piece].from]);
                    let right = cells[*cell].right.iter().map(|piece| middle[pieces[*piece].to]);
                    let ends: Vec<f64> = left.chain(right).collect();
                    let mean =
                        if ends.is_empty() { middle[*cell] } else { ends.iter().sum::<f64>() / ends.len() as f64 };
                    // A larger weight for passages: a bent edge is less readable than a box that is slightly off.
                    (mean, if cells[*cell].width == 0.0 { 8.0 } else { 1.0 + ends.len() as f64 })
                })
                .collect();
            pool_adjacent_violators(cells, &order[column], &preferred, &mut middle);
        }
    }
    let top = cells.iter().zip(&middle).map(|(cell, middle)| middle - cell.height / 2.0).fold(f64::MAX, f64::min);
    middle.iter().map(|middle| middle - top).collect()
}

/// Weighted isotonic regression by the pool-adjacent-violators algorithm: the middles nearest to the preferred ones
/// (each with a weight) that keep order and gaps.
fn pool_adjacent_violators(cells: &[Cell], column: &[usize], preferred: &[(f64, f64)], middle: &mut [f64]) {
    let mut offsets = Vec::with_capacity(column.len());
    let mut offset = 0.0;
    for (index, cell) in column.iter().enumerate() {
        if index > 0 {
            offset += (cells[column[index - 1]].height + cells[*cell].height) / 2.0 + ROW_GAP;
        }
        offsets.push(offset);
    }
    // Each pool: weighted mean, weight, number of cells.
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for ((mean, weight), offset) in preferred.iter().zip(&offsets) {
        let mut pool = (mean - offset, *weight, 1);
        while let Some(last) = pools.pop_if(|last| last.0 > pool.0) {
            let weight = last.1 + pool.1;
            pool = ((last.0 * last.1 + pool.0 * pool.1) / weight, weight, last.2 + pool.2);
        }
        pools.push(pool);
    }
    let levels = pools.iter().flat_map(|(level, _, count)| std::iter::repeat_n(*level, *count));
    for ((cell, offset), level) in column.iter().zip(&offsets).zip(levels) {
        middle[*cell] = level + offset;
    }
}

/// Rectangles and routes from columns, middles and the order of ports.
fn draw(
    graph: &Graph,
    reversed: &[bool],
    cells: &[Cell],
    pieces: &[Piece],
    chains: &[Vec<usize>],
    order: &[Vec<usize>],
    middles: &[f64],
) -> Layout {
    let mut lefts = Vec::new();
    let mut x = 0.0;
    let mut widths = Vec::new();
    for column in order {
        let width = column.iter().map(|cell| cells[*cell].width).fold(0.0, f64::max);
        lefts.push(x);
        widths.push(width);
        x += width + COLUMN_GAP;
    }
    let rectangles: Vec<Rectangle> = cells
        .iter()
        .zip(middles)
        .map(|(cell, middle)| Rectangle {
            left: lefts[cell.column] + (widths[cell.column] - cell.width) / 2.0,
            top: middle - cell.height / 2.0,
            width: cell.width,
            height: cell.height,
        })
        .collect();

    // The height at which each piece leaves its left cell and enters its right one: ports in the order of the
    // other ends, so that the pieces of one side do not cross.
    let mut leaves = vec![0.0; pieces.len()];
    let mut enters = vec![0.0; pieces.len()];
    for (cell, rectangle) in cells.iter().zip(&rectangles) {
        let mut right = cell.right.clone();
        right.sort_by(|a, b| middles[pieces[*a].to].total_cmp(&middles[pieces[*b].to]));
        for (index, piece) in right.iter().enumerate() {
            leaves[*piece] = port(rectangle, index, right.len());
        }
        let mut left = cell.left.clone();
        left.sort_by(|a, b| middles[pieces[*a].from].total_cmp(&middles[pieces[*b].from]));
        for (index, piece) in left.iter().enumerate() {
            enters[*piece] = port(rectangle, index, left.len());
        }
    }

    let routes = chains
        .iter()
        .zip(reversed)
        .map(|(chain, reversed)| {
            let mut route = Vec::new();
            for piece in chain {
                let (from, to) = (&rectangles[pieces[*piece].from], &rectangles[pieces[*piece].to]);
                let (from_cell, to_cell) = (&cells[pieces[*piece].from], &cells[pieces[*piece].to]);
                let column_right = lefts[from_cell.column] + widths[from_cell.column];
                route.push(Point { x: from.left + from.width, y: leaves[*piece] });
                if from.left + from.width < column_right {
                    route.push(Point { x: column_right, y: leaves[*piece] });
                }
                if lefts[to_cell.column] < to.left {
                    route.push(Point { x: lefts[to_cell.column], y: enters[*piece] });
                }
                route.push(Point { x: to.left, y: enters[*piece] });
            }
            if *reversed {
                route.reverse();
            }
            route
        })
        .collect();

    let bottom = rectangles.iter().map(|rectangle| rectangle.top + rectangle.height).fold(0.0, f64::max);
    let nodes: Vec<Rectangle> = rectangles.into_iter().take(graph.sizes.len()).collect();
    Layout { nodes, routes, size: ((x - COLUMN_GAP).max(0.0), bottom) }
}

/// The height of one of `count` ports on a side.
fn port(rectangle: &Rectangle, index: usize, count: usize) -> f64 {
    rectangle.middle() + (index as f64 - (count as f64 - 1.0) / 2.0) * PORT_GAP
}
