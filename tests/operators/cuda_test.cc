// The CUDA kernels of every operator against the CPU.
#include "framework/op/registry.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_test_main.h"

int main(int argc, char** argv) {
  skiff::harness::CaseList cases;
  skiff::harness::AddAllCases(cases);
  return skiff::harness::RunCudaCaseTests(&argc, argv, skiff::DefaultOpRegistry(), cases);
}
