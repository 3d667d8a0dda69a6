// CUDA kernels of rnn; rnn.cc has the formulas.
//
// The lengths of sequences are data on the device. So each time step runs for all sequences, in the
// order of the batch, and those without a row in it keep their states. Only Reserve and
// DropoutState are in batch order, as on the CPU; a launch computes where their rows are. Products
// with inputs are one for all rows, with padding; where they are summed over, it is zeros.
#include <algorithm>
#include <memory>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_philox.cuh"
#include "operators/common/philox_words.h"
#include "operators/sequence/kernels/cuda_lstm_cell.cuh"
#include "operators/sequence/kernels/cuda_steps.cuh"
#include "operators/sequence/kernels/rnn_layers.h"

namespace skiff {
namespace {

// The rows of the sequences, on the device.
struct PaddedRows {
  int64_t time;
  int64_t batch;
  const int64_t* numbers;  // lengths, ranks, first rows of steps; nullptr: nothing is padded

  __device__ int64_t Length(int64_t i) const { return numbers == nullptr ? time : numbers[i]; }
  __device__ bool HasRow(int64_t i, int64_t at) const { return at >= 0 && at < Length(i); }
  // Returns where the row of sequence i at a time is in batch order.
  __device__ int64_t BatchRow(int64_t i, int64_t at) const {
    if (numbers == nullptr) return at * batch + i;
    return numbers[2 * batch + at] + numbers[batch + i];
  }
  // Returns where a padded row is in batch order, -1 if it is no row of a sequence.
  __device__ int64_t BatchRowOf(int64_t padded_row) const {
    const int64_t i = padded_row % batch;
    const int64_t at = padded_row / batch;
    return HasRow(i, at) ? BatchRow(i, at) : int64_t{-1};
  }
  // Returns the number of rows of all sequences.
  __device__ int64_t Rows() const {
    return numbers == nullptr ? time * batch : numbers[2 * batch + time];
  }
};

// Sets the numbers of PaddedRows: of each sequence its length and how many come before it in a
// step, of each time how many rows there are before it. A length beyond the limits counts as 0.
template <typename Length>
__global__ void __launch_bounds__(kCudaThreads)
    FindRows(const Length* lengths, int64_t time, int64_t batch, uint64_t* fault,
             int64_t* numbers) {
  const auto length_of = [&](int64_t i) {
    const auto length = static_cast<int64_t>(lengths[i]);
    return length < 0 || length > time ? int64_t{0} : length;
  };
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < batch + time + 1;
       at += stride) {
    if (at < batch) {
      const int64_t length = length_of(at);
      if (length != static_cast<int64_t>(lengths[at]))
        NoteFault(fault, at, static_cast<int64_t>(lengths[at]));
      int64_t rank = 0;
      for (int64_t k = 0; k < batch; ++k) {
        const int64_t other = length_of(k);
        if (other > length || (other == length && k < at)) ++rank;
      }
      numbers[at] = length;
      numbers[batch + at] = rank;
      continue;
    }
    int64_t before = 0;
    for (int64_t k = 0; k < batch; ++k) {
      const int64_t length = length_of(k);
      before += length < at - batch ? length : at - batch;
    }
    numbers[batch + at] = before;
  }
}

// What Reserve has for a pass, each part [rows, its width]: numbers of a row before it.
struct SavedParts {
  int64_t gates;
  int64_t cell;
  int64_t activated;
};

// A step of a pass, for both directions of computation. All arrays with a row for each sequence
// and time are padded, in the order of Input, unless they are parts of Reserve.
template <typename T>
struct RnnPass {
  RnnMode mode;
  RecurrentActivation activation;
  PaddedRows rows;
  int64_t size;         // H
  int64_t weight_rows;  // of the matrices of weights
  int64_t gates_width;
  bool is_backward;
  SavedParts saved;
  // Of the hidden states of the layer.
  int64_t columns;
  int64_t column;
  int64_t reserve_hidden;  // their place in Reserve; -1: they are Out
};

// Numbers of a part of Reserve.
template <typename T>
__device__ T* ReserveRow(const PaddedRows& rows, T* reserve, int64_t part, int64_t width, int64_t i,
                         int64_t at) {
  return reserve + rows.Rows() * part + rows.BatchRow(i, at) * width;
}

template <typename T>
struct RnnForwardArguments {
  const T* input_products;   // [time, batch, weight_rows]; nullptr: zeros
  const T* hidden_products;  // [batch, weight_rows]
  const T* bias;
  const T* hidden_bias;
  T* states;       // [batch, H]
  T* cell_states;  // the same
  T* reserve;      // or nullptr
  T* layer;        // the hidden states of the layer, padded: Out, or for the next layer
};

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    RnnForwardRows(RnnPass<T> pass, LstmCell<T> lstm, RnnForwardArguments<T> args, int64_t at,
                   int threads_of_row) {
  const int64_t size = pass.size;
  const PaddedRows& rows = pass.rows;
  ForEachColumn(
      rows.batch, size, threads_of_row, [&](int64_t i) { return rows.HasRow(i, at); },
      [&](int64_t i, int64_t n, bool has_row) {
        if (!has_row) return;
        const int64_t row = at * rows.batch + i;
        const auto of_input = [&](int64_t k) {
          return args.bias[k] + (args.input_products == nullptr
                                     ? T{0}
                                     : args.input_products[row * pass.weight_rows + k]);
        };
        const auto of_hidden = [&](int64_t k) {
          return args.hidden_bias[k] + args.hidden_products[i * pass.weight_rows + k];
        };
        T* saved = args.reserve == nullptr || pass.mode == RnnMode::kSimple
                       ? nullptr
                       : ReserveRow(rows, args.reserve, pass.saved.gates, pass.gates_width, i, at);
        T hidden;
        if (pass.mode == RnnMode::kLstm) {
          LstmGates<T> gates = LstmGates<T>::Load(
              lstm.order, size, n, [&](int64_t k) { return of_input(k) + of_hidden(k); });
          const LstmState<T> state =
              LstmForwardNumber(lstm, n, args.cell_states[i * size + n], &gates);
          args.cell_states[i * size + n] = state.cell;
          hidden = state.hidden;
          if (saved != nullptr) {
            gates.Store(lstm.order, size, n, saved);
            ReserveRow(rows, args.reserve, pass.saved.cell, size, i, at)[n] = state.cell;
            ReserveRow(rows, args.reserve, pass.saved.activated, size, i, at)[n] = state.activated;
          }
        } else if (pass.mode == RnnMode::kGru) {
          const T reset = SigmoidOf(of_input(n) + of_hidden(n));
          const T update = SigmoidOf(of_input(size + n) + of_hidden(size + n));
          const T product = of_hidden(2 * size + n);
          const T candidate = std::tanh(of_input(2 * size + n) + reset * product);
          hidden = (1 - update) * candidate + update * args.states[i * size + n];
          if (saved != nullptr) {
            saved[n] = reset;
            saved[size + n] = update;
            saved[2 * size + n] = product;
            saved[3 * size + n] = candidate;
          }
        } else {
          hidden = Activated(pass.activation, of_input(n) + of_hidden(n));
        }
        args.states[i * size + n] = hidden;
        args.layer[row * pass.columns + pass.column + n] = hidden;
        if (args.reserve != nullptr && pass.reserve_hidden >= 0) {
          ReserveRow(rows, args.reserve, pass.reserve_hidden, pass.columns, i,
                     at)[pass.column + n] = hidden;
        }
      });
}

template <typename T>
struct RnnBackwardArguments {
  const T* reserve;
  const T* out;
  const T* start;       // the hidden states before the pass, [batch, H]
  const T* cell_start;  // the cells
  const T* layer_grad;  // of the hidden states of the layer, padded
  // Of the states, [batch, H]: the gradient from later steps is `next`, and for sequences that had
  // a row in the step before (in the order of computation) the product with the weights; of a GRU
  // their sum.
  T* next;
  const T* next_products;
  T* next_cell;
  T* gates_grad;  // [time, batch, gates_width]
  T* before;      // [time, batch, H]: the states before, for the gradient of the weights
};

// Returns the gradient of state n of sequence i from later steps. `later` is the time of the step
// that was computed before.
template <typename T>
__device__ T NextOf(const RnnPass<T>& pass, const RnnBackwardArguments<T>& args, int64_t i,
                    int64_t n, int64_t later) {
  const int64_t k = i * pass.size + n;
  if (!pass.rows.HasRow(i, later)) return args.next[k];
  return pass.mode == RnnMode::kGru ? args.next[k] + args.next_products[k] : args.next_products[k];
}

template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    RnnBackwardRows(RnnPass<T> pass, LstmCell<T> lstm, RnnBackwardArguments<T> args, int64_t at,
                    int threads_of_row) {
  const int64_t size = pass.size;
  const PaddedRows& rows = pass.rows;
  const int64_t time_before = at + (pass.is_backward ? 1 : -1);
  const int64_t later = at + (pass.is_backward ? -1 : 1);
  ForEachColumn(
      rows.batch, size, threads_of_row, [&](int64_t i) { return rows.HasRow(i, at); },
      [&](int64_t i, int64_t n, bool has_row) {
        if (!has_row) {
          // The next product overwrites what is there for a sequence that has just ended.
          if (rows.HasRow(i, later)) args.next[i * size + n] = NextOf(pass, args, i, n, later);
          return;
        }
        const int64_t row = at * rows.batch + i;
        const bool is_first = !rows.HasRow(i, time_before);
        // The hidden state of the layer at a time of this sequence.
        const auto hidden_at = [&](int64_t when) {
          const int64_t k = pass.column + n;
          if (pass.reserve_hidden < 0) return args.out[(when * rows.batch + i) * pass.columns + k];
          return ReserveRow(rows, args.reserve, pass.reserve_hidden, pass.columns, i, when)[k];
        };
        const T before = is_first ? args.start[i * size + n] : hidden_at(time_before);
        const T d =
            args.layer_grad[row * pass.columns + pass.column + n] + NextOf(pass, args, i, n, later);
        T* gates_grad = args.gates_grad + row * pass.gates_width;
        args.before[row * size + n] = before;
        if (pass.mode == RnnMode::kSimple) {
          gates_grad[n] = ThroughActivation(pass.activation, hidden_at(at), d);
          return;
        }
        const T* gates = ReserveRow(rows, args.reserve, pass.saved.gates, pass.gates_width, i, at);
        if (pass.mode == RnnMode::kGru) {
          using enum RecurrentActivation;
          const T reset = gates[n];
          const T update = gates[size + n];
          const T candidate = gates[3 * size + n];
          const T d_candidate = ThroughActivation(kTanh, candidate, d * (1 - update));
          gates_grad[n] = ThroughActivation(kSigmoid, reset, d_candidate * gates[2 * size + n]);
          gates_grad[size + n] = ThroughActivation(kSigmoid, update, d * (before - candidate));
          gates_grad[2 * size + n] = d_candidate * reset;
          gates_grad[3 * size + n] = d_candidate;
          args.next[i * size + n] = d * update;
          return;
        }
        const auto cell_at = [&](int64_t when) {
          return ReserveRow(rows, args.reserve, pass.saved.cell, size, i, when)[n];
        };
        T d_cell = args.next_cell[i * size + n];
        const LstmGates<T> d_gates = LstmBackwardNumber(
            lstm, n, LstmGates<T>::Load(lstm.order, size, n, [&](int64_t k) { return gates[k]; }),
            is_first ? args.cell_start[i * size + n] : cell_at(time_before), cell_at(at),
            ReserveRow(rows, args.reserve, pass.saved.activated, size, i, at)[n], d, &d_cell);
        args.next_cell[i * size + n] = d_cell;
        d_gates.Store(lstm.order, size, n, gates_grad);
      });
}

// The gradients of the states before a pass, whose last computed step was at time `last`.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    StoreStartGradient(RnnPass<T> pass, RnnBackwardArguments<T> args, int64_t last,
                       int threads_of_row, T* to) {
  ForEachColumn(
      pass.rows.batch, pass.size, threads_of_row, [](int64_t i) { return i; },
      [&](int64_t i, int64_t n, int64_t) {
        to[i * pass.size + n] = NextOf(pass, args, i, n, last);
      });
}

