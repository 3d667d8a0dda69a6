// c_reduce_scatter_list on several ranks: each has the bits of c_allreduce_list in its part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/harness/case_op.h"
#include "tests/operators/collective/rank_run.h"

namespace skiff::harness {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Odd sizes, tensors without elements, a scalar, and more elements than a piece of messages holds.
const std::vector<Shape>& Shapes() {
  static const auto& shapes =
      *new std::vector<Shape>{{5, 7}, {0}, {}, {131, 257}, {17}, {600'000}, {1}, {0}};
  return shapes;
}

int64_t AllElements() {
  int64_t all = 0;
  for (const Shape& shape : Shapes()) all += shape.element_count();
  return all;
}

std::vector<NamedTensors> InputsOfRanks(int32_t ranks, DType dtype) {
  std::vector<NamedTensors> inputs(static_cast<size_t>(ranks));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (size_t i = 0; i < Shapes().size(); ++i) {
      const Array drawn = Uniform(Shapes()[i], 100 * static_cast<uint64_t>(rank) + i);
      inputs[static_cast<size_t>(rank)][VariableName("X", i)] = ToTensor(drawn, dtype);
    }
  }
  return inputs;
}

Op ListOp(const std::string& type, const AttributeMap& attrs) {
  Op op(type);
  op.attrs = attrs;
  std::vector<std::string> x;
  std::vector<std::string> out;
  for (size_t i = 0; i < Shapes().size(); ++i) {
    x.push_back(VariableName("X", i));
    out.push_back(VariableName("Out", i));
  }
  op.SetInput("X", x).SetOutput("Out", out);
  return op;
}

Op ScatterOp(AttributeMap attrs, const std::vector<int64_t>& parts) {
  attrs["parts"] = parts;
  return ListOp("c_reduce_scatter_list", attrs);
}

// Returns elements [begin, end) of all outputs, taken one tensor after the other.
std::vector<double> PartOf(const NamedTensors& outputs, int64_t begin, int64_t end) {
  std::vector<double> all;
  for (size_t i = 0; i < Shapes().size(); ++i) {
    const std::vector<double> values = ToArray(outputs.at(VariableName("Out", i))).values;
    all.insert(all.end(), values.begin(), values.end());
  }
  return {all.begin() + begin, all.begin() + end};
}

// Equal parts; borders in the middle of tensors and between them; parts without elements.
std::vector<std::vector<int64_t>> PartsFor(int64_t ranks) {
  const int64_t all = AllElements();
  std::vector<int64_t> equal = {0};
  for (int64_t rank = 1; rank <= ranks; ++rank) equal.push_back(all * rank / ranks);
  std::vector<int64_t> last(static_cast<size_t>(ranks), 0);
  last.push_back(all);
  std::vector<int64_t> small = {0};
  for (int64_t rank = 1; rank < ranks; ++rank) small.push_back(34 + rank);
  small.push_back(all);
  return {equal, last, small};
}

void ExpectPartsOfSums(const AttributeMap& attrs, int32_t ranks, DType dtype,
                       const OpSettings& settings = {}) {
  const std::vector<NamedTensors> inputs = InputsOfRanks(ranks, dtype);
  const RankRun sums = RunOpOnRanks(ListOp("c_allreduce_list", attrs), inputs);
  ASSERT_THAT(sums.errors, Each(IsEmpty()));
  for (const std::vector<int64_t>& parts : PartsFor(ranks)) {
    SCOPED_TRACE(StrCat(dtype, ", parts ", Join(parts, ", ")));
    const RankRun run = RunOpOnRanks(ScatterOp(attrs, parts), inputs, 1, settings);
    ASSERT_THAT(run.errors, Each(IsEmpty()));
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      EXPECT_TRUE(PartOf(run.outputs[rank], parts[rank], parts[rank + 1]) ==
                  PartOf(sums.outputs[rank], parts[rank], parts[rank + 1]))
          << "rank " << rank;
    }
  }
}

TEST(CReduceScatterList, HasTheBitsOfSumsInItsPart) {
  for (int32_t ranks = 1; ranks <= 5; ++ranks) ExpectPartsOfSums({}, ranks, DType::kFloat32);
  ExpectPartsOfSums({{"mean", true}}, 3, DType::kFloat64);
}

TEST(CReduceScatterList, WidensHalf) {
  const AttributeMap attrs = {{"mean", true}, {"out_dtype", int32_t{5}}};
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) ExpectPartsOfSums(attrs, 3, half);
}

TEST(CReduceScatterList, MayReplaceX) {
  VariablePairs in_place;
  for (size_t i = 0; i < Shapes().size(); ++i) {
    in_place.emplace_back(VariableName("X", i), VariableName("Out", i));
  }
  ExpectPartsOfSums({}, 3, DType::kFloat32, {.in_place = in_place});
}

TEST(CReduceScatterList, SendsEachElementOnce) {
  const std::vector<int64_t> parts = PartsFor(3)[0];
  const RankRun run = RunOpOnRanks(ScatterOp({}, parts), InputsOfRanks(3, DType::kFloat32));
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(run.bytes_sent[rank], 4 * (AllElements() - (parts[rank + 1] - parts[rank])));
  }
}

TEST(CReduceScatterList, RefusesPartsOfOtherRanks) {
  const RankRun run =
      RunOpOnRanks(ScatterOp({}, {0, 5, AllElements()}), InputsOfRanks(3, DType::kFloat32));
  EXPECT_THAT(run.errors, Each(HasSubstr("nranks = 2, and the run has 3 ranks")));
  const RankRun few = RunOpOnRanks(ScatterOp({}, {0, 5}), InputsOfRanks(1, DType::kFloat32));
  EXPECT_THAT(few.errors[0], HasSubstr("expected where the part of each rank begins"));
}

}  // namespace
}  // namespace skiff::harness
