// The Python module isokern._core: the table of contents of the compiled core. Each file binds one folder of cpp/.
#include <nanobind/nanobind.h>

namespace isokern::bindings {

void register_common(nanobind::module_ &m);  // common.cpp: samples, input checks, shares of equal cells
void register_trees(nanobind::module_ &m);   // trees.cpp: grow_trees, TreeMap
void register_voronoi(nanobind::module_ &m); // voronoi.cpp: VoronoiMap
void register_online(nanobind::module_ &m);  // online.cpp: Rule, Clock, learning and scoring on cells
void register_scales(nanobind::module_ &m);  // scales.cpp: learning and scoring at several scales, with a linear term
void register_rivals(nanobind::module_ &m);  // rivals.cpp: KernelMachine, linear models, AdaRaker
void register_svm(nanobind::module_ &m);     // svm.cpp: SvmRule, solve_svm
void register_inspection(nanobind::module_ &m); // inspection.cpp: ExplainedTrees, find_similar
void register_text(nanobind::module_ &m);       // text.cpp: read_libsvm, write_libsvm

} // namespace isokern::bindings

NB_MODULE(_core, m) {
    using namespace isokern::bindings;

    m.doc() = "The compiled core of isokern.";
    // A cache may still hold a model when the interpreter exits; users need no warning about that.
    nanobind::set_leak_warnings(false);
    register_common(m);
    register_trees(m);
    register_voronoi(m);
    register_online(m);
    register_scales(m);
    register_rivals(m);
    register_svm(m);
    register_inspection(m);
    register_text(m);
}
