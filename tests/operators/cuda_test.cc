// The CUDA kernels of every operator against the CPU.
#include <algorithm>
#include <string>

#include "framework/op/registry.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/case_test_main.h"

namespace {

// Returns whether a case is large for the sake of a kernel of the CPU, which has a path of its own
// for that size. An emulated device would take minutes.
bool IsForTheCpu(const skiff::harness::OpCase& op_case) {
  constexpr const char* kSizes[] = {"many_filters", "several_chunks"};
  return op_case.type.starts_with("conv") && std::ranges::any_of(kSizes, [&](const char* size) {
           return op_case.name.find(size) != std::string::npos;
         });
}

}  // namespace

int main(int argc, char** argv) {
  skiff::harness::CaseList cases;
  skiff::harness::AddAllCases(cases);
  std::erase_if(cases, IsForTheCpu);
  return skiff::harness::RunCudaCaseTests(&argc, argv, skiff::DefaultOpRegistry(), cases);
}
