// CUDA kernels of lstm; lstm.cc has the formulas. A time step is a product of the hidden states and
// a launch for the gates. The gradients of the gates lie in batch order, so that those of a step
// are next to each other for its product, and those of all steps for the gradient of Weight.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/argument_data.h"
#include "operators/sequence/kernels/cuda_lstm_layer.cuh"

namespace skiff {
namespace {

template <typename T>
class LstmKernel : public CudaLstmLayer<T> {
 public:
  bool TakesFewerRows() const override { return true; }

 protected:
  explicit LstmKernel(PrepareContext& context)
      : CudaLstmLayer<T>(context, context.Input("Weight").shape[0]) {}
};

template <typename T>
class LstmForwardKernel final : public LstmKernel<T> {
 public:
  explicit LstmForwardKernel(PrepareContext& context)
      : LstmKernel<T>(context),
        product_(most_sequences_,
                 {.n = 4 * size_, .k = size_, .lda = size_, .ldb = 4 * size_, .ldc = 4 * size_}),
        hidden_(context.OutputIndex("Hidden")),
        cell_out_(context.OutputIndex("Cell")),
        batch_gate_(context.OutputIndex("BatchGate")),
        batch_activated_(context.OutputIndex("BatchCellPreAct")),
        states_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        products_(RequestDeviceNumbers<T>(context, most_sequences_, 4 * size_)),
        space_(RequestProductSpace(context, product_)) {}

  void Run(const KernelContext& run) override {
    steps_.Load(run, SequenceRows(run.input(this->input_)));
    const T* h0 = InputData<T>(run, this->h0_);
    const T* weight = run.input(this->weight_).template data<T>();
    T* states = Numbers<T>(run, states_);
    T* products = Numbers<T>(run, products_);
    LstmForwardStep<T> args;
    args.cell = this->Cell(run);
    args.input = run.input(this->input_).template data<T>();
    args.c0 = InputData<T>(run, this->c0_);
    args.states = states;
    args.hidden = run.output(hidden_).template data<T>();
    args.cells = run.output(cell_out_).template data<T>();
    args.batch_gates = OutputData<T>(run, batch_gate_);
    args.batch_activated = OutputData<T>(run, batch_activated_);
    if (h0 != nullptr) LaunchLoadStates(run, steps_.on_device(), h0, steps_.count(), size_, states);
    steps_.ForEach([&](const CudaStep& step) {
      args.product = nullptr;
      if (step.time > 0 || h0 != nullptr) {
        product_.Run(run, step.count, states, weight, false, products, space_);
        args.product = products;
      }
      LaunchLstmForward(run, step, args);
    });
  }

 private:
  using LstmKernel<T>::size_;
  using LstmKernel<T>::most_sequences_;
  using LstmKernel<T>::steps_;
  CudaStepProduct<T> product_;
  int hidden_;
  int cell_out_;
  int batch_gate_;
  int batch_activated_;
  // Workspaces.
  int states_;
  int products_;
  int space_;
};

template <typename T>
class LstmGradKernel final : public LstmKernel<T> {
 public:
  explicit LstmGradKernel(PrepareContext& context)
      : LstmKernel<T>(context),
        weight_rows_(context.HasOutput("Weight@GRAD") ? most_rows_ : 0),
        has_peephole_sums_(has_peepholes_ && context.HasOutput("Bias@GRAD")),
        product_(most_sequences_, {.transpose_b = true,
                                   .n = size_,
                                   .k = 4 * size_,
                                   .lda = 4 * size_,
                                   .ldb = 4 * size_,
                                   .ldc = size_}),
        weight_product_(weight_rows_, size_, size_, 4 * size_, 4 * size_),
        hidden_(context.InputIndex("Hidden")),
        cell_in_(context.InputIndex("Cell")),
        batch_gate_(context.InputIndex("BatchGate")),
        batch_activated_(context.InputIndex("BatchCellPreAct")),
        hidden_grad_(context.InputIndex("Hidden@GRAD")),
        cell_grad_(context.InputIndex("Cell@GRAD")),
        input_grad_(context.OutputIndex("Input@GRAD")),
        weight_grad_(context.OutputIndex("Weight@GRAD")),
        bias_grad_(context.OutputIndex("Bias@GRAD")),
        h0_grad_(context.OutputIndex("H0@GRAD")),
        c0_grad_(context.OutputIndex("C0@GRAD")),
        next_hidden_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        next_cell_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        // The product of the last steps may read after their rows.
        gates_(RequestDeviceNumbers<T>(context, most_rows_ + most_sequences_, 4 * size_)),
        before_(RequestDeviceNumbers<T>(context, weight_rows_, size_)),
        peephole_sums_(
            RequestDeviceNumbers<T>(context, has_peephole_sums_ ? most_sequences_ : 0, 3 * size_)),
        space_(RequestProductSpace(context, product_, weight_product_)) {}

