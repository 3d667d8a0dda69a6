// CUDA kernels of lstmp; lstmp.cc has the formulas. A time step is a product of the projections, a
// launch for the gates, a product of the hidden states and a launch for its activation. Gradients
// lie in batch order, as in lstm.cu.
#include <memory>

#include "framework/op/registry.h"
#include "operators/common/argument_data.h"
#include "operators/sequence/kernels/clipped_activation.h"
#include "operators/sequence/kernels/cuda_lstm_layer.cuh"

namespace skiff {
namespace {

// Activates the projections of a step's sequences, and copies them to their rows among those of all
// steps.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ActivateProjections(CudaStep step, ClippedActivation<T> activation, int64_t width,
                        int threads_of_row, T* states, T* projection) {
  ForEachColumn(
      step.count, width, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const T y = Activated(activation, states[j * width + i]);
        states[j * width + i] = y;
        projection[of.row * width + i] = y;
      });
}

template <typename T>
struct ProjectionBackwardStep {
  ClippedActivation<T> activation;
  int64_t width = 0;
  const T* projection = nullptr;  // of all rows
  const T* h0 = nullptr;          // nullptr: zeros
  const T* gradient = nullptr;    // from the outside, of all rows
  const T* next = nullptr;        // from the next step, of its sequences
  // In batch order: the gradients of h · ProjWeight, and the projections before, or nullptr.
  T* batch_gradient = nullptr;
  T* batch_before = nullptr;
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    ProjectionBackwardRows(CudaStep step, ProjectionBackwardStep<T> args, int threads_of_row) {
  const int64_t width = args.width;
  ForEachColumn(
      step.count, width, threads_of_row, [&](int64_t j) { return StepRow(step, j); },
      [&](int64_t j, int64_t i, const StepRow& of) {
        const int64_t at = of.row * width + i;
        const int64_t batch_at = (step.first + j) * width + i;
        const T d = args.gradient[at] + (j < step.later ? args.next[j * width + i] : T{0});
        args.batch_gradient[batch_at] = ThroughActivation(args.activation, args.projection[at], d);
        if (args.batch_before != nullptr)
          args.batch_before[batch_at] = of.Before<T>(args.projection, args.h0, width, i);
      });
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class LstmpKernel : public CudaLstmLayer<T> {
 protected:
  explicit LstmpKernel(PrepareContext& context)
      : CudaLstmLayer<T>(context, context.Input("ProjWeight").shape[0]),
        width_(context.Input("ProjWeight").shape[1]),
        projection_{ActivationOf(context, "proj_activation"),
                    static_cast<T>(context.Attr<float>("proj_clip"))},
        proj_weight_(context.InputIndex("ProjWeight")) {
    this->cell_.cell_clip = static_cast<T>(context.Attr<float>("cell_clip"));
  }

  int64_t width_;  // P
  ClippedActivation<T> projection_;
  int proj_weight_;
};

template <typename T>
class LstmpForwardKernel final : public LstmpKernel<T> {
 public:
  explicit LstmpForwardKernel(PrepareContext& context)
      : LstmpKernel<T>(context),
        product_(most_sequences_,
                 {.n = 4 * size_, .k = width_, .lda = width_, .ldb = 4 * size_, .ldc = 4 * size_}),
        proj_product_(most_sequences_,
                      {.n = width_, .k = size_, .lda = size_, .ldb = width_, .ldc = width_}),
        projection_out_(context.OutputIndex("Projection")),
        cell_out_(context.OutputIndex("Cell")),
        batch_gate_(context.OutputIndex("BatchGate")),
        batch_activated_(context.OutputIndex("BatchCellPreAct")),
        batch_hidden_(context.OutputIndex("BatchHidden")),
        ordered_(context.OutputIndex("OrderedP0")),
        states_(RequestDeviceNumbers<T>(context, most_sequences_, width_)),
        hidden_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        products_(RequestDeviceNumbers<T>(context, most_sequences_, 4 * size_)),
        space_(RequestProductSpace(context, product_, proj_product_)) {}

  bool TakesFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    steps_.Load(run, SequenceRows(run.input(this->input_)));
    const T* h0 = InputData<T>(run, this->h0_);
    const T* weight = run.input(this->weight_).template data<T>();
    // The projections of the step's sequences.
    T* states = Numbers<T>(run, states_);
    T* products = Numbers<T>(run, products_);
    LstmForwardStep<T> args;
    args.cell = this->Cell(run);
    args.input = run.input(this->input_).template data<T>();
    args.c0 = InputData<T>(run, this->c0_);
    args.states = Numbers<T>(run, hidden_);
    args.cells = run.output(cell_out_).template data<T>();
    args.batch_gates = OutputData<T>(run, batch_gate_);
    args.batch_activated = OutputData<T>(run, batch_activated_);
    args.batch_hidden = OutputData<T>(run, batch_hidden_);
    if (h0 != nullptr)
      LaunchLoadStates(run, steps_.on_device(), h0, steps_.count(), width_, states);
    steps_.ForEach([&](const CudaStep& step) {
      args.product = nullptr;
      if (width_ > 0 && (step.time > 0 || h0 != nullptr)) {
        product_.Run(run, step.count, states, weight, false, products, space_);
        args.product = products;
      }
      LaunchLstmForward(run, step, args);
      Project(run, step, args.states, states);
    });
    if (ordered_ < 0) return;
    Tensor& ordered = run.output(ordered_);
    FillBytesOnDevice(run, ordered.raw_data(), 0, ordered.byte_count());
  }

 private:
  void Project(const KernelContext& run, const CudaStep& step, const T* hidden, T* states) const {
    if (width_ == 0) return;
    if (size_ == 0) ClearRows(run, states, 0, step.count, width_);
    proj_product_.Run(run, step.count, hidden, run.input(this->proj_weight_).template data<T>(),
                      false, states, space_);
    const RowThreads threads(step.count, width_);
    ActivateProjections<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        step, this->projection_, width_, threads.of_row, states,
        run.output(projection_out_).template data<T>());
    CheckLaunch("projection of an LSTM");
  }

