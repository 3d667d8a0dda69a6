// CUDA kernels of gru; gru.cc has the formulas. A time step is two products and two launches for
// the gates. The gradients of the gates lie in batch order, as in lstm.cu.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/argument_data.h"
#include "operators/sequence/kernels/cuda_gru_cell.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"

namespace skiff {
namespace {

// What the kernels of the op and of its gradient have in common.
template <typename T>
class GruKernel : public Kernel {
 public:
  bool TakesFewerRows() const override { return true; }

 protected:
  GruKernel(PrepareContext& context, bool transposes_weights)
      : size_(context.Input("Weight").shape[0]),
        most_sequences_(SequenceCount(context, "Input")),
        steps_(context, most_sequences_, context.Attr<bool>("is_reverse")),
        cell_{.size = size_,
              .gate = ActivationOf(context, "gate_activation"),
              .candidate = ActivationOf(context, "activation"),
              .origin_mode = context.Attr<bool>("origin_mode")},
        weights_(most_sequences_, size_, transposes_weights),
        input_(context.InputIndex("Input")),
        weight_(context.InputIndex("Weight")),
        h0_(context.InputIndex("H0")) {}

  int64_t size_;
  int64_t most_sequences_;
  CudaTimeSteps steps_;
  GruCell<T> cell_;
  CudaGruWeights<T> weights_;
  int input_;
  int weight_;
  int h0_;
};

template <typename T>
class GruForwardKernel final : public GruKernel<T> {
 public:
  explicit GruForwardKernel(PrepareContext& context)
      : GruKernel<T>(context, /*transposes_weights=*/false),
        bias_(context.InputIndex("Bias")),
        hidden_(context.OutputIndex("Hidden")),
        batch_gate_(context.OutputIndex("BatchGate")),
        batch_reset_(context.OutputIndex("BatchResetHiddenPrev")),
        batch_hidden_(context.OutputIndex("BatchHidden")),
        states_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        gates_(RequestDeviceNumbers<T>(context, most_sequences_, 3 * size_)),
        reset_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        space_(RequestProductSpace(context, this->weights_)) {}

  void Run(const KernelContext& run) override {
    steps_.Load(run, SequenceRows(run.input(this->input_)));
    const T* h0 = InputData<T>(run, this->h0_);
    const T* weight = run.input(this->weight_).template data<T>();
    T* states = Numbers<T>(run, states_);
    GruForwardStep<T> args;
    args.cell = this->cell_;
    args.cell.bias = InputData<T>(run, bias_);
    args.input = run.input(this->input_).template data<T>();
    args.states = states;
    args.gates = Numbers<T>(run, gates_);
    args.reset = Numbers<T>(run, reset_);
    args.hidden = run.output(hidden_).template data<T>();
    args.batch_gates = OutputData<T>(run, batch_gate_);
    args.batch_reset = OutputData<T>(run, batch_reset_);
    args.batch_hidden = OutputData<T>(run, batch_hidden_);
    if (h0 != nullptr) LaunchLoadStates(run, steps_.on_device(), h0, steps_.count(), size_, states);
    steps_.ForEach([&](const CudaStep& step) {
      args.has_product = step.time > 0 || h0 != nullptr;
      args.before = args.has_product ? states : nullptr;
      this->weights_.Forward(run, step, args, weight, /*adds=*/false, space_);
    });
  }

