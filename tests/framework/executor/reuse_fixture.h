// Programs that are run however memory can be planned: for tests of what reuse may not change.
//
//   TEST_F(ReuseHazards, …) {
//     const Variable loss = layers::Mean(layers::Fc(layers::Data("x", {-1, 4}), 3));
//     AddRun({{"x", Floats({2, 4})}}, {loss});
//     ExpectSameResults();
//   }
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/plan/plan.h"
#include "framework/plan/value_id.h"
#include "tests/harness/workload.h"

namespace skiff {

class ReuseFixture : public ::testing::Test {
 protected:
  ReuseFixture();
  ~ReuseFixture() override;

  // Uses a program of these ops instead of layers. It has variables a to j, x and y of float32 [8,
  // 8], to be fed or written, the persistables s and w, which start as random numbers, and the
  // variables of `declarations`.
  void UseOps(const std::string& ops, const std::string& declarations = "");
  void UsePrograms(std::shared_ptr<const Program> main, std::shared_ptr<const Program> startup);
  // A program that runs on the same scope; its number, 1 for the first.
  size_t AddProgram(std::shared_ptr<const Program> program);
  // One more run of program `program`; 0 is that of the test, as the first call of AddRun or
  // AddProgram finds it.
  void AddRun(FeedList feeds, FetchList fetches, size_t program = 0);

  // Does all runs with every policy, with and without recomputation, and with dead memory full of
  // NaN. After each run, each fetch and the scope must have the bits of a run without any pass. The
  // default pipeline, some passes of which round differently, must give the bits of its own plan
  // without shared storage. Returns the runs without passes.
  std::vector<harness::RunTrace> ExpectSameResults();

  // The plan of a run. It lives as long as the test.
  const Plan& PlanOf(size_t run, const CompileOptions& options = {});
  const Plan& PlanOf(size_t run, ReusePolicy policy) {
    return PlanOf(run, {.memory = {.policy = policy}});
  }

  // The same plan, from an executor of its own, as text. Several threads may ask for it.
  std::string PlanText(size_t run, const CompileOptions& options = {}) const;

  static Tensor Floats(const Shape& shape, uint64_t seed = 1);
  static Tensor Ids(const Shape& shape, int64_t limit, uint64_t seed = 1);

  // Layers append here.
  Program main_;
  Program startup_;
  const ProgramGuard guard_{&main_, &startup_};

 private:
  struct BoundRun;

  void TakeProgram();
  std::unique_ptr<BoundRun> Bind(size_t run, const CompileOptions& options) const;

  harness::Workload workload_{.name = "reuse"};
  std::vector<std::unique_ptr<BoundRun>> bound_;
};

// The values of a variable in the arena, in the order in which they are written.
std::vector<ValueId> ValuesOf(const Plan& plan, const std::string& variable);
// The only one. A failure of the test if there isn't one.
ValueId ValueOf(const Plan& plan, const std::string& variable);

// Whether some byte of the arena belongs to both of two values, be it at different times.
bool ShareBytes(const Plan& plan, ValueId a, ValueId b);
// Returns whether another value is later written to the value's storage. A view writes nothing.
bool IsOverwritten(const Plan& plan, ValueId value);
// How many instructions are of this op.
int64_t CountOf(const Plan& plan, const std::string& type);

}  // namespace skiff