// Draws what is dropped of the hidden states of a layer.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    DropRows(PaddedRows rows, int64_t layer, int64_t columns, DevicePhilox philox,
             uint32_t threshold, T scale, int threads_of_row, T* hidden, uint8_t* mask) {
  const int64_t count = rows.Rows() * columns;
  // Each layer has words of its own.
  const int64_t first_word = layer * ((count + 3) / 4 * 4);
  ForEachColumn(
      rows.time * rows.batch, columns, threads_of_row,
      [&](int64_t row) { return rows.BatchRowOf(row); },
      [&](int64_t row, int64_t column, int64_t batch_row) {
        if (batch_row < 0) return;
        const int64_t element = batch_row * columns + column;
        const int64_t word = first_word + element;
        const DevicePhilox::Block block = philox.At(static_cast<uint64_t>(word / 4));
        const bool is_kept = block.words[word % 4] >= threshold;
        T* number = hidden + row * columns + column;
        *number = is_kept ? *number * scale : T{0};
        if (mask != nullptr) mask[layer * count + element] = is_kept ? 1 : 0;
      });
}

// to = from, padded, without what was dropped after a layer; 0 where no sequence has a row. `from`
// is a part of Reserve (part >= 0) or padded, and may then be `to`. `mask` may be nullptr.
template <typename T>
__global__ void __launch_bounds__(kCudaThreads)
    LoadRows(PaddedRows rows, const T* from, int64_t part, const uint8_t* mask, int64_t layer,
             T scale, int64_t columns, int threads_of_row, T* to) {
  const int64_t count = rows.Rows() * columns;
  ForEachColumn(
      rows.time * rows.batch, columns, threads_of_row,
      [&](int64_t row) { return rows.BatchRowOf(row); },
      [&](int64_t row, int64_t column, int64_t batch_row) {
        T value = 0;
        if (batch_row >= 0) {
          const int64_t element = batch_row * columns + column;
          value = part < 0 ? from[row * columns + column] : from[rows.Rows() * part + element];
          if (mask != nullptr) value = mask[layer * count + element] != 0 ? value * scale : T{0};
        }
        to[row * columns + column] = value;
      });
}

