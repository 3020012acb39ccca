#pragma once

#include <nanobind/nanobind.h>

namespace tetrion {

// One function for each part of the extension module tetrion._core; module.cc calls all of them.
void BindCollector(nanobind::module_& m);  // lib/episodes/batch_collector.h
void BindEnvs(nanobind::module_& m);       // vector_pool.h and what observations are made of

}  // namespace tetrion
