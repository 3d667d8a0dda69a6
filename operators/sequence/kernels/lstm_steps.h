// The time steps of a layer of LSTM cells on the CPU, forward and backward, with or without a
// projection: of lstm, lstmp and attention_decoder, whose slots have the same names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "framework/base/element_count.h"
#include "operators/sequence/kernels/lstm_layer.h"
#include "operators/sequence/kernels/recurrent_steps.h"
#include "operators/sequence/kernels/rows_product.h"
#include "operators/sequence/kernels/weight_sum.h"

namespace skiff {

// The arguments that both directions have in common.
template <typename T>
class LstmParameters {
  using Wide = WideType<T>;

 public:
  // The weights are transposed for the gradient.
  LstmParameters(PrepareContext& context, const LstmLayer<Wide>& layer, bool is_gradient)
      : layer(layer),
        weight(context, {context, "Weight"}, {0, layer.state_width(), layer.gates_width()},
               is_gradient),
        c0(context, "C0"),
        bias_(context, {context, "Bias"},
              layer.gates_width() + (layer.has_peepholes ? 3 * layer.cell.size : 0)),
        full_bias_(context, has_full_bias() ? 1 : 0, layer.gates_width()) {
    if (!layer.projection) return;
    projection_weight.emplace(context, In<T>(context, "ProjWeight"),
                              WeightPart{0, layer.cell.size, layer.state_width()}, is_gradient);
  }

  // Returns the cell with its bias, at the begin of a run.
  LstmCell<Wide> Cell(const KernelContext& run) const {
    bias_.Load(run);
    if (!has_full_bias()) return layer.CellWith(bias_(run));
    Wide* bias = full_bias_(run);
    if (bias_.is_there()) {
      std::copy_n(bias_(run), layer.gates_width(), bias);
    } else {
      std::fill_n(bias, layer.gates_width(), Wide{0});
    }
    const int64_t size = layer.cell.size;
    for (int64_t i = 0; i < size; ++i)
      bias[layer.cell.order.forget * size + i] += layer.forget_bias;
    return layer.CellWith(bias);
  }

  LstmLayer<Wide> layer;
  RecurrentWeight<T> weight;
  std::optional<RecurrentWeight<T>> projection_weight;
  In<Wide> c0;

 private:
  // Whether the bias differs from Bias. Then there are no peepholes.
  bool has_full_bias() const { return !bias_.is_there() || layer.forget_bias != 0; }

  WidenedInput<T> bias_;
  Workspace<Wide> full_bias_;
};

template <typename T>
class LstmForwardSteps {
  using Wide = WideType<T>;

 public:
  using Layer = LstmLayer<Wide>;
  static constexpr bool kReadsZeros = true;

  LstmForwardSteps(PrepareContext& context, const Layer& layer)
      : parameters_(context, layer, /*is_gradient=*/false),
        cells_(context, Out<Wide>(context, "Cell"), layer.capacity.rows, layer.cell.size),
        activated_(context, "BatchCellPreAct", layer.capacity.sequences, layer.cell.size),
        hidden_(context, OutputIfAny<T>(context, "BatchHidden"),
                layer.projection ? layer.capacity.sequences : 0, layer.cell.size),
        ordered_(OutputIfAny<T>(context, "OrderedP0")) {}

  void Begin(const KernelContext& run, const Wide* zeros) {
    cell_ = parameters_.Cell(run);
    functions_ = LstmFunctions<T>::Used();
    projection_functions_ = ClippedFunctions<Wide>::Used();
    before_ = {cells_(run), parameters_.c0(run), zeros, cell_.size};
    if (ordered_.is_there()) std::fill_n(ordered_(run), ordered_.count(run), T{});
  }

  void Run(const KernelContext& run, const StepOfRows& rows, const CellStep<T>& step) const {
    const int64_t size = cell_.size;
    MultiplyStates(run, parameters_.weight, rows, step, parameters_.layer.state_width(), 4 * size);
    Wide* cells = cells_(run);
    Wide* activated = activated_(run, rows.step);
    const bool projects = parameters_.layer.projection.has_value();
    T* projected = projects ? hidden_(run, rows.step) : nullptr;
    rows.ForEach(4 * size, [&](int64_t j) {
      const int64_t row = rows.Row(j);
      T* hidden = projects ? projected + j * size : step.hidden + row * size;
      functions_.forward(cell_, step.input + row * 4 * size,
                         {.cell_before = before_.Before(rows, j),
                          .gates = step.gates + j * 4 * size,
                          .cell = cells + row * size,
                          .activated_cell = activated + j * size},
                         hidden);
      if (projects) return;
      const WideAndStored<T> state = step.states + j * size;
      std::copy_n(hidden, size, state.stored);
      WidenRow(state.stored, size, state.wide);
    });
    activated_.Save(run, rows.step);
    if (projects) Project(run, rows, projected, step);
  }