  using LstmpKernel<T>::size_;
  using LstmpKernel<T>::width_;
  using LstmpKernel<T>::most_sequences_;
  using LstmpKernel<T>::steps_;
  CudaStepProduct<T> product_;
  CudaStepProduct<T> proj_product_;
  int projection_out_;
  int cell_out_;
  int batch_gate_;
  int batch_activated_;
  int batch_hidden_;
  int ordered_;
  // Workspaces.
  int states_;
  int hidden_;
  int products_;
  int space_;
};

template <typename T>
class LstmpGradKernel final : public LstmpKernel<T> {
 public:
  explicit LstmpGradKernel(PrepareContext& context)
      : LstmpKernel<T>(context),
        rows_vary_(context.rows_vary()),
        weight_rows_(context.HasOutput("Weight@GRAD") ? most_rows_ : 0),
        proj_weight_rows_(context.HasOutput("ProjWeight@GRAD") ? most_rows_ : 0),
        has_peephole_sums_(has_peepholes_ && context.HasOutput("Bias@GRAD")),
        product_(most_sequences_, {.transpose_b = true,
                                   .n = width_,
                                   .k = 4 * size_,
                                   .lda = 4 * size_,
                                   .ldb = 4 * size_,
                                   .ldc = width_}),
        proj_product_(most_sequences_, {.transpose_b = true,
                                        .n = size_,
                                        .k = width_,
                                        .lda = width_,
                                        .ldb = width_,
                                        .ldc = size_}),
        weight_product_(weight_rows_, width_, width_, 4 * size_, 4 * size_),
        proj_weight_product_(proj_weight_rows_, size_, size_, width_, width_),
        projection_in_(context.InputIndex("Projection")),
        cell_in_(context.InputIndex("Cell")),
        batch_gate_(context.InputIndex("BatchGate")),
        batch_activated_(context.InputIndex("BatchCellPreAct")),
        batch_hidden_(context.InputIndex("BatchHidden")),
        projection_grad_(context.InputIndex("Projection@GRAD")),
        cell_grad_(context.InputIndex("Cell@GRAD")),
        input_grad_(context.OutputIndex("Input@GRAD")),
        weight_grad_(context.OutputIndex("Weight@GRAD")),
        proj_weight_grad_(context.OutputIndex("ProjWeight@GRAD")),
        bias_grad_(context.OutputIndex("Bias@GRAD")),
        h0_grad_(context.OutputIndex("H0@GRAD")),
        c0_grad_(context.OutputIndex("C0@GRAD")),
        next_projection_(RequestDeviceNumbers<T>(context, most_sequences_, width_)),
        next_cell_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        hidden_(RequestDeviceNumbers<T>(context, most_sequences_, size_)),
        // The products of the last steps may read after their rows.
        gates_(RequestDeviceNumbers<T>(context, most_rows_ + most_sequences_, 4 * size_)),
        projections_(RequestDeviceNumbers<T>(context, most_rows_ + most_sequences_, width_)),
        before_(RequestDeviceNumbers<T>(context, weight_rows_, width_)),
        hidden_rows_(RequestDeviceNumbers<T>(context, rows_vary_ ? proj_weight_rows_ : 0, size_)),
        peephole_sums_(
            RequestDeviceNumbers<T>(context, has_peephole_sums_ ? most_sequences_ : 0, 3 * size_)),
        space_(RequestProductSpace(context, product_, proj_product_, weight_product_,
                                   proj_weight_product_)) {}