// Sets an output, if the op has it, to zeros.
template <typename T>
void ClearRnnOutput(const KernelContext& run, const Out<T>& output) {
  if (output.is_there()) FillBytesOnDevice(run, output(run), 0, output.tensor(run).byte_count());
}

// What the kernels of the op and of its gradient have in common.
template <typename T>
class RnnKernel : public Kernel {
 public:
  void ThrowFault(const DataFault& fault) const override {
    Throw(ErrorCode::kOutOfRange, "rnn: SequenceLength[", fault.position, "] is ", fault.value,
          ", expected 0 to ", time_);
  }

 protected:
  explicit RnnKernel(PrepareContext& context)
      : settings_(RnnSettingsOf(context)),
        reserve_layout_(settings_),
        dropout_(RnnDropoutOf(context)),
        batch_(context.Input("Input").shape[1]),
        // If there are no sequences, the time may be any number.
        time_(batch_ == 0 ? 0 : context.Input("Input").shape[0]),
        input_width_(context.Input("Input").shape[2]),
        rows_(MultiplyCounts(time_, batch_)),
        input_(context, "Input"),
        lengths_(context, "SequenceLength"),
        numbers_(context, is_padded() ? 2 * batch_ + time_ + 1 : 0) {
    for (size_t i = 0; i < settings_.states(); ++i)
      pre_states_.emplace_back(context, "PreState", i);
    for (size_t i = 0; i < context.InputCount("WeightList"); ++i)
      weight_inputs_.emplace_back(context, "WeightList", i);
  }

