// A plan runs within a limit of memory just above what it needs; below, there is an Error, and the
// program goes on with less.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "memory/allocator.h"
#include "memory/places.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int64_t kRows = 1 << 20;

class MemoryLimit : public ::testing::Test {
 protected:
  MemoryLimit() {
    tiny::RegisterTinyOps(registry_);
    allocator_.ReleaseCached();
  }
  ~MemoryLimit() override { allocator_.SetLimit(0); }

  static Tensor Batch(int64_t rows) {
    Tensor batch({rows}, DType::kFloat32);
    for (float& value : batch.values<float>()) value = 1;
    return batch;
  }

  float RunOnce(const Tensor& batch) {
    Executor executor(Place::Cpu(), nullptr, &registry_);
    CompiledProgram program = executor.Compile(*ParseProgramText(tiny::kTwoCopies));
    BoundProgram bound = program.Bind({{"x", batch}}, {"c"});
    bound.Step();
    return bound.fetch(0).data<float>()[batch.element_count() - 1];
  }

  OpRegistry registry_;
  Allocator& allocator_ = AllocatorOf(Place::Cpu());
};

// The scope of the next executor has all variables, and the listing names what takes the memory.
TEST_F(MemoryLimit, SaysWhatTakesTheMemory) {
  const Tensor batch = Batch(kRows);
  allocator_.ReleaseCached();
  allocator_.SetLimit(allocator_.statistics().reserved_bytes + kRows * 4);
  try {
    RunOnce(batch);
    ADD_FAILURE() << "the plan ran in half of what it needs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    EXPECT_THAT(error.what(), HasSubstr("bytes asked for (arena)"));
    EXPECT_THAT(error.what(), ContainsRegex("\nmost is live at instruction [0-9]+ \\(.*\\), "
                                            "[0-9.]+ MiB:\n  c: 4.00 MiB by "));
  }
}

TEST_F(MemoryLimit, SaysWhatTakesLess) {
  const Tensor batch = Batch(kRows);
  Executor executor(Place::Cpu(), nullptr, &registry_);
  CompiledProgram program = executor.Compile(*ParseProgramText(R"(program { block 0 {
    var x float32 [-1]
    var a float32 [-1]
    var b float32 [-1]
    var c float32 [-1]
    var d float32 [-1]
    var e float32 [-1]
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_copy(X: [a])
    {Out: [c]} = tiny_copy(X: [b])
    {Out: [d]} = tiny_copy(X: [c])
    {Out: [e]} = tiny_add(X: [d], Y: [c]) {op_role = 1}
    {Out: [e]} = tiny_add(X: [e], Y: [b]) {op_role = 1}
    {Out: [e]} = tiny_add(X: [e], Y: [a]) {op_role = 1}
  } })"),
                                             {.memory = {.policy = ReusePolicy::kEqual}});
  allocator_.ReleaseCached();
  allocator_.SetLimit(allocator_.statistics().reserved_bytes + kRows * 4);
  const Error error = ErrorOf([&] { program.Bind({{"x", batch}}, {"e"}); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(),
              ContainsRegex("\nless memory takes: memory.recompute cheap_ops \\(about "
                            "[0-9.]+ MiB less\\)"));
}

// 2 sequences and not quite 2^20 rows have a plan for 8 and 2^20.
TEST_F(MemoryLimit, SaysWhatThePlanForACapacityTakesMore) {
  constexpr int64_t kFewer = kRows - (1 << 16);
  Tensor batch = Batch(kFewer);
  batch.set_lod({{0, 1, kFewer}});
  Executor executor(Place::Cpu(), nullptr, &registry_);
  CompiledProgram program = executor.Compile(*ParseProgramText(R"(program { block 0 {
    var x float32 [-1] lod=1
    var a float32 [-1] lod=1
    var b float32 [-1] lod=1
    {Out: [a]} = tiny_copy(X: [x])
    {Out: [b]} = tiny_add(X: [a], Y: [a])
  } })"));
  allocator_.ReleaseCached();
  allocator_.SetLimit(allocator_.statistics().reserved_bytes + kRows / 2);
  const Error error = ErrorOf([&] { program.Bind({{"x", batch}}, {"b"}); });
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("\nplanned for the rows and sequences that these feeds round "
                                      "up to (8 for 2, 1048576 for 983040); exact_rows: about 3.88 "
                                      "MiB and workspaces"));
}

TEST_F(MemoryLimit, CountsForWhatAKernelTakesOfItsOwn) {
  Executor executor(Place::Cpu(), nullptr, &registry_);
  CompiledProgram program = executor.Compile(*ParseProgramText(R"(program { block 0 {
    var x float32 [-1]
    var a float32 [-1]
    {Out: [a]} = tiny_meanwhile(X: [x])
  } })"));
  tiny::SetMeanwhile([] { throw std::bad_alloc(); });
  const Error error = ErrorOf([&] { program.Run({{"x", Batch(2)}}, {"a"}); });
  tiny::SetMeanwhile(nullptr);
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_THAT(error.what(), HasSubstr("tiny_meanwhile (block 0, op #0"));
  EXPECT_THAT(error.what(), HasSubstr("out of memory on the host"));
}

TEST_F(MemoryLimit, LetsAPlanRunJustAboveWhatItNeeds) {
  const Tensor batch = Batch(kRows);
  const int64_t before = allocator_.statistics().live_bytes;
  allocator_.ResetPeaks();
  EXPECT_EQ(RunOnce(batch), 2);
  const int64_t needed = allocator_.statistics().peak_bytes - before;
  EXPECT_GE(needed, 2 * kRows * 4);  // a value at least, and the fetch
  allocator_.ReleaseCached();
  const int64_t held = allocator_.statistics().reserved_bytes;

  allocator_.SetLimit(held + needed + needed / 50);
  EXPECT_EQ(RunOnce(batch), 2);

  allocator_.ReleaseCached();
  allocator_.SetLimit(held + needed - needed / 50);
  try {
    RunOnce(batch);
    ADD_FAILURE() << "the plan ran in 98 % of what it needs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  }
  EXPECT_EQ(RunOnce(batch.Rows(0, kRows / 2)), 2);
}

}  // namespace
}  // namespace skiff