 private:
  void Project(const KernelContext& run, const StepOfRows& rows, const T* hidden,
               const CellStep<T>& step) const {
    const int64_t width = parameters_.layer.state_width();
    parameters_.projection_weight->Multiply(run, hidden, rows.step.count, cell_.size, false,
                                            step.states.wide, width);
    ParallelFor(rows.step.count, RecurrentGrain(width), [&](int64_t begin, int64_t end) {
      const WideAndStored<T> states = step.states + begin * width;
      projection_functions_.activate(parameters_.layer.projection->activation, states.wide,
                                     (end - begin) * width);
      states.Store((end - begin) * width);
      for (int64_t j = begin; j < end; ++j)
        std::copy_n(step.states.stored + j * width, width, step.hidden + rows.Row(j) * width);
    });
  }

  LstmParameters<T> parameters_;
  LstmCell<Wide> cell_ = {};
  LstmFunctions<T> functions_ = {};
  ClippedFunctions<Wide> projection_functions_ = {};
  StateRows<Wide> before_ = {};
  OutputOrWorkspace<Wide> cells_;
  SavedNumbers<T> activated_;
  StepNumbers<T> hidden_;  // that a projection reads
  Out<T> ordered_;
};

template <typename T>
class LstmBackwardSteps {
  using Wide = WideType<T>;

 public:
  using Layer = LstmLayer<Wide>;
  static constexpr bool kSumsInAnyOrder = true;

  LstmBackwardSteps(PrepareContext& context, const Layer& layer)
      : parameters_(context, layer, /*is_gradient=*/true),
        cells_(context, "Cell"),
        activated_(context, {context, "BatchCellPreAct"}, layer.capacity.sequences,
                   layer.cell.size),
        cell_grad_(context, "Cell@GRAD"),
        c0_grad_(context, "C0@GRAD"),
        next_cell_(context, layer.capacity.sequences, layer.cell.size),
        peephole_sums_(context, layer.has_peepholes ? 3 : 0, layer.cell.size) {
    if (layer.projection) projection_.emplace(context, layer);
  }

  void Begin(const KernelContext& run, const Wide* zeros, int64_t sequences) {
    cell_ = parameters_.Cell(run);
    functions_ = LstmFunctions<T>::Used();
    projection_functions_ = ClippedFunctions<Wide>::Used();
    before_ = {cells_(run), parameters_.c0(run), zeros, cell_.size};
    if (projection_) projection_->projected.Load(run);
    std::fill_n(next_cell_(run), sequences * cell_.size, Wide{0});
  }

  void Run(const KernelContext& run, const StepOfRows& rows, const CellGradient<T>& of) const {
    const int64_t size = cell_.size;
    const Wide* activated = activated_(run, rows.step);
    const Wide* cell_grad = cell_grad_(run);
    // Through a projection, all gradients of hidden states come together.
    const Wide* from_later = projection_ ? ProjectBack(run, rows, of) : of.next;
    Wide* next_cell = next_cell_(run);
    rows.ForEach(4 * size, [&](int64_t j) {
      const int64_t row = rows.Row(j);
      functions_.backward(
          cell_,
          LstmStep<const Wide>{.cell_before = before_.Before(rows, j),
                               .gates = of.gates + j * 4 * size,
                               .cell = before_.rows + row * size,
                               .activated_cell = activated + j * size},
          LstmStepGradient<T>{.hidden = projection_ ? of.before.zeros : of.hidden + row * size,
                              .cell = cell_grad == nullptr ? nullptr : cell_grad + row * size,
                              .next_hidden = from_later + j * size,
                              .next_cell = next_cell + j * size,
                              .gates = of.step_gates.wide + j * 4 * size});
      of.StoreGates(rows, j, 4 * size);
    });
    if (!of.wants_before) return;
    parameters_.weight.Multiply(run, of.step_gates.stored, rows.step.count, 4 * size, false,
                                of.next, parameters_.layer.state_width());
  }

  void End(const KernelContext& run, const TimeSteps& steps, int64_t rows) const {
    if (c0_grad_.is_there())
      steps.FromLongestFirst<Wide>(next_cell_(run), cell_.size, c0_grad_(run));
    if (projection_) projection_->WriteWeightGradient(run, rows);
  }

  using WeightProduct = WeightSum<T>;
  static WeightProduct MakeProduct(PrepareContext& context, const Layer& layer, int64_t rows) {
    return {context, layer.state_width(), layer.gates_width(), rows, layer.gates_width()};
  }
  void Sum(const KernelContext& run, const WeightProduct& product, const T* before, const T* gates,
           int64_t rows, T* to) const {
    product.Run(run, rows, before, gates, to);
  }
  void Sum(const KernelContext& run, const RowsProduct<T>& product, const MatrixRows<T>& before,
           const T*, int64_t rows, T* to) const {
    product.Multiply(run, before, parameters_.layer.state_width(), rows, to);
  }