  bool drops() const { return settings_.layers > 1 && dropout_.draws(); }
  bool is_lstm() const { return settings_.mode == RnnMode::kLstm; }
  bool is_padded() const { return lengths_.is_there(); }
  int64_t InputWidth(int64_t layer) const {
    return layer == 0 ? input_width_ : settings_.hidden_width();
  }
  int64_t StateNumbers() const { return batch_ * settings_.size; }
  T scale() const { return static_cast<T>(dropout_.scale()); }

  const T* Weight(const KernelContext& run, size_t index) const {
    return weight_inputs_[index](run);
  }
  const T* PreState(const KernelContext& run, size_t i, int64_t pass) const {
    return pre_states_[i](run) + pass * StateNumbers();
  }

  PaddedRows Rows(const KernelContext& run) const {
    if (!is_padded()) return {time_, batch_, nullptr};
    int64_t* numbers = numbers_(run);
    const int blocks = CudaBlocksOfThreads(batch_ + time_ + 1);
    if (lengths_.tensor(run).dtype() == DType::kInt32) {
      FindRows<int32_t><<<blocks, kCudaThreads, 0, StreamOf(run)>>>(
          lengths_.template as<int32_t>(run), time_, batch_, run.fault, numbers);
    } else {
      FindRows<int64_t><<<blocks, kCudaThreads, 0, StreamOf(run)>>>(
          lengths_.template as<int64_t>(run), time_, batch_, run.fault, numbers);
    }
    CheckLaunch("rows of padded sequences");
    return {time_, batch_, numbers};
  }

  RnnPass<T> PassOf(const PaddedRows& rows, int64_t number) const {
    const int64_t layer = number / settings_.directions;
    const int64_t direction = number % settings_.directions;
    return {.mode = settings_.mode,
            .activation = settings_.activation,
            .rows = rows,
            .size = settings_.size,
            .weight_rows = settings_.weight_rows(),
            .gates_width = settings_.gates_width(),
            .is_backward = direction == 1,
            .saved = {reserve_layout_.Gates(number), reserve_layout_.Cell(number),
                      reserve_layout_.ActivatedCell(number)},
            .columns = settings_.hidden_width(),
            .column = direction * settings_.size,
            .reserve_hidden = layer + 1 == settings_.layers ? -1 : reserve_layout_.Hidden(layer)};
  }

