#include "tests/framework/transpiler/bound_network.h"

#include <algorithm>

#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"

namespace skiff {

BoundNetwork::BoundNetwork(const std::function<Variable(const Variable&)>& network,
                           const Options& options) {
  const ProgramGuard guard(&main_, &startup_);
  const std::vector<int64_t> dims(options.image.begin(), options.image.end());
  const Variable image = layers::Data("image", dims, DType::kFloat32, {.stop_gradient = false});
  const Variable loss = layers::Mean(network(image));
  if (options.trains) optimizer::Sgd({.learning_rate = 0.1f}).Minimize(loss);
  if (options.edit) options.edit(&main_);
  executor_.Run(startup_);
  compiled_.push_back(
      executor_.Compile(main_, {.memory = options.memory,
                                .passes = {.skip = options.skip, .also = options.also},
                                .kernels = options.kernels}));
  FetchList fetches = {loss.name()};
  fetches.insert(fetches.end(), options.fetches.begin(), options.fetches.end());
  Tensor fed(options.image, DType::kFloat32);
  for (int64_t i = 0; i < fed.element_count(); ++i) {
    fed.data<float>()[i] = static_cast<float>(i % 17) / 8.0f - 1.0f;
  }
  bound_.push_back(compiled_.back().Bind({{"image", fed}}, fetches));
}

int64_t BoundNetwork::Count(std::string_view type) const {
  return std::ranges::count_if(plan().instructions, [&](const Instruction& instruction) {
    return instruction.kind == InstructionKind::kOp && instruction.op->type == type;
  });
}

std::vector<std::string> BoundNetwork::Fused() const {
  std::vector<std::string> names;
  for (const Instruction& instruction : plan().instructions) {
    if (!instruction.members.empty()) names.push_back(instruction.Name());
  }
  return names;
}

std::vector<std::vector<float>> BoundNetwork::Step() {
  bound_.back().Step();
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < plan().fetches.size(); ++i) {
    values.push_back(bound_.back().fetch(i).ToVector<float>());
  }
  return values;
}

Op Doubled(const std::string& name) {
  Op op("scale");
  op.SetInput("X", {name}).SetOutput("Out", {name}).SetAttr("scale", 2.0f);
  return op;
}

void DoubleOutputAfterReluGrad(Program* program) {
  Block* root = program->root();
  for (size_t i = 0; i < root->ops().size(); ++i) {
    if (root->ops()[i]->type != "relu_grad") continue;
    const std::string output = root->ops()[i]->Input("Out")[0];
    root->FindVar(output)->persistable = true;
    root->InsertOp(i + 1, Doubled(output));
    return;
  }
}

}  // namespace skiff