 private:
  using GruKernel<T>::size_;
  using GruKernel<T>::most_sequences_;
  using GruKernel<T>::steps_;
  int bias_;
  int hidden_;
  int batch_gate_;
  int batch_reset_;
  int batch_hidden_;
  // Workspaces.
  int states_;
  int gates_;
  int reset_;
  int space_;
};

template <typename T>
class GruGradKernel final : public GruKernel<T> {
 public:
  explicit GruGradKernel(PrepareContext& context)
      : GruKernel<T>(context, /*transposes_weights=*/true),
        most_rows_(context.Input("Input").shape[0]),
        weight_rows_(context.HasOutput("Weight@GRAD") ? most_rows_ : 0),
        weight_gradient_(weight_rows_, size_),
        hidden_(context.InputIndex("Hidden")),
        batch_gate_(context.InputIndex("BatchGate")),
        hidden_grad_(context.InputIndex("Hidden@GRAD")),
        input_grad_(context.OutputIndex("Input@GRAD")),
        weight_grad_(context.OutputIndex("Weight@GRAD")),
        bias_grad_(context.OutputIndex("Bias@GRAD")),
        h0_grad_(context.OutputIndex("H0@GRAD")),
        next_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        reset_grad_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        // The products of the last steps may read after their rows.
        gates_(RequestDeviceNumbers<T>(context, most_rows_ + most_sequences_, 3 * size_)),
        before_(RequestDeviceNumbers<T>(context, weight_rows_, size_)),
        reset_(RequestDeviceNumbers<T>(context, weight_rows_, size_)),
        space_(RequestProductSpace(context, this->weights_, weight_gradient_)) {}

  void Run(const KernelContext& run) override {
    steps_.Load(run, SequenceRows(run.input(this->input_)));
    const int64_t rows = run.input(hidden_).shape()[0];
    const T* weight = run.input(this->weight_).template data<T>();
    T* reset_grad = Numbers<T>(run, reset_grad_);
    GruBackwardStep<T> args;
    args.cell = this->cell_;
    args.hidden = run.input(hidden_).template data<T>();
    args.h0 = InputData<T>(run, this->h0_);
    args.batch_gates = run.input(batch_gate_).template data<T>();
    args.hidden_grad = run.input(hidden_grad_).template data<T>();
    args.next = Numbers<T>(run, next_);
    args.reset_grad = reset_grad;
    args.batch_gates_grad = Numbers<T>(run, gates_);
    args.input_grad = OutputData<T>(run, input_grad_);
    if (weight_grad_ >= 0) {
      args.batch_before = Numbers<T>(run, before_);
      args.batch_reset = Numbers<T>(run, reset_);
    }
    int64_t used = 0;  // sequences that have rows
    steps_.ForEachBackwards([&](const CudaStep& step) {
      used = step.count;
      this->weights_.Backward(run, step, args, weight, reset_grad, step.time > 0 || h0_grad_ >= 0,
                              space_);
    });
    if (h0_grad_ >= 0) {
      LaunchStoreStates(run, steps_.on_device(), args.next, used, steps_.count(), size_,
                        run.output(h0_grad_).template data<T>());
    }
    if (weight_grad_ >= 0) {
      ClearRows(run, args.batch_before, rows, most_rows_, size_);
      ClearRows(run, args.batch_reset, rows, most_rows_, size_);
      ClearRows(run, args.batch_gates_grad, rows, most_rows_, 3 * size_);
      weight_gradient_.Run(run, args.batch_before, args.batch_reset, args.batch_gates_grad,
                           run.output(weight_grad_).template data<T>(), space_);
    }
    if (bias_grad_ >= 0) {
      LaunchSumColumns(run, args.batch_gates_grad, rows, 3 * size_, 3 * size_,
                       run.output(bias_grad_).template data<T>());
    }
  }

 private:
  using GruKernel<T>::size_;
  using GruKernel<T>::most_sequences_;
  using GruKernel<T>::steps_;
  int64_t most_rows_;
  int64_t weight_rows_;  // that the gradient of Weight is summed over, if it is wanted
  CudaGruWeightGradient<T> weight_gradient_;
  int hidden_;
  int batch_gate_;
  int hidden_grad_;
  int input_grad_;
  int weight_grad_;
  int bias_grad_;
  int h0_grad_;
  // Workspaces.
  int next_;
  int reset_grad_;
  int gates_;
  int before_;
  int reset_;
  int space_;
};

template <typename T>
void AddGruKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "gru", PrepareKernel<GruForwardKernel<T>>);
  AddCudaKernel<T>(registry, "gru_grad", PrepareKernel<GruGradKernel<T>>);
}

}  // namespace

void RegisterGruCuda(OpRegistry& registry) {
  AddGruKernels<float>(registry);
  AddGruKernels<double>(registry);
}

}  // namespace skiff