  LstmCell<T> Lstm() const {
    return {.size = settings_.size,
            .gate = RecurrentActivation::kSigmoid,
            .cell = RecurrentActivation::kTanh,
            .candidate = RecurrentActivation::kTanh,
            .order = kRnnLstmOrder};
  }

  // Calls body(time) for the steps of a pass, from its first one or from its last one.
  template <class Body>
  void ForEachStep(bool from_end, const Body& body) const {
    for (int64_t step = 0; step < time_; ++step) body(from_end ? time_ - 1 - step : step);
  }

  void Load(const KernelContext& run, const PaddedRows& rows, const T* from, int64_t part,
            const uint8_t* mask, int64_t layer, int64_t columns, T* to) const {
    if (rows_ == 0 || columns == 0) return;
    const RowThreads threads(rows_, columns);
    LoadRows<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        rows, from, part, mask, layer, scale(), columns, threads.of_row, to);
    CheckLaunch("rows of a layer");
  }

  RnnSettings settings_;
  RnnReserve reserve_layout_;
  DropoutSettings dropout_;
  int64_t batch_;
  int64_t time_;
  int64_t input_width_;
  int64_t rows_;
  In<T> input_;
  In<> lengths_;
  std::vector<In<T>> pre_states_;
  std::vector<In<T>> weight_inputs_;
  Workspace<int64_t> numbers_;
};

template <typename T>
class RnnForwardKernel final : public RnnKernel<T> {
 public:
  explicit RnnForwardKernel(PrepareContext& context)
      : RnnKernel<T>(context),
        first_product_(rows_, ShapeOf(settings_.weight_rows(), this->input_width_), rows_),
        layer_product_(settings_.layers > 1 ? rows_ : 0,
                       ShapeOf(settings_.weight_rows(), settings_.hidden_width()), rows_),
        hidden_product_(batch_, ShapeOf(settings_.weight_rows(), settings_.size), batch_),
        out_(context, "Out"),
        reserve_(context, "Reserve"),
        dropout_state_(context, "DropoutState"),
        states_(context, batch_, settings_.size),
        cell_states_(context, this->is_lstm() ? batch_ : 0, settings_.size),
        input_products_(context, rows_, settings_.weight_rows()),
        hidden_products_(context, batch_, settings_.weight_rows()),
        space_(RequestProductSpace(context, first_product_, layer_product_, hidden_product_)) {
    // The hidden states of a layer and those of the one before.
    for (int64_t i = 0; i < std::min<int64_t>(2, settings_.layers - 1); ++i)
      layers_.emplace_back(context, rows_, settings_.hidden_width());
    for (size_t i = 0; i < settings_.states(); ++i)
      state_outputs_.emplace_back(context, "State", i);
  }

  void Run(const KernelContext& run) override {
    if (batch_ == 0) return;
    const PaddedRows rows = this->Rows(run);
    if (this->is_padded()) {
      ClearRnnOutput(run, out_);
      ClearRnnOutput(run, reserve_);
    }
    if (this->is_padded() || !this->drops()) ClearRnnOutput(run, dropout_state_);
    const T* input = this->input_(run);
    for (int64_t layer = 0; layer < settings_.layers; ++layer) {
      const bool is_last = layer + 1 == settings_.layers;
      T* hidden = is_last ? out_(run) : layers_[static_cast<size_t>(layer) % layers_.size()](run);
      for (int64_t d = 0; d < settings_.directions; ++d)
        RunPass(run, rows, layer * settings_.directions + d, input, hidden);
      if (!is_last) Drop(run, rows, layer, hidden);
      input = hidden;
    }
  }

 private:
  // Of rows of `width` numbers with the transposed weights.
  static CudaProductShape ShapeOf(int64_t weight_rows, int64_t width) {
    return {.transpose_b = true,
            .n = weight_rows,
            .k = width,
            .lda = width,
            .ldb = width,
            .ldc = weight_rows};
  }

