// Ops with a list of inputs X and a list of outputs Out, and inputs for several ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/harness/prepared_op.h"

namespace skiff::harness {

// Returns an op with the inputs X.0, X.1, … and the outputs Out.0, Out.1, …, `count` of each.
Op ListOp(const std::string& type, size_t count, const AttributeMap& attrs = {});
// Returns the pairs by which each output of such an op replaces its input.
VariablePairs AllInPlace(size_t count);

// Returns numbers X.0, X.1, … for each rank; those of two tensors differ, wherever they are.
std::vector<NamedTensors> DrawInputs(int32_t ranks, const std::vector<Shape>& shapes, DType dtype);
// Gives the op an input Skip, and each rank the value.
void AddSkip(bool skip, Op* op, std::vector<NamedTensors>* inputs);

// Returns odd sizes, sizes without elements, a scalar, and more elements than a piece of messages
// holds.
const std::vector<Shape>& OddShapes();
int64_t AllElements(const std::vector<Shape>& shapes);
// Returns lists of parts for the attribute of ops on elements of OddShapes: equal parts, borders in
// the middle of tensors and between them, and parts without elements.
std::vector<std::vector<int64_t>> PartsFor(int64_t ranks);
// Returns elements [begin, end) of the tensors of a slot of such an op, taken one after the other.
std::vector<double> ElementsOf(const NamedTensors& tensors, const std::string& slot, int64_t begin,
                               int64_t end);

}  // namespace skiff::harness