  void Run(const KernelContext& run) override {
    steps_.Load(run, SequenceRows(run.input(this->input_)));
    const int64_t rows = run.input(hidden_).shape()[0];
    const T* weight = run.input(this->weight_).template data<T>();
    T* next_hidden = Numbers<T>(run, next_hidden_);
    T* gates = Numbers<T>(run, gates_);
    LstmBackwardStep<T> args;
    args.cell = this->Cell(run);
    args.cells = run.input(cell_in_).template data<T>();
    args.c0 = InputData<T>(run, this->c0_);
    args.hidden = run.input(hidden_).template data<T>();
    args.h0 = InputData<T>(run, this->h0_);
    args.batch_gates = run.input(batch_gate_).template data<T>();
    args.batch_activated = run.input(batch_activated_).template data<T>();
    args.hidden_grad = run.input(hidden_grad_).template data<T>();
    args.cell_grad = InputData<T>(run, cell_grad_);
    args.next_hidden = next_hidden;
    args.next_cell = Numbers<T>(run, next_cell_);
    args.batch_gates_grad = gates;
    args.input_grad = OutputData<T>(run, input_grad_);
    args.batch_before = weight_grad_ < 0 ? nullptr : Numbers<T>(run, before_);
    args.peephole_sums = has_peephole_sums_ ? Numbers<T>(run, peephole_sums_) : nullptr;
    int64_t used = 0;  // sequences that have rows
    steps_.ForEachBackwards([&](const CudaStep& step) {
      LaunchLstmBackward(run, step, args);
      used = step.count;
      if (step.time > 0 || h0_grad_ >= 0) {
        product_.Run(run, step.count, gates + step.first * 4 * size_, weight, false, next_hidden,
                     space_);
      }
    });
    if (h0_grad_ >= 0) this->StoreStart(run, next_hidden, used, size_, h0_grad_);
    if (c0_grad_ >= 0) this->StoreStart(run, args.next_cell, used, size_, c0_grad_);
    if (weight_grad_ >= 0) {
      ClearRows(run, args.batch_before, rows, most_rows_, size_);
      ClearRows(run, gates, rows, most_rows_, 4 * size_);
      weight_product_.Run(run, args.batch_before, gates,
                          run.output(weight_grad_).template data<T>(), space_);
    }
    if (bias_grad_ >= 0) {
      this->SumBiasGradient(run, gates, rows, args.peephole_sums, used, bias_grad_);
    }
  }

 private:
  using LstmKernel<T>::size_;
  using LstmKernel<T>::most_rows_;
  using LstmKernel<T>::most_sequences_;
  using LstmKernel<T>::has_peepholes_;
  using LstmKernel<T>::steps_;
  int64_t weight_rows_;  // that the gradient of Weight is summed over, if it is wanted
  bool has_peephole_sums_;
  CudaStepProduct<T> product_;
  CudaSumProduct<T> weight_product_;
  int hidden_;
  int cell_in_;
  int batch_gate_;
  int batch_activated_;
  int hidden_grad_;
  int cell_grad_;
  int input_grad_;
  int weight_grad_;
  int bias_grad_;
  int h0_grad_;
  int c0_grad_;
  // Workspaces.
  int next_hidden_;
  int next_cell_;
  int gates_;
  int before_;
  int peephole_sums_;
  int space_;
};

template <typename T>
void AddLstmKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "lstm", PrepareKernel<LstmForwardKernel<T>>);
  AddCudaKernel<T>(registry, "lstm_grad", PrepareKernel<LstmGradKernel<T>>);
}

}  // namespace

void RegisterLstmCuda(OpRegistry& registry) {
  AddLstmKernels<float>(registry);
  AddLstmKernels<double>(registry);
}

}  // namespace skiff