  void RunPass(const KernelContext& run, const PaddedRows& rows, int64_t number, const T* input,
               T* hidden) const {
    const RnnPass<T> pass = this->PassOf(rows, number);
    const bool is_first = number < settings_.directions;
    const int64_t width = this->InputWidth(number / settings_.directions);
    T* input_products = input_products_(run);
    (is_first ? first_product_ : layer_product_)
        .Run(run, rows_, input, this->Weight(run, settings_.weight(number)), false, input_products,
             space_);
    T* hidden_products = hidden_products_(run);
    const RnnForwardArguments<T> args = {
        .input_products = width == 0 ? nullptr : input_products,
        .hidden_products = hidden_products,
        .bias = this->Weight(run, settings_.bias(number)),
        .hidden_bias = this->Weight(run, settings_.hidden_bias(number)),
        .states = states_(run),
        .cell_states = cell_states_(run),
        .reserve = reserve_(run),
        .layer = hidden};
    T* const states[] = {args.states, args.cell_states};
    const int64_t bytes = this->StateNumbers() * int64_t{sizeof(T)};
    for (size_t i = 0; i < settings_.states(); ++i)
      CopyOnDevice(run, this->PreState(run, i, number), states[i], bytes);
    const T* weight = this->Weight(run, settings_.hidden_weight(number));
    const RowThreads threads(batch_, settings_.size);
    this->ForEachStep(pass.is_backward, [&](int64_t at) {
      hidden_product_.Run(run, batch_, args.states, weight, false, hidden_products, space_);
      RnnForwardRows<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
          pass, this->Lstm(), args, at, threads.of_row);
      CheckLaunch("step of rnn");
    });
    for (size_t i = 0; i < settings_.states(); ++i) {
      if (!state_outputs_[i].is_there()) continue;
      T* to = state_outputs_[i](run) + number * this->StateNumbers();
      CopyOnDevice(run, states[i], to, bytes);
    }
  }

  void Drop(const KernelContext& run, const PaddedRows& rows, int64_t layer, T* hidden) const {
    if (!this->drops() || rows_ == 0) return;
    const RowThreads threads(rows_, settings_.hidden_width());
    DropRows<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
        rows, layer, settings_.hidden_width(), DevicePhilox(this->dropout_.KeyOf(run)),
        this->dropout_.threshold(), this->scale(), threads.of_row, hidden, dropout_state_(run));
    CheckLaunch("dropout of rnn");
  }

  using RnnKernel<T>::settings_;
  using RnnKernel<T>::batch_;
  using RnnKernel<T>::rows_;
  CudaStepProduct<T> first_product_;
  CudaStepProduct<T> layer_product_;
  CudaStepProduct<T> hidden_product_;
  Out<T> out_;
  Out<T> reserve_;
  Out<uint8_t> dropout_state_;
  std::vector<Out<T>> state_outputs_;
  Workspace<T> states_;
  Workspace<T> cell_states_;
  Workspace<T> input_products_;
  Workspace<T> hidden_products_;
  std::vector<Workspace<T>> layers_;
  int space_;
};

template <typename T>
class RnnGradKernel final : public RnnKernel<T> {
 public:
  explicit RnnGradKernel(PrepareContext& context)
      : RnnKernel<T>(context),
        reserve_(context, "Reserve"),
        dropout_state_(context, "DropoutState"),
        out_(context, "Out"),
        out_grad_(context, "Out@GRAD"),
        input_grad_(context, "Input@GRAD"),
        hidden_product_(batch_,
                        {.n = settings_.size,
                         .k = settings_.weight_rows(),
                         .lda = settings_.gates_width(),
                         .ldb = settings_.size,
                         .ldc = settings_.size},
                        batch_),
        hidden_gradient_(rows_, settings_.weight_rows(), settings_.gates_width(), settings_.size,
                         settings_.size),
        next_(context, batch_, settings_.size),
        next_products_(context, batch_, settings_.size),
        next_cell_(context, this->is_lstm() ? batch_ : 0, settings_.size),
        gates_(context, rows_, settings_.gates_width()),
        before_(context, rows_, settings_.size),
        first_input_(context, this->is_padded() ? rows_ : 0, this->input_width_),
        layer_input_(context, settings_.layers > 1 ? rows_ : 0, settings_.hidden_width()) {
    for (const RnnGatePart& part : settings_.input_parts()) {
      AddProducts(part, this->input_width_, input_grad_.is_there() ? rows_ : 0, &first_products_);
      if (settings_.layers > 1)
        AddProducts(part, settings_.hidden_width(), rows_, &layer_products_);
    }
    int64_t bytes = std::max(hidden_product_.workspace_bytes(), hidden_gradient_.workspace_bytes());
    for (const auto* products : {&first_products_, &layer_products_}) {
      for (const PartProducts& part : *products) {
        bytes = std::max(
            {bytes, part.product.workspace_bytes(), part.weight_gradient.workspace_bytes()});
      }
    }
    space_ = context.RequestWorkspace(bytes);
    // The gradients of a layer's output and of its input.
    for (int64_t i = 0; i < std::min<int64_t>(2, settings_.layers - 1); ++i)
      layer_grads_.emplace_back(context, rows_, settings_.hidden_width());
    for (size_t i = 0; i < settings_.states(); ++i) {
      state_grads_.emplace_back(context, "State@GRAD", i);
      pre_state_grads_.emplace_back(context, "PreState@GRAD", i);
    }
    for (size_t i = 0; i < this->weight_inputs_.size(); ++i)
      weight_grads_.emplace_back(context, "WeightList@GRAD", i);
    SKIFF_ENFORCE(!this->drops() || dropout_state_.is_there(), kInvalidArgument,
                  "rnn_grad: DropoutState is missing, expected that of the forward op");
  }