  template <typename Gates>
  void SumPeepholes(const KernelContext& run, const TimeSteps& steps, const Gates& gates,
                    T* bias_grad) const {
    if (cell_.peepholes == nullptr) return;
    const int64_t size = cell_.size;
    const WideAndStored<T> of_peepholes = peephole_sums_(run, bias_grad + 4 * size);
    Wide* sums = of_peepholes.wide;
    ParallelFor(size, 16, [&](int64_t begin, int64_t end) {
      for (int64_t k = 0; k < 3; ++k)
        std::fill(sums + k * size + begin, sums + k * size + end, Wide{0});
      steps.ForEach([&](const TimeSteps::Step& step) {
        for (int64_t j = 0; j < step.count; ++j) {
          const StepOfRows rows{steps, step};
          const Wide* before = before_.Before(rows, j);
          const Wide* cell = before_.rows + rows.Row(j) * size;
          const T* of_gates = gates(step, j);
          for (int64_t i = begin; i < end; ++i) {
            sums[i] += static_cast<Wide>(of_gates[size + i]) * before[i];
            sums[size + i] += static_cast<Wide>(of_gates[2 * size + i]) * before[i];
            sums[2 * size + i] += static_cast<Wide>(of_gates[3 * size + i]) * cell[i];
          }
        }
      });
    });
    of_peepholes.Store(3 * size);
  }

 private:
  // Additional arguments of the gradient through a projection.
  struct Projection {
    Projection(PrepareContext& context, const Layer& layer)
        : size(layer.cell.size),
          width(layer.state_width()),
          projected(context, {context, "Projection"}, MultiplyCounts(layer.capacity.rows, width)),
          batch_hidden(context, "BatchHidden"),
          weight_grad(context, "ProjWeight@GRAD"),
          product(context, weight_grad.is_there() ? layer.capacity.rows : 0, width, size),
          step_hidden(context, layer.capacity.sequences, size),
          batch_grad(context, layer.capacity.rows, width),
          wide_grad(context, layer.capacity.sequences, width) {}

    void WriteWeightGradient(const KernelContext& run, int64_t rows) const {
      if (!weight_grad.is_there()) return;
      product.Pack(run, {.first = batch_grad(run), .stride = width}, rows);
      product.Multiply(run, {.first = batch_hidden(run), .stride = size}, size, rows,
                       weight_grad(run));
    }

    int64_t size;
    int64_t width;
    WidenedInput<T> projected;
    In<T> batch_hidden;
    Out<T> weight_grad;
    RowsProduct<T> product;
    Workspace<Wide> step_hidden;  // the gradient of the hidden states of a step
    Workspace<T> batch_grad;      // of h · ProjWeight, of all rows in batch order
    WideWorkspace<T> wide_grad;   // of the rows of a step
  };

  // Returns the gradient of the hidden states of the step.
  const Wide* ProjectBack(const KernelContext& run, const StepOfRows& rows,
                          const CellGradient<T>& of) const {
    const int64_t width = projection_->width;
    const WideAndStored<T> gradients =
        projection_->wide_grad(run, projection_->batch_grad(run) + rows.step.first * width);
    const Wide* projected = projection_->projected(run);
    Wide* hidden = projection_->step_hidden(run);
    rows.ForEach(width, [&](int64_t j) {
      const int64_t row = rows.Row(j);
      const WideAndStored<T> gradient = gradients + j * width;
      for (int64_t i = 0; i < width; ++i) {
        gradient.wide[i] = static_cast<Wide>(of.hidden[row * width + i]) + of.next[j * width + i];
      }
      projection_functions_.multiply_by_derivative(parameters_.layer.projection->activation,
                                                   projected + row * width, gradient.wide, width);
      gradient.Store(width);
    });
    parameters_.projection_weight->Multiply(run, gradients.stored, rows.step.count, width, false,
                                            hidden, cell_.size);
    return hidden;
  }

  LstmParameters<T> parameters_;
  LstmCell<Wide> cell_ = {};
  LstmFunctions<T> functions_ = {};
  ClippedFunctions<Wide> projection_functions_ = {};
  StateRows<Wide> before_ = {};
  In<Wide> cells_;
  ReadNumbers<T> activated_;
  In<Wide> cell_grad_;
  Out<Wide> c0_grad_;
  Workspace<Wide> next_cell_;  // the gradient of the cells from later steps, of the longest first
  WideWorkspace<T> peephole_sums_;
  std::optional<Projection> projection_;
};

}  // namespace skiff