  bool TakesFewerRows() const override { return rows_vary_; }

  void Run(const KernelContext& run) override {
    steps_.Load(run, SequenceRows(run.input(this->input_)));
    const ProjectionBackwardStep<T> projection = ProjectionOf(run);
    const LstmBackwardStep<T> lstm = LstmOf(run);
    int64_t used = 0;  // sequences that have rows
    steps_.ForEachBackwards([&](const CudaStep& step) {
      RunStep(run, step, projection, lstm);
      used = step.count;
    });
    if (h0_grad_ >= 0) this->StoreStart(run, projection.next, used, width_, h0_grad_);
    if (c0_grad_ >= 0) this->StoreStart(run, lstm.next_cell, used, size_, c0_grad_);
    WriteWeightGradients(run, projection, lstm.batch_gates_grad);
    if (bias_grad_ >= 0) {
      this->SumBiasGradient(run, lstm.batch_gates_grad, Rows(run), lstm.peephole_sums, used,
                            bias_grad_);
    }
  }

 private:
  int64_t Rows(const KernelContext& run) const { return run.input(projection_in_).shape()[0]; }

  ProjectionBackwardStep<T> ProjectionOf(const KernelContext& run) const {
    ProjectionBackwardStep<T> args;
    args.activation = this->projection_;
    args.width = width_;
    args.projection = run.input(projection_in_).template data<T>();
    args.h0 = InputData<T>(run, this->h0_);
    args.gradient = run.input(projection_grad_).template data<T>();
    args.next = Numbers<T>(run, next_projection_);
    args.batch_gradient = Numbers<T>(run, projections_);
    args.batch_before = weight_grad_ < 0 ? nullptr : Numbers<T>(run, before_);
    return args;
  }

  LstmBackwardStep<T> LstmOf(const KernelContext& run) const {
    LstmBackwardStep<T> args;
    args.cell = this->Cell(run);
    args.cells = run.input(cell_in_).template data<T>();
    args.c0 = InputData<T>(run, this->c0_);
    args.batch_gates = run.input(batch_gate_).template data<T>();
    args.batch_activated = run.input(batch_activated_).template data<T>();
    args.cell_grad = InputData<T>(run, cell_grad_);
    // All that there is for the hidden states comes from the projections.
    args.next_hidden = Numbers<T>(run, hidden_);
    args.has_all_next = true;
    args.next_cell = Numbers<T>(run, next_cell_);
    args.batch_gates_grad = Numbers<T>(run, gates_);
    args.input_grad = OutputData<T>(run, input_grad_);
    args.peephole_sums = has_peephole_sums_ ? Numbers<T>(run, peephole_sums_) : nullptr;
    return args;
  }

