// The main programs of tests that run cases.
#pragma once

#include "framework/op/registry.h"
#include "tests/harness/op_case.h"

namespace skiff::harness {

// Runs each case (but those for the benchmark alone) as the GoogleTest test <op type>.<case name>,
// in order. Returns the exit code of the program.
int RunCaseTests(int* argc, char** argv, const OpRegistry& registry, const CaseList& cases);

// Runs each case that has a kernel for CUDA as the test cuda_<op type>.<case name>, comparing the
// device with the case's reference and with the CPU. Without a device each is skipped, and so is
// Cuda.HasKernels in a build without such kernels: what isn't tested counts as skipped.
int RunCudaCaseTests(int* argc, char** argv, const OpRegistry& registry, const CaseList& cases);

}  // namespace skiff::harness
