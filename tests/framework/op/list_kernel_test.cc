#include "framework/op/list_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Elements are numbers of `values`, to each of which it adds what `from` holds there, or 1.
class Adder final : public ListKernel {
 public:
  explicit Adder(int64_t count, const Adder* from = nullptr)
      : values(static_cast<size_t>(count)), from_(from) {}

  bool Begin(const KernelContext&) override {
    calls.emplace_back("begin");
    return !skips;
  }
  int64_t element_count() const override { return static_cast<int64_t>(values.size()); }
  void RunElements(const KernelContext&, int64_t begin, int64_t end) const override {
    if (end - begin > kListBlock) ADD_FAILURE() << "a block of " << end - begin;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      values[i] += from_ == nullptr ? 1 : from_->values[i];
    }
  }
  void End(const KernelContext&) override { calls.emplace_back("end"); }

  mutable std::vector<int> values;
  std::vector<std::string> calls;
  bool skips = false;

 private:
  const Adder* from_;
};

TEST(ListKernel, RunsAllElementsBetweenBeginAndEnd) {
  for (int threads : {1, 3}) {
    const harness::ThreadCount scope(threads);
    Adder adder(5 * kListGrain + 3);
    adder.Run({});
    EXPECT_THAT(adder.values, Each(1));
    EXPECT_THAT(adder.calls, ElementsAre("begin", "end"));
  }
}

TEST(ListKernel, MayHaveNoElements) {
  Adder adder(0);
  adder.Run({});
  EXPECT_THAT(adder.calls, ElementsAre("begin", "end"));
}

TEST(RunInStep, HandsOnWhatHasJustBeenWritten) {
  const harness::ThreadCount scope(3);
  Adder first(3 * kListGrain + 5);
  Adder second(3 * kListGrain + 5, &first);
  const KernelContext context;
  const std::vector<ListStep> steps = {{&first, &context}, {&second, &context}};
  RunInStep(steps);
  RunInStep(steps);
  EXPECT_THAT(first.values, Each(2));
  EXPECT_THAT(second.values, Each(1 + 2));
}

// A step that is skipped doesn't keep the others from theirs.
TEST(RunInStep, LeavesOutWhatHasNothingToDo) {
  Adder first(7);
  Adder second(7);
  first.skips = true;
  const KernelContext context;
  RunInStep(std::vector<ListStep>{{&first, &context}, {&second, &context}});
  EXPECT_THAT(first.values, Each(0));
  EXPECT_THAT(first.calls, ElementsAre("begin"));
  EXPECT_THAT(second.values, Each(1));
  second.skips = true;
  RunInStep(std::vector<ListStep>{{&first, &context}, {&second, &context}});
  EXPECT_THAT(second.values, Each(1));
}

TEST(RunInStep, RefusesWhatIsNoStep) {
  const auto message = [](const std::vector<ListStep>& steps) -> std::string {
    try {
      RunInStep(steps);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  const KernelContext context;
  Adder seven(7);
  Adder eight(8);
  EXPECT_THAT(message({{&seven, &context}, {&eight, &context}}),
              HasSubstr("8 and 7 elements, expected as many"));
  EXPECT_THAT(seven.values, Each(0));
  std::vector<ListStep> steps(kMaxListSteps, {&seven, &context});
  EXPECT_THAT(message(steps), IsEmpty());
  steps.push_back({&seven, &context});
  EXPECT_THAT(message(steps), HasSubstr("9 kernels in step, expected at most 8"));
}

}  // namespace
}  // namespace skiff