  void Run(const KernelContext& run) override {
    if (batch_ == 0) return RunWithoutSequences(run);
    const PaddedRows rows = this->Rows(run);
    const T* layer_grad = out_grad_(run);
    for (int64_t layer = settings_.layers - 1; layer >= 0; --layer) {
      const T* input = LayerInput(run, rows, layer);
      T* input_grad = layer == 0
                          ? input_grad_(run)
                          : layer_grads_[static_cast<size_t>(layer) % layer_grads_.size()](run);
      for (int64_t d = 0; d < settings_.directions; ++d) {
        const int64_t number = layer * settings_.directions + d;
        RunPass(run, rows, number, layer_grad);
        WriteWeightGradients(run, number, input);
        if (input_grad != nullptr) AddInputGradient(run, number, input_grad);
      }
      if (layer == 0) break;
      if (this->drops()) {
        this->Load(run, rows, input_grad, -1, dropout_state_(run), layer - 1,
                   settings_.hidden_width(), input_grad);
      }
      layer_grad = input_grad;
    }
  }

 private:
  // The products of a part of the gates with the weights of the input.
  struct PartProducts {
    RnnGatePart part;
    CudaStepProduct<T> product;         // gradient of the input
    CudaSumProduct<T> weight_gradient;  // of the part's rows
  };

  void AddProducts(const RnnGatePart& part, int64_t width, int64_t rows,
                   std::vector<PartProducts>* products) const {
    products->push_back(
        {part,
         CudaStepProduct<T>(rows,
                            {.n = width,
                             .k = part.count,
                             .lda = settings_.gates_width(),
                             .ldb = width,
                             .ldc = width},
                            rows),
         CudaSumProduct<T>(rows_, part.count, settings_.gates_width(), width, width)});
  }

  // The gradients of weights are 0.
  void RunWithoutSequences(const KernelContext& run) const {
    for (const Out<T>& output : weight_grads_) ClearRnnOutput(run, output);
  }

  bool WantsWeight(int64_t layer) const {
    const int64_t first = layer * settings_.directions;
    return weight_grads_[settings_.weight(first)].is_there() ||
           weight_grads_[settings_.weight(first + settings_.directions - 1)].is_there();
  }

  // Returns what a layer has read, padded with zeros, for the gradient of its weights.
  const T* LayerInput(const KernelContext& run, const PaddedRows& rows, int64_t layer) const {
    const T* input = this->input_(run);
    if (!WantsWeight(layer) || (layer == 0 && !this->is_padded())) return input;
    if (layer == 0) {
      T* to = first_input_(run);
      this->Load(run, rows, input, -1, nullptr, 0, this->input_width_, to);
      return to;
    }
    T* to = layer_input_(run);
    this->Load(run, rows, reserve_(run), this->reserve_layout_.Hidden(layer - 1),
               this->drops() ? dropout_state_(run) : nullptr, layer - 1, settings_.hidden_width(),
               to);
    return to;
  }

