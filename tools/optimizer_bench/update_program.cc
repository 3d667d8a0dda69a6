#include "tools/optimizer_bench/update_program.h"

#include <algorithm>
#include <memory>
#include <source_location>

#include "framework/builder/layer_call.h"
#include "framework/ir/op_role.h"
#include "skiff/skiff.h"

namespace skiff {
namespace {

using optimizer::Optimizer;

// So small that every step clips, even with one element: without clipping, kernels have less to do.
constexpr float kLargestNorm = 1.0f / 1024;
constexpr float kGradient = 1.0f / 128;

struct Kind {
  std::string name;
  std::vector<Sweep> sweeps;
  std::unique_ptr<Optimizer> (*make)(GradientClip clip, Regularizer regularization);
};

template <class Made, class Options>
std::unique_ptr<Optimizer> Make(GradientClip clip, Regularizer regularization) {
  Options options;
  options.clip = clip;
  options.regularization = regularization;
  return std::make_unique<Made>(options);
}

const std::vector<Kind>& Kinds() {
  using namespace optimizer;  // NOLINT(google-build-using-namespace): a table of all of them
  // The gradient is read; the parameter and the states are updated.
  const Sweep stateless{.reads = 1, .updates = 1};
  const Sweep one_state{.reads = 1, .updates = 2};
  const Sweep two_states{.reads = 1, .updates = 3};
  static const std::vector<Kind> kinds = {
      {"sgd", {stateless}, Make<Sgd, SgdOptions>},
      {"momentum", {one_state}, Make<Momentum, MomentumOptions>},
      // First the norms of parameter and gradient, then the update.
      {"lars_momentum",
       {{.reads = 2, .updates = 0}, one_state},
       Make<LarsMomentum, LarsMomentumOptions>},
      {"adam", {two_states}, Make<Adam, AdamOptions>},
      {"adamw", {two_states}, Make<AdamW, AdamWOptions>},
      {"adamax", {two_states}, Make<Adamax, AdamaxOptions>},
      {"adagrad", {one_state}, Make<Adagrad, AdagradOptions>},
      {"decayed_adagrad", {one_state}, Make<DecayedAdagrad, DecayedAdagradOptions>},
      {"adadelta", {two_states}, Make<Adadelta, AdadeltaOptions>},
      {"rmsprop", {two_states}, Make<RmsProp, RmsPropOptions>},
      {"ftrl", {two_states}, Make<Ftrl, FtrlOptions>},
      // First the moments and the norm of the step, from parameter and gradient; then the
      // parameter, from both moments.
      {"lamb", {{.reads = 2, .updates = 2}, {.reads = 2, .updates = 1}}, Make<Lamb, LambOptions>}};
  return kinds;
}

const Kind& KindOf(const std::string& optimizer) {
  const auto found = std::ranges::find(Kinds(), optimizer, &Kind::name);
  SKIFF_ENFORCE(found != Kinds().end(), kInvalidArgument, "optimizer \"", optimizer,
                "\": expected one of ", Join(OptimizerNames(), ", "));
  return *found;
}

// A loss that depends on all parameters, for Minimize to start from.
Variable LossOf(const UpdateWork& work) {
  const LayerCall call("parameter", "parameter", std::source_location::current());
  std::vector<Variable> parameters;
  for (int64_t i = 0; i < work.tensors; ++i) {
    parameters.push_back(call.CreateParameter({}, "w", {work.elements}, DType::kFloat32,
                                              initializer::Constant(1.0)));
  }
  return layers::Mean(layers::Sum(parameters));
}

// Removes all ops but those of the optimizer: the forward and backward passes, whose time isn't of
// interest here.
void KeepUpdates(Block* root) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < root->ops().size(); ++i) {
    if ((root->ops()[i]->role() & kRoleOptimize) != 0) kept.push_back(i);
  }
  root->ReorderOps(kept);
}

}  // namespace

std::vector<std::string> OptimizerNames() {
  std::vector<std::string> names;
  for (const Kind& kind : Kinds()) names.push_back(kind.name);
  return names;
}

std::vector<Sweep> SweepsOf(const UpdateWork& work) {
  std::vector<Sweep> sweeps = KindOf(work.optimizer).sweeps;
  // The average can be updated while the new parameter is in a register.
  if (work.averages) ++sweeps.back().updates;
  // The norm of all gradients must be known before the first update.
  if (work.clip_global_norm) sweeps.insert(sweeps.begin(), Sweep{.reads = 1, .updates = 0});
  return sweeps;
}

std::unique_ptr<UpdateProgram> MakeUpdateProgram(const UpdateWork& work) {
  const std::unique_ptr<Optimizer> optimizer =
      KindOf(work.optimizer)
          .make(work.clip_global_norm ? ClipByGlobalNorm(kLargestNorm) : GradientClip{},
                work.l2_decay ? L2Decay(0.01f) : Regularizer{});
  auto program = std::make_unique<UpdateProgram>();
  const ProgramGuard guard(&program->main, &program->startup);
  for (const ParameterGradient& pair : optimizer->Minimize(LossOf(work)).trained) {
    // Nothing computes the gradients any more, so the scope has to hold them.
    pair.gradient->persistable = true;
    program->gradients.push_back(pair.gradient->name);
  }
  if (work.averages) optimizer::ExponentialMovingAverage();
  KeepUpdates(program->main.root());
  return program;
}

void Initialize(const UpdateProgram& program, Executor* executor) {
  executor->Run(program.startup);
  for (const std::string& name : program.gradients) {
    Tensor gradient(Shape(program.main.root()->GetVar(name)->dims), DType::kFloat32);
    std::ranges::fill(gradient.values<float>(), kGradient);
    executor->scope().Set(name, std::move(gradient));
  }
}

}  // namespace skiff
