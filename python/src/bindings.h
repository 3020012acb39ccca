#pragma once

#include <nanobind/nanobind.h>

namespace tetrion {

// One function for each part of the extension module tetrion._core; module.cc calls all of them.
void BindCollector(nanobind::module_& m);  // lib/episodes/batch_collector.h
void BindEnvs(nanobind::module_& m);       // lib/vector/vector_pool.h
void BindRegistry(nanobind::module_& m);   // lib/envs/registry.h: what Python asks of environments

}  // namespace tetrion