  // Writes the gradients of all gates of a pass, and those of its initial states.
  void RunPass(const KernelContext& run, const PaddedRows& rows, int64_t number,
               const T* layer_grad) const {
    const RnnPass<T> pass = this->PassOf(rows, number);
    const RnnBackwardArguments<T> args = {
        .reserve = reserve_(run),
        .out = out_(run),
        .start = this->PreState(run, 0, number),
        .cell_start = this->is_lstm() ? this->PreState(run, 1, number) : nullptr,
        .layer_grad = layer_grad,
        .next = next_(run),
        .next_products = next_products_(run),
        .next_cell = next_cell_(run),
        .gates_grad = gates_(run),
        .before = before_(run)};
    if (this->is_padded()) {
      FillBytesOnDevice(run, args.gates_grad, 0, rows_ * pass.gates_width * int64_t{sizeof(T)});
      FillBytesOnDevice(run, args.before, 0, rows_ * pass.size * int64_t{sizeof(T)});
    }
    T* const next[] = {args.next, args.next_cell};
    const int64_t bytes = this->StateNumbers() * int64_t{sizeof(T)};
    for (size_t i = 0; i < settings_.states(); ++i) {
      const T* from = state_grads_[i](run);
      if (from == nullptr) {
        FillBytesOnDevice(run, next[i], 0, bytes);
      } else {
        CopyOnDevice(run, from + number * this->StateNumbers(), next[i], bytes);
      }
    }
    const T* weight = this->Weight(run, settings_.hidden_weight(number));
    const RowThreads threads(batch_, settings_.size);
    // From the last step of the pass to its first.
    this->ForEachStep(!pass.is_backward, [&](int64_t at) {
      RnnBackwardRows<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
          pass, this->Lstm(), args, at, threads.of_row);
      CheckLaunch("gradient of a step of rnn");
      hidden_product_.Run(run, batch_, args.gates_grad + at * batch_ * pass.gates_width, weight,
                          false, next_products_(run), space_);
    });
    if (pre_state_grads_[0].is_there()) {
      const int64_t last = this->time_ == 0 ? -1 : pass.is_backward ? this->time_ - 1 : 0;
      StoreStartGradient<T><<<threads.blocks, kCudaThreads, 0, StreamOf(run)>>>(
          pass, args, last, threads.of_row,
          pre_state_grads_[0](run) + number * this->StateNumbers());
      CheckLaunch("gradient of the initial states of rnn");
    }
    if (this->is_lstm() && pre_state_grads_[1].is_there()) {
      CopyOnDevice(run, args.next_cell, pre_state_grads_[1](run) + number * this->StateNumbers(),
                   bytes);
    }
  }

  const std::vector<PartProducts>& ProductsOf(int64_t number) const {
    return number < settings_.directions ? first_products_ : layer_products_;
  }

  // Writes the gradients of the weights and biases of the pass whose gates have run.
  void WriteWeightGradients(const KernelContext& run, int64_t number, const T* input) const {
    const T* gates = gates_(run);
    const int64_t stride = settings_.gates_width();
    const int64_t width = this->InputWidth(number / settings_.directions);
    const auto gradient = [&](size_t weight) { return weight_grads_[weight](run); };
    T* weight = gradient(settings_.weight(number));
    T* bias = gradient(settings_.bias(number));
    for (const PartProducts& of : ProductsOf(number)) {
      if (weight != nullptr && width > 0) {
        of.weight_gradient.Run(run, gates + of.part.column, input, weight + of.part.row * width,
                               space_);
      }
      if (bias != nullptr) {
        LaunchSumColumns(run, gates + of.part.column, rows_, stride, of.part.count,
                         bias + of.part.row);
      }
    }
    T* hidden_weight = gradient(settings_.hidden_weight(number));
    if (hidden_weight != nullptr)
      hidden_gradient_.Run(run, gates, before_(run), hidden_weight, space_);
    T* hidden_bias = gradient(settings_.hidden_bias(number));
    if (hidden_bias != nullptr)
      LaunchSumColumns(run, gates, rows_, stride, settings_.weight_rows(), hidden_bias);
  }

  // Adds to the gradient of a layer's input what comes through a pass.
  void AddInputGradient(const KernelContext& run, int64_t number, T* input_grad) const {
    const int64_t width = this->InputWidth(number / settings_.directions);
    bool adds = number % settings_.directions > 0;
    for (const PartProducts& of : ProductsOf(number)) {
      of.product.Run(run, rows_, gates_(run) + of.part.column,
                     this->Weight(run, settings_.weight(number)) + of.part.row * width, adds,
                     input_grad, space_);
      adds = true;
    }
  }

  using RnnKernel<T>::settings_;
  using RnnKernel<T>::batch_;
  using RnnKernel<T>::rows_;
  In<T> reserve_;
  In<uint8_t> dropout_state_;
  In<T> out_;
  In<T> out_grad_;
  Out<T> input_grad_;
  std::vector<In<T>> state_grads_;
  std::vector<Out<T>> pre_state_grads_;
  std::vector<Out<T>> weight_grads_;
  CudaStepProduct<T> hidden_product_;
  CudaSumProduct<T> hidden_gradient_;
  std::vector<PartProducts> first_products_;
  std::vector<PartProducts> layer_products_;
  Workspace<T> next_;
  Workspace<T> next_products_;
  Workspace<T> next_cell_;
  Workspace<T> gates_;
  Workspace<T> before_;
  Workspace<T> first_input_;
  Workspace<T> layer_input_;
  std::vector<Workspace<T>> layer_grads_;
  int space_;
};

template <typename T>
void AddRnnKernels(OpRegistry& registry) {
  AddCudaKernel<T>(registry, "rnn", PrepareKernel<RnnForwardKernel<T>>);
  AddCudaKernel<T>(registry, "rnn_grad", PrepareKernel<RnnGradKernel<T>>);
}

}  // namespace

void RegisterRnnCuda(OpRegistry& registry) {
  AddRnnKernels<float>(registry);
  AddRnnKernels<double>(registry);
}

}  // namespace skiff
