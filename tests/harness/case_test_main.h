// Main programs of the tests that run cases.
#pragma once

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Runs each case, except those for the benchmark only, as the GoogleTest test <op type>.<case
// name>, in order. Returns the exit status.
int RunCaseTests(int* argc, char** argv, const OpRegistry& registry, const CaseList& cases);

// Runs each case that has a CUDA kernel as the test cuda_<op type>.<case name>, comparing the
// device with the case's reference and with the CPU. Skips all cases without a device, and skips
// Cuda.HasKernels in a build without CUDA kernels, so that untested cases count as skipped.
int RunCudaCaseTests(int* argc, char** argv, const OpRegistry& registry, const CaseList& cases);

}  // namespace skiff::harness
