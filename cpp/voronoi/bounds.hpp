// The interface of bounds on squared distances between rows and all points of a pool, and the choice among them.
//
// Bounds(points, numbers of the points in the pool) is shared by all threads. of(rows, tile) makes a thread's scratch
// for at most `tile` rows at a time:
//   enter(begin, end)  takes rows begin to end as the tile
//   fill(k, n, panel, n_panels, bounds, stride)  writes bounds of n rows, rounded up to whole groups of group() rows,
//       from the k-th of the tile on, to n_panels panels of kPanel points. With kAtOnce, to all points at once; panels
//       are ignored
//   width(k)  how close two bounds of the k-th row can be for their points to be in the wrong order; if it is infinite,
//       bounds mean nothing
//   has_exact_bounds(k)  whether equal bounds mean equal distances
// A bound is the squared distance in some unit, less a number that is the same for all points.
#pragma once

#include "voronoi/grid_bounds.hpp"
#include "voronoi/index_bounds.hpp"
#include "voronoi/product_bounds.hpp"
