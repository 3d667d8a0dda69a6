#include "tests/operators/elementwise/elementwise_reference.h"

namespace skiff::harness {

void AddElementwiseAddCases(CaseList& cases) {
  const BinaryFunction f = [](double x, double y) { return x + y; };
  const OperandMaker x = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  const OperandMaker y = [](const Shape& shape, uint64_t seed) { return Uniform(shape, seed); };
  AddBinaryCases("elementwise_add", f, x, y, true, cases);
  AddIntegerBinaryCases("elementwise_add", f, -90, 90, cases);
  OpCase trailing = BinaryCase("trailing_ones_beyond_x", "elementwise_add", Uniform({2, 3, 4}, 7),
                               Uniform({4}, 8), 2, f);
  trailing.inputs["Y"][0].shape = {4, 1};
  trailing.reference = [f](const Arrays& inputs) {
    Array y = inputs.at("Y")[0];
    y.shape = {4};
    return Arrays{{"Out", {ApplyBinary(inputs.at("X")[0], y, 2, f)}}};
  };
  trailing.gradients = {"X", "Y"};
  cases.push_back(trailing);
  // The bias of a projection to a vocabulary.
  OpCase bias = BinaryCase("bias_1920x8000", "elementwise_add", Uniform({1920, 8000}, 11),
                           Uniform({8000}, 12), -1, f);
  bias.gradients = {"Y"};
  bias.benchmark_only = true;
  cases.push_back(bias);
  // At this axis there would be room for another dim; Fluid doesn't check it.
  OpCase equal = BinaryCase("equal_shapes_whatever_the_axis", "elementwise_add",
                            Uniform({2, 1, 3, 1}, 9), Uniform({2, 1, 3, 1}, 10), -1, f);
  equal.attrs = {{"axis", int32_t{1}}};
  equal.gradients = {"X", "Y"};
  cases.push_back(equal);
}

}  // namespace skiff::harness
