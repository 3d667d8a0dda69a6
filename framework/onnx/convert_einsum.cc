// Einsum.
#include <vector>

#include "framework/builder/einsum.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {
namespace {

void Einsum(const OnnxNode& node) {
  std::vector<Variable> operands;
  for (size_t i = 0; i < node.input_count(); ++i) operands.push_back(node.In(i));
  node.Out(0, layers::Einsum(node.String("equation", ""), operands));
}

}  // namespace

std::vector<OnnxConverterEntry> EinsumConverters() { return {{"Einsum", Einsum}}; }

}  // namespace skiff
