#include "tests/operators/collective/rank_lists.h"

#include <algorithm>

#include "tests/harness/case_op.h"

namespace skiff::harness {

Op ListOp(const std::string& type, size_t count, const AttributeMap& attrs) {
  Op op(type);
  op.attrs = attrs;
  std::vector<std::string> x;
  std::vector<std::string> out;
  for (const auto& [from, to] : AllInPlace(count)) {
    x.push_back(from);
    out.push_back(to);
  }
  op.SetInput("X", x).SetOutput("Out", out);
  return op;
}

VariablePairs AllInPlace(size_t count) {
  VariablePairs pairs;
  for (size_t i = 0; i < count; ++i) {
    pairs.emplace_back(VariableName("X", i), VariableName("Out", i));
  }
  return pairs;
}

std::vector<NamedTensors> DrawInputs(int32_t ranks, const std::vector<Shape>& shapes, DType dtype) {
  std::vector<NamedTensors> inputs(static_cast<size_t>(ranks));
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      const uint64_t seed = 100 * rank + i;
      Array drawn = IsFloat(dtype) ? Uniform(shapes[i], seed) : Integers(shapes[i], seed, -99, 99);
      drawn.fixed_dtype = false;
      inputs[rank][VariableName("X", i)] = ToTensor(drawn, dtype);
    }
  }
  return inputs;
}

void AddSkip(bool skip, Op* op, std::vector<NamedTensors>* inputs) {
  op->SetInput("Skip", {"skip"});
  for (NamedTensors& of_rank : *inputs) {
    of_rank["skip"] = ToTensor(Values({1}, {skip ? 1.0 : 0.0}, DType::kBool), DType::kBool);
  }
}

const std::vector<Shape>& OddShapes() {
  static const auto& shapes =
      *new std::vector<Shape>{{5, 7}, {0}, {}, {131, 257}, {17}, {2, 0}, {600'001}, {1}, {0}};
  return shapes;
}

int64_t AllElements(const std::vector<Shape>& shapes) {
  int64_t all = 0;
  for (const Shape& shape : shapes) all += shape.element_count();
  return all;
}

std::vector<std::vector<int64_t>> PartsFor(int64_t ranks) {
  const int64_t all = AllElements(OddShapes());
  std::vector<int64_t> equal = {0};
  for (int64_t rank = 1; rank <= ranks; ++rank) equal.push_back(all * rank / ranks);
  std::vector<int64_t> last(static_cast<size_t>(ranks), 0);
  last.push_back(all);
  std::vector<int64_t> first = {0};
  first.resize(static_cast<size_t>(ranks) + 1, all);
  std::vector<int64_t> small = {0};
  for (int64_t rank = 1; rank < ranks; ++rank) small.push_back(34 + rank);
  small.push_back(all);
  return {equal, last, first, small};
}

std::vector<double> ElementsOf(const NamedTensors& tensors, const std::string& slot, int64_t begin,
                               int64_t end) {
  std::vector<double> all;
  for (size_t i = 0; i < OddShapes().size(); ++i) {
    const std::vector<double> values = ToArray(tensors.at(VariableName(slot, i))).values;
    all.insert(all.end(), values.begin(), values.end());
  }
  return {all.begin() + begin, all.begin() + end};
}

}  // namespace skiff::harness