  void RunStep(const KernelContext& run, const CudaStep& step,
               const ProjectionBackwardStep<T>& projection, const LstmBackwardStep<T>& lstm) const {
    T* hidden = Numbers<T>(run, hidden_);
    if (width_ == 0) {
      ClearRows(run, hidden, 0, step.count, size_);
    } else {
      const RowThreads threads(step.count, width_);
      ProjectionBackwardRows<T>
          <<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(step, projection, threads.of_row);
      CheckLaunch("gradient of a projection of an LSTM");
      proj_product_.Run(run, step.count, projection.batch_gradient + step.first * width_,
                        run.input(this->proj_weight_).template data<T>(), false, hidden, space_);
    }
    LaunchLstmBackward(run, step, lstm);
    if (step.time == 0 && h0_grad_ < 0) return;
    T* next = Numbers<T>(run, next_projection_);
    if (size_ == 0) ClearRows(run, next, 0, step.count, width_);
    product_.Run(run, step.count, lstm.batch_gates_grad + step.first * 4 * size_,
                 run.input(this->weight_).template data<T>(), false, next, space_);
  }

  void WriteWeightGradients(const KernelContext& run, const ProjectionBackwardStep<T>& projection,
                            T* gates) const {
    const int64_t rows = Rows(run);
    if (weight_grad_ >= 0) {
      ClearRows(run, projection.batch_before, rows, most_rows_, width_);
      ClearRows(run, gates, rows, most_rows_, 4 * size_);
      weight_product_.Run(run, projection.batch_before, gates,
                          run.output(weight_grad_).template data<T>(), space_);
    }
    if (proj_weight_grad_ < 0) return;
    ClearRows(run, projection.batch_gradient, rows, most_rows_, width_);
    const T* hidden = WithZeroRows(run, run.input(batch_hidden_).template data<T>(), rows,
                                   most_rows_, size_, hidden_rows_);
    proj_weight_product_.Run(run, hidden, projection.batch_gradient,
                             run.output(proj_weight_grad_).template data<T>(), space_);
  }

  using LstmpKernel<T>::size_;
  using LstmpKernel<T>::width_;
  using LstmpKernel<T>::most_rows_;
  using LstmpKernel<T>::most_sequences_;
  using LstmpKernel<T>::has_peepholes_;
  using LstmpKernel<T>::steps_;
  bool rows_vary_;
  // That the gradients of the weights are summed over, if they are wanted.
  int64_t weight_rows_;
  int64_t proj_weight_rows_;
  bool has_peephole_sums_;
  CudaStepProduct<T> product_;
  CudaStepProduct<T> proj_product_;
  CudaSumProduct<T> weight_product_;
  CudaSumProduct<T> proj_weight_product_;
  int projection_in_;
  int cell_in_;
  int batch_gate_;
  int batch_activated_;
  int batch_hidden_;
  int projection_grad_;
  int cell_grad_;
  int input_grad_;
  int weight_grad_;
  int proj_weight_grad_;
  int bias_grad_;
  int h0_grad_;
  int c0_grad_;
  // Workspaces.
  int next_projection_;
  int next_cell_;
  int hidden_;
  int gates_;
  int projections_;
  int before_;
  int hidden_rows_;
  int peephole_sums_;
  int space_;
};

template <typename T>
void AddLstmpKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "lstmp", PrepareKernel<LstmpForwardKernel<T>>);
  AddCudaKernel<T>(registry, "lstmp_grad", PrepareKernel<LstmpGradKernel<T>>);
}

}  // namespace

void RegisterLstmpCuda(OpRegistry& registry) {
  AddLstmpKernels<float>(registry);
  AddLstmpKernels<double>(registry);
}

}  // namespace skiff
