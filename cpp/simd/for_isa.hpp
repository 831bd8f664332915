// Names the symbols of files that are compiled once per instruction set (*_kernel.cpp).
//
// In: the macro ISOKERN_ISA, set by CMake to avx2, for example. Out: ISOKERN_FOR_ISA(products) is products_avx2. Such
// files must not include headers with inline functions that they use: of several compiled copies the linker keeps one,
// possibly one that older CPUs cannot run.
#pragma once

#define ISOKERN_JOIN_(a, b) a##_##b
#define ISOKERN_JOIN(a, b) ISOKERN_JOIN_(a, b)
#define ISOKERN_FOR_ISA(name) ISOKERN_JOIN(name, ISOKERN_ISA)
